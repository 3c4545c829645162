//! How a session of dialect A is opened, or found again. Source: draft-arcp-01, 7 to 9.

use std::time::Duration;

use futures::Stream;
use jiff::SignedDuration;
use mainstay_arcp_protocol::Dialect;
use mainstay_arcp_protocol::a::session::{
    Auth, AuthScheme, Identity, SessionAccepted, SessionLease, SessionOpen, SessionRejected, TrustLevel,
};
use mainstay_arcp_protocol::a::{DecodeError, Envelope, ErrorCode, Message, decode};
use mainstay_engine::Client;
use mainstay_model::{Error, Timestamp};

use super::translator::encoded;
use super::{authentication, capabilities, errors, ids};
use crate::fold_place::Reached;
use crate::frames::{Incoming, Outbox};
use crate::peer::{AdmittedClient, Peer};
use crate::session::{Opened, Session};
use crate::stored_session::{Opening, StoredSession};

/// The kind of this runtime, as it says of itself.
pub(super) const RUNTIME: &str = "mainstay";

/// What a connection has agreed on for itself, whichever sessions it has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    /// How often a job gives a sign of life.
    pub(super) heartbeat: Duration,
    /// Whether bytes come in frames of their own.
    pub(super) sidecar: bool,
}

/// A session that was opened, and what its connection is to know.
pub(super) struct Handshake {
    pub(super) opened: Opened,
    /// The message that opened it.
    pub(super) message: String,
    pub(super) terms: Terms,
    /// Whether it was opened before, and its client may want to be told what it missed.
    pub(super) comes_back: bool,
}

/// Opens the session that the first frame asks for; none where that is refused, which the client is told.
pub(super) async fn open(
    peer: &Peer,
    outbox: &Outbox,
    incoming: &mut (impl Stream<Item = Incoming> + Send + Unpin),
    first: &str,
) -> Option<Handshake> {
    let (answers, refusal) = match decode(first) {
        Ok(Envelope { id, session_id, message: Message::SessionOpen(open), .. }) => {
            let answers = id.clone();
            match credentials_of(peer, outbox, incoming, id, open).await {
                Ok((id, open)) => match try_open(peer, outbox, session_id, (id.clone(), open)).await {
                    Ok(opened) => return Some(opened),
                    Err(refusal) => (Some(id), *refusal),
                },
                Err(refusal) => (Some(answers), *refusal?),
            }
        }
        Ok(Envelope { id, .. }) => {
            (Some(id), rejected(ErrorCode::FailedPrecondition, "the first message opens a session"))
        }
        Err(error) => (id_of(&error), rejected(ErrorCode::InvalidArgument, &error.to_string())),
    };
    let now = Timestamp::now();
    let id = ids::at(0, now, rand::random());
    let envelope = Envelope { correlation_id: answers, ..Envelope::new(id, now, refusal) };
    outbox.send(encoded(&envelope)).await;
    None
}

/// The opening with credentials, and the message that has them. A client that shows none is asked for them once.
async fn credentials_of(
    peer: &Peer,
    outbox: &Outbox,
    incoming: &mut (impl Stream<Item = Incoming> + Send + Unpin),
    id: String,
    open: SessionOpen,
) -> Result<(String, SessionOpen), Option<Box<Message>>> {
    if !authentication::is_to_be_challenged(peer, open.auth.as_ref()) {
        return Ok((id, open));
    }
    let (id, auth) = authentication::challenge(peer, outbox, incoming, &id).await?;
    Ok((id, SessionOpen { auth: Some(auth), ..open }))
}

/// Whether a client says that it has no credentials.
fn has_no_credentials(auth: Option<&Auth>) -> bool {
    auth.is_some_and(|auth| auth.scheme == AuthScheme::None)
}

fn id_of(error: &DecodeError) -> Option<String> {
    errors::undecoded(error).1.map(str::to_owned)
}

