//! What a person at the command line looks up of sessions: which there are, and what one was told. It changes nothing.

use mainstay_arcp_protocol::Dialect;
use mainstay_log::ResumableConnection;
use mainstay_model::Timestamp;

use crate::attach::ResumableSession;
use crate::credentials::Credentials;
use crate::frames::Outbox;
use crate::peer::{AdmittedClient, Peer};
use crate::stored_session::{PROTOCOL, StoredSession};
use crate::{a, b};

/// Tells what a session was told behind a number.
pub(crate) async fn replay(peer: Peer, session: &str, after: u64, outbox: Outbox) {
    let Some(admitted) = admitted(&peer) else { return };
    match StoredSession::find(&admitted.client, session, Timestamp::now()).await {
        Ok(Some(stored)) => match stored.dialect {
            Dialect::A => a::replay(&peer, admitted, stored, after, outbox).await,
            Dialect::B => b::replay(&peer, admitted, stored, after, outbox).await,
        },
        Ok(None) => outbox.send(b::refusal_of_lookup(session)).await,
        Err(error) => outbox.send(b::refusal(&error)).await,
    }
}

/// Tells which sessions can be resumed, the newest first.
pub(crate) async fn sessions(peer: &Peer, outbox: Outbox) {
    let Some(AdmittedClient { client, .. }) = admitted(peer) else { return };
    match client.stored_connections(PROTOCOL).await {
        Ok(stored) => {
            for session in stored.into_iter().filter_map(described) {
                outbox.send(serde_json::to_string(&session).unwrap_or_default()).await;
            }
        }
        Err(error) => outbox.send(b::refusal(&error)).await,
    }
}

fn described(stored: ResumableConnection) -> Option<ResumableSession> {
    let expires_at = stored.expires_at;
    let StoredSession { id, opened_at, client, dialect, features, is_closed, .. } =
        StoredSession::of(stored)?;
    Some(ResumableSession { session: id, client, dialect, opened_at, expires_at, features, is_closed })
}

fn admitted(peer: &Peer) -> Option<AdmittedClient> {
    let admission = peer.attached.as_ref()?.admission.clone();
    let client = peer.daemon.engine.attach(admission.access.clone(), "arcp");
    Some(AdmittedClient {
        client,
        credentials: Credentials::shown(admission, Timestamp::now(), peer.settings.refresh()),
    })
}
