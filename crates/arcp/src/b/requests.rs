//! What a client of dialect B asks in its session. Source: draft-arcp-1.1, 6.4 to 6.7, 7.4 and 7.6.

use mainstay_arcp_protocol::b::{
    Cancel, Cancelled, Closed, Envelope, ErrorCode, ErrorPayload, Feature, JobEntry, JobStatus, Jobs,
    ListJobs, Message, Pong, Subscribe, Subscribed, Unsubscribe, decode,
};
use mainstay_engine::CommandStatus;
use mainstay_gateway::command::anonymous;
use mainstay_log::SessionFilter;
use mainstay_model::{Command, CommandId, Error, Position, SessionCommand, SessionId, Timestamp, command};

use super::errors;
use super::handshake::Opened;
use super::session::{Session, replay};
use super::submissions::accepted;
use super::teller::{ToldJob, place_of_message, trace_of_job};
use crate::connection::{End, Peer};
use crate::feed::submitted;
use crate::frames::Outbox;
use crate::job_id::{session_of_key, trace_of_key};
use crate::live_sessions::LiveSessions;
use crate::stored_session::{Change, History, StoredSession};

/// How many jobs are listed at once, where a client does not say.
const PAGE: usize = 100;

impl Session {
    /// Does what a client asks; says how the connection ends where the client closes the session.
    pub(super) async fn request(&mut self, frame: Envelope) -> Result<Option<End>, Error> {
        let Envelope { id, trace_id, job_id, message, .. } = frame;
        match message {
            Message::SessionPing(ping) => {
                let pong = Pong { ping_nonce: ping.nonce, received_at: Timestamp::now() };
                self.send(Message::SessionPong(pong)).await;
            }
            // That it came is what counts.
            Message::SessionPong(_) => {}
            Message::SessionAck(ack) => {
                // A number that was never given out says nothing.
                if ack.last_processed_seq <= self.teller.seq() && self.advance(ack.last_processed_seq) {
                    self.store().await?;
                }
            }
            Message::SessionListJobs(list) if self.has(Feature::ListJobs) => self.list(id, list).await?,
            Message::SessionClose(_) => return self.close().await.map(Some),
            Message::JobSubmit(submit) => self.submit(id, trace_id, submit).await?,
            Message::JobCancel(cancel) => self.cancel(id, job_id, cancel).await?,
            Message::JobSubscribe(subscribe) if self.has(Feature::Subscribe) => {
                self.subscribe(id, subscribe).await?;
            }
            Message::JobUnsubscribe(unsubscribe) if self.has(Feature::Subscribe) => {
                self.unsubscribe(id, unsubscribe).await?;
            }
            other => {
                let reason = format!("{} is not asked of this runtime in this session", other.kind());
                self.refuse(&id, &ErrorPayload::new(ErrorCode::InvalidRequest, reason)).await;
            }
        }
        Ok(None)
    }

    async fn close(&mut self) -> Result<End, Error> {
        self.stored.is_closed = true;
        self.store().await?;
        self.send(Message::SessionClosed(Closed {})).await;
        Ok(End::Gone)
    }

    /// Stops a job of the session. Only who submitted a job may.
    async fn cancel(&mut self, id: String, job: Option<String>, cancel: Cancel) -> Result<(), Error> {
        let Some(job) = job.or(cancel.job_id).and_then(|job| CommandId::new(job).ok()) else {
            let missing = ErrorPayload::new(ErrorCode::InvalidRequest, "job.cancel names no job_id");
            self.refuse(&id, &missing).await;
            return Ok(());
        };
        let (home, has_ended) = match self.teller.job(&job) {
            Some(known) if known.is_own => (known.home, known.status.is_terminal()),
            Some(_) => {
                let reason = "only the session that submitted a job may cancel it";
                self.refuse(&id, &ErrorPayload::new(ErrorCode::PermissionDenied, reason)).await;
                return Ok(());
            }
            None => {
                let (code, reason) = match self.place_of(&job).await? {
                    Some(_) => {
                        (ErrorCode::PermissionDenied, "only the session that submitted a job may cancel it")
                    }
                    None => (ErrorCode::JobNotFound, "there is no such job"),
                };
                self.refuse(&id, &ErrorPayload::new(code, reason)).await;
                return Ok(());
            }
        };
        if has_ended {
            let reason = "the job has ended";
            self.refuse(&id, &ErrorPayload::new(ErrorCode::InvalidRequest, reason)).await;
            return Ok(());
        }
        let body = SessionCommand::Cancel(command::Cancel { target: Some(job.clone()) });
        let command = Command::new(anonymous(), self.client.source(), body);
        let begun = match self.client.begin(home, command).await {
            Ok(begun) => begun,
            Err(error) => {
                self.refuse(&id, &errors::payload(&error)).await;
                return Ok(());
            }
        };
        self.send_of_job(&job, Message::JobCancelled(Cancelled { reason: cancel.reason })).await;
        // What comes of it is told by the job's own events.
        tokio::spawn(async move { begun.ended().await.map(drop) });
        Ok(())
    }

