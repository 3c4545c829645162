//! How a client of dialect B is told of jobs that another session submitted. Source: draft-arcp-1.1, 7.6.

use mainstay_arcp_protocol::Dialect;
use mainstay_arcp_protocol::b::{
    ErrorCode, ErrorPayload, Feature, Message, Subscribe, Subscribed, Unsubscribe, decode,
};
use mainstay_engine::CommandStatus;
use mainstay_model::grant::Grants;
use mainstay_model::{CommandId, Error, SessionId, Timestamp};

use super::lease::{ShownLease, given_by};
use super::translator::status_of;
use super::{B, replay};
use crate::frames::Outbox;
use crate::job_origin::{JobOrigin, trace_of_job};
use crate::job_outcome::JobState;
use crate::live_sessions::LiveSessions;
use crate::message_id::place_of_ulid;
use crate::peer::{AdmittedClient, Peer};
use crate::session::Session;
use crate::session_change::{Change, History};
use crate::stored_session::StoredSession;

/// What there is to say of a job that is subscribed to.
struct Described {
    state: JobState,
    agent: String,
    trace: String,
    grants: Option<Box<Grants>>,
}

impl Session<B> {
    pub(super) async fn subscribe(&mut self, id: String, subscribe: Subscribe) -> Result<(), Error> {
        let found = match CommandId::new(subscribe.job_id.clone()) {
            Ok(job) => self.place_of(&job).await?.map(|(home, _)| (job, home)),
            Err(_) => None,
        };
        let Some((job, home)) = found else {
            let reason = "there is no such job, or it may not be seen";
            self.refuse_with(&id, &ErrorPayload::new(ErrorCode::JobNotFound, reason)).await;
            return Ok(());
        };
        let limit = self.settings.subscriptions;
        if self.fold.count_joined() >= limit {
            let error = Error::TooManyRequests { what: "subscriptions".to_owned(), limit };
            self.refuse(&id, &error.into()).await;
            return Ok(());
        }
        let described = self.described(&job, home).await?;
        let history = match (subscribe.history, subscribe.from_event_seq) {
            (false, _) if self.asks(&job, home).await? => History::Questions,
            (false, _) => History::Nothing,
            (true, None | Some(0)) => History::All,
            (true, Some(seq)) => self.history_behind_number(&job, home, seq).await?,
        };
        let has_begun = history == History::Nothing && described.state == JobState::Runs;
        let joined = Change::Joined { job: job.clone(), home, history, is_own: false, has_begun, told: None };
        let stored = match self.has_changed_by(&id) {
            true => Ok(()),
            false => self.store_change(Some(&id), joined).await,
        };
        match stored {
            Err(Error::SessionNotFound { .. }) => {
                let reason = "the session that had the job is gone";
                self.refuse_with(&id, &ErrorPayload::new(ErrorCode::JobNotFound, reason)).await;
                return Ok(());
            }
            Err(error @ Error::TooManyRequests { .. }) => {
                self.refuse(&id, &error.into()).await;
                return Ok(());
            }
            stored => stored?,
        }
        let ShownLease { lease, constraints, budget } = ShownLease::of(described.grants.as_deref());
        let (parent_job_id, _) = given_by(described.grants.as_deref(), &job);
        self.send(Message::JobSubscribed(Subscribed {
            request_id: Some(id),
            job_id: job.to_string(),
            current_status: status_of(described.state),
            agent: described.agent,
            lease,
            lease_constraints: constraints,
            budget,
            parent_job_id,
            trace_id: Some(described.trace),
            subscribed_from: self.fold.seq(),
            replayed: subscribe.history,
        }))
        .await;
        if self.dialect.peculiarities.subscribes_late() && self.can(Feature::Heartbeat) {
            let (nonce, ping) = self.ping();
            self.dialect.awaited_pong = Some(nonce);
            self.send_frame(ping).await;
            return Ok(());
        }
        self.apply_joins(self.position).await
    }

    /// Whether a job waits for the answer to a question.
    async fn asks(&self, job: &CommandId, home: SessionId) -> Result<bool, Error> {
        let session = self.client.seen_session(home).await?;
        Ok(session.is_some_and(|session| {
            let running = session.running().filter(|running| running.command == *job);
            running.is_some_and(|running| session.asks.iter().any(|ask| ask.is_of_job(running.job)))
        }))
    }

    /// What happened to a job behind a number of the session that submitted it: the numbers of others mean nothing to who has not seen them. All of
    /// it where that session is gone.
    async fn history_behind_number(
        &self,
        job: &CommandId,
        home: SessionId,
        seq: u64,
    ) -> Result<History, Error> {
        let Some(accepted) = self.acceptance_of(job, home).await? else { return Ok(History::All) };
        let submitter = JobOrigin::of(&accepted, job).session;
        let found = StoredSession::find(&self.client, &submitter, Timestamp::now()).await?;
        // The numbers of the other dialect are no client's.
        let Some(stored) = found.filter(|stored| stored.dialect == Dialect::B) else {
            return Ok(History::All);
        };
        let (outbox, mut told) = Outbox::new(self.settings.patience());
        let peer = Peer {
            daemon: self.daemon.clone(),
            settings: self.settings,
            live: LiveSessions::default(),
            attached: None,
            certificate: None,
            from: self.from,
            place: None,
        };
        let client = AdmittedClient { client: self.client.clone(), credentials: self.credentials.clone() };
        let told_all = tokio::spawn(async move { replay(&peer, client, stored, 0, outbox).await });
        let mut last = History::All;
        while let Some(message) = told.recv().await.and_then(|frame| decode(&frame.text).ok()) {
            if message.event_seq.is_some_and(|number| number > seq) {
                break;
            }
            if message.job_id.as_deref() == Some(job.as_str())
                && let Some(place) = place_of_ulid(&message.id)
            {
                last = History::After(place);
            }
        }
        told_all.abort();
        Ok(last)
    }

    pub(super) async fn unsubscribe(&mut self, id: String, unsubscribe: Unsubscribe) -> Result<(), Error> {
        let job = CommandId::new(unsubscribe.job_id).ok();
        match job.filter(|job| self.fold.has_joined(job)) {
            Some(job) => {
                self.store_change(None, Change::Left { job }).await?;
                self.apply_joins(self.position).await
            }
            None => {
                let reason = "the session has no subscription to this job";
                self.refuse_with(&id, &ErrorPayload::new(ErrorCode::JobNotFound, reason)).await;
                Ok(())
            }
        }
    }

    /// What there is to say of a job that the session may not be told of yet.
    async fn described(&mut self, job: &CommandId, home: SessionId) -> Result<Described, Error> {
        if let Some(known) = self.fold.job(job) {
            let (agent, trace) = (known.agent.clone(), known.origin.trace.clone());
            let grants = known.grants.clone();
            return Ok(Described { state: known.state, agent, trace, grants });
        }
        self.load_agent(home).await?;
        let state = match self.client.command(job).await? {
            CommandStatus::Waits { .. } => JobState::Waits,
            CommandStatus::Runs { .. } => JobState::Runs,
            CommandStatus::Ended(stored) => JobState::of_stored(&stored.outcome),
        };
        let agent = self.agent_of(home).cloned().unwrap_or_default();
        let grants = self.granted_to(job, home).await?;
        Ok(Described { state, agent, trace: trace_of_job(job), grants })
    }
}
