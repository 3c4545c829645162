//! Dialect B: draft-arcp-1.1, with the details of draft-arcp-02. Protocol version 1.1.

mod errors;
mod handshake;
mod lease;
mod peculiarities;
mod requests;
mod submit;
mod subscriptions;
mod translator;

use std::time::Duration;

use futures::Stream;
use mainstay_arcp_protocol::DialectError;
use mainstay_arcp_protocol::b::{Accepted, Envelope, Feature, Message, Ping, decode};
use mainstay_model::{CommandId, Error, Timestamp};

use self::lease::{ShownLease, given_by};
use self::peculiarities::Peculiarities;
use self::translator::BTranslator;
use crate::dialect::Dialect;
use crate::frames::{Incoming, Outbox};
use crate::new_id::new_ulid;
use crate::peer::{AdmittedClient, End, Peer};
use crate::pending_submissions::{PendingSubmission, Refusal};
use crate::resume_token::ResumeToken;
use crate::session::{Opened, Served, Session, Updates};
use crate::stored_session::StoredSession;

/// Dialect B on one connection.
pub(crate) struct B {
    peculiarities: Peculiarities,
    /// The nonce of a ping whose answer says that the client is ready for what it subscribed to.
    awaited_pong: Option<String>,
}

/// Serves a connection whose first frame is of this dialect.
pub(crate) async fn serve(
    peer: Peer,
    mut incoming: impl Stream<Item = Incoming> + Send + Unpin,
    outbox: Outbox,
    first: &str,
) -> End {
    match handshake::open(&peer, &outbox, first).await {
        Some((opened, peculiarities)) => {
            let (mut session, mut updates) = begin(&peer, opened, outbox, peculiarities);
            match session.serve(&mut incoming, &mut updates).await {
                Served::Ended(end) => end,
                Served::Expired | Served::Resumes | Served::GoesBack(_) => End::Refused,
            }
        }
        None => End::Refused,
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
    begin(peer, opened, outbox, Peculiarities::default()).0.replay().await;
}

fn begin(peer: &Peer, opened: Opened, outbox: Outbox, peculiarities: Peculiarities) -> (Session<B>, Updates) {
    let stored = &opened.stored;
    let translator = BTranslator {
        session: stored.id.clone(),
        chunks: stored.features.iter().any(|feature| feature == Feature::ResultChunk.as_str()),
        chunk_bytes: stored.chunk_bytes,
        budgets: stored.features.iter().any(|feature| feature == Feature::CostBudget.as_str()),
        progress: stored.features.iter().any(|feature| feature == Feature::Progress.as_str()),
        peculiarities,
    };
    Session::begin(peer, opened, outbox, B { peculiarities, awaited_pong: None }, translator)
}

/// What a client is told that looks up a session which is not there.
pub(crate) fn refusal_of_lookup(session: &str) -> String {
    envelope(None, Message::SessionError(errors::no_session(session))).encode()
}

/// What a client is told whose session cannot be had.
pub(crate) fn refusal(error: &Error) -> String {
    envelope(None, Message::SessionError(errors::payload(error))).encode()
}

/// What a client is told whose first frame is of neither dialect.
pub(crate) fn refusal_of_frame(error: &DialectError) -> String {
    envelope(None, Message::SessionError(errors::of_first_frame(error))).encode()
}

/// A message that is no event of a job.
fn envelope(session: Option<&str>, message: Message) -> Envelope {
    Envelope {
        id: new_ulid(),
        session_id: session.map(str::to_owned),
        trace_id: None,
        job_id: None,
        event_seq: None,
        message,
    }
}

impl Session<B> {
    /// Sends a message that is no event of a job.
    async fn send(&self, message: Message) {
        self.send_frame(self.frame(message)).await;
    }

    fn frame(&self, message: Message) -> String {
        envelope(Some(&self.stored.id), message).encode()
    }

    /// A ping, and its nonce.
    fn ping(&self) -> (String, String) {
        let nonce = format!("p_{}", new_ulid());
        let ping = Ping { nonce: nonce.clone(), sent_at: Timestamp::now() };
        (nonce, self.frame(Message::SessionPing(ping)))
    }

    /// Sends a message about a job that is no event of it.
    async fn send_of_job(&self, job: &CommandId, message: Message) {
        let about = Envelope { job_id: Some(job.to_string()), ..envelope(Some(&self.stored.id), message) };
        self.send_frame(about.encode()).await;
    }
}

impl Dialect for B {
    type Translator = BTranslator;
    const TELLS_ACCEPTANCE: bool = false;
    const FORGETS: bool = false;

    async fn finish(_: &mut Session<Self>) -> Result<Option<Served>, Error> {
        Ok(None)
    }

    async fn handle_frame(session: &mut Session<Self>, frame: Incoming) -> Result<Option<Served>, Error> {
        let refused = match frame {
            Incoming::Alive | Incoming::Ended => return Ok(None),
            Incoming::Text(text) => match decode(&text) {
                Ok(frame) => return Ok(session.request(frame).await?.map(Served::Ended)),
                Err(error) => errors::undecoded(&error),
            },
            Incoming::Binary(_) => errors::no_bytes(),
            Incoming::TooLarge => {
                let limit = session.daemon.engine.limits().message_bytes;
                errors::payload(&Error::MessageTooLarge { limit })
            }
        };
        session.send(Message::SessionError(refused)).await;
        Ok(None)
    }

    async fn welcome(session: &Session<Self>, token: ResumeToken) -> Result<Option<String>, Error> {
        let Session { daemon, settings, client, stored, .. } = session;
        let welcome = handshake::welcome(daemon, settings, client, stored, token).await?;
        Ok(Some(session.frame(Message::SessionWelcome(welcome))))
    }

    fn accepted(session: &Session<Self>, job: &CommandId, submission: &PendingSubmission) -> String {
        let known = session.fold.job(job);
        let ShownLease { lease, constraints, budget } =
            ShownLease::of(known.and_then(|known| known.grants.as_deref()));
        let (parent_job_id, delegate_id) = given_by(known.and_then(|known| known.grants.as_deref()), job);
        let accepted = Accepted {
            job_id: job.to_string(),
            agent: known.map_or_else(|| submission.agent.clone(), |known| known.agent.clone()),
            lease,
            lease_constraints: constraints,
            budget,
            credentials: None,
            accepted_at: Some(known.map_or_else(Timestamp::now, |known| known.submitted_at)),
            trace_id: Some(
                known.map_or_else(|| submission.trace.clone(), |known| known.origin.trace.clone()),
            ),
            parent_job_id,
            delegate_id,
            request_id: Some(submission.message.clone()),
        };
        session.frame(Message::JobAccepted(accepted))
    }

    fn refused(session: &Session<Self>, message: &str, refusal: &Refusal) -> String {
        let refused = errors::answering(&errors::of_refusal(refusal), message);
        session.frame(Message::SessionError(refused))
    }

    fn failed(session: &Session<Self>, error: &Error) -> String {
        session.frame(Message::SessionError(errors::payload(error)))
    }

    /// The draft has no message for it.
    fn refresh(_: &Session<Self>, _: Timestamp) -> Option<String> {
        None
    }

    fn evicted(session: &Session<Self>) -> String {
        Self::failed(session, &Error::Unauthorized)
    }

    fn expired(session: &Session<Self>) -> String {
        session.frame(Message::SessionError(errors::expired()))
    }

    fn beat_interval(session: &Session<Self>) -> Duration {
        session.settings.heartbeat()
    }

    fn beat(session: &mut Session<Self>) -> Vec<String> {
        if !Self::expects_answers(session) {
            return Vec::new();
        }
        vec![session.ping().1]
    }

    fn is_held_back(session: &Session<Self>) -> bool {
        session.dialect.awaited_pong.is_some()
    }

    fn expects_answers(session: &Session<Self>) -> bool {
        session.has(Feature::Heartbeat.as_str())
    }
}

/// How a session of this name is told.
#[cfg(test)]
pub(crate) fn test_translator(session: &str) -> BTranslator {
    let peculiarities = Peculiarities::default();
    BTranslator {
        session: session.to_owned(),
        chunks: true,
        chunk_bytes: 40,
        budgets: true,
        progress: true,
        peculiarities,
    }
}
