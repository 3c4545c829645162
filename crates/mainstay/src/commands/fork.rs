//! The command `mainstay session fork`.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{CommandId, Error, SessionState};
use mainstay_protocol::operations::{ForkSession, Forked};
use mainstay_terminal::note;
use mainstay_terminal_client::session_changes::moved_text;
use mainstay_terminal_client::sessions::settle;

use super::arguments::named;
use super::session_text::show_new;

/// Creates a session that begins where another is, and goes on apart from it.
///
/// The new session has the other's transcript, or the beginning of it, and the values that came of it. Neither notices what
/// the other does from then on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session fork\n  mainstay session fork lab --at 4 --name lab-btree   # with its first 4 entries (see `session transcript`)\n  mainstay session fork lab --before-reset           # undoes a reset, in a session of its own"
)]
pub(super) struct Fork {
    /// The session [default: the most recently active one of this folder]
    session: Option<String>,

    /// With so many entries of its transcript, from the first; an output stays with its input, a call with its result
    /// [default: all]
    #[arg(long, value_name = "ENTRIES")]
    at: Option<u64>,

    /// With what there was before its last reset
    #[arg(long, conflicts_with = "at")]
    before_reset: bool,

    /// What people call the new one [default: the other's name, numbered]
    #[arg(long)]
    name: Option<String>,

    /// A name of your own for this command: given again, it gets the same session and creates no other
    #[arg(long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    id: Option<CommandId>,

    /// Print the new session as JSON
    #[arg(long)]
    json: bool,
}

impl Fork {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let session = named(client, self.session).await?.session.to_string();
        let fork = ForkSession {
            command: self.id,
            session,
            entries: self.at,
            name: self.name,
            before_reset: self.before_reset,
        };
        let forked = client.call(fork).await?;
        moved_text(&forked).iter().for_each(|moved| note(moved));
        let child = settle(client, forked.session.clone()).await?;
        let is_faulted = child.state == SessionState::Faulted.name();
        if self.json {
            super::print_json(&Forked { session: child, ..forked })?;
        } else {
            show_new(&child, false)?;
        }
        Ok(if is_faulted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
