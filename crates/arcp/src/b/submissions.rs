//! Jobs that a client submits: from the message to the command, and the answer to it. Source: draft-arcp-1.1, 7.1, 7.2 and 7.5.
//!
//! A task of its own finds the session that does the work, so that nothing waits for that. What comes of it is told by a [`Word`](super::pending::Word).

use std::sync::{Arc, OnceLock};

use mainstay_arcp_protocol::b::{Accepted, ErrorCode, ErrorPayload, Message, Submit};
use mainstay_engine::{Client, CommandStatus};
use mainstay_gateway::daemon::Daemon;
use mainstay_model::event::QueuedCommand;
use mainstay_model::{
    Admission, Answered, Capability, Command, CommandFingerprint, CommandId, Error, EventBody,
    IdempotencyKey, Outcome, Seq, SessionId, SessionKind, Timestamp,
};

use super::errors;
use super::pending::{Found, PendingSubmission, Word};
use super::session::Session;
use super::teller::trace_of_job;
use crate::agents::{AgentRefused, kind_of};
use crate::job_id::{Submission, job_id, key_of};
use crate::stored_session::{Change, History};
use crate::work::Work;

/// What a job's command is made of.
struct Order {
    job: CommandId,
    key: IdempotencyKey,
    submit: Submit,
    /// The folder of its session, where its input names none.
    folder: Option<String>,
}

impl Order {
    fn work(&self) -> Result<Work, Error> {
        Ok(Work::of(&self.submit.input)?.in_folder(self.folder.as_deref()))
    }
}

impl Session {
    /// Submits a job. It is answered once its session has accepted or refused it.
    pub(super) async fn submit(
        &mut self,
        message: String,
        trace: Option<String>,
        submit: Submit,
    ) -> Result<(), Error> {
        if let Err(payload) = check(&submit, Timestamp::now()) {
            self.refuse(&message, &payload).await;
            return Ok(());
        }
        let told_apart = match &submit.idempotency_key {
            Some(key) => Submission::Key(key),
            None => Submission::Message { session: &self.stored.id, message: &message },
        };
        let job = job_id(self.client.principal(), told_apart)?;
        // All else in the key is this gateway's own: only a trace can be what no key may be.
        let Ok(key) = key_of(&self.stored.id, trace.as_deref(), &job) else {
            let reason = "trace_id must have at most 128 characters, and no white space";
            self.refuse(&message, &ErrorPayload::new(ErrorCode::InvalidRequest, reason)).await;
            return Ok(());
        };
        let order = Order { job: job.clone(), key, submit, folder: self.folder.clone() };
        let pending = PendingSubmission {
            message: message.clone(),
            agent: order.submit.agent.to_string(),
            trace: trace.unwrap_or_else(|| trace_of_job(&job)),
            said: Arc::default(),
        };
        self.pending.add(job.clone(), pending.clone());
        let (daemon, client, words) = (self.daemon.clone(), self.client.clone(), self.words.clone());
        tokio::spawn(async move {
            let found = try_submit(&daemon, &client, order, &pending.said).await;
            let found = found.unwrap_or_else(Found::Refused);
            words.send(Word { job, message, found }).await.ok();
        });
        Ok(())
    }

    /// Answers a submission as the task that submits it found.
    pub(super) async fn hear_word(&mut self, Word { job, message, found }: Word) -> Result<(), Error> {
        if matches!(found, Found::Refused(_)) {
            // Where its session accepted it, that has happened by now.
            self.reach_the_end().await?;
        }
        match (found, self.pending.take(&job, &message)) {
            (Found::Refused(error), Some(_)) => self.refuse(&message, &errors::payload(&error)).await,
            (Found::Unfit(payload), Some(_)) => self.refuse(&message, &payload).await,
            (Found::Known { home }, submission) => self.known(job, home, submission).await?,
            // It was accepted meanwhile, and events tell how it ended.
            (Found::Refused(_) | Found::Unfit(_), None) => {}
        }
        Ok(())
    }

    /// Tells of a job that its session has: it was submitted before, in this session or in another under the same key, or another submission came
    /// first. The terminal message is told again where the job has ended.
    async fn known(
        &mut self,
        job: CommandId,
        home: SessionId,
        submission: Option<PendingSubmission>,
    ) -> Result<(), Error> {
        let is_told = |session: &Self| session.teller.job(&job).is_some_and(|known| known.is_own);
        // It was accepted by its own event, as most are.
        if submission.is_none() && is_told(self) {
            return Ok(());
        }
        self.reach_the_end().await?;
        let runs_on = self.teller.job(&job).is_some_and(|known| known.is_own && !known.status.is_terminal());
        if !runs_on && (submission.is_some() || !is_told(self)) {
            let joined = Change::Joined { home, history: History::End, is_own: true };
            match (self.store_change(job.clone(), joined).await, &submission) {
                (Err(error @ Error::SessionNotFound { .. }), Some(submission)) => {
                    self.refuse(&submission.message, &errors::payload(&error)).await;
                    return Ok(());
                }
                (Err(Error::SessionNotFound { .. }), None) => return Ok(()),
                (stored, _) => stored?,
            }
        }
        if let Some(submission) = submission {
            self.accept(&job, &submission).await;
        }
        self.apply_changes().await
    }

    /// Says that a job was accepted.
    pub(super) async fn accept(&self, job: &CommandId, submission: &PendingSubmission) {
        let known = self.teller.job(job);
        let accepted = Accepted {
            job_id: job.to_string(),
            agent: known.map_or_else(|| submission.agent.clone(), |known| known.agent.clone()),
            // What a job may do beside running its code is not granted by leases yet, so that none is given.
            lease: Default::default(),
            lease_constraints: None,
            budget: None,
            credentials: None,
            accepted_at: known.map_or_else(Timestamp::now, |known| known.submitted_at),
            trace_id: Some(known.map_or_else(|| submission.trace.clone(), |known| known.trace.clone())),
            parent_job_id: None,
            delegate_id: None,
            request_id: Some(submission.message.clone()),
        };
        self.send(Message::JobAccepted(accepted)).await;
    }

