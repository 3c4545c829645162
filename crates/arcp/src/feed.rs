//! The jobs that a session is told of, and what is told of them: a fold over the events of the whole log, in its order.
//!
//! The fold depends on nothing but the log and on which jobs the session subscribed to. So it tells the same again under the next daemon, and
//! numbers that are counted along it have no gaps over any cut.

use std::collections::HashMap;

use mainstay_model::{CommandFingerprint, CommandId, Event, EventBody, IdempotencyKey, Principal, SessionId};

use crate::job_id::session_of_key;
use crate::job_news::{JobNews, news_of};

/// The jobs of one session.
pub(crate) struct Feed {
    /// The name of the session, which the keys of its jobs' commands have.
    session: String,
    principal: Principal,
    jobs: HashMap<CommandId, FedJob>,
}

/// A job that the session is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FedJob {
    /// The session of the engine in which it runs.
    pub(crate) home: SessionId,
    /// Whether this session submitted it.
    pub(crate) is_own: bool,
    has_ended: bool,
}

/// What an event told of a job.
pub(crate) struct Told<'a> {
    pub(crate) job: CommandId,
    pub(crate) event: &'a Event,
    pub(crate) news: Vec<JobNews<'a>>,
}

impl Feed {
    /// Of a session of this principal, which is told of nothing yet.
    pub(crate) fn new(session: String, principal: Principal) -> Self {
        Self { session, principal, jobs: HashMap::new() }
    }

    /// The job of this name, where the session is told of it.
    pub(crate) fn job(&self, job: &CommandId) -> Option<&FedJob> {
        self.jobs.get(job)
    }

    /// The jobs of which there is more to tell.
    pub(crate) fn open_jobs(&self) -> impl Iterator<Item = (&CommandId, &FedJob)> {
        self.jobs.iter().filter(|(_, known)| !known.has_ended)
    }

    /// Tells of a job from here on that another session submitted, or that has ended. It is told once more how that ends.
    pub(crate) fn join(&mut self, job: CommandId, home: SessionId, is_own: bool) {
        let known = self.jobs.entry(job).or_insert(FedJob { home, is_own, has_ended: false });
        known.is_own |= is_own;
        known.has_ended = false;
    }

    /// Forgets a job that has ended: nothing is told of it any more.
    pub(crate) fn forget(&mut self, job: &CommandId) {
        if self.jobs.get(job).is_some_and(|known| known.has_ended) {
            self.jobs.remove(job);
        }
    }

    /// Tells no more of a job that the session subscribed to.
    pub(crate) fn leave(&mut self, job: &CommandId) {
        if self.jobs.get(job).is_some_and(|known| !known.is_own) {
            self.jobs.remove(job);
        }
    }

    /// What an event tells of a job of the session; nothing more once it told of the job's end.
    pub(crate) fn take<'a>(&mut self, event: &'a Event) -> Option<Told<'a>> {
        let job = job_of(event, &self.principal)?;
        self.begins(job, event);
        let known = self.jobs.get_mut(job).filter(|known| known.home == event.session)?;
        if known.has_ended {
            return None;
        }
        let news = news_of(event);
        known.has_ended = news.iter().any(|news| matches!(news, JobNews::Ended(_)));
        (!news.is_empty()).then(|| Told { job: job.clone(), event, news })
    }

    /// Notes the job that an event begins, where this session submitted it.
    fn begins(&mut self, job: &CommandId, event: &Event) {
        let is_own =
            submitted(event).is_some_and(|key| session_of_key(key, job) == Some(self.session.as_str()));
        if is_own && event.metadata.source.principal() == self.principal {
            let begun = FedJob { home: event.session, is_own: true, has_ended: false };
            self.jobs.entry(job.clone()).or_insert(begun);
        }
    }
}

/// The job that an event is of, where it can be one of this principal.
pub(crate) fn job_of<'e>(event: &'e Event, principal: &Principal) -> Option<&'e CommandId> {
    match &event.body {
        // The daemon says this, for no command of its own.
        EventBody::CommandDequeued { principal: of, command, .. } => (of == principal).then_some(command),
        _ => event.metadata.correlation.as_ref(),
    }
}

/// The key of the command that an event accepts.
pub(crate) fn submitted(event: &Event) -> Option<&IdempotencyKey> {
    match &event.body {
        EventBody::CommandQueued(queued) => queued.key.as_ref(),
        EventBody::EvalRequested { key, .. } | EventBody::JobRequested { key, .. } => key.as_ref(),
        _ => None,
    }
}

/// What a command says that an event accepts.
pub(crate) fn accepted_fingerprint(event: &Event) -> Option<&CommandFingerprint> {
    match &event.body {
        EventBody::CommandQueued(queued) => Some(&queued.fingerprint),
        EventBody::EvalRequested { fingerprint, .. } | EventBody::JobRequested { fingerprint, .. } => {
            Some(fingerprint)
        }
        _ => None,
    }
}
