//! Jobs that a client submits: from the message to the command, and the answer to it. Source: draft-arcp-1.1, 7.1, 7.2 and 7.5; draft-arcp-01, 6.3.
//!
//! A task of its own finds the session that does the work, so that nothing waits for that. What comes of it is told by a [`SubmissionUpdate`].

use std::sync::{Arc, OnceLock};

use mainstay_engine::{Client, CommandStatus, GivenTask};
use mainstay_gateway::daemon::Daemon;
use mainstay_model::event::QueuedCommand;
use mainstay_model::grant::Grants;
use mainstay_model::{
    Admission, Answered, Capability, Command, CommandFingerprint, CommandId, Error, EventBody,
    IdempotencyKey, Outcome, Seq, SessionId, SessionKind, Timestamp,
};
use serde_json::Value;

use crate::agents::{Agent, AgentCache};
use crate::delegation::Delegation;
use crate::dialect::Dialect;
use crate::fold_place::ToldAtBase;
use crate::job_id::{Submission, job_id};
use crate::job_origin::{Acceptance, JobOrigin, trace_of_job};
use crate::pending_submissions::{Found, PendingSubmission, Refusal, SubmissionUpdate};
use crate::session::Session;
use crate::session_change::{Change, History};
use crate::submission_key::SubmissionKey;
use crate::work::Work;

/// What a client asks to be done.
pub(crate) struct Submit {
    /// The message that asks for it.
    pub(crate) message: String,
    /// The trace of which it is part, where its client gave one.
    pub(crate) trace: Option<String>,
    /// The agent that is to do it, and in which version.
    pub(crate) agent: String,
    pub(crate) version: Option<String>,
    /// What the agent is given.
    pub(crate) input: Value,
    /// The key of the client for it.
    pub(crate) key: Option<String>,
    /// How many milliseconds it may take at most.
    pub(crate) timeout_ms: Option<u64>,
    /// What it may do at most; of a job that another gives a task to, what that says takes its place.
    pub(crate) grants: Option<Box<Grants>>,
    /// The job that gives the task, where one does.
    pub(crate) delegation: Option<Delegation>,
}

/// What a job's command is made of.
struct Order {
    job: CommandId,
    key: IdempotencyKey,
    submit: Submit,
    /// The folder of its session, where its input names none.
    folder: Option<String>,
}

impl Order {
    fn work(&self, agent: &Agent) -> Result<Work, Error> {
        Ok(Work::for_agent(agent, &self.submit.input)?.in_folder(self.folder.as_deref()))
    }

    /// Has the job that gives the task, where one does, decide what this one may do. It is held until the job was submitted.
    async fn decide_delegation(&mut self, client: &Client) -> Result<Option<GivenTask>, Error> {
        let Some(delegation) = self.submit.delegation.take() else { return Ok(None) };
        let given = delegation.decide(client, &self.job, &self.submit.agent).await?;
        self.submit.grants = Some(given.grants.clone());
        Ok(Some(given))
    }

    /// What the job is granted of what was asked. Code in a kernel asks nobody before it does something, so that of a grant only its end and
    /// its budget hold for it.
    fn grants(&self, is_agent: bool) -> Option<Box<Grants>> {
        let asked = self.submit.grants.clone()?;
        let held = if is_agent { asked } else { Box::new(asked.without_patterns()) };
        Some(held).filter(|held| is_agent || !held.has_no_bounds())
    }
}

impl<D: Dialect> Session<D> {
    /// The job that a submission is of, however often it comes.
    ///
    /// # Errors
    /// As [`job_id`].
    pub(crate) fn job_of(&self, submit: &Submit) -> Result<CommandId, Error> {
        let told_apart = match &submit.key {
            Some(key) => Submission::Key(key),
            None => Submission::Message { session: &self.stored.id, message: &submit.message },
        };
        job_id(self.client.principal(), told_apart)
    }

