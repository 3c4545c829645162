//! A store in memory. One task writes, as in the real one; every use of the store lets others go first.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use mainstay_log::{
    AddedSchedule, Append, AppendError, Appended, Artifact, Artifacts, ClaimError, Directory, DueSchedules,
    EntryFilter, EntryIndex, Epoch, EventLog, FailedAppend, HistoryFilter, KeyScope, Maintenance,
    NewArtifact, ObjectHash, Objects, PromptHistory, Refusal, ResumableConnection, ResumableConnections,
    Schedules, SessionFilter, StoredOutcome, StoredSchedule,
};
use mainstay_model::decide::Answer;
use mainstay_model::schedule::Schedule;
use mainstay_model::store::{Collected, Collection, Manifest, SessionStatistics, StoreStatistics};
use mainstay_model::{
    CommandId, Error, Event, HistoryPage, IdempotencyKey, LineNumber, NewLine, NoticeNumber, Position,
    Principal, Seq, Session, SessionId, SessionState, TakenNotices, Timestamp, TranscriptEntry,
};
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::{mpsc, oneshot};

use crate::claims::CommandKey;

type Written = Result<Vec<Event>, FailedAppend>;

pub(super) struct MemoryLog {
    stored: Arc<Mutex<Stored>>,
    queue: mpsc::UnboundedSender<(Append, oneshot::Sender<Written>)>,
}

/// The part of the log that is durable.
#[derive(Default)]
struct Stored {
    events: Vec<Event>,
    outcomes: HashMap<CommandKey, (StoredOutcome, Option<(KeyScope, IdempotencyKey)>)>,
    sessions: HashMap<SessionId, (Epoch, Session)>,
    taken: HashMap<SessionId, TakenNotices>,
    /// How many appends go well before one does not.
    until_refusal: Option<usize>,
    /// How many reads of all sessions' events may still fail.
    unreadable: usize,
}

impl MemoryLog {
    pub(super) fn new() -> Arc<Self> {
        let stored = Arc::<Mutex<Stored>>::default();
        let (queue, queued) = mpsc::unbounded_channel();
        spawn(write(Arc::clone(&stored), queued));
        Arc::new(Self { stored, queue })
    }

    /// Lets the append after this many fail.
    pub(super) fn refuse_after(&self, appends: usize) {
        self.lock().until_refusal = Some(appends);
    }

    /// Lets so many reads of all sessions' events fail at some time.
    pub(super) fn refuse_reads_of_all(&self, reads: usize) {
        self.lock().unreadable = reads;
    }

    /// The newest event's place, seen at once.
    pub(super) fn end(&self) -> Position {
        self.lock().end()
    }

    /// Whether a command has a durable outcome, seen at once.
    pub(super) fn has_outcome(&self, key: &CommandKey) -> bool {
        self.lock().outcomes.contains_key(key)
    }

    /// The last notice of a session's runner that is stored as taken, seen at once.
    pub(super) fn has_taken(&self, session: SessionId) -> NoticeNumber {
        self.lock().taken.get(&session).map_or(NoticeNumber::default(), |taken| taken.up_to)
    }

    /// Gives what is durable at one moment of the call.
    async fn read<T>(&self, read: impl FnOnce(&mut Stored) -> T) -> T {
        let_others_go_first().await;
        let read = read(&mut self.lock());
        let_others_go_first().await;
        read
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap()
    }
}

async fn let_others_go_first() {
    if thread_rng().r#gen() {
        yield_now().await;
    }
}

async fn write(
    stored: Arc<Mutex<Stored>>,
    mut queued: mpsc::UnboundedReceiver<(Append, oneshot::Sender<Written>)>,
) {
    while let Some((append, answer)) = queued.recv().await {
        let_others_go_first().await;
        let written = stored.lock().unwrap().append(append);
        let_others_go_first().await;
        answer.send(written).ok();
    }
}

