//! A store that can be told to refuse, or to keep its callers waiting.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::ready;
use futures::stream::BoxStream;
use mainstay_log::{
    AddedSchedule, Append, AppendError, Appended, Artifact, Artifacts, ClaimError, Directory, DueSchedules,
    EntryFilter, EntryIndex, Epoch, EventLog, FailedAppend, HistoryFilter, KeyScope, Log, Maintenance,
    NewArtifact, ObjectHash, Objects, PromptHistory, ResumableConnection, ResumableConnections, Schedules,
    SessionFilter, StoredOutcome, StoredSchedule,
};
use mainstay_model::decide::Answer;
use mainstay_model::schedule::Schedule;
use mainstay_model::store::{Collected, Collection, Manifest, SessionStatistics, StoreStatistics};
use mainstay_model::{
    CommandId, Error, Event, HistoryPage, IdempotencyKey, LineNumber, NewLine, Position, Principal, Seq,
    Session, SessionId, TakenNotices, Timestamp, TranscriptEntry,
};
use tokio::sync::watch;

/// Passes everything on to the real store, unless it is told otherwise.
pub(crate) struct StoreDouble {
    inner: Arc<dyn Log>,
    refusals: AtomicUsize,
    lost_answers: AtomicUsize,
    held: watch::Sender<bool>,
    away: watch::Sender<bool>,
    blocked: watch::Sender<Option<CommandId>>,
    failures: watch::Sender<usize>,
    lease: Mutex<Vec<Lease>>,
    renewals_held: watch::Sender<bool>,
    reads_of_all_held: watch::Sender<bool>,
    cut: watch::Sender<Cut>,
    read: Mutex<BTreeMap<SessionId, usize>>,
}

/// Whether whoever appends has been cut off from the store.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// It has not, and is not going to be.
    Never,
    /// It is with the append after so many more, which is stored or not.
    After { appends: usize, last_is_stored: bool },
    /// It hears nothing of what it appends, and nothing of it is stored.
    Done,
    /// It is told that nothing was stored.
    Told,
}

/// What was done with the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    /// A renewal of it began.
    Renewing,
    /// A renewal was over.
    Renewed,
    /// The lease was given up.
    Released,
}

impl StoreDouble {
    pub(crate) fn over(inner: Arc<dyn Log>) -> Self {
        Self {
            inner,
            refusals: AtomicUsize::new(0),
            lost_answers: AtomicUsize::new(0),
            held: watch::Sender::new(false),
            away: watch::Sender::new(false),
            blocked: watch::Sender::new(None),
            failures: watch::Sender::new(0),
            lease: Mutex::default(),
            renewals_held: watch::Sender::new(false),
            reads_of_all_held: watch::Sender::new(false),
            cut: watch::Sender::new(Cut::Never),
            read: Mutex::default(),
        }
    }

    /// Cuts off whoever appends with the append after the next `appends` ones: nothing is heard of that one, which is stored or not, nor of
    /// later ones, which are not.
    pub(crate) fn cut_after(&self, appends: usize, last_is_stored: bool) {
        self.cut.send_replace(Cut::After { appends, last_is_stored });
    }

    /// Waits until whoever appends is cut off.
    pub(crate) async fn is_cut(&self) {
        self.cut.subscribe().wait_for(|cut| matches!(cut, Cut::Done)).await.unwrap();
    }

    /// Tells whoever waits to hear of an append that it failed. From now on everybody is cut off.
    pub(crate) fn tell_cut(&self) {
        self.cut.send_replace(Cut::Told);
    }

    /// Counts an append; none where it goes the usual way, else whether it is stored.
    fn cut(&self) -> Option<bool> {
        let mut is_stored = None;
        self.cut.send_if_modified(|cut| {
            let next = match *cut {
                Cut::Never => return false,
                Cut::Done | Cut::Told => {
                    is_stored = Some(false);
                    return false;
                }
                Cut::After { appends: 0, last_is_stored } => {
                    is_stored = Some(last_is_stored);
                    Cut::Done
                }
                Cut::After { appends, last_is_stored } => Cut::After { appends: appends - 1, last_is_stored },
            };
            *cut = next;
            true
        });
        is_stored
    }

    /// How many events of a session were read.
    pub(crate) fn read_of(&self, session: SessionId) -> usize {
        self.read.lock().unwrap().get(&session).copied().unwrap_or_default()
    }

    /// Keeps whoever reads the events of all sessions waiting, until told otherwise.
    pub(crate) fn hold_reads_of_all(&self, held: bool) {
        self.reads_of_all_held.send_replace(held);
    }

    /// Keeps renewals of the lease under way, until told otherwise.
    pub(crate) fn hold_renewals(&self, held: bool) {
        self.renewals_held.send_replace(held);
    }

    /// What was done with the lease so far.
    pub(crate) fn lease(&self) -> Vec<Lease> {
        self.lease.lock().unwrap().clone()
    }