    /// Says that a request was refused.
    pub(super) async fn refuse(&self, message: &str, payload: &ErrorPayload) {
        self.send(Message::SessionError(errors::answering(payload, message))).await;
    }
}

/// What is wrong with a submission by itself.
fn check(submit: &Submit, now: Timestamp) -> Result<(), ErrorPayload> {
    let invalid = |message: String| Err(ErrorPayload::new(ErrorCode::InvalidRequest, message));
    if submit.max_runtime_sec == Some(0) {
        return invalid("max_runtime_sec must be at least 1".to_owned());
    }
    let expires_at =
        submit.lease_constraints.as_ref().and_then(|constraints| constraints.expires_at.as_deref());
    match expires_at.map(|text| (text, text.ends_with('Z'), text.parse::<Timestamp>())) {
        None => Ok(()),
        Some((_, true, Ok(at))) if at > now => Ok(()),
        Some((_, true, Ok(_))) => invalid("expires_at lies in the past".to_owned()),
        Some((text, ..)) => invalid(format!("expires_at must be a time in UTC that ends in Z, not {text}")),
    }
}

/// Has a job's session take it; what there is to say beside what events tell.
async fn try_submit(
    daemon: &Daemon,
    client: &Client,
    order: Order,
    said: &OnceLock<CommandFingerprint>,
) -> Result<Found, Error> {
    let kind = match kind_of(daemon, client, &order.submit.agent).await? {
        Ok(kind) => kind,
        Err(refused) => return Ok(Found::Unfit(no_agent(&order.submit, refused))),
    };
    let is_agent = client.capabilities_of(&kind).has(Capability::Conversation);
    if let Some(before) = before(client, &order.job).await? {
        let is_same = before.kind == kind && before.is_of(&order, client, is_agent);
        return Ok(match is_same {
            true => Found::Known { home: before.home },
            false => Found::Refused(Error::CommandConflict { command: order.job }),
        });
    }
    let work = order.work()?;
    let place = work.session(daemon, client, &kind).await?;
    let Order { job, key, submit, .. } = order;
    let command = Command {
        key: Some(key),
        admission: Admission::Queue,
        timeout_ms: submit.max_runtime_sec.map(|seconds| u64::from(seconds).saturating_mul(1000)),
        ..Command::new(job, client.source(), work.command(is_agent)?)
    };
    said.set(command.fingerprint(place)).ok();
    match client.submit(place, command).await? {
        Answered { outcome: Outcome::Failed { error }, .. } => Ok(Found::Refused(error)),
        // Another submission of the same job may have come first, so that no event says that this one was accepted.
        Answered { .. } => Ok(Found::Known { home: place }),
    }
}

/// When a command was accepted that waits for its turn, and the whole of it.
pub(super) async fn accepted(
    client: &Client,
    home: SessionId,
    seq: Seq,
) -> Result<Option<(Timestamp, QueuedCommand)>, Error> {
    let found = client.events(home, Seq(seq.0.saturating_sub(1)), 1).await?;
    Ok(found.into_iter().next().and_then(|event| match event.body {
        EventBody::CommandQueued(command) => Some((event.at, *command)),
        _ => None,
    }))
}

/// A job that was submitted before.
struct Before {
    home: SessionId,
    kind: SessionKind,
    /// What its command said; none where it is just on its way from one state to the next.
    fingerprint: Option<CommandFingerprint>,
}

impl Before {
    /// Whether it is the same job that is submitted again.
    fn is_of(&self, order: &Order, client: &Client, is_agent: bool) -> bool {
        let again = order
            .work()
            .and_then(|work| work.command(is_agent))
            .map(|body| Command::new(order.job.clone(), client.source(), body).fingerprint(self.home));
        again.is_ok_and(|again| self.fingerprint.as_ref().is_none_or(|said| *said == again))
    }
}

async fn before(client: &Client, job: &CommandId) -> Result<Option<Before>, Error> {
    let (home, ended) = match client.command(job).await {
        Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => (session, None),
        Ok(CommandStatus::Ended(stored)) => match stored.session {
            Some(session) => (session, Some(stored.fingerprint)),
            // It was refused, and is refused again.
            None => return Ok(None),
        },
        Err(Error::CommandNotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(session) = client.seen_session(home).await? else { return Ok(None) };
    let running = session.running().filter(|running| running.command == *job);
    let queued = session.lane.iter().find(|waiting| waiting.command == *job);
    let under_way = match (running, queued) {
        (Some(running), _) => Some(running.fingerprint.clone()),
        (None, Some(waiting)) => {
            accepted(client, home, waiting.queued).await?.map(|(_, command)| command.fingerprint)
        }
        (None, None) => None,
    };
    Ok(Some(Before { home, kind: session.kind, fingerprint: ended.or(under_way) }))
}

fn no_agent(submit: &Submit, refused: AgentRefused) -> ErrorPayload {
    let agent = &submit.agent;
    match refused {
        AgentRefused::Unknown(names) => ErrorPayload::new(
            ErrorCode::AgentNotAvailable,
            format!("there is no agent {}; there are {}", agent.name(), names.join(", ")),
        ),
        AgentRefused::OtherVersion => ErrorPayload::new(
            ErrorCode::AgentVersionNotAvailable,
            format!(
                "{agent} is not available; {} is there in version {}",
                agent.name(),
                crate::agents::VERSION
            ),
        ),
    }
}
