//! Dialect A: draft-arcp-01. Protocol version 1.0.

mod artifacts;
mod authentication;
mod awaited_elevation;
mod backpressure;
mod binary;
mod capabilities;
mod closing;
mod delegation;
mod elevation;
mod errors;
mod handoff;
mod handshake;
mod heartbeats;
mod human;
mod ids;
mod interrupts;
mod leases;
mod news;
mod quorum;
mod requests;
mod results;
mod schedules;
mod stream_cancellation;
mod subscriptions;
mod translator;
mod uploads;
mod wanted_votes;

use std::collections::HashMap;
use std::time::Duration;

use futures::Stream;
use mainstay_arcp_protocol::a::DecodeError;
use mainstay_arcp_protocol::a::control::Nack;
use mainstay_arcp_protocol::a::execution::JobAccepted;
use mainstay_arcp_protocol::a::session::{SessionEvicted, SessionRefresh};
use mainstay_arcp_protocol::a::{Envelope, ErrorCode, Message, OnUnknown, decode, on_unknown};
use mainstay_model::{CommandId, Error, Event, Position, Timestamp};
use tokio::time::Instant;

use self::awaited_elevation::Awaited;
use self::closing::Closing;
use self::handshake::{Handshake, Terms};
use self::results::ResultArtifacts;
use self::translator::{ATranslator, encoded, wire_state};
use self::uploads::Uploads;
use self::wanted_votes::WantedVotes;
use crate::dialect::Dialect;
use crate::fold_place::{Base, Reached};
use crate::frames::{Incoming, Outbox};
use crate::peer::{AdmittedClient, End, Peer};
use crate::pending_submissions::{PendingSubmission, Refusal};
use crate::resume_token::ResumeToken;
use crate::session::{Opened, Served, Session, Updates};
use crate::stored_session::StoredSession;

/// What a client can do whose session cannot be told on from where it says.
const RESUME_STEP: &str = "Decide without what is lost: the session goes on with what happens from here on. \
                           `subscribe` tells of the jobs that are under way.";
/// What a client can do that names another session which it cannot resume.
const OTHER_SESSION_STEP: &str =
    "Go on in this session, or open one: jobs that are under way are observed with `subscribe`.";

/// Dialect A on one connection.
pub(crate) struct A {
    /// What the connection has agreed on.
    terms: Terms,
    /// The message that opened the session, or asked for it to go on from elsewhere.
    opened_by: String,
    /// From where the client wants to go on.
    resume: Option<Resume>,
    /// What the client has where it cannot go on from where it wants.
    otherwise: Option<Reached>,
    /// Until when nothing is told of jobs: the client has come back, and what it missed is to come before what is new. Else it would have a message of
    /// which it could not say that it has all before it.
    held_until: Option<Instant>,
    /// How many signs of life each job has given.
    heartbeats: HashMap<CommandId, u64>,
    /// How the session is to end once its jobs have.
    closing: Option<Closing>,
    /// The artifacts whose content is still to come.
    uploads: Uploads,
    /// What the client wants jobs to be trusted with, and nobody has decided on.
    elevations: Vec<Awaited>,
    /// Where the session was when it was looked how far its observers lie behind.
    lag_looked_at: Position,
    /// The questions that want the vote of the principal, and are of no job that the session is told of.
    votes: WantedVotes,
}

/// From where a client wants to go on. Source: draft-arcp-01, 19.
struct Resume {
    /// The message that says so.
    message: String,
    session: String,
    reached: Reached,
}

/// Serves a connection whose first frame is of this dialect.
pub(crate) async fn serve(
    peer: Peer,
    mut incoming: impl Stream<Item = Incoming> + Send + Unpin,
    outbox: Outbox,
    first: &str,
) -> End {
    let Some(opened) = handshake::open(&peer, &outbox, &mut incoming, first).await else {
        return End::Refused;
    };
    let Handshake { opened, message, terms, comes_back } = opened;
    let (mut session, mut updates) = begin(&peer, opened, outbox.clone(), terms, message);
    session.dialect.held_until = comes_back.then(|| Instant::now() + peer.settings.handshake());
    let mut has_begun_anew = false;
    loop {
        let served = session.serve(&mut incoming, &mut updates).await;
        let otherwise = session.dialect.otherwise.take();
        let begins_anew = served == Served::Expired && otherwise.is_none();
        let next = match (served, otherwise) {
            (Served::Ended(end), _) => return end,
            (Served::Expired, Some(reached)) => Ok(go_on(&peer, session, updates, reached).await),
            // There is nothing before it that could be lost.
            (Served::Expired, None) if has_begun_anew => return End::Refused,
            (Served::Expired, None) => begun_anew(&peer, session, updates).await,
            (Served::GoesBack(number), otherwise) => {
                let (mut again, updates) = go_on(&peer, session, updates, Reached::Seq(number)).await;
                again.dialect.otherwise = otherwise;
                Ok((again, updates))
            }
            (Served::Resumes, _) => resumed(&peer, session, updates).await,
        };
        has_begun_anew = begins_anew;
        (session, updates) = match next {
            Ok(next) => next,
            Err(end) => return end,
        };
    }
}

