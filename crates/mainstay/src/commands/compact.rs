//! The command `mainstay session compact`.

use std::io::Read;
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::Error;
use mainstay_protocol::operations::CompactSession;
use mainstay_terminal::note;
use mainstay_terminal_client::session_changes::compacted_text;

use super::conditions::SentArgs;

/// Has a summary stand for the beginning of a session's transcript.
///
/// An agent is shown the summary, and what comes behind: one that runs is started anew with it, one that works when its job has
/// ended. What the summary stands for stays readable, and forks have it too.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session compact lab --before 40 --summary 'Two plots were made.'\n  mainstay session compact lab --before 40 --summary - < summary.txt"
)]
pub(super) struct Compact {
    /// The session to be compacted
    session: String,

    /// For the entries before the one with this number (see `session transcript`); fewer, where a call would lose its result
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(2..))]
    before: u64,

    /// The summary; - reads it from standard input
    #[arg(long, value_name = "TEXT")]
    summary: String,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sent: SentArgs,
}

impl Compact {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let Self { session, before, summary, json, sent } = self;
        let summary = if summary == "-" { standard_input()? } else { summary };
        let compact = CompactSession { session, before: before - 1, summary, sent: sent.sent() };
        let compacted = client.call(compact).await?;
        if json {
            super::print_json(&compacted)?;
        } else {
            note(&compacted_text(&compacted));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn standard_input() -> Result<String, Error> {
    let mut summary = String::new();
    let read = std::io::stdin().read_to_string(&mut summary);
    read.map_err(|error| Error::InvalidArgument {
        argument: "summary".to_owned(),
        reason: format!("standard input: {error}"),
    })?;
    Ok(summary)
}