    /// Submits a job. It is answered once its session has accepted or refused it.
    pub(crate) async fn submit(&mut self, submit: Submit) -> Result<(), Error> {
        if submit.key.as_ref().is_some_and(String::is_empty) {
            let empty = Error::InvalidArgument {
                argument: "idempotency_key".to_owned(),
                reason: "it must not be empty; without one each submission is another job".to_owned(),
            };
            self.refuse(&submit.message, &empty.into()).await;
            return Ok(());
        }
        let job = self.job_of(&submit)?;
        let key = SubmissionKey {
            session: self.stored.id.clone(),
            trace: submit.trace.clone(),
            message: D::TELLS_ACCEPTANCE.then(|| submit.message.clone()),
        };
        // All else in the key is this gateway's own: only what the client gave can be what no key may be.
        let Ok(key) = key.of_job(&job) else {
            let unkept = Error::InvalidArgument {
                argument: "trace_id".to_owned(),
                reason: "it and the id of the message may have about 190 characters together".to_owned(),
            };
            self.refuse(&submit.message, &unkept.into()).await;
            return Ok(());
        };
        let message = submit.message.clone();
        let pending = PendingSubmission {
            message: message.clone(),
            agent: submit
                .version
                .as_ref()
                .map_or_else(|| submit.agent.clone(), |version| format!("{}@{version}", submit.agent)),
            trace: submit.trace.clone().unwrap_or_else(|| trace_of_job(&job)),
            fingerprint: Arc::default(),
        };
        let order = Order { job: job.clone(), key, submit, folder: self.folder.clone() };
        self.pending.add(job.clone(), pending.clone());
        let (daemon, client, updates) = (self.daemon.clone(), self.client.clone(), self.updates.clone());
        let agents = self.agent_cache.clone();
        tokio::spawn(async move {
            let found = try_submit(&daemon, &client, &agents, order, &pending.fingerprint).await;
            let found = found.unwrap_or_else(|error| Found::Refused(error.into()));
            updates.send(SubmissionUpdate { job, message, found }).await.ok();
        });
        Ok(())
    }

    /// Answers a submission as the task that carries it out found.
    pub(crate) async fn take_update(
        &mut self,
        SubmissionUpdate { job, message, found }: SubmissionUpdate,
    ) -> Result<(), Error> {
        match found {
            Found::Refused(refusal) => {
                // Where its session accepted it, that has happened by now, and events tell how it ended.
                self.reach_the_end().await?;
                if self.pending.take(&job, &message).is_some() {
                    self.refuse(&message, &refusal).await;
                }
                Ok(())
            }
            Found::Existing { home } => {
                let submission = self.pending.take(&job, &message);
                self.join_existing(job, home, submission).await
            }
        }
    }

    /// Tells of a job that its session has: it was submitted before, in this session or in another under the same key, or another submission came
    /// first. The terminal message is told again where the job has ended.
    async fn join_existing(
        &mut self,
        job: CommandId,
        home: SessionId,
        submission: Option<PendingSubmission>,
    ) -> Result<(), Error> {
        // It was accepted by its own event, as most are.
        if submission.is_none() && self.is_own(&job) {
            return Ok(());
        }
        self.reach_the_end().await?;
        // How it has ended is told to whoever submits it again.
        let goes_on = matches!(self.place_of(&job).await?, Some((_, false)));
        let is_given_away =
            goes_on && !self.is_own(&job) && self.holds_by_handover(&job, home).await? == Some(false);
        let runs_on =
            self.is_own(&job) && self.fold.job(&job).is_some_and(|known| !known.state.is_terminal());
        // What another session was given does not become this one's by being sent again.
        if !runs_on && !is_given_away && (submission.is_some() || !self.is_own(&job)) {
            let told = self.told_under_this(&job, home, submission.as_ref()).await?;
            let joined = Change::Joined {
                job: job.clone(),
                home,
                history: History::End,
                is_own: true,
                has_begun: told.has_begun,
                told: Some(told),
            };
            match (self.store_change(None, joined).await, &submission) {
                (
                    Err(error @ (Error::SessionNotFound { .. } | Error::TooManyRequests { .. })),
                    Some(submission),
                ) => {
                    self.refuse(&submission.message, &error.into()).await;
                    return Ok(());
                }
                (Err(Error::SessionNotFound { .. } | Error::TooManyRequests { .. }), None) => return Ok(()),
                (stored, _) => stored?,
            }
        }
        if let Some(submission) = submission {
            self.load_agent(home).await?;
            let agent = self.agent_of(home).cloned().unwrap_or_default();
            self.send_frame(D::accepted(self, &job, &PendingSubmission { agent, ..submission })).await;
        }
        self.apply_joins(self.position).await
    }

    /// What the session is told a job as that it submitted when the job was there already.
    async fn told_under_this(
        &self,
        job: &CommandId,
        home: SessionId,
        submission: Option<&PendingSubmission>,
    ) -> Result<ToldAtBase, Error> {
        let known = self.fold.job(job);
        let trace = known.map(|known| known.origin.trace.clone());
        let trace = trace.or_else(|| submission.map(|submission| submission.trace.clone()));
        let message = submission.map(|submission| submission.message.clone());
        let origin = JobOrigin {
            session: self.stored.id.clone(),
            trace: trace.unwrap_or_else(|| trace_of_job(job)),
            message: message.filter(|_| D::TELLS_ACCEPTANCE),
        };
        let status = self.client.command(job).await;
        let has_begun =
            known.map_or_else(|| matches!(status, Ok(CommandStatus::Runs { .. })), |known| known.has_begun);
        Ok(ToldAtBase {
            has_begun,
            is_conversation: known.is_some_and(|known| known.is_conversation),
            submitted_at: known.map_or_else(Timestamp::now, |known| known.submitted_at),
            origin,
            last_seq: 0,
            last_text: None,
            grants: match known {
                Some(known) => known.grants.clone(),
                None => self.granted_to(job, home).await?,
            },
        })
    }

