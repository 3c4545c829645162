//! `mainstay`: the command line.
//!
//! [`commands`] has one file for each command, [`jupyter`] is Mainstay as a Jupyter kernel, [`agents`] installs agents, [`project`] knows where
//! a project begins, [`bridge`] carries other protocols. The daemon, the prompt and what all clients share are crates of their own.

mod agents;
#[cfg(test)]
mod book;
mod bridge;
mod commands;
mod jupyter;
#[cfg(test)]
mod operations;
mod project;

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