async fn try_open(
    peer: &Peer,
    outbox: &Outbox,
    session: Option<String>,
    (message, open): (String, SessionOpen),
) -> Result<Handshake, Box<Message>> {
    let SessionOpen { auth, client: identity, capabilities: offered } = open;
    let name = identity.as_ref().map_or("unknown", |identity| identity.kind.as_str()).to_owned();
    let offered = offered.unwrap_or_default();
    let allows_anonymous = peer.daemon.tokens.anonymous().is_some();
    let is_anonymous = has_no_credentials(auth.as_ref()) && offered.has(capabilities::ANONYMOUS);
    let admitted = authentication::admit(peer, auth.as_ref(), identity.as_ref(), &name, is_anonymous).await?;
    let features = capabilities::negotiate(&offered, allows_anonymous).map_err(|lacks| {
        Box::new(Message::SessionRejected(SessionRejected {
            code: ErrorCode::Unimplemented,
            message: format!("this runtime does not have {}", lacks.join(", ")),
            unsupported: Some(lacks),
        }))
    })?;
    let heartbeat_sec = capabilities::heartbeat_sec(&offered, peer.settings.heartbeat_interval_sec);
    let sidecar = capabilities::takes_sidecar(&offered, outbox.carries_bytes);
    let terms = Terms { heartbeat: Duration::from_secs(heartbeat_sec), sidecar };
    let version = identity.and_then(|identity| identity.version).unwrap_or_default();
    let found = find_again(peer, &admitted, session).await.map_err(failed)?;
    let comes_back = found.is_some();
    let opened = match found {
        Some(opened) => opened,
        None => new_session(peer, admitted, format!("{name} {version}"), features).await.map_err(failed)?,
    };
    Ok(Handshake { opened, message, terms, comes_back })
}

/// The session of the same principal that the client comes back to. What it missed is told once it asks for that.
async fn find_again(
    peer: &Peer,
    admitted: &AdmittedClient,
    id: Option<String>,
) -> Result<Option<Opened>, Error> {
    match id {
        Some(id) => Ok(resume(peer, admitted, &id, Reached::All).await?.map(welcomed)),
        None => Ok(None),
    }
}

/// The same session, whose client is to be welcomed.
fn welcomed(mut opened: Opened) -> Opened {
    opened.token = Some(opened.stored.new_token());
    opened
}

/// The session of this name, where the client may resume it.
pub(super) async fn resume(
    peer: &Peer,
    AdmittedClient { client, credentials }: &AdmittedClient,
    id: &str,
    reached: Reached,
) -> Result<Option<Opened>, Error> {
    if !is_there(client, id).await? {
        return Ok(None);
    }
    let held = Some(peer.live.hold(id).await);
    let stored = to_be_resumed(client, id).await?;
    let (client, credentials) = (client.clone(), credentials.clone());
    Ok(stored.map(|stored| Opened { client, credentials, stored, token: None, reached, held }))
}

/// Whether the client may resume a session of this name.
pub(super) async fn is_there(client: &Client, id: &str) -> Result<bool, Error> {
    Ok(to_be_resumed(client, id).await?.is_some())
}

async fn to_be_resumed(client: &Client, id: &str) -> Result<Option<StoredSession>, Error> {
    let found = StoredSession::find(client, id, Timestamp::now()).await?;
    Ok(found.filter(|stored| stored.dialect == Dialect::A && !stored.is_closed))
}

async fn new_session(
    peer: &Peer,
    AdmittedClient { client, credentials }: AdmittedClient,
    name: String,
    features: Vec<String>,
) -> Result<Opened, Error> {
    StoredSession::make_room(&client, &peer.live, peer.settings.sessions, Timestamp::now()).await?;
    let since = client.last_position().await?;
    let opening = Opening { client: name, features, chunk_bytes: peer.settings.chunk_bytes, since };
    let (stored, token) = StoredSession::open(Dialect::A, opening, Timestamp::now());
    let held = Some(peer.live.hold(&stored.id).await);
    Ok(Opened { client, credentials, stored, token: Some(token), reached: Reached::Seq(0), held })
}

/// What the client of an opened session is welcomed with.
pub(super) fn accepted(session: &Session<super::A>) -> SessionAccepted {
    let window = SignedDuration::from_secs(session.settings.resume_window_sec.into());
    let window = Timestamp::now().checked_add(window).unwrap_or(Timestamp::MAX);
    let expires_at = session.credentials.admission.expires_at.map_or(window, |at| at.min(window));
    SessionAccepted {
        session_id: session.stored.id.clone(),
        runtime: Some(Identity {
            kind: RUNTIME.to_owned(),
            version: Some(session.daemon.version.to_owned()),
            fingerprint: Some(session.daemon.fingerprint.to_string()),
            principal: None,
            trust_level: Some(TrustLevel::Trusted),
        }),
        capabilities: Some(capabilities::of_session(
            &session.stored.features,
            session.dialect.terms.heartbeat.as_secs(),
            &session.settings,
            session.outbox.carries_bytes,
        )),
        lease: Some(SessionLease { expires_at }),
    }
}

fn rejected(code: ErrorCode, message: &str) -> Message {
    Message::SessionRejected(SessionRejected { code, message: message.to_owned(), unsupported: None })
}

fn failed(error: Error) -> Box<Message> {
    Box::new(rejected(errors::code_of(&error), &error.to_string()))
}
