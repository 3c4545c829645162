//! What a session is told of its jobs, as numbered messages: a fold over the log, which each dialect turns into its own messages.
//!
//! The numbers are counted along the fold, so they are the same each time the log is read again, and have no gap over any cut. Nothing here
//! reads a clock or a random number: a message that is told again is the same, with its id.

use std::collections::HashMap;

use mainstay_model::grant::Grants;
use mainstay_model::{AskId, CommandId, Event, EventBody, Position, Principal, SessionId, Timestamp};

use crate::feed::{Feed, Told};
use crate::fold_place::{Base, JobAtBase, Place, ToldAtBase};
use crate::frames::Outgoing;
use crate::job_news::JobNews;
use crate::job_origin::{Acceptance, JobOrigin};
use crate::job_outcome::{JobOutcome, JobState};
use crate::observer::Observer;
use crate::session_change::History;

/// Translates what happens to jobs into the messages of a dialect.
pub(crate) trait Translator: Clone + Send + Sync {
    /// What it says, without its envelope.
    type Message;
    /// The same in its envelope, with its number.
    type Numbered: Numbered;

    /// What is said where an event accepts a job. Each message has its place, which is empty where this session is not told of it.
    fn accepted(&self, job: &JobView<'_>, waits: bool) -> Vec<Option<Self::Message>>;

    /// What is said of a thing that happened to a job, but for its end, in the same way.
    fn news(&self, job: &JobView<'_>, news: &JobNews<'_>) -> Vec<Option<Self::Message>>;

    /// What is said at the end of a job, in the same way.
    fn ended(&self, job: &JobView<'_>, outcome: JobOutcome) -> Vec<Option<Self::Message>>;

    /// Puts a message in the envelopes in which it leaves, each with a number behind this one.
    fn envelopes(
        &self,
        job: &JobView<'_>,
        index: u16,
        message: Self::Message,
        observers: &[Observer],
        seq: u64,
    ) -> Vec<Self::Numbered>;

    /// What is said to an observer that was told what happened before its subscription.
    fn caught_up(&self, observer: &Observer, seq: u64) -> Vec<Self::Numbered>;

    /// What is said, with this number, where a subscription was ended since its observer lay too far behind: it can go on behind this message.
    fn closed(
        &self,
        subscription: &str,
        after: String,
        ended_at: Timestamp,
        seq: u64,
    ) -> Option<Self::Numbered>;
}

/// A message in its envelope, with its number among those of its session.
pub(crate) trait Numbered: Send {
    /// Its number among the messages of its session.
    fn seq(&self) -> u64;
    /// Its id, which is the same each time it is told.
    fn id(&self) -> &str;
    /// The job that it tells of; none of what tells of no job, or is never held back.
    fn job(&self) -> Option<&CommandId> {
        None
    }
    /// The stream that it belongs to, opens or closes; none where that is none.
    fn stream(&self) -> Option<&str> {
        None
    }
    /// The stream that it is a chunk of; none where it is none.
    fn chunk_of(&self) -> Option<&str> {
        None
    }
    /// The frames that say it.
    fn encode(&self) -> Outgoing;
}

/// A job of which an event tells something.
pub(crate) struct JobView<'a> {
    pub(crate) job: &'a CommandId,
    pub(crate) known: &'a ToldJob,
    pub(crate) event: &'a Event,
    /// Whether something that it asks, or that is asked about it, waits for an answer behind the event.
    pub(crate) is_blocked: bool,
    /// What the event changes of who holds it.
    pub(crate) handover: Option<Handover>,
}

/// How a session stands to the handover of a job that it is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover {
    /// It held the job, and holds it no more.
    Given,
    /// It holds the job now, and did not before.
    Taken,
}

/// The fold of what a session is told of its jobs.
pub(crate) struct MessageFold<V> {
    feed: Feed,
    pub(crate) translator: V,
    /// The number of the last message.
    seq: u64,
    jobs: HashMap<CommandId, ToldJob>,
}

