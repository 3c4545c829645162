//! Starting an idle agent: what it knows of itself only it can say.

use mainstay_gateway::view::SessionView;
use mainstay_model::{Error, SessionState};
use mainstay_rpc::api::{Sent, SettleSession, StartSession};
use mainstay_rpc::client::Client;

/// How long an agent may take to be there, in milliseconds.
const START_MS: u64 = 60_000;

/// Starts an agent that is idle, and waits until it is there.
pub(super) async fn start(client: &Client, session: String) -> Result<SessionView, Error> {
    match client.call(StartSession { session: session.clone(), sent: Sent::default() }).await {
        Err(Error::NotOffered { state, .. }) if state != SessionState::Uninitialized => {}
        started => drop(started?),
    }
    client.call(SettleSession { session, timeout_ms: START_MS }).await
}
