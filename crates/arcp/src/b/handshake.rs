//! How a session of dialect B is opened or resumed. Source: draft-arcp-1.1, 6.1 to 6.3; draft-arcp-02, 6.3.

use mainstay_arcp_protocol::Dialect;
use mainstay_arcp_protocol::b::{
    Capabilities, ErrorCode, ErrorPayload, Feature, Hello, Implementation, Message, Resume, Welcome, decode,
    intersection,
};
use mainstay_engine::Client;
use mainstay_gateway::daemon::Daemon;
use mainstay_model::{Error, Timestamp};

use super::peculiarities::Peculiarities;
use super::{envelope, errors};
use crate::agents::inventory;
use crate::fold_place::Reached;
use crate::frames::Outbox;
use crate::live_sessions::LiveSessions;
use crate::peer::{AdmittedClient, Peer, Shown};
use crate::resume_token::ResumeToken;
use crate::session::Opened;
use crate::settings::Settings;
use crate::stored_session::{Opening, StoredSession};

/// What this runtime can do, in the order of the draft.
const FEATURES: [Feature; 10] = [
    Feature::Heartbeat,
    Feature::Ack,
    Feature::ListJobs,
    Feature::Subscribe,
    Feature::LeaseExpiresAt,
    Feature::CostBudget,
    Feature::ModelUse,
    Feature::Progress,
    Feature::ResultChunk,
    Feature::AgentVersions,
];

/// Opens, or finds, the session that the first frame asks for; none where that is refused, which the client is told.
pub(super) async fn open(peer: &Peer, outbox: &Outbox, first: &str) -> Option<(Opened, Peculiarities)> {
    match try_open(peer, first).await {
        Ok(opened) => Some(opened),
        Err(refusal) => {
            outbox.send(envelope(None, Message::SessionError(refusal)).encode()).await;
            None
        }
    }
}

async fn try_open(peer: &Peer, first: &str) -> Result<(Opened, Peculiarities), ErrorPayload> {
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
    let admitted = attach(peer, &hello).await?;
    let peculiarities = Peculiarities::of(&hello);
    let opened = match resume {
        Some(resume) => resumed(admitted, &peer.live, &resume).await?,
        None => new_session(peer, admitted, &hello).await.map_err(|error| errors::payload(&error))?,
    };
    Ok((opened, peculiarities))
}

async fn new_session(peer: &Peer, admitted: AdmittedClient, hello: &Hello) -> Result<Opened, Error> {
    let AdmittedClient { client, credentials } = admitted;
    StoredSession::make_room(&client, &peer.live, peer.settings.sessions, Timestamp::now()).await?;
    let features = intersection(&FEATURES, &hello.capabilities.features);
    let opening = Opening {
        client: format!("{} {}", hello.client.name, hello.client.version),
        features: features.iter().map(ToString::to_string).collect(),
        chunk_bytes: peer.settings.chunk_bytes,
        since: client.last_position().await?,
    };
    let (stored, token) = StoredSession::open(Dialect::B, opening, Timestamp::now());
    let held = Some(peer.live.hold(&stored.id).await);
    Ok(Opened { client, credentials, stored, token: Some(token), reached: Reached::Seq(0), held })
}

/// The client whose credentials are good.
async fn attach(peer: &Peer, hello: &Hello) -> Result<AdmittedClient, ErrorPayload> {
    let token = hello.auth.as_ref().and_then(|auth| auth.token.as_deref()).filter(|token| !token.is_empty());
    let shown = match token {
        Some(token) => Shown::Token(token),
        None if peer.attached.is_some() => Shown::Nothing,
        None => Shown::Certificate(None),
    };
    peer.client_of(shown, &hello.client.name).await.map_err(|error| errors::payload(&error))
}

async fn resumed(
    admitted: AdmittedClient,
    live: &LiveSessions,
    resume: &Resume,
) -> Result<Opened, ErrorPayload> {
    let AdmittedClient { client, credentials } = admitted;
    let id = found(&client, resume).await?.id;
    // The token is good: the connection before is given up, and may have used up the token until it is.
    let held = Some(live.hold(&id).await);
    let mut stored = found(&client, resume).await?;
    let token = Some(stored.rotate(&resume.resume_token));
    Ok(Opened { client, credentials, stored, token, reached: Reached::Seq(resume.last_event_seq), held })
}

/// The session that is to be resumed, where this may be.
async fn found(client: &Client, resume: &Resume) -> Result<StoredSession, ErrorPayload> {
    let expired = || refused(ErrorCode::ResumeWindowExpired, "there is no such session to resume any more");
    let id = resume.session_id.as_deref().ok_or_else(expired)?;
    let found = StoredSession::find(client, id, Timestamp::now()).await;
    let found = found.map_err(|error| errors::payload(&error))?;
    let stored =
        found.filter(|stored| stored.dialect == Dialect::B && !stored.is_closed).ok_or_else(expired)?;
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
        accepted_at: Some(Timestamp::now()),
    })
}

fn refused(code: ErrorCode, message: &str) -> ErrorPayload {
    ErrorPayload::new(code, message)
}
