//! The jobs that a session is told of, and what is told of them: a fold over the events of the whole log, in its order.
//!
//! The fold depends on nothing but the log and on which jobs the session subscribed to. So it tells the same again under the next daemon, and
//! numbers that are counted along it have no gaps over any cut.

use std::collections::HashMap;

use mainstay_model::{AskId, CommandId, Event, EventBody, Principal, SessionId};

use crate::job_news::{JobNews, news_of};
use crate::job_origin::{Acceptance, JobOrigin};
use crate::observer::Observer;

/// The jobs of one session.
pub(crate) struct Feed {
    /// The name of the session, which the keys of its jobs' commands have.
    session: String,
    principal: Principal,
    jobs: HashMap<CommandId, FedJob>,
    observers: Vec<Observer>,
}

/// A job that the session is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FedJob {
    /// The session of the engine in which it runs.
    pub(crate) home: SessionId,
    /// Whether this session submitted it.
    pub(crate) is_own: bool,
    /// Whether it ran already when it was joined.
    pub(crate) has_begun: bool,
    /// What it asks, and is not answered yet.
    pub(crate) asks: Vec<AskId>,
    has_ended: bool,
    /// Whether a command of another principal runs that has the same id.
    is_hidden: bool,
}

impl FedJob {
    const fn new(home: SessionId, is_own: bool) -> Self {
        Self { home, is_own, has_begun: false, asks: Vec::new(), has_ended: false, is_hidden: false }
    }
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
        Self { session, principal, jobs: HashMap::new(), observers: Vec::new() }
    }

    /// The job of this name, where the session is told of it.
    pub(crate) fn job(&self, job: &CommandId) -> Option<&FedJob> {
        self.jobs.get(job)
    }

    /// The jobs of which there is more to tell.
    pub(crate) fn open_jobs(&self) -> impl Iterator<Item = (&CommandId, &FedJob)> {
        self.jobs.iter().filter(|(_, known)| !known.has_ended)
    }

    /// How many jobs of other sessions it is told of.
    pub(crate) fn count_joined(&self) -> usize {
        self.jobs.values().filter(|known| !known.is_own && !known.has_ended).count()
    }

    /// Tells of a job from here on that another session submitted, or that has ended. It is told once more how that ends.
    pub(crate) fn join(&mut self, job: CommandId, home: SessionId, is_own: bool, has_begun: bool) {
        let known = self.jobs.entry(job).or_insert(FedJob::new(home, is_own));
        known.is_own |= is_own;
        known.has_begun |= has_begun;
        known.has_ended = false;
    }

    /// Whether a job that is told of asks this.
    pub(crate) fn is_asked(&self, ask: AskId) -> bool {
        self.jobs.values().any(|known| known.asks.contains(&ask))
    }

    /// Notes what a job asks.
    pub(crate) fn note_asks(&mut self, job: &CommandId, asks: &[AskId]) {
        if let Some(known) = self.jobs.get_mut(job) {
            known.asks = asks.to_vec();
        }
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

    /// Those who observe jobs from here on.
    pub(crate) fn observers(&self) -> &[Observer] {
        &self.observers
    }

    /// Has this one observe the jobs that begin from here on.
    pub(crate) fn observe(&mut self, observer: Observer) {
        self.observers.push(observer);
    }

    /// Ends a subscription of an observer.
    pub(crate) fn end_observer(&mut self, subscription: &str) {
        self.observers.retain(|observer| observer.subscription != subscription);
    }

    /// What an event tells of a job of the session; nothing more once it told of the job's end.
    pub(crate) fn take<'a>(&mut self, event: &'a Event) -> Option<Told<'a>> {
        let job = self.job_told_of(event)?;
        let acceptance = Acceptance::of(event);
        let is_of_another = acceptance.is_some() && event.metadata.source.principal() != self.principal;
        if acceptance.is_some() && !is_of_another {
            self.begins(&job, event);
        }
        let known = self.jobs.get_mut(&job).filter(|known| known.home == event.session)?;
        if is_of_another {
            known.is_hidden |= acceptance.is_some_and(|acceptance| acceptance.begins);
            return None;
        }
        if known.has_ended {
            return None;
        }
        let news = news_of(event);
        let is_end = news.iter().any(|news| matches!(news, JobNews::Ended(_)));
        if known.is_hidden {
            known.is_hidden = !is_end;
            return None;
        }
        known.has_ended = is_end;
        match &event.body {
            EventBody::AskRaised(ask) => known.asks.push(ask.ask),
            EventBody::AskEnded { ask, .. } => known.asks.retain(|waits| waits != ask),
            // Whoever else submitted it under the same key holds it no more, either.
            EventBody::JobHandedOver { to, .. } => known.is_own = *to == self.session,
            _ => {}
        }
        (!news.is_empty()).then_some(Told { job, event, news })
    }

    /// The job that an event tells of. Whoever answers an ask does so by a command of its own.
    fn job_told_of(&self, event: &Event) -> Option<CommandId> {
        match &event.body {
            EventBody::AskVoted { ask, .. } | EventBody::AskEnded { ask, .. } => {
                let asked = self.jobs.iter().find(|(_, known)| known.asks.contains(ask));
                asked.map(|(job, _)| job.clone())
            }
            _ => job_of(event, &self.principal).cloned(),
        }
    }

    /// Notes the job that an event begins, where this session submitted or observes it.
    fn begins(&mut self, job: &CommandId, event: &Event) {
        if self.jobs.contains_key(job) {
            return;
        }
        let origin = JobOrigin::of(event, job);
        let is_own = origin.session == self.session;
        if is_own || self.observers.iter().any(|observer| observer.wants_job(job, &origin, event.session)) {
            self.jobs.insert(job.clone(), FedJob::new(event.session, is_own));
        }
    }
}

/// The job that an event is of, where it can be one of this principal.
pub(crate) fn job_of<'e>(event: &'e Event, principal: &Principal) -> Option<&'e CommandId> {
    match &event.body {
        // The daemon says this, for no command of its own.
        EventBody::CommandDequeued { principal: of, command, .. } => (of == principal).then_some(command),
        // It is an event of the command that hands the job over, which is one of the same principal.
        EventBody::JobHandedOver { command, .. } => {
            (event.metadata.source.principal() == *principal).then_some(command)
        }
        _ => event.metadata.correlation.as_ref(),
    }
}
