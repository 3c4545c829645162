//! `mainstay session reset`, and what is said of a reset before and after it.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::Error;
use mainstay_protocol::operations::{ListValues, ResetSession};
use mainstay_protocol::reset_warning;
use mainstay_protocol::view::SessionView;
use tokio::time::timeout;

use super::arguments::named;
use super::conditions::SentArgs;
use super::session_text::show_new;
use super::target::settle;
use crate::confirm::{Enter, confirm};
use mainstay_terminal::{note, printable};

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
        if !self.yes && stdin().is_terminal() && !agrees(client, &session).await {
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

/// Asks whoever is at the terminal, where there is anything to lose.
pub(crate) async fn agrees(client: &Client, session: &SessionView) -> bool {
    match what_is_lost(client, session).await {
        Some(lost) => confirm(&format!("this drops {lost}. Go on?"), Enter::Yes),
        None => true,
    }
}

/// Whether anything was said in the session that a reset could drop.
pub(crate) fn has_begun(session: &SessionView) -> bool {
    reset_warning::has_begun(session.evals, session.title.as_deref())
}

/// How a reset is undone, by this command.
pub(crate) fn how_to_undo(command: &str) -> String {
    format!("`{command}` makes a session of what was there")
}

/// What a reset of the session would drop, in words; none where that is nothing.
async fn what_is_lost(client: &Client, session: &SessionView) -> Option<String> {
    if !has_begun(session) {
        return None;
    }
    let is_agent = session.is_agent();
    // One that is idle, or Faulted, cannot be asked, and has its definitions all the same.
    let values = match is_agent {
        true => None,
        false => {
            let asked = client.call(ListValues { session: session.session.to_string() });
            timeout(reset_warning::NAMING, asked).await.ok().and_then(Result::ok)
        }
    };
    let names: Vec<_> = values.iter().flatten().map(|value| printable(&value.name)).collect();
    Some(reset_warning::what_is_lost(&format!("`{}`", printable(&session.name)), is_agent, &names))
}
