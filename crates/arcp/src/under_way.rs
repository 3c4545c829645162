//! The jobs of a session's principal that wait or run, whoever submitted them.

use mainstay_log::SessionFilter;
use mainstay_model::{AskId, CommandId, Error, IdempotencyKey, SessionId, Timestamp};

use crate::dialect::Dialect;
use crate::job_origin::JobOrigin;
use crate::job_outcome::JobState;
use crate::session::Session;
use crate::submissions::accepted;

/// A job that waits or runs.
pub(crate) struct UnderWay {
    pub(crate) job: CommandId,
    /// The session of the engine that has it.
    pub(crate) home: SessionId,
    pub(crate) agent: String,
    pub(crate) state: JobState,
    /// When it was accepted, or began.
    pub(crate) at: Timestamp,
    /// What it asks, and is not answered yet.
    pub(crate) asks: Vec<AskId>,
    key: Option<IdempotencyKey>,
}

impl UnderWay {
    /// Where it was submitted; none where that was not over ARCP.
    pub(crate) fn origin(&self) -> Option<JobOrigin> {
        JobOrigin::of_key(self.key.as_ref(), &self.job)
    }
}

impl<D: Dialect> Session<D> {
    /// The jobs of this principal of which the session is not told, and that wait or run.
    pub(crate) async fn under_way_elsewhere(&self) -> Result<Vec<UnderWay>, Error> {
        let live = SessionFilter { live: true, ..SessionFilter::default() };
        let mut found = Vec::new();
        for session in self.client.sessions(live).await? {
            let agent = format!("{}@{}", session.kind, crate::agents::VERSION);
            let home = session.id;
            let job_of = |job: CommandId, key: Option<IdempotencyKey>, state, at| UnderWay {
                job,
                home,
                agent: agent.clone(),
                state,
                at,
                asks: Vec::new(),
                key,
            };
            let asks = session.asks.iter().map(|pending| pending.ask.ask);
            let mut jobs: Vec<_> = session
                .running()
                .map(|running| {
                    let (job, key) = (running.command.clone(), running.key.clone());
                    let runs = job_of(job, key, JobState::Runs, running.requested_at);
                    UnderWay { asks: asks.collect(), ..runs }
                })
                .into_iter()
                .collect();
            for waiting in &session.lane {
                if let Some((at, command)) = accepted(&self.client, home, waiting.queued).await? {
                    jobs.push(job_of(command.command, command.key, JobState::Waits, at));
                }
            }
            for job in jobs {
                if self.teller.job(&job.job).is_none() && self.place_of(&job.job).await?.is_some() {
                    found.push(job);
                }
            }
        }
        Ok(found)
    }
}
