//! Jobs of which a connection is told later than they happen, since one of their streams is slowed down. Source: draft-arcp-01, 11.2.
//!
//! From the first chunk that is not due, all that is told of its job waits, so that the messages of the job stay in their order; other jobs and answers
//! pass it. The rest is read from the log page by page once it is due, by a fold of this job alone, which tells the same
//! messages with the same ids. What is held back ends with the connection: a client that resumes is told it with the rest.

use std::collections::{HashMap, VecDeque};

use mainstay_model::{CommandId, Error, Event, EventBody, Seq, SessionId};
use tokio::time::Instant;

use crate::dialect::Dialect;
use crate::feed::job_of;
use crate::fold_place::Base;
use crate::message_fold::{MessageFold, Numbered, Translator};
use crate::pacing::{Due, Pacing};
use crate::session::Session;
use crate::session_change::Change;

/// How many events are read at once for a job that waits: no more of each are in memory.
const PAGE: usize = 16;

/// The jobs of a connection that wait, and the streams that make them wait.
pub(crate) struct HeldJobs<V: Translator> {
    pub(crate) pacing: Pacing,
    jobs: HashMap<CommandId, HeldJob<V>>,
}

/// A job of which less was told than there is.
struct HeldJob<V: Translator> {
    /// The session of the engine that has it.
    home: SessionId,
    /// What the last event that was taken in says, and was not told.
    rest: VecDeque<V::Numbered>,
    /// What is told of it behind that event; none where the job ended with it.
    fold: Option<MessageFold<V>>,
    /// The next events that may say something of it, as far as they were read.
    page: VecDeque<Event>,
    /// The last event of its session that was read.
    after: Seq,
}

impl<V: Translator> HeldJob<V> {
    /// Takes in what its next event says.
    fn take(&mut self, event: &Event) {
        if let Some(fold) = &mut self.fold {
            self.rest = fold.tell(event, |_| String::new()).into();
        }
    }
}

/// How fast the messages of the jobs that wait are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// Only those that are due are sent, and at most a page of events in one call.
    WhenDue,
    /// All are sent before the call returns.
    AtOnce,
}

impl<V: Translator> Default for HeldJobs<V> {
    fn default() -> Self {
        Self { pacing: Pacing::default(), jobs: HashMap::new() }
    }
}

impl<V: Translator> HeldJobs<V> {
    /// Whether no job waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a job waits.
    pub(crate) fn has(&self, job: &CommandId) -> bool {
        self.jobs.contains_key(job)
    }

    /// The job of which something of this stream is about to be told.
    pub(crate) fn job_of_stream(&self, stream: &str) -> Option<&CommandId> {
        let waits = |held: &HeldJob<V>| held.rest.iter().any(|message| message.stream() == Some(stream));
        self.jobs.iter().find(|(_, held)| waits(held)).map(|(job, _)| job)
    }

    /// When there is something to tell; none where no job waits.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Due> {
        let due_of = |held: &HeldJob<V>| held.rest.front().map_or(Due::At(now), |next| self.due(next, now));
        self.jobs.values().map(due_of).min()
    }

    fn due(&self, message: &V::Numbered, now: Instant) -> Due {
        let due = message.chunk_of().and_then(|stream| self.pacing.due(stream, now));
        due.unwrap_or(Due::At(now))
    }

    /// The job of a message that must wait, since the job does, or the message is not due.
    fn job_to_wait(&self, message: &V::Numbered, now: Instant) -> Option<CommandId> {
        let job = message.job()?;
        (self.has(job) || !self.due(message, now).has_come(now)).then(|| job.clone())
    }
}

impl<D: Dialect> Session<D> {
    /// Sends what an event says, as far as the client does not have it, and from the first message on that must wait lets its job wait.
    pub(crate) async fn send_paced(
        &mut self,
        event: &Event,
        told: Vec<<D::Translator as Translator>::Numbered>,
    ) -> Result<(), Error> {
        let mut rest = VecDeque::from(told);
        while let Some(message) = rest.pop_front() {
            if !self.is_new(&message) || self.is_cancelled(&message) {
                continue;
            }
            self.greet().await?;
            match self.held.job_to_wait(&message, Instant::now()) {
                Some(job) => {
                    self.sent = rest.back().map_or(message.seq(), Numbered::seq);
                    // It is known before anything is told out of order.
                    if self.stored.late.open(message.seq()) {
                        self.store().await?;
                    }
                    if !self.held.has(&job) {
                        rest.push_front(message);
                        self.hold(job, event, rest);
                    }
                    return Ok(());
                }
                None => self.deliver(&message).await,
            }
        }
        Ok(())
    }

