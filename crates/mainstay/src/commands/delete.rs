//! `mainstay session delete`: for good, but for what other sessions have of it.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{Error, SessionId, Timestamp};
use mainstay_protocol::operations::{DeleteSession, GetSessionStatistics};
use mainstay_terminal::{Enter, agrees, note};
use mainstay_terminal_client::session_changes::delete_question;
use mainstay_terminal_client::store::{collect, collected_text};

use super::conditions::SentArgs;

/// Delete a session: what runs in it ends, and nobody finds it any more
///
/// Sessions that were forked off it keep what they have of it. The rest stays on the disk until `mainstay gc`, or goes at once with
/// --gc.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session delete lab\n  mainstay session delete lab --yes --gc   # in a script, and from the disk too"
)]
pub(super) struct Delete {
    /// The session to be deleted
    session: String,

    /// Delete without asking first
    #[arg(short, long)]
    yes: bool,

    /// Remove from the disk at once what no other session has
    #[arg(long)]
    gc: bool,

    #[command(flatten)]
    sent: SentArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Delete {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let Self { session: reference, yes, gc, sent, json } = self;
        let found = client.call(GetSessionStatistics { session: reference.clone() }).await;
        let session = match (found, reference.parse::<SessionId>()) {
            (Ok(found), _) => {
                if !yes && !agrees(&delete_question(&found, Timestamp::now()), Enter::No)? {
                    note("nothing was deleted");
                    return Ok(ExitCode::FAILURE);
                }
                found.session.session.to_string()
            }
            // What was deleted under this id before is answered again.
            (Err(Error::SessionNotFound { .. }), Ok(session)) => session.to_string(),
            (Err(error), _) => return Err(error),
        };
        let deleted = client.call(DeleteSession { session, sent: sent.sent() }).await?;
        let collected = if gc { Some(collect(client).await?) } else { None };
        if json {
            super::print_json(&serde_json::json!({ "deleted": deleted, "collected": collected }))?;
            return Ok(ExitCode::SUCCESS);
        }
        println!("{} deleted", deleted.session.short());
        match collected {
            Some(collected) => print!("{}", collected_text(&collected)),
            None => note("what no other session has of it goes with `mainstay gc`"),
        }
        Ok(ExitCode::SUCCESS)
    }
}
