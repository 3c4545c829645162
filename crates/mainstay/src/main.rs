//! `mainstay`: the daemon, the terminal client and the command line.
//!
//! [`commands`] has one file for each command. [`daemon`] is the background process, [`connect`] the way to it, [`repl`] the prompt.
//! [`home`] and [`config`] are what lies on disk, [`kernels`] gets languages ready, [`terminal`] is all that people see.

mod commands;
mod config;
mod connect;
mod daemon;
mod home;
mod kernels;
mod repl;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    commands::Cli::parse().run()
}
