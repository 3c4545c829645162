//! `mainstay arcp`: ARCP over stdio for programs, and a client of it for people and scripts.
//!
//! [`stdio`] carries bytes. The others speak dialect B with the daemon over its local socket ([`client`]).

mod cancel;
mod client;
mod output;
mod replay;
mod sessions;
mod stdio;
mod submit;
mod tail;
mod tools;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_home::Home;
use mainstay_model::Error;

/// Submits and follows jobs of ARCP; without a command, serves ARCP over stdio
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  mainstay arcp submit --agent python3 'sum(range(10))'\n  mainstay arcp tail job_4Z…              # what happened to a job, and what comes\n  mainstay arcp cancel job_4Z…\n  mainstay arcp sessions                  # which sessions of ARCP can be resumed\n  mainstay arcp replay sess_01J…          # what one was told\n  mainstay arcp < envelopes.jsonl         # ARCP itself, as a program that starts this speaks it\n\nOver WebSocket ARCP is at /arcp of the daemon's port; there the first envelope shows the token."
)]
pub(super) struct Arcp {
    #[command(subcommand)]
    command: Option<ArcpCommand>,
}

#[derive(Debug, Subcommand)]
enum ArcpCommand {
    Submit(submit::Submit),
    Tail(tail::Tail),
    Cancel(cancel::Cancel),
    Replay(replay::Replay),
    Sessions(sessions::Sessions),
    Tools(tools::Tools),
}

impl Arcp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match self.command {
            None => stdio::serve(home).await,
            Some(ArcpCommand::Submit(submit)) => submit.run(home).await,
            Some(ArcpCommand::Tail(tail)) => tail.run(home).await,
            Some(ArcpCommand::Cancel(cancel)) => cancel.run(home).await,
            Some(ArcpCommand::Replay(replay)) => replay.run(home).await,
            Some(ArcpCommand::Sessions(sessions)) => sessions.run(home).await,
            Some(ArcpCommand::Tools(tools)) => tools.run().await,
        }
    }
}