    fn hold(
        &mut self,
        job: CommandId,
        event: &Event,
        rest: VecDeque<<D::Translator as Translator>::Numbered>,
    ) {
        let mut jobs = self.fold.open_jobs();
        jobs.retain(|open| open.job == job);
        let observers = self.fold.observers().to_vec();
        let base = Base { position: event.position, seq: 0, jobs, observers };
        let (translator, principal) = (self.fold.translator.clone(), self.client.principal());
        let fold =
            (!base.jobs.is_empty()).then(|| MessageFold::new(&self.stored.id, principal, translator, &base));
        let held = HeldJob { home: event.session, rest, fold, page: VecDeque::new(), after: event.seq };
        self.held.jobs.insert(job, held);
    }

    async fn deliver(&mut self, message: &<D::Translator as Translator>::Numbered) {
        // It may have been cancelled while it waited.
        if self.is_cancelled(message) {
            return;
        }
        let frames = message.encode();
        if let Some(stream) = message.chunk_of() {
            self.held.pacing.note_told(stream, frames.size(), Instant::now());
        }
        self.send_frame(frames).await;
    }

    /// Tells of the jobs that wait.
    pub(crate) async fn tell_held(&mut self, haste: Haste) -> Result<(), Error> {
        let jobs: Vec<_> = self.held.jobs.keys().cloned().collect();
        for job in jobs {
            self.tell_held_job(&job, haste).await?;
        }
        Ok(())
    }

    /// Notes that nothing waits, where that is so and the client was told all that had happened: while it is still to be told what it missed, it may
    /// have had more before than it has been told again.
    pub(crate) fn note_held(&mut self) {
        if self.held.is_empty() {
            self.stored.late.close(self.sent);
        }
    }

    /// Tells at once what waits and would be told otherwise once this change is made.
    pub(crate) async fn release_for(&mut self, change: &Change) -> Result<(), Error> {
        match change {
            Change::Joined { job, .. } | Change::Left { job } => self.tell_held_job(job, Haste::AtOnce).await,
            Change::Observed { .. } | Change::ObserverEnded { .. } | Change::ObserverOverflowed { .. } => {
                self.tell_held(Haste::AtOnce).await
            }
        }
    }

    async fn tell_held_job(&mut self, job: &CommandId, haste: Haste) -> Result<(), Error> {
        let mut is_at_work = false;
        while let Some(mut held) = self.held.jobs.remove(job) {
            let now = Instant::now();
            match held.rest.pop_front() {
                Some(next) if haste == Haste::AtOnce || self.held.due(&next, now).has_come(now) => {
                    self.held.jobs.insert(job.clone(), held);
                    self.deliver(&next).await;
                }
                Some(next) => {
                    held.rest.push_front(next);
                    self.held.jobs.insert(job.clone(), held);
                    return Ok(());
                }
                // The client is heard between two pages.
                None if held.page.is_empty() && is_at_work && haste == Haste::WhenDue => {
                    self.held.jobs.insert(job.clone(), held);
                    return Ok(());
                }
                None => {
                    if let Some(event) = held.page.pop_front() {
                        held.take(&event);
                    } else if !self.read_page(job, &mut held).await? {
                        continue;
                    }
                    self.held.jobs.insert(job.clone(), held);
                }
            }
            is_at_work = true;
        }
        Ok(())
    }

    /// Reads the next page of the session of a job that waits, and keeps the events of the job; false where there is nothing more to tell of it, or
    /// where it has come to where all other jobs are.
    async fn read_page(&self, job: &CommandId, held: &mut HeldJob<D::Translator>) -> Result<bool, Error> {
        if held.fold.as_ref().is_none_or(|fold| fold.open_jobs().is_empty()) {
            return Ok(false);
        }
        let mut page = match self.client.events(held.home, held.after, PAGE).await {
            // It was deleted, with what there was to tell.
            Err(Error::SessionNotFound { .. }) => return Ok(false),
            page => page?,
        };
        page.retain(|event| event.position <= self.position);
        let Some(last) = page.last() else { return Ok(false) };
        held.after = last.seq;
        let principal = self.client.principal();
        // Whoever answers an ask does so by a command of its own.
        let may_be_of_job = |event: &Event| {
            matches!(event.body, EventBody::AskVoted { .. } | EventBody::AskEnded { .. })
                || job_of(event, principal) == Some(job)
        };
        page.retain(may_be_of_job);
        held.page = page.into();
        Ok(true)
    }
}
