//! What a client of dialect B asks in its session. Source: draft-arcp-1.1, 6.4 to 6.7, 7.4 and 7.6.

use mainstay_arcp_protocol::b::{
    Cancel, Cancelled, Closed, Envelope, ErrorCode, ErrorPayload, Feature, JobEntry, Jobs, ListJobs, Message,
    Pong,
};
use mainstay_model::{CommandId, Error, Timestamp};

use super::lease::{ShownLease, given_by};
use super::translator::status_of;
use super::{B, errors};
use crate::job_cancellation::CancelResult;
use crate::job_outcome::JobState;
use crate::peer::End;
use crate::session::Session;

/// How many jobs are listed at once, where a client does not say.
const PAGE: usize = 100;

impl Session<B> {
    /// Does what a client asks; says how the connection ends where the client closes the session.
    pub(super) async fn request(&mut self, frame: Envelope) -> Result<Option<End>, Error> {
        let Envelope { id, trace_id, job_id, message, .. } = frame;
        match message {
            Message::SessionPing(ping) => {
                let pong = Pong { ping_nonce: ping.nonce, received_at: Timestamp::now() };
                self.send(Message::SessionPong(pong)).await;
            }
            Message::SessionPong(pong) => {
                if self.dialect.awaited_pong.take_if(|nonce| *nonce == pong.ping_nonce).is_some() {
                    self.apply_joins(self.position).await?;
                }
            }
            Message::SessionAck(ack) => {
                // A number that was never given out says nothing.
                if ack.last_processed_seq <= self.fold.seq() && self.advance(ack.last_processed_seq) {
                    self.store().await?;
                }
            }
            Message::SessionListJobs(list) if self.can(Feature::ListJobs) => self.list(id, list).await?,
            Message::SessionClose(_) => return self.close().await.map(Some),
            Message::JobSubmit(submit) => self.submit_job(id, trace_id, submit).await?,
            Message::JobCancel(cancel) => self.cancel(id, job_id, cancel).await?,
            Message::JobSubscribe(subscribe) if self.can(Feature::Subscribe) => {
                self.subscribe(id, subscribe).await?;
            }
            Message::JobUnsubscribe(unsubscribe) if self.can(Feature::Subscribe) => {
                self.unsubscribe(id, unsubscribe).await?;
            }
            other => {
                let reason = format!("{} is not asked of this runtime in this session", other.kind());
                self.refuse_with(&id, &ErrorPayload::new(ErrorCode::InvalidRequest, reason)).await;
            }
        }
        Ok(None)
    }

    pub(super) fn can(&self, feature: Feature) -> bool {
        self.has(feature.as_str())
    }

    async fn close(&mut self) -> Result<End, Error> {
        self.stored.is_closed = true;
        self.store().await?;
        self.send(Message::SessionClosed(Closed {})).await;
        Ok(End::Gone)
    }

    /// Stops a job of the session.
    async fn cancel(&mut self, id: String, job: Option<String>, cancel: Cancel) -> Result<(), Error> {
        let Some(job) = job.or(cancel.job_id).and_then(|job| CommandId::new(job).ok()) else {
            let missing = ErrorPayload::new(ErrorCode::InvalidRequest, "job.cancel names no job_id");
            self.refuse_with(&id, &missing).await;
            return Ok(());
        };
        let refused = |code, reason: &str| ErrorPayload::new(code, reason);
        let refusal = match self.cancel_job(&job, None).await? {
            CancelResult::Begun => {
                self.send_of_job(&job, Message::JobCancelled(Cancelled { reason: cancel.reason })).await;
                return Ok(());
            }
            // What such a client is told of the end, it has been told.
            CancelResult::Ended if self.dialect.peculiarities.dies_of_errors() => return Ok(()),
            CancelResult::Ended => refused(ErrorCode::InvalidRequest, "the job has ended"),
            CancelResult::NotOwn => {
                let reason = "only the session that submitted a job may cancel it";
                refused(ErrorCode::PermissionDenied, reason)
            }
            CancelResult::Unknown => refused(ErrorCode::JobNotFound, "there is no such job"),
            CancelResult::Refused(error) => errors::payload(&error),
        };
        self.refuse_with(&id, &refusal).await;
        Ok(())
    }

    /// Lists the jobs that the session is told of, and those of the same principal that wait or run.
    async fn list(&mut self, id: String, list: ListJobs) -> Result<(), Error> {
        let mut jobs: Vec<JobEntry> = self
            .fold
            .jobs()
            .map(|(job, known)| {
                let (agent, trace) = (known.agent.clone(), known.origin.trace.clone());
                let grants = known.grants.as_deref();
                let (lease, (parent_job_id, _)) = (ShownLease::of(grants).lease, given_by(grants, job));
                JobEntry {
                    lease,
                    parent_job_id,
                    ..entry(job, agent, known.state, known.submitted_at, trace, Some(known.last_seq))
                }
            })
            .collect();
        for other in self.under_way_elsewhere().await? {
            if let Some(origin) = other.origin() {
                let grants = other.grants.as_deref();
                let (lease, (parent_job_id, _)) =
                    (ShownLease::of(grants).lease, given_by(grants, &other.job));
                let entry = entry(&other.job, other.agent, other.state, other.at, origin.trace, None);
                jobs.push(JobEntry { lease, parent_job_id, ..entry });
            }
        }
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
}

fn entry(
    job: &CommandId,
    agent: String,
    state: JobState,
    at: Timestamp,
    trace: String,
    last_event_seq: Option<u64>,
) -> JobEntry {
    JobEntry {
        job_id: job.to_string(),
        agent,
        status: status_of(state),
        lease: Default::default(),
        parent_job_id: None,
        created_at: at,
        submitted_at: at,
        trace_id: Some(trace),
        last_event_seq,
    }
}