impl Stored {
    fn append(&mut self, append: Append) -> Written {
        if let Some(left) = &mut self.until_refusal {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => {
                    self.until_refusal = None;
                    let error = AppendError::Unavailable { reason: "the disk is full".to_owned() };
                    return Err(FailedAppend { error, append: Box::new(append) });
                }
            }
        }
        if let Some(error) = self.refused(&append) {
            return Err(FailedAppend { error, append: Box::new(append) });
        }
        let Append { session, epoch, first, events, outcomes, version, projection, taken, trace: _ } = append;
        if let Some(taken) = taken {
            self.taken.insert(session, taken);
        }
        let scope = if first == Seq(1) { KeyScope::Creations } else { KeyScope::Session(session) };
        for answer in outcomes {
            let key = (answer.principal, answer.command);
            let stored = StoredOutcome {
                fingerprint: answer.fingerprint,
                outcome: answer.outcome,
                version,
                session: Some(session),
            };
            if self.outcomes.insert(key.clone(), (stored, answer.key.map(|key| (scope, key)))).is_some() {
                // Nothing in these tests may come here.
                panic!("{key:?} has a second outcome");
            }
        }
        self.sessions.insert(session, (epoch, projection));
        let mut written = Vec::new();
        for (seq, event) in (first.0..).zip(events) {
            let (at, metadata, body) = (event.at, event.metadata, event.body);
            let event = Event { session, seq: Seq(seq), position: self.end().next(), at, metadata, body };
            self.events.push(event.clone());
            written.push(event);
        }
        Ok(written)
    }

    /// Why an append does not go on from what is there.
    fn refused(&self, append: &Append) -> Option<AppendError> {
        let newest = self.sessions.get(&append.session).map_or(append.epoch, |(newest, _)| *newest);
        let next = self.of(append.session).last().map_or(Seq::ZERO, |event| event.seq).next();
        if newest != append.epoch {
            return Some(AppendError::Fenced { newest });
        }
        (next != append.first).then_some(AppendError::Refused(Refusal::OutOfSequence { next }))
    }

    fn end(&self) -> Position {
        Position(self.events.len() as u64)
    }

    fn of(&self, session: SessionId) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.session == session)
    }
}

#[async_trait]
impl EventLog for MemoryLog {
    fn append(&self, append: Append) -> Appended {
        let (answer, answered) = oneshot::channel();
        assert!(self.queue.send((append, answer)).is_ok(), "the writer is there as long as the store");
        Box::pin(async move { answered.await.unwrap() })
    }

    async fn store_refusal(&self, answer: Answer) -> Result<(), Error> {
        self.read(|stored| {
            let key = (answer.principal.clone(), answer.command.clone());
            if stored.outcomes.contains_key(&key) {
                return Err(Error::CommandConflict { command: answer.command.clone() });
            }
            let (fingerprint, outcome) = (answer.fingerprint.clone(), answer.outcome.clone());
            let refusal =
                StoredOutcome { fingerprint, outcome, version: mainstay_model::Version::ZERO, session: None };
            stored.outcomes.insert(key, (refusal, None));
            Ok(())
        })
        .await
    }

    async fn newest_epoch(&self, session: SessionId) -> Result<Option<Epoch>, Error> {
        Ok(self.read(|stored| stored.sessions.get(&session).map(|(epoch, _)| *epoch)).await)
    }

    async fn taken(&self, session: SessionId) -> Result<Option<TakenNotices>, Error> {
        Ok(self.read(|stored| stored.taken.get(&session).copied()).await)
    }

    fn changes_by_others(&self) -> BoxStream<'static, Position> {
        stream::empty().boxed()
    }

    async fn renew(&self) -> Result<Option<Duration>, Error> {
        Ok(None)
    }

    async fn release(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn claim(&self, session: SessionId) -> Result<Epoch, ClaimError> {
        self.read(|stored| {
            let Some((epoch, _)) = stored.sessions.get_mut(&session) else {
                return Err(Error::SessionNotFound { reference: session.to_string() }.into());
            };
            epoch.0 += 1;
            Ok(*epoch)
        })
        .await
    }

    async fn events(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Event>, Error> {
        let later = |stored: &mut Stored| {
            stored.of(session).filter(|event| event.seq > after).take(limit).cloned().collect()
        };
        Ok(self.read(later).await)
    }

    async fn all_events(&self, after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        self.read(|stored| {
            if stored.unreadable > 0 && thread_rng().r#gen() {
                stored.unreadable -= 1;
                return Err(Error::StoreFailed { reason: "the disk cannot be read".to_owned() });
            }
            Ok(stored.events.iter().filter(|event| event.position > after).take(limit).cloned().collect())
        })
        .await
    }

    async fn last_position(&self) -> Result<Position, Error> {
        Ok(self.read(|stored| stored.end()).await)
    }

    async fn outcome(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<Option<StoredOutcome>, Error> {
        let key = (principal.clone(), command.clone());
        Ok(self.read(|stored| stored.outcomes.get(&key).map(|(outcome, _)| outcome.clone())).await)
    }

    async fn outcome_of_key(
        &self,
        principal: &Principal,
        scope: KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<StoredOutcome>, Error> {
        self.read(|stored| {
            let mut outcomes = stored.outcomes.iter();
            let wanted = Some((scope, key.clone()));
            let found = outcomes.find(|((owner, _), (_, key))| owner == principal && *key == wanted);
            Ok(found.map(|(_, (outcome, _))| outcome.clone()))
        })
        .await
    }

    async fn count_outcomes(&self) -> Result<u64, Error> {
        Ok(self.read(|stored| stored.outcomes.len() as u64).await)
    }

    async fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        Ok(self.read(|stored| stored.sessions.get(&session).map(|(_, session)| session.clone())).await)
    }
}

#[async_trait]
impl Directory for MemoryLog {
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        let is_wanted = |session: &&Session| {
            (!filter.live || session.state() != SessionState::Uninitialized)
                && (!filter.asks || !session.asks.is_empty())
                && (!filter.waits || !session.lane.is_empty())
                && (!filter.delegates || !session.delegations.is_empty())
        };
        let wanted = |stored: &mut Stored| {
            stored.sessions.values().map(|(_, session)| session).filter(is_wanted).cloned().collect()
        };
        Ok(self.read(wanted).await)
    }

    async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error> {
        self.sessions(filter).await.map(|sessions| sessions.len())
    }

    async fn resolve(&self, _: &str) -> Result<Vec<SessionId>, Error> {
        unreachable!("sessions are named by their ids here")
    }
}