/// What was told of a job.
#[derive(Clone, Debug)]
pub(crate) struct ToldJob {
    /// The agent that has the job, with its version.
    pub(crate) agent: String,
    pub(crate) home: SessionId,
    pub(crate) is_own: bool,
    pub(crate) state: JobState,
    /// Whether it has begun to run.
    pub(crate) has_begun: bool,
    /// Whether it is work that an agent may think about, and no code.
    pub(crate) is_conversation: bool,
    pub(crate) submitted_at: Timestamp,
    pub(crate) origin: JobOrigin,
    /// The number of the last message about it.
    pub(crate) last_seq: u64,
    /// What an agent said last.
    last_text: Option<String>,
    /// What it may do, with what it has spent.
    pub(crate) grants: Option<Box<Grants>>,
}

impl ToldJob {
    fn at_base(job: &JobAtBase, told: &ToldAtBase) -> Self {
        let ToldAtBase { has_begun, submitted_at, last_seq, .. } = *told;
        Self {
            agent: String::new(),
            home: job.home,
            is_own: job.is_own,
            state: if has_begun { JobState::Runs } else { JobState::Waits },
            has_begun,
            is_conversation: told.is_conversation,
            submitted_at,
            origin: told.origin.clone(),
            last_seq,
            last_text: told.last_text.clone(),
            grants: told.grants.clone(),
        }
    }

    fn to_base(&self) -> ToldAtBase {
        ToldAtBase {
            has_begun: self.has_begun,
            is_conversation: self.is_conversation,
            submitted_at: self.submitted_at,
            origin: self.origin.clone(),
            last_seq: self.last_seq,
            last_text: self.last_text.clone(),
            grants: self.grants.clone(),
        }
    }
}

impl<V: Translator> MessageFold<V> {
    /// Of a session that was told all before this place. Its jobs' agents have no names yet.
    pub(crate) fn new(session: &str, principal: &Principal, translator: V, base: &Base) -> Self {
        let feed = Feed::new(session.to_owned(), principal.clone());
        let mut fold = Self { feed, translator, seq: base.seq, jobs: HashMap::new() };
        base.observers.iter().for_each(|observer| fold.feed.observe(observer.clone()));
        base.jobs.iter().for_each(|job| fold.take_up(job));
        fold
    }

    /// Tells of a job as of one of which this was told, in the place of what was.
    pub(crate) fn tell_as(&mut self, job: &CommandId, home: SessionId, told: &ToldAtBase, agent: String) {
        let at_base =
            JobAtBase { job: job.clone(), home, is_own: true, asks: Vec::new(), told: Some(told.clone()) };
        self.jobs.insert(job.clone(), ToldJob { agent, ..ToldJob::at_base(&at_base, told) });
    }

    /// Tells on of a job of which this was told before.
    pub(crate) fn take_up(&mut self, job: &JobAtBase) {
        let has_begun = job.told.as_ref().is_some_and(|told| told.has_begun);
        self.feed.join(job.job.clone(), job.home, job.is_own, has_begun);
        self.feed.note_asks(&job.job, &job.asks);
        if let Some(told) = &job.told {
            self.jobs.entry(job.job.clone()).or_insert_with(|| ToldJob::at_base(job, told));
        }
    }

