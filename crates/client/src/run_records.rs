//! What a client knows of a notebook's earlier runs.

use mainstay_formats::notebook::runs::{PAGE, RunRecords, known};
use mainstay_model::{CommandId, Error, Event, Outcome, Seq, SessionId};
use mainstay_protocol::operations::{GetCommand, ListEvents};

use crate::Client;

impl RunRecords for Client {
    async fn outcome(&self, command: &CommandId) -> Result<Option<Outcome>, Error> {
        known(self.call(GetCommand { command: command.clone() }).await.map(|status| status.outcome))
    }

    async fn events_after(&self, session: SessionId, after: Seq) -> Result<Vec<Event>, Error> {
        self.call(ListEvents { session: session.to_string(), after, limit: Some(PAGE) }).await
    }
}