/// Tells what a session was told behind a number, and nothing else.
pub(crate) async fn replay(
    peer: &Peer,
    client: AdmittedClient,
    stored: StoredSession,
    after: u64,
    outbox: Outbox,
) {
    let opened = Opened::to_be_replayed(client, stored, after);
    begin(peer, opened, outbox, Terms::default(), String::new()).0.replay().await;
}

fn begin(
    peer: &Peer,
    opened: Opened,
    outbox: Outbox,
    terms: Terms,
    opened_by: String,
) -> (Session<A>, Updates) {
    let stored = &opened.stored;
    let has = |name: &str| stored.features.iter().any(|feature| feature == name);
    let translator = ATranslator {
        session: stored.id.clone(),
        principal: opened.client.principal().clone(),
        streams: has("streaming"),
        binary: has("streaming") && has("binary_streams"),
        sidecar: terms.sidecar,
        results: has("artifacts").then(|| ResultArtifacts::new(stored.chunk_bytes, &peer.settings)),
        durable_jobs: has("durable_jobs"),
        asks: has("human_input"),
        permissions: has("permissions"),
        quorum: has(capabilities::QUORUM),
    };
    let dialect = A {
        terms,
        opened_by,
        resume: None,
        otherwise: None,
        held_until: None,
        heartbeats: HashMap::new(),
        closing: None,
        uploads: Uploads::default(),
        elevations: Vec::new(),
        lag_looked_at: Position::ZERO,
        votes: WantedVotes::default(),
    };
    Session::begin(peer, opened, outbox, dialect, translator)
}

/// The session that its client wants to go on with, from where the client says.
async fn resumed(
    peer: &Peer,
    mut session: Session<A>,
    updates: Updates,
) -> Result<(Session<A>, Updates), End> {
    let Some(Resume { message, session: wanted, reached }) = session.dialect.resume.take() else {
        return Err(End::Refused);
    };
    if wanted == session.stored.id {
        session.dialect.opened_by = message;
        let has = Reached::Seq(session.sent);
        let (mut again, updates) = go_on(peer, session, updates, reached).await;
        again.dialect.otherwise = Some(has);
        return Ok((again, updates));
    }
    let is_there = handshake::is_there(&session.client, &wanted).await;
    let nack = match is_there {
        Ok(true) => None,
        Ok(false) => {
            let reason = format!("there is no session {wanted} to resume");
            Some(errors::nack(ErrorCode::DataLoss, reason, OTHER_SESSION_STEP))
        }
        Err(error) => Some(errors::of_error(&error)),
    };
    if let Some(nack) = nack {
        session.nack(&message, nack).await;
        let has = Reached::Seq(session.sent);
        return Ok(go_on(peer, session, updates, has).await);
    }
    // A session that was opened for this alone is not wanted any more.
    if session.is_unused()
        && let Err(error) = session.store_closed().await
    {
        tracing::warn!(%error, session = session.stored.id, "a session that is not wanted is not stored");
    }
    session.gone().await;
    // It is given up first: two clients that want each other's sessions would wait for each other.
    drop(session.owned.take());
    let admitted =
        AdmittedClient { client: session.client.clone(), credentials: session.credentials.clone() };
    match handshake::resume(peer, &admitted, &wanted, reached).await {
        Ok(Some(opened)) => {
            let terms = session.dialect.terms;
            let (mut again, updates) = begin(peer, opened, session.outbox.clone(), terms, message);
            again.dialect.otherwise = Some(Reached::All);
            Ok((again, updates))
        }
        Ok(None) | Err(_) => {
            let reason = format!("there is no session {wanted} to resume any more");
            session.nack(&message, errors::nack(ErrorCode::DataLoss, reason, OTHER_SESSION_STEP)).await;
            Err(End::Refused)
        }
    }
}

