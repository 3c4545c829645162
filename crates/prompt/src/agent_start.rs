//! Starting an idle agent: what it knows of itself only it can say.

use mainstay_client::Client;
use mainstay_model::{Error, SessionState};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{SettleSession, StartSession};
use mainstay_protocol::view::SessionView;

/// How long an agent may take to be there, in milliseconds.
const START_MS: u64 = 60_000;

/// Starts an agent that is idle, and waits until it is there.
pub(crate) async fn start(client: &Client, session: String) -> Result<SessionView, Error> {
    match client.call(StartSession { session: session.clone(), sent: Sent::default() }).await {
        Err(Error::NotOffered { state, .. }) if state != SessionState::Uninitialized => {}
        started => drop(started?),
    }
    client.call(SettleSession { session, timeout_ms: START_MS }).await
}