    /// The session of the engine that has a job of this principal, and whether the job has ended.
    async fn place_of(&self, job: &CommandId) -> Result<Option<(SessionId, bool)>, Error> {
        match self.client.command(job).await {
            Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => {
                Ok(Some((session, false)))
            }
            Ok(CommandStatus::Ended(stored)) => Ok(stored.session.map(|session| (session, true))),
            Err(Error::CommandNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn subscribe(&mut self, id: String, subscribe: Subscribe) -> Result<(), Error> {
        let found = match CommandId::new(subscribe.job_id.clone()) {
            Ok(job) => self.place_of(&job).await?.map(|(home, _)| (job, home)),
            Err(_) => None,
        };
        let Some((job, home)) = found else {
            let reason = "there is no such job, or it may not be seen";
            self.refuse(&id, &ErrorPayload::new(ErrorCode::JobNotFound, reason)).await;
            return Ok(());
        };
        if self.stored.joins.len() >= self.settings.subscriptions {
            let reason = format!(
                "the session has subscribed {} times; `subscriptions` of the settings allows no more",
                self.stored.joins.len()
            );
            self.refuse(&id, &ErrorPayload::new(ErrorCode::InvalidRequest, reason)).await;
            return Ok(());
        }
        let history = match (subscribe.history, subscribe.from_event_seq) {
            (false, _) => History::Nothing,
            (true, None | Some(0)) => History::All,
            (true, Some(seq)) => self.history_behind(&job, home, seq).await?,
        };
        let joined = Change::Joined { home, history, is_own: false };
        match self.store_change(job.clone(), joined).await {
            Err(Error::SessionNotFound { .. }) => {
                let reason = "the session that had the job is gone";
                self.refuse(&id, &ErrorPayload::new(ErrorCode::JobNotFound, reason)).await;
                return Ok(());
            }
            stored => stored?,
        }
        let described = self.described(&job, home).await?;
        self.send(Message::JobSubscribed(Subscribed {
            request_id: Some(id),
            job_id: job.to_string(),
            current_status: described.status,
            agent: described.agent,
            lease: Default::default(),
            lease_constraints: None,
            budget: None,
            parent_job_id: None,
            trace_id: Some(described.trace),
            subscribed_from: self.teller.seq(),
            replayed: subscribe.history,
        }))
        .await;
        self.apply_changes().await
    }

    /// What happened to a job behind a number of the session that submitted it: the numbers of others mean nothing to who has not seen them. All of
    /// it where that session is gone.
    async fn history_behind(&self, job: &CommandId, home: SessionId, seq: u64) -> Result<History, Error> {
        let accepted = self.history_of(job, home, Position(u64::MAX)).await?;
        let key = accepted.iter().find_map(submitted);
        let Some(submitter) = key.and_then(|key| session_of_key(key, job)) else { return Ok(History::All) };
        let found = StoredSession::find(&self.client, submitter, Timestamp::now()).await?;
        let Some(stored) = found else { return Ok(History::All) };
        let (outbox, mut told) = Outbox::new(self.settings.patience());
        let peer = Peer {
            daemon: self.daemon.clone(),
            settings: self.settings,
            live: LiveSessions::default(),
            attached: None,
        };
        let told_all =
            tokio::spawn(replay(peer, Opened::to_be_replayed(self.client.clone(), stored, 0), outbox));
        let mut last = History::All;
        while let Some(message) = told.recv().await.and_then(|frame| decode(&frame).ok()) {
            if message.event_seq.is_some_and(|number| number > seq) {
                break;
            }
            if message.job_id.as_deref() == Some(job.as_str())
                && let Some((position, index)) = place_of_message(&message.id)
            {
                last = History::After { position, index };
            }
        }
        told_all.abort();
        Ok(last)
    }

    async fn unsubscribe(&mut self, id: String, unsubscribe: Unsubscribe) -> Result<(), Error> {
        let job = CommandId::new(unsubscribe.job_id).ok();
        match job.filter(|job| self.teller.has_joined(job)) {
            Some(job) => {
                self.store_change(job, Change::Left).await?;
                self.apply_changes().await
            }
            None => {
                let reason = "the session has no subscription to this job";
                self.refuse(&id, &ErrorPayload::new(ErrorCode::JobNotFound, reason)).await;
                Ok(())
            }
        }
    }

    /// What there is to say of a job that the session may not be told of yet.
    async fn described(&mut self, job: &CommandId, home: SessionId) -> Result<Described, Error> {
        if let Some(known) = self.teller.job(job) {
            return Ok(Described::of(known));
        }
        self.know_agent(home).await?;
        let status = match self.client.command(job).await? {
            CommandStatus::Waits { .. } => JobStatus::Pending,
            CommandStatus::Runs { .. } => JobStatus::Running,
            CommandStatus::Ended(stored) => super::outcome::status_of_stored(&stored.outcome),
        };
        let agent = self.agent_of(home).cloned().unwrap_or_default();
        Ok(Described { status, agent, trace: trace_of_job(job) })
    }

    /// Lists the jobs that the session is told of, and those of the same principal that wait or run.
    async fn list(&mut self, id: String, list: ListJobs) -> Result<(), Error> {
        let mut jobs: Vec<JobEntry> = self.teller.jobs().map(|(job, known)| entry_of(job, known)).collect();
        jobs.extend(self.under_way_elsewhere().await?);
        jobs.retain(|job| list.admits(job));
        jobs.sort_by(|a, b| (a.created_at, &a.job_id).cmp(&(b.created_at, &b.job_id)));
        let limit = list.limit.map_or(PAGE, |limit| limit.clamp(1, 1000) as usize);
        let from = match &list.cursor {
            None => 0,
            Some(cursor) => jobs.iter().position(|job| job.job_id == *cursor).map_or(jobs.len(), |at| at + 1),
        };
        let rest = jobs.split_off(from.min(jobs.len()));
        let is_more = rest.len() > limit;
        let page: Vec<_> = rest.into_iter().take(limit).collect();
        let next_cursor = page.last().filter(|_| is_more).map(|job| job.job_id.clone());
        self.send(Message::SessionJobs(Jobs { request_id: id, jobs: page, next_cursor })).await;
        Ok(())
    }

    /// The jobs of this principal that other sessions submitted, and that wait or run.
    async fn under_way_elsewhere(&mut self) -> Result<Vec<JobEntry>, Error> {
        let live = SessionFilter { live: true, ..SessionFilter::default() };
        let mut entries = Vec::new();
        for session in self.client.sessions(live).await? {
            let agent = format!("{}@{}", session.kind, crate::agents::VERSION);
            let mut under_way: Vec<_> = session
                .running()
                .map(|running| {
                    let (job, key) = (running.command.clone(), running.key.clone());
                    (job, key, running.requested_at, JobStatus::Running)
                })
                .into_iter()
                .collect();
            for waiting in &session.lane {
                if let Some((at, command)) = accepted(&self.client, session.id, waiting.queued).await? {
                    under_way.push((command.command, command.key, at, JobStatus::Pending));
                }
            }
            for (job, key, at, status) in under_way {
                let Some(key) = key.filter(|key| session_of_key(key, &job).is_some()) else { continue };
                if self.teller.job(&job).is_none() && self.place_of(&job).await?.is_some() {
                    let trace = trace_of_key(&key, &job).map_or_else(|| trace_of_job(&job), str::to_owned);
                    entries.push(entry(&job, agent.clone(), status, at, trace, None));
                }
            }
        }
        Ok(entries)
    }
}

struct Described {
    status: JobStatus,
    agent: String,
    trace: String,
}

impl Described {
    fn of(known: &ToldJob) -> Self {
        Self { status: known.status, agent: known.agent.clone(), trace: known.trace.clone() }
    }
}

fn entry_of(job: &CommandId, known: &ToldJob) -> JobEntry {
    let last = Some(known.last_seq);
    entry(job, known.agent.clone(), known.status, known.submitted_at, known.trace.clone(), last)
}

fn entry(
    job: &CommandId,
    agent: String,
    status: JobStatus,
    at: Timestamp,
    trace: String,
    last_event_seq: Option<u64>,
) -> JobEntry {
    JobEntry {
        job_id: job.to_string(),
        agent,
        status,
        lease: Default::default(),
        parent_job_id: None,
        created_at: at,
        submitted_at: at,
        trace_id: Some(trace),
        last_event_seq,
    }
}