    /// What a job may do at most, by the event that accepted it.
    pub(crate) async fn granted_to(
        &self,
        job: &CommandId,
        home: SessionId,
    ) -> Result<Option<Box<Grants>>, Error> {
        let accepted = self.acceptance_of(job, home).await?;
        let grants =
            accepted.as_ref().and_then(Acceptance::of).and_then(|acceptance| acceptance.grants.cloned());
        Ok(grants.map(Box::new))
    }

    /// Says that a submission was refused.
    pub(crate) async fn refuse(&self, message: &str, refusal: &Refusal) {
        self.send_frame(D::refused(self, message, refusal)).await;
    }
}

/// Has a job's session take it; what there is to say beside what events tell.
async fn try_submit(
    daemon: &Daemon,
    client: &Client,
    agents: &AgentCache,
    mut order: Order,
    fingerprint: &OnceLock<CommandFingerprint>,
) -> Result<Found, Error> {
    // What came of a job does not depend on what can be given jobs now.
    if let Some(before) = before(client, &order.job).await? {
        if order.submit.delegation.take().is_some() {
            match client.delegated(&order.job).await? {
                Some(grants) => order.submit.grants = Some(grants),
                // It was no delegation then.
                None => return Ok(Found::Refused(Error::CommandConflict { command: order.job }.into())),
            }
        }
        let Submit { agent, version, .. } = &order.submit;
        let same_agent = Agent::of_kind(&before.kind, agent, version.as_deref());
        let is_same = match &same_agent {
            Some(same_agent) => before.is_of(&order, same_agent, client).await,
            None => false,
        };
        return Ok(match is_same {
            true => Found::Existing { home: before.home },
            false => Found::Refused(Error::CommandConflict { command: order.job }.into()),
        });
    }
    let Submit { agent, version, .. } = &order.submit;
    let found = match agents.agent(daemon, client, agent, version.as_deref()).await? {
        Ok(found) => found,
        Err(why) => return Ok(Found::Refused(Refusal::Agent { agent: agent.clone(), why })),
    };
    if order
        .submit
        .grants
        .as_ref()
        .and_then(|grants| grants.expires_at())
        .is_some_and(|at| at <= Timestamp::now())
    {
        let reason = "it lies in the past".to_owned();
        let past = Error::InvalidArgument { argument: "expires_at".to_owned(), reason };
        return Ok(Found::Refused(past.into()));
    }
    let kind = &found.kind;
    let capabilities = client.capabilities_of(kind);
    let is_agent = capabilities.has(Capability::Conversation);
    let work = order.work(&found)?;
    let body = work.clone().command(kind, capabilities)?;
    let there = match &order.submit.delegation {
        Some(_) => work.found_session(daemon, client, kind).await?,
        None => None,
    };
    if let (Some(delegation), Some(place)) = (&order.submit.delegation, there)
        && delegation.is_within(client, place).await?
    {
        return Ok(Found::Refused(Refusal::BehindParent { agent: order.submit.agent }));
    }
    // All that can be refused for its form has been: what is decided now takes a part of the other job's budget.
    let _task = order.decide_delegation(client).await?;
    let place = match there {
        Some(place) => place,
        None => work.session(daemon, client, kind).await?,
    };
    let grants = order.grants(is_agent);
    let Order { job, key, submit, .. } = order;
    let command = Command {
        grants,
        key: Some(key),
        admission: Admission::Queue,
        timeout_ms: submit.timeout_ms,
        ..Command::new(job, client.source(), body)
    };
    fingerprint.set(command.fingerprint(place)).ok();
    match client.submit(place, command).await? {
        Answered { outcome: Outcome::Failed { error }, .. } => Ok(Found::Refused(error.into())),
        // Another submission of the same job may have come first, so that no event says that this one was accepted.
        Answered { .. } => Ok(Found::Existing { home: place }),
    }
}

/// When a command was accepted that waits for its turn, and the whole of it.
pub(crate) async fn accepted(
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
    async fn is_of(&self, order: &Order, agent: &Agent, client: &Client) -> bool {
        let Ok(work) = order.work(agent) else { return false };
        // Where it names a session, that may be gone meanwhile, and its name another's.
        if let Some(named) = work.named_session()
            && client.resolve(named).await.is_ok_and(|session| session != self.home)
        {
            return false;
        }
        let capabilities = client.capabilities_of(&agent.kind);
        let again = work.command(&agent.kind, capabilities).map(|body| {
            let grants = order.grants(capabilities.has(Capability::Conversation));
            let command = Command { grants, ..Command::new(order.job.clone(), client.source(), body) };
            command.fingerprint(self.home)
        });
        again.is_ok_and(|again| self.fingerprint.as_ref().is_none_or(|before| *before == again))
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
