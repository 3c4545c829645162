//! How a session of dialect B is opened or resumed. Source: draft-arcp-1.1, 6.1 to 6.3; draft-arcp-02, 6.3.

use mainstay_arcp_protocol::b::{
    Capabilities, ErrorCode, ErrorPayload, Feature, Hello, Implementation, Message, Resume, Welcome, decode,
    intersection,
};
use mainstay_arcp_protocol::ids::ulid_text;
use mainstay_engine::Client;
use mainstay_gateway::daemon::Daemon;
use mainstay_model::{Access, Error, Position, Timestamp};
use uuid::Uuid;

use super::errors;
use super::frame::envelope;
use super::peculiarities::Peculiarities;
use crate::agents::inventory;
use crate::connection::Peer;
use crate::frames::Outbox;
use crate::live_sessions::{HeldSession, LiveSessions};
use crate::settings::Settings;
use crate::stored_session::{ResumeToken, StoredSession};

/// What this runtime can do, in the order of the draft.
const FEATURES: [Feature; 6] = [
    Feature::Heartbeat,
    Feature::Ack,
    Feature::ListJobs,
    Feature::Subscribe,
    Feature::ResultChunk,
    Feature::AgentVersions,
];

/// A session that was opened, or is to be resumed.
pub(super) struct Opened {
    pub(super) client: Client,
    pub(super) stored: StoredSession,
    /// The token with which it can be resumed next; none where its client is not to be welcomed.
    pub(super) token: Option<ResumeToken>,
    /// The last message that the client has.
    pub(super) last_seq: u64,
    pub(super) peculiarities: Peculiarities,
    /// What no other connection has meanwhile; none where nothing is changed.
    pub(super) held: Option<HeldSession>,
}

impl Opened {
    /// A session of which is told what it was told behind a number, and nothing else.
    pub(super) fn to_be_replayed(client: Client, stored: StoredSession, after: u64) -> Self {
        let peculiarities = Peculiarities::default();
        Self { client, stored, token: None, last_seq: after, peculiarities, held: None }
    }
}

/// Opens, or finds, the session that the first frame asks for; none where that is refused, which the client is told.
pub(super) async fn open(peer: &Peer, outbox: &Outbox, first: &str) -> Option<Opened> {
    match try_open(peer, first).await {
        Ok(opened) => Some(opened),
        Err(refusal) => {
            outbox.send(envelope(None, Message::SessionError(refusal)).encode()).await;
            None
        }
    }
}

async fn try_open(peer: &Peer, first: &str) -> Result<Opened, ErrorPayload> {
    let frame = decode(first).map_err(|error| errors::undecoded(&error))?;
    let (hello, resume) = match frame.message {
        Message::SessionHello(hello) => {
            let resume = hello.resume.clone();
            (hello, resume)
        }
        Message::SessionResume(resume) => {
            let hello = Hello::of_resume(&resume);
            // A session may be named in the envelope instead.
            let session_id = resume.session_id.clone().or(frame.session_id);
            (hello, Some(Resume { session_id, ..resume }))
        }
        _ => return Err(refused(ErrorCode::InvalidRequest, "the first message opens or resumes a session")),
    };
    let client = attach(peer, &hello)?;
    let peculiarities = Peculiarities::of(&hello);
    let (stored, token, last_seq, held) = match resume {
        Some(resume) => resumed(&client, &peer.live, &resume).await?,
        None => {
            let since = client.last_position().await.map_err(|error| errors::payload(&error))?;
            let (stored, token) = new_session(&hello, since, peer.settings.chunk_bytes);
            let held = peer.live.hold(&stored.id).await;
            (stored, token, 0, held)
        }
    };
    Ok(Opened { client, stored, token: Some(token), last_seq, peculiarities, held: Some(held) })
}

fn new_session(hello: &Hello, since: Position, chunk_bytes: usize) -> (StoredSession, ResumeToken) {
    let id = format!("sess_{}", ulid_text(Uuid::now_v7().as_u128()));
    let features = intersection(&FEATURES, &hello.capabilities.features);
    let features = features.iter().map(ToString::to_string).collect();
    let name = format!("{} {}", hello.client.name, hello.client.version);
    StoredSession::open(id, name, features, chunk_bytes, since, Timestamp::now())
}

/// The client whose credentials are good.
fn attach(peer: &Peer, hello: &Hello) -> Result<Client, ErrorPayload> {
    let shown = hello.auth.as_ref().and_then(|auth| auth.token.as_deref());
    let of_token = |token: &str| peer.daemon.tokens.access_of(token);
    let access: Option<Access> = match (&peer.attached, shown) {
        // Whoever started the bridge has shown the token for it.
        (Some(attached), None | Some("")) => Some(attached.access.clone()),
        (_, Some(token)) => of_token(token),
        (None, None) => None,
    };
    let access = access.ok_or_else(|| errors::payload(&Error::Unauthorized))?;
    let name = format!("arcp:{}", hello.client.name);
    let client = peer.daemon.engine.attach(access, &name).as_connection();
    let environment = peer.attached.as_ref().and_then(|attached| attached.environment.clone());
    Ok(client.with_environment(environment))
}

async fn resumed(
    client: &Client,
    live: &LiveSessions,
    resume: &Resume,
) -> Result<(StoredSession, ResumeToken, u64, HeldSession), ErrorPayload> {
    let id = found(client, resume).await?.id;
    // The token is good: the connection before is given up, and may have used up the token until it is.
    let held = live.hold(&id).await;
    let mut stored = found(client, resume).await?;
    let token = stored.rotate(&resume.resume_token);
    Ok((stored, token, resume.last_event_seq, held))
}

/// The session that is to be resumed, where this may be.
async fn found(client: &Client, resume: &Resume) -> Result<StoredSession, ErrorPayload> {
    let expired = || refused(ErrorCode::ResumeWindowExpired, "there is no such session to resume any more");
    let id = resume.session_id.as_deref().ok_or_else(expired)?;
    let found = StoredSession::find(client, id, Timestamp::now()).await;
    let found = found.map_err(|error| errors::payload(&error))?;
    let stored = found.filter(|stored| !stored.is_closed).ok_or_else(expired)?;
    match stored.is_token(&resume.resume_token) {
        true => Ok(stored),
        false => Err(refused(ErrorCode::Unauthenticated, "this token does not resume the session")),
    }
}

/// What the client of a session is welcomed with.
pub(super) async fn welcome(
    daemon: &Daemon,
    settings: &Settings,
    client: &Client,
    stored: &StoredSession,
    ResumeToken(token): ResumeToken,
) -> Result<Welcome, Error> {
    let has = |feature: Feature| stored.features.iter().any(|known| known == feature.as_str());
    Ok(Welcome {
        runtime: Implementation { name: "mainstay".to_owned(), version: daemon.version.to_owned() },
        session_id: stored.id.clone(),
        resume_token: token,
        resume_window_sec: settings.resume_window_sec.into(),
        heartbeat_interval_sec: has(Feature::Heartbeat).then(|| settings.heartbeat_interval_sec.into()),
        capabilities: Capabilities::of_runtime(
            &FEATURES,
            inventory(daemon, client).await?,
            has(Feature::AgentVersions),
        ),
        accepted_at: Timestamp::now(),
    })
}

fn refused(code: ErrorCode, message: &str) -> ErrorPayload {
    ErrorPayload::new(code, message)
}