#[async_trait]
impl Objects for MemoryLog {
    async fn put_object(&self, _: Vec<u8>) -> Result<ObjectHash, Error> {
        unreachable!("there are no objects here")
    }

    async fn object(&self, _: &ObjectHash) -> Result<Vec<u8>, Error> {
        unreachable!("there are no objects here")
    }
}

#[async_trait]
impl EntryIndex for MemoryLog {
    async fn own_entries(&self, _: SessionId, _: u64, _: usize) -> Result<Vec<TranscriptEntry>, Error> {
        Ok(Vec::new())
    }

    async fn count_own_entries(&self, _: SessionId) -> Result<u64, Error> {
        Ok(0)
    }

    async fn search(&self, _: EntryFilter) -> Result<Vec<(Session, TranscriptEntry)>, Error> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl PromptHistory for MemoryLog {
    async fn add_history(&self, _: &Principal, _: NewLine, _: Option<u64>) -> Result<LineNumber, Error> {
        unreachable!("nobody types here")
    }

    async fn history(&self, _: HistoryFilter) -> Result<HistoryPage, Error> {
        unreachable!("nobody types here")
    }

    async fn remove_history(&self, _: HistoryFilter) -> Result<u64, Error> {
        unreachable!("nobody types here")
    }
}

#[async_trait]
impl Artifacts for MemoryLog {
    async fn put_artifact(&self, _: NewArtifact, _: Vec<u8>, _: u64) -> Result<Artifact, Error> {
        unreachable!("nobody stores artifacts here")
    }

    async fn artifact(&self, _: &str) -> Result<Option<Artifact>, Error> {
        unreachable!("nobody stores artifacts here")
    }

    async fn release_artifact(&self, _: &str) -> Result<bool, Error> {
        unreachable!("nobody stores artifacts here")
    }

    async fn remove_expired_artifacts(&self, _: Timestamp) -> Result<u64, Error> {
        unreachable!("nobody stores artifacts here")
    }
}

#[async_trait]
impl ResumableConnections for MemoryLog {
    async fn store_connection(&self, _: ResumableConnection) -> Result<(), Error> {
        unreachable!("nobody resumes anything here")
    }

    async fn connection(&self, _: &str) -> Result<Option<ResumableConnection>, Error> {
        unreachable!("nobody resumes anything here")
    }

    async fn connections(&self, _: &Principal, _: &str) -> Result<Vec<ResumableConnection>, Error> {
        unreachable!("nobody resumes anything here")
    }

    async fn remove_expired_connections(&self, _: Timestamp) -> Result<u64, Error> {
        unreachable!("nobody resumes anything here")
    }
}

#[async_trait]
impl Schedules for MemoryLog {
    async fn add_schedule(&self, _: Schedule, _: u64) -> Result<AddedSchedule, Error> {
        unreachable!("nobody schedules anything here")
    }

    async fn schedule(&self, _: &str) -> Result<Option<StoredSchedule>, Error> {
        Ok(None)
    }

    async fn schedules(&self, _: &Principal) -> Result<Vec<StoredSchedule>, Error> {
        Ok(Vec::new())
    }

    async fn next_schedules(&self, _: usize) -> Result<Vec<StoredSchedule>, Error> {
        Ok(Vec::new())
    }

    async fn due_schedules(&self, _: Timestamp) -> Result<DueSchedules, Error> {
        Ok(DueSchedules::default())
    }

    async fn change_schedule(&self, _: u64, _: Schedule) -> Result<bool, Error> {
        Ok(false)
    }

    async fn remove_schedule(&self, _: &str) -> Result<bool, Error> {
        Ok(false)
    }

    async fn remove_ended_schedules(&self, _: Timestamp) -> Result<u64, Error> {
        Ok(0)
    }
}

#[async_trait]
impl Maintenance for MemoryLog {
    async fn collect(&self, _: Collection) -> Result<(Collected, Option<Collection>), Error> {
        Ok((Collected::default(), None))
    }

    async fn backup(&self, _: PathBuf, _: Timestamp) -> Result<Manifest, Error> {
        unreachable!("nothing is on a disk here")
    }

    async fn statistics(&self) -> Result<StoreStatistics, Error> {
        Ok(StoreStatistics::default())
    }

    async fn session_statistics(&self, _: SessionId) -> Result<SessionStatistics, Error> {
        Ok(SessionStatistics::default())
    }
}