    fn note_lease(&self, done: Lease) {
        self.lease.lock().unwrap().push(done);
    }

    /// Lets the append after the next `skipped` ones fail.
    pub(crate) fn refuse_after(&self, skipped: usize) {
        self.refusals.store(skipped + 1, Ordering::SeqCst);
    }

    /// Stores the append after the next `skipped` ones, and says that it could not.
    pub(crate) fn lose_answer_after(&self, skipped: usize) {
        self.lost_answers.store(skipped + 1, Ordering::SeqCst);
    }

    /// Lets every append fail, until told otherwise.
    pub(crate) fn be_away(&self, away: bool) {
        self.away.send_replace(away);
    }

    /// Keeps whoever looks for the outcome of this command waiting, until told otherwise.
    pub(crate) fn block(&self, command: Option<CommandId>) {
        self.blocked.send_replace(command);
    }

    /// Waits until so many more appends have failed.
    pub(crate) async fn failed(&self, more: usize) {
        let mut failures = self.failures.subscribe();
        let wanted = *failures.borrow() + more;
        failures.wait_for(|failures| *failures >= wanted).await.unwrap();
    }

    /// Keeps the news of what is durable back, until told otherwise.
    pub(crate) fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }
}

#[async_trait]
impl EventLog for StoreDouble {
    fn append(&self, append: Append) -> Appended {
        if let Some(is_stored) = self.cut() {
            let stored = is_stored.then(|| self.inner.append(append.clone()));
            let mut cut = self.cut.subscribe();
            let error = AppendError::Unavailable { reason: "the store is out of reach".to_owned() };
            return Box::pin(async move {
                if let Some(stored) = stored {
                    stored.await?;
                }
                cut.wait_for(|cut| matches!(cut, Cut::Told)).await.ok();
                Err(FailedAppend { error, append: Box::new(append) })
            });
        }
        if *self.away.borrow() || is_last(&self.refusals) {
            let error = AppendError::Unavailable { reason: "the disk is full".to_owned() };
            self.failures.send_modify(|failures| *failures += 1);
            return ready(Err(FailedAppend { error, append: Box::new(append) })).boxed();
        }
        if is_last(&self.lost_answers) {
            let appended = self.inner.append(append.clone());
            let error = AppendError::Unavailable { reason: "the connection was lost".to_owned() };
            return Box::pin(async move {
                appended.await?;
                Err(FailedAppend { error, append: Box::new(append) })
            });
        }
        let appended = self.inner.append(append);
        let mut held = self.held.subscribe();
        Box::pin(async move {
            let appended = appended.await;
            held.wait_for(|held| !held).await.ok();
            appended
        })
    }

    async fn store_refusal(&self, answer: Answer) -> Result<(), Error> {
        self.inner.store_refusal(answer).await
    }

    async fn claim(&self, session: SessionId) -> Result<Epoch, ClaimError> {
        self.inner.claim(session).await
    }

    async fn newest_epoch(&self, session: SessionId) -> Result<Option<Epoch>, Error> {
        self.inner.newest_epoch(session).await
    }

    async fn taken(&self, session: SessionId) -> Result<Option<TakenNotices>, Error> {
        self.inner.taken(session).await
    }

    fn changes_by_others(&self) -> BoxStream<'static, Position> {
        self.inner.changes_by_others()
    }

    async fn renew(&self) -> Result<Option<Duration>, Error> {
        self.note_lease(Lease::Renewing);
        let after = self.inner.renew().await?;
        self.renewals_held.subscribe().wait_for(|held| !held).await.ok();
        self.note_lease(Lease::Renewed);
        Ok(after)
    }

    async fn release(&self) -> Result<(), Error> {
        self.note_lease(Lease::Released);
        self.inner.release().await
    }

    async fn events(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Event>, Error> {
        let events = self.inner.events(session, after, limit).await?;
        *self.read.lock().unwrap().entry(session).or_default() += events.len();
        Ok(events)
    }

    async fn all_events(&self, after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        self.reads_of_all_held.subscribe().wait_for(|held| !held).await.ok();
        self.inner.all_events(after, limit).await
    }

    async fn last_position(&self) -> Result<Position, Error> {
        self.inner.last_position().await
    }

    async fn outcome(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<Option<StoredOutcome>, Error> {
        self.blocked.subscribe().wait_for(|blocked| blocked.as_ref() != Some(command)).await.ok();
        self.inner.outcome(principal, command).await
    }

    async fn outcome_of_key(
        &self,
        principal: &Principal,
        scope: KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<StoredOutcome>, Error> {
        self.inner.outcome_of_key(principal, scope, key).await
    }

    async fn count_outcomes(&self) -> Result<u64, Error> {
        self.inner.count_outcomes().await
    }

    async fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        self.inner.session(session).await
    }
}

#[async_trait]
impl Directory for StoreDouble {
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.inner.sessions(filter).await
    }

    async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error> {
        self.inner.count_sessions(filter).await
    }

    async fn resolve(&self, reference: &str) -> Result<Vec<SessionId>, Error> {
        self.inner.resolve(reference).await
    }
}

