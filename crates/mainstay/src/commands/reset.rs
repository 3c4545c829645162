//! `mainstay session reset`, and what is said of a reset before and after it.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::Error;
use mainstay_protocol::operations::ResetSession;
use mainstay_terminal::{note, printable};
use mainstay_terminal_client::reset::{confirm_reset, has_begun, how_to_undo};
use mainstay_terminal_client::sessions::settle;

use super::arguments::named;
use super::conditions::SentArgs;
use super::session_text::show_new;

/// Drops a session's definitions and waits until it is ready again.
///
/// On a terminal it says what would be lost, and asks.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session reset\n  mainstay session reset --hard lab         # also where it is Faulted\n  mainstay session fork lab --before-reset  # has what was there, in a session of its own"
)]
pub(super) struct Reset {
    /// The session [default: the most recently active one of this folder]
    session: Option<String>,

    /// With its worker; this works in every state
    #[arg(long)]
    hard: bool,

    /// Reset without asking first
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    sent: SentArgs,
}

impl Reset {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let session = named(client, self.session).await?;
        if !self.yes && stdin().is_terminal() && !confirm_reset(client, &session).await {
            note("nothing was reset");
            return Ok(ExitCode::FAILURE);
        }
        let (has_begun, name) = (has_begun(&session), session.name);
        let reset =
            ResetSession { session: session.session.to_string(), hard: self.hard, sent: self.sent.sent() };
        let session = client.call(reset).await?;
        show_new(&settle(client, session).await?, false)?;
        if has_begun {
            note(&how_to_undo(&format!("mainstay session fork {} --before-reset", printable(&name))));
        }
        Ok(ExitCode::SUCCESS)
    }
}