/// The same session, told on from here.
async fn go_on(
    peer: &Peer,
    mut session: Session<A>,
    updates: Updates,
    reached: Reached,
) -> (Session<A>, Updates) {
    session.gone().await;
    let stored = session.stored.clone();
    carried_over(peer, session, updates, stored, reached)
}

/// The same session from here on, since what it was told before cannot be told again: its client decides what to do without what is lost. Source:
/// draft-arcp-01, 19.
async fn begun_anew(
    peer: &Peer,
    session: Session<A>,
    updates: Updates,
) -> Result<(Session<A>, Updates), End> {
    let begun = async {
        let mut stored = session.stored.clone();
        let counted = stored.counted.map_or(0, |counted| counted.seq);
        let base = Base {
            position: session.client.last_position().await?,
            seq: session.fold.seq().max(counted),
            jobs: Vec::new(),
            observers: stored.observers(),
        };
        stored.begin_anew(base);
        // It knows of no job, so that all are found that are under way.
        let (empty, updates) = carried_over(peer, session, updates, stored.clone(), Reached::All);
        let under_way = empty.under_way_elsewhere().await?;
        for job in under_way {
            let holds = empty.holds_by_handover(&job.job, job.home).await?;
            stored.base.jobs.extend(job.at_base_of(&stored.id, holds));
        }
        let (mut again, updates) = carried_over(peer, empty, updates, stored, Reached::All);
        again.store().await?;
        Ok((again, updates))
    };
    begun.await.map_err(|error: Error| {
        tracing::warn!(%error, "a session of ARCP cannot begin anew");
        End::Refused
    })
}

/// A session as it is stored so, with what its connection has of the one before.
fn carried_over(
    peer: &Peer,
    mut session: Session<A>,
    updates: Updates,
    stored: StoredSession,
    reached: Reached,
) -> (Session<A>, Updates) {
    let opened = Opened {
        client: session.client.clone(),
        credentials: session.credentials.clone(),
        stored,
        token: session.greeting.take(),
        reached,
        held: session.owned.take(),
    };
    let A { terms, opened_by, heartbeats, closing, uploads, elevations, votes, .. } = session.dialect;
    let (mut again, _) = begin(peer, opened, session.outbox, terms, opened_by);
    // What was submitted is still to be answered.
    (again.pending, again.updates, again.heard) = (session.pending, session.updates, session.heard);
    (again.dialect.heartbeats, again.dialect.closing) = (heartbeats, closing);
    (again.dialect.elevations, again.dialect.votes) = (elevations, votes);
    (again.dialect.uploads, again.held.pacing) = (uploads, session.held.pacing);
    (again, updates)
}

impl Session<A> {
    /// A message that is no event of a job, as the answer to another.
    fn envelope(&self, answers: Option<&str>, message: Message) -> Envelope {
        let now = Timestamp::now();
        Envelope {
            session_id: Some(self.stored.id.clone()),
            correlation_id: answers.map(str::to_owned),
            ..Envelope::new(ids::at(self.reached(), now, rand::random()), now, message)
        }
    }

    /// Answers a message of the client.
    async fn answer(&self, message: &str, answer: Message) {
        self.send_frame(encoded(&self.envelope(Some(message), answer))).await;
    }

    /// Refuses what a message asks.
    async fn nack(&self, message: &str, nack: Nack) {
        self.answer(message, Message::Nack(nack)).await;
    }
}

impl Dialect for A {
    type Translator = ATranslator;
    const TELLS_ACCEPTANCE: bool = true;
    const FORGETS: bool = true;

    async fn greeted(session: &mut Session<Self>) -> Result<(), Error> {
        session.ask_for_votes().await
    }

    async fn heard(session: &mut Session<Self>, event: &Event) -> Result<(), Error> {
        session.hear_of_votes(event).await
    }

    async fn finish(session: &mut Session<Self>) -> Result<Option<Served>, Error> {
        session.dialect.held_until = session.dialect.held_until.filter(|until| Instant::now() < *until);
        session.ask_for_votes().await?;
        session.close_slow_observers().await?;
        session.answer_elevations().await?;
        session.finish_closing().await
    }