#[async_trait]
impl Objects for StoreDouble {
    async fn put_object(&self, bytes: Vec<u8>) -> Result<ObjectHash, Error> {
        self.inner.put_object(bytes).await
    }

    async fn object(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error> {
        self.inner.object(hash).await
    }
}

#[async_trait]
impl EntryIndex for StoreDouble {
    async fn own_entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error> {
        self.inner.own_entries(session, from, limit).await
    }

    async fn count_own_entries(&self, session: SessionId) -> Result<u64, Error> {
        self.inner.count_own_entries(session).await
    }

    async fn search(&self, filter: EntryFilter) -> Result<Vec<(Session, TranscriptEntry)>, Error> {
        self.inner.search(filter).await
    }
}

#[async_trait]
impl PromptHistory for StoreDouble {
    async fn add_history(
        &self,
        principal: &Principal,
        line: NewLine,
        keep: Option<u64>,
    ) -> Result<LineNumber, Error> {
        self.inner.add_history(principal, line, keep).await
    }

    async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error> {
        self.inner.history(filter).await
    }

    async fn remove_history(&self, filter: HistoryFilter) -> Result<u64, Error> {
        self.inner.remove_history(filter).await
    }
}

#[async_trait]
impl Artifacts for StoreDouble {
    async fn put_artifact(
        &self,
        artifact: NewArtifact,
        bytes: Vec<u8>,
        limit: u64,
    ) -> Result<Artifact, Error> {
        self.inner.put_artifact(artifact, bytes, limit).await
    }

    async fn artifact(&self, id: &str) -> Result<Option<Artifact>, Error> {
        self.inner.artifact(id).await
    }

    async fn release_artifact(&self, id: &str) -> Result<bool, Error> {
        self.inner.release_artifact(id).await
    }

    async fn remove_expired_artifacts(&self, before: Timestamp) -> Result<u64, Error> {
        self.inner.remove_expired_artifacts(before).await
    }
}

#[async_trait]
impl ResumableConnections for StoreDouble {
    async fn store_connection(&self, connection: ResumableConnection) -> Result<(), Error> {
        self.inner.store_connection(connection).await
    }

    async fn connection(&self, id: &str) -> Result<Option<ResumableConnection>, Error> {
        self.inner.connection(id).await
    }

    async fn connections(
        &self,
        principal: &Principal,
        protocol: &str,
    ) -> Result<Vec<ResumableConnection>, Error> {
        self.inner.connections(principal, protocol).await
    }

    async fn remove_expired_connections(&self, before: Timestamp) -> Result<u64, Error> {
        self.inner.remove_expired_connections(before).await
    }
}

#[async_trait]
impl Schedules for StoreDouble {
    async fn add_schedule(&self, schedule: Schedule, limit: u64) -> Result<AddedSchedule, Error> {
        self.inner.add_schedule(schedule, limit).await
    }

    async fn schedule(&self, id: &str) -> Result<Option<StoredSchedule>, Error> {
        self.inner.schedule(id).await
    }

    async fn schedules(&self, principal: &Principal) -> Result<Vec<StoredSchedule>, Error> {
        self.inner.schedules(principal).await
    }

    async fn next_schedules(&self, limit: usize) -> Result<Vec<StoredSchedule>, Error> {
        self.inner.next_schedules(limit).await
    }

    async fn due_schedules(&self, now: Timestamp) -> Result<DueSchedules, Error> {
        self.inner.due_schedules(now).await
    }

    async fn change_schedule(&self, revision: u64, schedule: Schedule) -> Result<bool, Error> {
        self.inner.change_schedule(revision, schedule).await
    }

    async fn remove_schedule(&self, id: &str) -> Result<bool, Error> {
        self.inner.remove_schedule(id).await
    }

    async fn remove_ended_schedules(&self, before: Timestamp) -> Result<u64, Error> {
        self.inner.remove_ended_schedules(before).await
    }
}

#[async_trait]
impl Maintenance for StoreDouble {
    async fn collect(&self, from: Collection) -> Result<(Collected, Option<Collection>), Error> {
        self.inner.collect(from).await
    }

    async fn backup(&self, folder: PathBuf, now: Timestamp) -> Result<Manifest, Error> {
        self.inner.backup(folder, now).await
    }

    async fn statistics(&self) -> Result<StoreStatistics, Error> {
        self.inner.statistics().await
    }

    async fn session_statistics(&self, session: SessionId) -> Result<SessionStatistics, Error> {
        self.inner.session_statistics(session).await
    }
}

/// Counts down to zero; whether this was the last step.
fn is_last(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1)
}
