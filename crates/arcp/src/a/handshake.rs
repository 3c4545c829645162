//! How a session of dialect A is opened, or found again. Source: draft-arcp-01, 7 to 9.

use jiff::SignedDuration;
use mainstay_arcp_protocol::Dialect;
use mainstay_arcp_protocol::a::session::{
    Auth, AuthScheme, Identity, SessionAccepted, SessionLease, SessionOpen, SessionRejected,
    SessionUnauthenticated, TrustLevel,
};
use mainstay_arcp_protocol::a::{DecodeError, Envelope, ErrorCode, Message, decode};
use mainstay_engine::Client;
use mainstay_gateway::jwt::is_jwt;
use mainstay_model::{Error, Timestamp};

use super::translator::encoded;
use super::{capabilities, errors, ids};
use crate::fold_place::Reached;
use crate::frames::Outbox;
use crate::peer::Peer;
use crate::session::{Opened, Session};
use crate::stored_session::{Opening, StoredSession};

/// A session that was opened, and what its connection is to know.
pub(super) struct Handshake {
    pub(super) opened: Opened,
    /// The message that opened it.
    pub(super) message: String,
    /// How often a job gives a sign of life, in seconds.
    pub(super) heartbeat_sec: u64,
    /// Whether it was opened before, and its client may want to be told what it missed.
    pub(super) comes_back: bool,
}

/// Opens the session that the first frame asks for; none where that is refused, which the client is told.
pub(super) async fn open(peer: &Peer, outbox: &Outbox, first: &str) -> Option<Handshake> {
    let (answers, refusal) = match decode(first) {
        Ok(Envelope { id, session_id, message: Message::SessionOpen(open), .. }) => {
            match try_open(peer, session_id, id.clone(), open).await {
                Ok(opened) => return Some(opened),
                Err(refusal) => (Some(id), *refusal),
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

fn id_of(error: &DecodeError) -> Option<String> {
    errors::undecoded(error).1.map(str::to_owned)
}

async fn try_open(
    peer: &Peer,
    session: Option<String>,
    message: String,
    open: SessionOpen,
) -> Result<Handshake, Box<Message>> {
    let SessionOpen { auth, client: identity, capabilities: offered } = open;
    let name = identity.as_ref().map_or("unknown", |identity| identity.kind.as_str()).to_owned();
    let client = client_of(peer, auth.as_ref(), identity.as_ref(), &name).await?;
    let offered = offered.unwrap_or_default();
    let features = capabilities::negotiate(&offered).map_err(|lacks| {
        Box::new(Message::SessionRejected(SessionRejected {
            code: ErrorCode::Unimplemented,
            message: format!("this runtime does not have {}", lacks.join(", ")),
            unsupported: Some(lacks),
        }))
    })?;
    let heartbeat_sec = capabilities::heartbeat_sec(&offered, peer.settings.heartbeat_interval_sec);
    let version = identity.and_then(|identity| identity.version).unwrap_or_default();
    let found = find_again(peer, &client, session).await.map_err(failed)?;
    let comes_back = found.is_some();
    let opened = match found {
        Some(opened) => opened,
        None => new_session(peer, client, format!("{name} {version}"), features).await.map_err(failed)?,
    };
    Ok(Handshake { opened, message, heartbeat_sec, comes_back })
}

/// The client whose credentials are good. A bearer token may be a signed JWT too.
async fn client_of(
    peer: &Peer,
    auth: Option<&Auth>,
    identity: Option<&Identity>,
    name: &str,
) -> Result<Client, Box<Message>> {
    let scheme = auth.map_or(AuthScheme::None, |auth| auth.scheme);
    let token = match scheme {
        AuthScheme::Bearer => auth.and_then(|auth| auth.token.as_deref()),
        AuthScheme::SignedJwt => {
            let token = auth.and_then(|auth| auth.token.as_deref()).filter(|token| is_jwt(token));
            Some(token.ok_or_else(unauthenticated)?)
        }
        // Who is attached has shown the daemon's token, and needs no other.
        AuthScheme::None => None,
        AuthScheme::Mtls if identity.is_none_or(|identity| identity.fingerprint.is_none()) => {
            let reason = "the scheme mtls wants the fingerprint of the client";
            return Err(Box::new(rejected(ErrorCode::InvalidArgument, reason)));
        }
        AuthScheme::Mtls | AuthScheme::Oauth2 => {
            let reason = "this runtime takes the schemes bearer and signed_jwt alone";
            return Err(Box::new(rejected(ErrorCode::Unimplemented, reason)));
        }
    };
    peer.client_of(token, name).await.ok_or_else(unauthenticated)
}

/// The same answer whatever is wrong with the credentials.
fn unauthenticated() -> Box<Message> {
    let error = Error::Unauthorized;
    let message = format!("{error}; {}", error.next_step());
    let code = ErrorCode::Unauthenticated;
    Box::new(Message::SessionUnauthenticated(SessionUnauthenticated { code, message }))
}

/// The session of the same principal that the client comes back to. What it missed is told once it asks for that.
async fn find_again(peer: &Peer, client: &Client, id: Option<String>) -> Result<Option<Opened>, Error> {
    match id {
        Some(id) => Ok(resume(peer, client, &id, Reached::All).await?.map(welcomed)),
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
    client: &Client,
    id: &str,
    reached: Reached,
) -> Result<Option<Opened>, Error> {
    if !is_there(client, id).await? {
        return Ok(None);
    }
    let held = Some(peer.live.hold(id).await);
    let stored = to_be_resumed(client, id).await?;
    Ok(stored.map(|stored| Opened { client: client.clone(), stored, token: None, reached, held }))
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
    client: Client,
    name: String,
    features: Vec<String>,
) -> Result<Opened, Error> {
    StoredSession::make_room(&client, &peer.live, peer.settings.sessions, Timestamp::now()).await?;
    let since = client.last_position().await?;
    let opening = Opening { client: name, features, chunk_bytes: peer.settings.chunk_bytes, since };
    let (stored, token) = StoredSession::open(Dialect::A, opening, Timestamp::now());
    let held = Some(peer.live.hold(&stored.id).await);
    Ok(Opened { client, stored, token: Some(token), reached: Reached::Seq(0), held })
}

/// What the client of an opened session is welcomed with.
pub(super) fn accepted(session: &Session<super::A>) -> SessionAccepted {
    let window = SignedDuration::from_secs(session.settings.resume_window_sec.into());
    SessionAccepted {
        session_id: session.stored.id.clone(),
        runtime: Some(Identity {
            kind: "mainstay".to_owned(),
            version: Some(session.daemon.version.to_owned()),
            fingerprint: None,
            principal: None,
            trust_level: Some(TrustLevel::Trusted),
        }),
        capabilities: Some(capabilities::of_session(
            &session.stored.features,
            session.dialect.heartbeat.as_secs(),
            &session.settings,
        )),
        lease: Some(SessionLease {
            expires_at: Timestamp::now().checked_add(window).unwrap_or(Timestamp::MAX),
        }),
    }
}

fn rejected(code: ErrorCode, message: &str) -> Message {
    Message::SessionRejected(SessionRejected { code, message: message.to_owned(), unsupported: None })
}

fn failed(error: Error) -> Box<Message> {
    Box::new(rejected(errors::code_of(&error), &error.to_string()))
}
