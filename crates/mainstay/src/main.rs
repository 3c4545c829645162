//! `mainstay`: the daemon, the terminal client and the command line.
//!
//! [`commands`] has one file for each command. [`daemon`] is the background process, [`connect`] the way to it, [`repl`] the prompt.
//! [`own_asks`] is what one's own code asks. What people see is in the crate `mainstay-terminal`.
//! [`home`] and [`config`] are what lies on disk, [`environment`] is what a daemon begins with, [`kernels`] gets languages ready, [`agents`] agents, [`project`] knows where
//! a project begins, [`bridge`] carries other protocols.

mod agents;
#[cfg(test)]
mod book;
mod bridge;
mod commands;
mod config;
mod confirm;
mod connect;
mod daemon;
mod environment;
mod home;
mod jupyter;
mod kernels;
mod link;
mod own_asks;
mod project;
mod repl;

use std::process::ExitCode;

fn main() -> ExitCode {
    end_quietly_without_a_reader();
    commands::Cli::run_from_arguments()
}

/// Who pipes into `head` wants no more than it takes. `println!` panics there; this ends as a program ends that SIGPIPE kills.
fn end_quietly_without_a_reader() {
    const KILLED_BY_SIGPIPE: i32 = 128 + 13;
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or_default();
        if message.starts_with("failed printing to std") {
            std::process::exit(KILLED_BY_SIGPIPE);
        }
        others(panic);
    }));
}