    async fn handle_frame(session: &mut Session<Self>, frame: Incoming) -> Result<Option<Served>, Error> {
        let refused = match frame {
            Incoming::Alive | Incoming::Ended => return Ok(None),
            Incoming::Text(text) => match decode(&text) {
                Ok(frame) => return session.request(frame).await,
                Err(DecodeError::UnknownType { namespaced, optional, .. })
                    if on_unknown(namespaced, false, optional) == OnUnknown::Drop =>
                {
                    return Ok(None);
                }
                Err(error) => {
                    let (nack, id) = errors::undecoded(&error);
                    session.send_frame(encoded(&session.envelope(id, Message::Nack(nack)))).await;
                    return Ok(None);
                }
            },
            Incoming::Binary(_) if !session.dialect.terms.sidecar => {
                errors::not_agreed("this connection has no sidecar frames", "binary_encoding: [\"sidecar\"]")
            }
            Incoming::Binary(bytes) => {
                session.take_bytes(&bytes).await?;
                return Ok(None);
            }
            Incoming::TooLarge => {
                let limit = session.daemon.engine.limits().message_bytes;
                errors::of_error(&Error::MessageTooLarge { limit })
            }
        };
        session.send_frame(encoded(&session.envelope(None, Message::Nack(refused)))).await;
        Ok(None)
    }

    async fn welcome(session: &Session<Self>, _: ResumeToken) -> Result<Option<String>, Error> {
        let accepted = Message::SessionAccepted(handshake::accepted(session));
        Ok(Some(encoded(&session.envelope(Some(&session.dialect.opened_by), accepted))))
    }

    fn accepted(session: &Session<Self>, job: &CommandId, submission: &PendingSubmission) -> String {
        let known = session.fold.job(job);
        let accepted =
            JobAccepted { job_id: Some(job.to_string()), state: known.map(|known| wire_state(known.state)) };
        let envelope = Envelope {
            job_id: Some(job.to_string()),
            trace_id: Some(
                known.map_or_else(|| submission.trace.clone(), |known| known.origin.trace.clone()),
            ),
            ..session.envelope(Some(&submission.message), Message::JobAccepted(accepted))
        };
        encoded(&envelope)
    }

    fn refused(session: &Session<Self>, message: &str, refusal: &Refusal) -> String {
        encoded(&session.envelope(Some(message), Message::Nack(errors::of_refusal(refusal))))
    }

    fn failed(session: &Session<Self>, error: &Error) -> String {
        encoded(&session.envelope(None, Message::Nack(errors::of_error(error))))
    }

    fn refresh(session: &Session<Self>, deadline: Timestamp) -> Option<String> {
        let reason = Some("the credentials expire".to_owned());
        let refresh = Message::SessionRefresh(SessionRefresh { deadline, reason });
        Some(encoded(&session.envelope(None, refresh)))
    }

    fn evicted(session: &Session<Self>) -> String {
        let evicted = SessionEvicted {
            code: Some(ErrorCode::Unauthenticated),
            reason: Some("unauthenticated".to_owned()),
            message: Some("the credentials have expired; the jobs go on".to_owned()),
        };
        encoded(&session.envelope(None, Message::SessionEvicted(evicted)))
    }

    fn expired(session: &Session<Self>) -> String {
        let reason = "the session was never told this message, or events have been deleted since";
        let nack = Message::Nack(errors::nack(ErrorCode::DataLoss, reason, RESUME_STEP));
        encoded(&session.envelope(Some(&session.dialect.opened_by), nack))
    }

    fn beat_interval(session: &Session<Self>) -> Duration {
        // So that none is late.
        session.dialect.terms.heartbeat / 2
    }

    /// A sign of life of each job that runs. Source: draft-arcp-01, 10.3.
    fn beat(session: &mut Session<Self>) -> Vec<String> {
        session.signs_of_life()
    }

    fn is_held_back(session: &Session<Self>) -> bool {
        session.dialect.held_until.is_some()
    }

    /// The draft has a client answer nothing.
    fn expects_answers(_: &Session<Self>) -> bool {
        false
    }
}

/// How a session of this name is told that has these capabilities.
#[cfg(test)]
pub(crate) fn test_translator(session: &str, streams: bool) -> ATranslator {
    ATranslator {
        session: session.to_owned(),
        principal: mainstay_model::Principal::local(),
        streams,
        binary: streams,
        sidecar: false,
        results: streams.then(|| ResultArtifacts::new(40, &crate::settings::Settings::default())),
        durable_jobs: true,
        asks: streams,
        permissions: streams,
        quorum: streams,
    }
}
