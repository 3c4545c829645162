//! The jobs of a session's principal that wait or run, whoever submitted them.

use mainstay_log::SessionFilter;
use mainstay_model::event::QueuedCommand;
use mainstay_model::grant::Grants;
use mainstay_model::{CommandId, Error, IdempotencyKey, Seq, SessionId, Timestamp};

use crate::dialect::Dialect;
use crate::fold_place::{JobAtBase, ToldAtBase};
use crate::job_origin::JobOrigin;
use crate::job_outcome::JobState;
use crate::observer::Observer;
use crate::session::Session;
use crate::session_change::JobUnderWay;
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
    /// The event that accepted it, or that began it.
    pub(crate) from: Seq,
    key: Option<IdempotencyKey>,
    /// What it may do, with what it has spent.
    pub(crate) grants: Option<Box<Grants>>,
}

impl UnderWay {
    /// Where it was submitted; none where that was not over ARCP.
    pub(crate) fn origin(&self) -> Option<JobOrigin> {
        JobOrigin::of_key(self.key.as_ref(), &self.job)
    }

    /// Whether an observer wants messages of it.
    pub(crate) fn is_wanted_by(&self, observer: &Observer) -> bool {
        let origin = self.origin().unwrap_or_else(|| JobOrigin::of_engine(self.home, &self.job));
        observer.wants_job(&self.job, &origin, self.home)
    }

    /// The same as a job of this session, where that holds it: it submitted it, unless the job was handed over since.
    pub(crate) fn at_base_of(self, session: &str, holds_by_handover: Option<bool>) -> Option<JobAtBase> {
        let submitted = self.origin().filter(|origin| origin.session == session);
        let (origin, is_own) = match holds_by_handover {
            Some(true) => (JobOrigin { message: None, ..self.origin()? }, true),
            // It is known as another's: what still begins it has the key of this session.
            Some(false) => (self.origin()?, false),
            None => (submitted?, true),
        };
        let has_begun = self.state == JobState::Runs;
        let told = ToldAtBase {
            has_begun,
            is_conversation: false,
            submitted_at: self.at,
            origin,
            last_seq: 0,
            last_text: None,
            grants: self.grants,
        };
        let Self { job, home, .. } = self;
        Some(JobAtBase { job, home, is_own, asks: Vec::new(), told: Some(told) })
    }
}

impl From<UnderWay> for JobUnderWay {
    fn from(UnderWay { job, home, from, .. }: UnderWay) -> Self {
        Self { job, home, from }
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
            let job_of = |job: CommandId, (key, grants), state, at, from| UnderWay {
                job,
                home,
                agent: agent.clone(),
                state,
                at,
                from,
                key,
                grants,
            };
            let mut jobs: Vec<_> = session
                .running()
                .map(|running| {
                    let (job, key) = (running.command.clone(), running.key.clone());
                    let grants = running.grants.clone();
                    job_of(job, (key, grants), JobState::Runs, running.requested_at, running.requested)
                })
                .into_iter()
                .collect();
            for waiting in &session.lane {
                let command = match accepted(&self.client, home, waiting.queued).await {
                    // It was deleted meanwhile.
                    Err(Error::SessionNotFound { .. }) => None,
                    command => command?,
                };
                if let Some((at, command)) = command {
                    let QueuedCommand { command: job, key, grants, .. } = command;
                    jobs.push(job_of(job, (key, grants), JobState::Waits, at, waiting.queued));
                }
            }
            for job in jobs {
                if self.fold.job(&job.job).is_none() && self.place_of(&job.job).await?.is_some() {
                    found.push(job);
                }
            }
        }
        Ok(found)
    }
}
