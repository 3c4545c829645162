//! What the engine knows of a notebook's earlier runs.

use mainstay_formats::notebook::runs::{PAGE, RunRecords, known};
use mainstay_model::{CommandId, Error, Event, Outcome, Seq, SessionId};

use super::Client;
use crate::engine::CommandStatus;

impl RunRecords for Client {
    async fn outcome(&self, command: &CommandId) -> Result<Option<Outcome>, Error> {
        known(self.command(command).await.map(|status| match status {
            CommandStatus::Ended(stored) => Some(stored.outcome),
            CommandStatus::Waits { .. } | CommandStatus::Runs { .. } => None,
        }))
    }

    async fn events_after(&self, session: SessionId, after: Seq) -> Result<Vec<Event>, Error> {
        self.events(session, after, PAGE).await
    }
}