    /// Forgets the jobs that ended with a message of at most this number.
    pub(crate) fn forget_ended(&mut self, seq: u64) {
        let ended: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, told)| told.state.is_terminal() && told.last_seq <= seq)
            .map(|(job, _)| job.clone())
            .collect();
        for job in ended {
            self.jobs.remove(&job);
            self.feed.forget(&job);
        }
    }

    /// Names the agents of the jobs that it began with.
    pub(crate) fn name_agents(&mut self, agent_of: impl Fn(SessionId) -> String) {
        self.jobs.values_mut().for_each(|job| job.agent = agent_of(job.home));
    }

    /// What the fold knows behind this event.
    pub(crate) fn base(&self, position: Position) -> Base {
        Base { position, seq: self.seq, jobs: self.open_jobs(), observers: self.feed.observers().to_vec() }
    }

    /// The jobs that have not ended, with what was told of them.
    pub(crate) fn open_jobs(&self) -> Vec<JobAtBase> {
        let at_base = |(job, fed): (&CommandId, &crate::feed::FedJob)| JobAtBase {
            job: job.clone(),
            home: fed.home,
            is_own: fed.is_own,
            asks: fed.asks.clone(),
            told: self.jobs.get(job).map(ToldJob::to_base),
        };
        self.feed.open_jobs().map(at_base).collect()
    }

    /// The number of the last message.
    pub(crate) const fn seq(&self) -> u64 {
        self.seq
    }

    /// The job of this name, where the session is told of it.
    pub(crate) fn job(&self, job: &CommandId) -> Option<&ToldJob> {
        self.jobs.get(job).filter(|_| self.feed.job(job).is_some())
    }

    /// Whether something that a job asks, or that is asked about it, waits for an answer.
    pub(crate) fn is_blocked(&self, job: &CommandId) -> bool {
        self.feed.job(job).is_some_and(|known| !known.asks.is_empty())
    }

    /// Whether the session is told of this job though another submitted it.
    pub(crate) fn has_joined(&self, job: &CommandId) -> bool {
        self.feed.job(job).is_some_and(|known| !known.is_own)
    }

    /// Whether a job that the session is told of asks this.
    pub(crate) fn is_asked(&self, ask: AskId) -> bool {
        self.feed.is_asked(ask)
    }

    /// How many jobs of other sessions it is told of.
    pub(crate) fn count_joined(&self) -> usize {
        self.feed.count_joined()
    }

    /// The jobs that the session is told of.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (&CommandId, &ToldJob)> {
        self.jobs.iter().filter(|(job, _)| self.feed.job(job).is_some())
    }

    /// Tells of a job of another session from here on.
    pub(crate) fn join(&mut self, job: &CommandId, home: SessionId, is_own: bool, has_begun: bool) {
        self.feed.join(job.clone(), home, is_own, has_begun);
    }

    /// Tells no more of a job of another session.
    pub(crate) fn leave(&mut self, job: &CommandId) {
        self.feed.leave(job);
    }

    /// Those who observe jobs.
    pub(crate) fn observers(&self) -> &[Observer] {
        self.feed.observers()
    }

    /// Has this one observe the jobs that begin from here on.
    pub(crate) fn observe(&mut self, observer: Observer) {
        self.feed.observe(observer);
    }

    /// Ends a subscription of an observer.
    pub(crate) fn end_observer(&mut self, subscription: &str) {
        self.feed.end_observer(subscription);
    }

    /// Numbers what is told on from here: another fold told what is between.
    pub(crate) fn go_on_behind(&mut self, seq: u64) {
        self.seq = seq;
    }

    /// The messages about what an event says, in order; `agent_of` names the agent of a session of the engine.
    pub(crate) fn tell(&mut self, event: &Event, agent_of: impl Fn(SessionId) -> String) -> Vec<V::Numbered> {
        self.tell_part(event, agent_of, History::All)
    }

    /// The same, but that of what happened before a job was joined only so much is told.
    pub(crate) fn tell_part(
        &mut self,
        event: &Event,
        agent_of: impl Fn(SessionId) -> String,
        history: History,
    ) -> Vec<V::Numbered> {
        let Some(Told { job, event, news }) = self.feed.take(event) else { return Vec::new() };
        let mut index = 0_u16;
        let mut told = Vec::new();
        for (is_end, messages) in self.messages(&job, event, &news, agent_of) {
            for message in messages {
                let is_told = match history {
                    History::All => true,
                    History::Nothing | History::Questions => false,
                    History::After(last) => Place { position: event.position, index } > last,
                    History::End => is_end,
                };
                if let (true, Some(message)) = (is_told, message) {
                    told.extend(self.envelopes(&job, event, index, message));
                }
                index = index.saturating_add(1);
            }
        }
        told
    }

    /// What there is to say of each thing that an event tells of a job; whether it is the job's end.
    fn messages(
        &mut self,
        job: &CommandId,
        event: &Event,
        news: &[JobNews<'_>],
        agent_of: impl Fn(SessionId) -> String,
    ) -> Vec<(bool, Vec<Option<V::Message>>)> {
        let mut said = Vec::new();
        self.note_job(job, event, agent_of);
        let is_blocked = self.is_blocked(job);
        let Some(known) = self.jobs.get_mut(job) else { return said };
        if let Some(acceptance) = Acceptance::of(event).filter(|acceptance| acceptance.is_first) {
            let view = JobView { job, known, event, is_blocked, handover: None };
            said.push((false, self.translator.accepted(&view, !acceptance.begins)));
        }
        for news in news {
            let mut handover = None;
            let outcome = match news {
                JobNews::Ended(end) => Some(JobOutcome::of(end, known.last_text.as_deref())),
                _ => None,
            };
            match (news, &outcome) {
                (_, Some(outcome)) => known.state = outcome.state(),
                (JobNews::Began, None) => {
                    (known.state, known.has_begun) = (JobState::Runs, true);
                    known.is_conversation = matches!(event.body, EventBody::JobRequested { .. });
                }
                (JobNews::Said(text), None) => known.last_text = Some((*text).to_owned()),
                (JobNews::Used { usage, .. }, None) => {
                    known.grants.iter_mut().for_each(|grants| grants.spend_on(usage));
                }
                (JobNews::Delegated { grants: Some(given), .. }, None) => {
                    known.grants.iter_mut().for_each(|grants| grants.give_away(given));
                }
                (JobNews::HandedOver { .. }, None) => {
                    let is_own = self.feed.job(job).is_some_and(|fed| fed.is_own);
                    handover = match (known.is_own, is_own) {
                        (true, false) => Some(Handover::Given),
                        (false, true) => Some(Handover::Taken),
                        (true, true) | (false, false) => None,
                    };
                    if handover == Some(Handover::Taken) {
                        // The message was another session's.
                        known.origin.message = None;
                    }
                    known.is_own = is_own;
                }
                (JobNews::TaskEnded { unspent }, None) => {
                    known.grants.iter_mut().for_each(|grants| grants.take_back(unspent));
                }
                _ => {}
            }
            let view = JobView { job, known, event, is_blocked, handover };
            said.push(match outcome {
                Some(outcome) => (true, self.translator.ended(&view, outcome)),
                None => (false, self.translator.news(&view, news)),
            });
        }
        said
    }

    /// Notes the job that is told of.
    fn note_job(&mut self, job: &CommandId, event: &Event, agent_of: impl Fn(SessionId) -> String) {
        let Some(fed) = self.feed.job(job).filter(|_| !self.jobs.contains_key(job)) else { return };
        let known = ToldJob {
            agent: agent_of(fed.home),
            home: fed.home,
            is_own: fed.is_own,
            state: if fed.has_begun { JobState::Runs } else { JobState::Waits },
            has_begun: fed.has_begun,
            is_conversation: false,
            submitted_at: event.at,
            origin: JobOrigin::of(event, job),
            last_seq: 0,
            last_text: None,
            grants: Acceptance::of(event).and_then(|acceptance| acceptance.grants.cloned()).map(Box::new),
        };
        self.jobs.insert(job.clone(), known);
    }

    fn envelopes(
        &mut self,
        job: &CommandId,
        event: &Event,
        index: u16,
        message: V::Message,
    ) -> Vec<V::Numbered> {
        let is_blocked = self.is_blocked(job);
        let Some(known) = self.jobs.get_mut(job) else { return Vec::new() };
        let view = JobView { job, known, event, is_blocked, handover: None };
        let told = self.translator.envelopes(&view, index, message, self.feed.observers(), self.seq);
        if let Some(last) = told.last() {
            self.seq = last.seq();
            known.last_seq = self.seq;
        }
        told
    }
}
