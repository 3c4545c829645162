//! Bringing a worker up: wait out the back-off, start it, run again what defined the session, then pass on what it says.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use mainstay_log::Log;
use mainstay_model::LastWords;
use mainstay_model::reload::{CHANGES_KEPT, FullReplayReason, ValueChange};
use mainstay_model::replay::{EvalValues, Replay, ReplayComparison, ReplayItem, ReplayList};
use mainstay_model::{
    AgentNotice, Blame, Compaction, Divergence, DivergenceKind, Error, Event, EventBody, JobId, JobReport,
    Limits, Notice, References, Reload, RunnerInfo, RunnerNotice, Seq, Session, SessionId, WorkerExit,
};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::breakers::Breakers;
use crate::context::{compaction_of, conversation_of};
use crate::entries::events_of;
use crate::reload::{Part, Planned, plan_reload};
use crate::sync::Mutex;
use crate::sync::time::{sleep, timeout, timeout_at};
use crate::watch::Watch;
use mainstay_runner::{
    Kernel, Runner, RunnerFactory, RunnerSpec, StartObserver, StartedRunner, Submission, Upcoming,
    WarmUpPhase, WarmUpProgress,
};

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// A worker to bring up.
pub(crate) struct WarmUp {
    pub(crate) factory: Arc<dyn RunnerFactory>,
    pub(crate) spec: RunnerSpec,
    /// Hears how far the start is.
    pub(crate) observer: StartObserver,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) limits: Limits,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    /// The circuit breakers that decide whether a worker may start.
    pub(crate) breakers: Arc<Breakers>,
    /// How long to wait first.
    pub(crate) after: Duration,
    /// How the files are that its code rests on.
    pub(crate) watch: Watch,
    /// What its submissions gave last.
    pub(crate) given: LastValues,
    /// Why the worker that was there could not run again what depends on what had changed.
    pub(crate) because: Option<FullReplayReason>,
    /// Replay when all up to this event is in the log: what ended just before the worker was lost is of it.
    pub(crate) up_to: Seq,
    /// The session as committed.
    pub(crate) committed: watch::Receiver<Arc<Session>>,
    /// Where to say what happens.
    pub(crate) tell: mpsc::Sender<FromWorker>,
}

/// What a session's task hears from its worker.
pub(crate) enum FromWorker {
    /// It accepts code, though its definitions are not there yet.
    Started(Runner),
    /// It is so far.
    WarmsUp(WarmUpProgress),
    /// A new worker has to run all again, because of this.
    CannotReload(FullReplayReason),
    /// The worker reported that something happened.
    Notice(Notice),
}

/// What each submission of a session gave when it ran last, by its job. Its clones are the same; it is forgotten with the session's task, as
/// what the log has of their first runs holds for the next worker.
#[derive(Clone, Default)]
pub(crate) struct LastValues(Arc<Mutex<HashMap<JobId, EvalValues>>>);

impl LastValues {
    fn of(&self, job: JobId) -> Option<EvalValues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned()
    }

    fn note(&self, job: JobId, given: EvalValues) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job, given);
    }

    fn keep(&self, items: &[ReplayItem]) {
        let jobs: HashSet<JobId> = items.iter().map(|item| item.job).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|job, _| jobs.contains(job));
    }
}

/// A wish to run again what depends on what has changed.
pub(crate) struct ReloadRequest {
    /// The worker that is to reload the code.
    pub(crate) kernel: Arc<dyn Kernel>,
    /// Begin when all up to this event is in the log.
    pub(crate) up_to: Seq,
}

impl WarmUp {
    /// Brings the worker up and passes on what it says, until it is gone. Aborting the task kills the worker.
    pub(crate) async fn run(mut self, reloads: mpsc::UnboundedReceiver<ReloadRequest>) {
        sleep(self.after).await;
        let began = Instant::now();
        let StartedRunner { runner, mut notices } = match self.start().await {
            Ok(started) => started,
            Err(Error::WorkerFailed { reason }) => {
                tracing::warn!(session = %self.spec.session, reason, "a worker did not come up");
                return self.tell(Notice::StartFailed { reason }).await;
            }
            Err(error) => return self.tell(Notice::WarmUpFailed { error }).await,
        };
        if self.tell.send(FromWorker::Started(runner.clone())).await.is_err() {
            return;
        }
        let replayed = match &runner {
            Runner::Kernel(kernel) => self.replay(kernel.as_ref(), &mut notices).await,
            // It was given its conversation.
            Runner::Agent(_) => Ok(Replayed::default()),
        };
        match replayed {
            Ok(Replayed { count, diverged, changes, references }) => {
                let mut info = runner.process().info();
                info.references = references.or(info.references);
                let because = self.because.as_ref().map(ToString::to_string);
                let reload = Reload { of: count, because, changes, ..Reload::default() };
                self.tell(warmed_up(info, count, diverged, reload, began)).await;
                drop(runner);
                self.pass_on(notices, reloads).await;
            }
            Err(failed) => self.tell_failure(failed).await,
        }
    }

    async fn tell_failure(&self, failed: ReplayFailed) {
        self.tell(match failed {
            ReplayFailed::Exited { exit, last_words } => {
                Notice::Runner(RunnerNotice::Exited { exit, last_words })
            }
            ReplayFailed::Error(error) => Notice::WarmUpFailed { error },
        })
        .await;
    }

    /// Starts it. What fails counts for the breaker of its kind, what is only slow does not.
    async fn start(&mut self) -> Result<StartedRunner, Error> {
        self.check_folder()?;
        if self.is_agent() {
            let session = self.committed_session().await?;
            self.spec.conversation = Some(conversation_of(self.log.as_ref(), &session).await?);
        }
        let permit = self.breakers.permit(&self.spec.kind).await;
        match self.start_now().await {
            Ok(started) => {
                permit.succeeded();
                Ok(started)
            }
            Err(StartFailure::Failed(error)) => {
                permit.failed(error.to_string());
                Err(error)
            }
            Err(StartFailure::Late(error)) => Err(error),
        }
    }

    fn is_agent(&self) -> bool {
        self.committed.borrow().is_agent()
    }

    /// A folder that is gone is the session's own trouble, and says nothing of the kind.
    fn check_folder(&self) -> Result<(), Error> {
        let folder = &self.spec.working_directory;
        match folder.is_dir() {
            true => Ok(()),
            false => Err(Error::InvalidArgument {
                argument: "the session's folder".to_owned(),
                reason: format!("`{}` is not there", folder.display()),
            }),
        }
    }

    async fn start_now(&mut self) -> Result<StartedRunner, StartFailure> {
        within(self.limits.prepare_ms, "the kernel was not prepared", self.factory.prepare(&self.spec))
            .await?;
        self.spec.gathered =
            self.factory.gather(&self.spec, &self.observer).await.map_err(StartFailure::Failed)?;
        // The semaphore is never closed.
        let _permit = self.starts.acquire().await;
        let start = self.factory.start(self.spec.clone(), self.observer.clone());
        let started = within(self.limits.worker_start_ms, "it was not ready", start).await;
        started.map_err(|not_started| match not_started {
            StartFailure::Late(_) if self.is_agent() => StartFailure::Late(self.hangs()),
            not_started => not_started,
        })
    }

    /// An agent that hangs is not started again by itself: whoever waits for it is told, and decides.
    fn hangs(&self) -> Error {
        let said = match self.observer.last_lines.text() {
            Some(lines) => format!("; it said: {lines}"),
            None => ", and said nothing".to_owned(),
        };
        let limit_ms = self.limits.worker_start_ms;
        Error::KernelUnavailable {
            reason: format!("it was not ready within {limit_ms} ms (`worker-start-ms`){said}"),
        }
    }

    async fn replay(
        &self,
        runner: &dyn Kernel,
        notices: &mut mpsc::Receiver<RunnerNotice>,
    ) -> Result<Replayed, ReplayFailed> {
        let Ok(committed) = self.committed_session().await else {
            return Err(ReplayFailed::Exited { exit: WorkerExit::Unknown, last_words: None });
        };
        let replay = what_to_replay(self.log.as_ref(), &committed).await?;
        self.given.keep(&replay.items);
        let session = self.spec.session;
        let left_out =
            |(ran_in, requested)| Divergence::of(session, ran_in, requested, DivergenceKind::LeftOut);
        let withheld = |(ran_in, requested, why)| Divergence::of(session, ran_in, requested, why);
        let unknown = replay.withheld.into_iter().map(withheld);
        let diverged = replay.left_out.into_iter().map(left_out).chain(unknown).collect();
        let mut replayed = Replayed { diverged, ..Replayed::default() };
        let total = u32::try_from(replay.items.len()).unwrap_or(u32::MAX);
        self.tell_progress(replayed.count, total).await;
        let deadline = Instant::now() + Duration::from_millis(self.limits.replay_ms);
        let mut items = VecDeque::from(replay.items);
        // How many of those that come next the kernel knows of.
        let mut announced = 0_usize;
        while let Some(item) = items.pop_front() {
            if announced == 0 {
                announced = self.announce(runner, &item, &items).await;
            }
            announced = announced.saturating_sub(1);
            let again = self.run_again(runner, notices, item, deadline, None).await?;
            replayed.take(again);
            self.tell_progress(replayed.count, total).await;
        }
        Ok(replayed)
    }

    /// Runs one submission again, and says what came of it beside what was before. What it prints was recorded the first time, and is
    /// dropped; what other code of the session's says meanwhile is too, unless there is somebody to tell it (`others`).
    async fn run_again(
        &self,
        runner: &dyn Kernel,
        notices: &mut mpsc::Receiver<RunnerNotice>,
        mut item: ReplayItem,
        deadline: Instant,
        others: Option<&Self>,
    ) -> Result<ReplayedEval, ReplayFailed> {
        let (job, code, file) = (item.job, std::mem::take(&mut item.code), item.file.take());
        let command_line = item.command_line.take();
        let answers = std::mem::take(&mut item.asked).into_iter().map(|asked| asked.answer);
        let run = async {
            // Code that was withheld is not known any more, and not run again.
            runner.run(Submission { job, code, file, command_line, is_withheld: false }).await;
            end_of(job, answers, runner, notices, others).await
        };
        let mut report = timeout_at(deadline.into(), run)
            .await
            .unwrap_or_else(|_| Err(self.replay_took_too_long(item.requested)))?;
        let references = report.references.take();
        let had = self.given.of(job);
        let compared = item.compare(self.spec.session, report, &self.limits, had.as_ref());
        let fails_now = item.fails_now(&compared);
        let ReplayComparison { divergence, changes, gives, .. } = compared;
        let gives_last = gives.has_last_value();
        if !fails_now {
            self.given.note(job, gives);
        }
        Ok(ReplayedEval { divergence, changes, references, gives_last, fails_now })
    }

    /// Runs again what depends on what has changed, or tells why a new worker has to run all. Says whether the worker stays.
    async fn reload(&self, wanted: ReloadRequest, notices: &mut mpsc::Receiver<RunnerNotice>) -> bool {
        let began = Instant::now();
        let ReloadRequest { kernel, up_to } = wanted;
        let session = match self.committed_when(|session| session.last_seq >= up_to).await {
            Ok(session) => session,
            Err(_) => return false,
        };
        let planned = match plan_reload(
            self.log.as_ref(),
            &self.watch,
            &self.limits,
            &session,
            kernel.as_ref(),
        )
        .await
        {
            Ok(Ok(planned)) => planned,
            Ok(Err(why)) => {
                self.tell.send(FromWorker::CannotReload(why)).await.ok();
                return false;
            }
            Err(error) => {
                self.tell(Notice::WarmUpFailed { error }).await;
                return false;
            }
        };
        match self.run_part(planned, kernel.as_ref(), notices).await {
            Ok((Replayed { count, diverged, changes, references }, reload)) => {
                let mut info = kernel.info();
                let loaded = || session.surroundings.as_ref().map(|known| known.loaded.clone());
                info.references = references.or_else(loaded);
                self.tell(warmed_up(info, count, diverged, Reload { changes, ..reload }, began)).await;
                true
            }
            Err(failed) => {
                self.tell_failure(failed).await;
                false
            }
        }
    }

    /// Runs these again. What used something that one used which failed has to wait until that runs again: it would mix what was with what
    /// is.
    async fn run_part(
        &self,
        planned: Planned,
        runner: &dyn Kernel,
        notices: &mut mpsc::Receiver<RunnerNotice>,
    ) -> Result<(Replayed, Reload), ReplayFailed> {
        let Planned { items, of } = planned;
        let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let deadline = Instant::now() + Duration::from_millis(self.limits.replay_ms);
        let (mut replayed, mut ran, mut left) = (Replayed::default(), Vec::new(), Vec::new());
        let mut failed: HashSet<String> = HashSet::new();
        self.tell_progress(0, total).await;
        for (done, Part { item, touched }) in (1..).zip(items) {
            let requested = item.requested;
            if touched.iter().any(|name| failed.contains(name)) {
                left.push(requested);
                continue;
            }
            let again = self.run_again(runner, notices, item, deadline, Some(self)).await?;
            if again.fails_now {
                failed.extend(touched);
            }
            ran.push(requested);
            replayed.take(again);
            self.tell_progress(done, total).await;
        }
        Ok((replayed, Reload { in_place: Some(ran), left, of, ..Reload::default() }))
    }

    /// Tells the kernel of those that it may run together, from this one on, and says how many these are.
    async fn announce(&self, runner: &dyn Kernel, item: &ReplayItem, rest: &VecDeque<ReplayItem>) -> usize {
        let row = std::iter::once(item).chain(rest).take_while(|item| item.may_run_together());
        let upcoming: Vec<_> = row
            .take(self.limits.replay_batch)
            .map(|item| Upcoming { job: item.job, code: item.code.clone(), file: item.file.clone() })
            .collect();
        let count = upcoming.len();
        if count > 1 {
            runner.expect(upcoming).await;
        }
        count
    }

    /// The session once all is in the log that came before this start.
    async fn committed_session(&self) -> Result<Arc<Session>, Error> {
        let is_there = |session: &Arc<Session>| session.last_seq >= self.up_to;
        self.committed_when(is_there).await
    }

    /// The session as committed, once it is as it is to be.
    async fn committed_when(&self, is_so: impl FnMut(&Arc<Session>) -> bool) -> Result<Arc<Session>, Error> {
        let mut committed = self.committed.clone();
        let session = committed.wait_for(is_so).await.map(|session| Arc::clone(&session));
        // An append failed, and the session's task with it.
        session.map_err(|_| Error::WorkerFailed { reason: "the session's task ended".to_owned() })
    }

    /// Passes on what the runner says, until it is gone, and has it run again what depends on what has changed, where that is wanted.
    async fn pass_on(
        &self,
        mut notices: mpsc::Receiver<RunnerNotice>,
        mut reloads: mpsc::UnboundedReceiver<ReloadRequest>,
    ) {
        let mut messages = self.committed.borrow().messages;
        loop {
            let notice = tokio::select! {
                notice = notices.recv() => notice,
                Some(wanted) = reloads.recv() => match self.reload(wanted, &mut notices).await {
                    true => continue,
                    false => return,
                },
            };
            let Some(notice) = notice else { break };
            let notice = match notice {
                RunnerNotice::Agent(AgentNotice::Compacted { summary, kept, metadata }) => {
                    match self.compaction(messages, summary, kept, metadata).await {
                        Ok(compaction) => Notice::Compacted(compaction),
                        Err(error) => {
                            tracing::warn!(session = %self.spec.session, %error, "a compaction is not kept");
                            continue;
                        }
                    }
                }
                RunnerNotice::Agent(AgentNotice::Message(message)) => {
                    messages += u64::from(!message.parts.is_empty());
                    Notice::Runner(RunnerNotice::Agent(AgentNotice::Message(message)))
                }
                notice @ (RunnerNotice::Agent(_)
                | RunnerNotice::Output { .. }
                | RunnerNotice::Display { .. }
                | RunnerNotice::Cleared { .. }
                | RunnerNotice::Comm { .. }
                | RunnerNotice::CommTaken { .. }
                | RunnerNotice::Asks { .. }
                | RunnerNotice::Finished { .. }
                | RunnerNotice::Built { .. }
                | RunnerNotice::Exited { .. }) => Notice::Runner(notice),
            };
            self.tell(notice).await;
        }
        // Once more than needed, unless the worker went without a word; what is told twice is heard once.
        self.tell(exited(WorkerExit::Unknown)).await;
    }

    /// What an agent's summary stands for: it is known once all that the agent had said is in the log.
    async fn compaction(
        &self,
        messages: u64,
        summary: String,
        kept: u64,
        metadata: BTreeMap<String, Value>,
    ) -> Result<Compaction, Error> {
        let session = self.committed_when(|session| session.messages >= messages).await?;
        compaction_of(self.log.as_ref(), &session, summary, kept, metadata).await
    }

    fn replay_took_too_long(&self, requested: Seq) -> ReplayFailed {
        let limit_ms = self.limits.replay_ms;
        let reason =
            format!("replaying the session took longer than {limit_ms} ms; #{requested} was running");
        ReplayFailed::Error(Error::WorkerFailed { reason })
    }

    /// Says how far the replay is, where there is something to replay.
    async fn tell_progress(&self, done: u32, total: u32) {
        if total > 0 {
            self.tell
                .send(FromWorker::WarmsUp(WarmUpProgress { phase: WarmUpPhase::Replay, done, total }))
                .await
                .ok();
        }
    }

    async fn tell(&self, notice: Notice) {
        // The session's task may be gone; then nobody needs to know.
        self.tell.send(FromWorker::Notice(notice)).await.ok();
    }
}

pub(crate) fn warmed_up(
    runner: RunnerInfo,
    replayed: u32,
    diverged: Vec<Divergence>,
    reload: Reload,
    began: Instant,
) -> Notice {
    Notice::WarmedUp { runner, replayed, diverged, reload: Box::new(reload), took: began.elapsed() }
}

pub(crate) fn exited(exit: WorkerExit) -> Notice {
    Notice::Runner(RunnerNotice::Exited { exit, last_words: None })
}

/// Why a worker did not start.
enum StartFailure {
    /// The worker could not start.
    Failed(Error),
    /// It took too long.
    Late(Error),
}

async fn within<T>(
    limit_ms: u64,
    complaint: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, StartFailure> {
    let too_late = || Error::WorkerFailed { reason: format!("{complaint} within {limit_ms} ms") };
    match timeout(Duration::from_millis(limit_ms), work).await {
        Ok(done) => done.map_err(StartFailure::Failed),
        Err(_) => Err(StartFailure::Late(too_late())),
    }
}

#[derive(Default)]
struct Replayed {
    count: u32,
    diverged: Vec<Divergence>,
    /// What gave another value than before.
    changes: Vec<ValueChange>,
    /// What the worker said last that code rests on.
    references: Option<References>,
}

impl Replayed {
    fn take(&mut self, again: ReplayedEval) {
        let ReplayedEval { divergence, changes, references, gives_last, .. } = again;
        self.count += 1;
        self.diverged.extend(divergence);
        // The last value is that of the last one that gives one.
        if gives_last {
            self.changes.retain(|change| change.name != "it");
        }
        self.changes.extend(changes);
        self.changes.truncate(CHANGES_KEPT);
        self.references = references.or(self.references.take());
    }
}

/// A submission that ran again.
struct ReplayedEval {
    divergence: Option<Divergence>,
    changes: Vec<ValueChange>,
    references: Option<References>,
    /// Whether it gave the value of an expression.
    gives_last: bool,
    /// Whether it failed, where it had run to its end the first time.
    fails_now: bool,
}

enum ReplayFailed {
    Exited { exit: WorkerExit, last_words: Option<LastWords> },
    Error(Error),
}

impl From<Error> for ReplayFailed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What must run again to rebuild a session: what the entries it began with come from, then its own.
pub(crate) async fn what_to_replay(log: &dyn Log, session: &Session) -> Result<Replay, Error> {
    let mut list = ReplayList::default();
    for segment in &session.inherited() {
        let (after, up_to) = events_of(log, *segment).await?;
        let is_wanted: fn(&Event) -> bool = if segment.kept { is_no_reset } else { |_| true };
        push_events(&mut list, log, segment.session, after, up_to, is_wanted).await?;
    }
    push_events(&mut list, log, session.id, session.definitions_since, Seq(u64::MAX), |_| true).await?;
    Ok(list.finish())
}

/// Adds the events of a session after `after`, up to `up_to`, read page by page so that a long session costs no memory for
/// its output.
async fn push_events(
    list: &mut ReplayList,
    log: &dyn Log,
    session: SessionId,
    mut after: Seq,
    up_to: Seq,
    is_wanted: fn(&Event) -> bool,
) -> Result<(), Error> {
    // A reset that a merge follows had dropped what was said before, not what was merged: the merge knew.
    let mut reset = None;
    while after < up_to {
        let page = log.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for event in page.into_iter().filter(|event| event.seq <= up_to && is_wanted(event)) {
            if !is_no_reset(&event) {
                reset = Some(event);
            } else if matches!(event.body, EventBody::EntriesMerged(_)) {
                reset = None;
            } else if event.body.job_part().is_some() {
                reset.take().into_iter().chain([event]).for_each(|event| list.push(event));
            } else {
                list.push(event);
            }
        }
    }
    reset.into_iter().for_each(|event| list.push(event));
    Ok(())
}

/// What was brought from a session is not dropped by its resets.
pub(crate) fn is_no_reset(event: &Event) -> bool {
    !matches!(event.body, EventBody::SessionReset | EventBody::SessionHardReset)
}

/// Hears of a job's end. What it asks is answered as it was the first time; what other jobs' code says is told by `others`.
async fn end_of(
    job: JobId,
    mut answers: impl Iterator<Item = Result<Value, Error>>,
    runner: &dyn Kernel,
    notices: &mut mpsc::Receiver<RunnerNotice>,
    others: Option<&WarmUp>,
) -> Result<JobReport, ReplayFailed> {
    loop {
        let notice = notices.recv().await;
        if let (Some(others), Some(notice)) = (others, &notice)
            && says_another(notice, job)
        {
            others.tell(Notice::Runner(notice.clone())).await;
            continue;
        }
        match notice {
            Some(
                RunnerNotice::Output { .. }
                | RunnerNotice::Display { .. }
                | RunnerNotice::Cleared { .. }
                | RunnerNotice::Comm { .. }
                | RunnerNotice::CommTaken { .. }
                | RunnerNotice::Agent(_)
                | RunnerNotice::Built { .. },
            ) => {}
            Some(RunnerNotice::Asks { ask, .. }) => {
                let answer = answers.next().unwrap_or(Err(Error::Cancelled));
                runner.answer(ask, answer).await;
            }
            Some(RunnerNotice::Finished { job: finished, report }) if finished == job => return Ok(report),
            Some(RunnerNotice::Finished { .. }) => {}
            Some(RunnerNotice::Exited { exit, last_words }) => {
                return Err(ReplayFailed::Exited {
                    exit,
                    last_words: last_words.or_else(|| suspected(job, exit)),
                });
            }
            None => return Err(ReplayFailed::Exited { exit: WorkerExit::Unknown, last_words: None }),
        }
    }
}

/// Whether code of another job prints or shows something.
fn says_another(notice: &RunnerNotice, running: JobId) -> bool {
    match notice {
        RunnerNotice::Output { job, .. } | RunnerNotice::Display { job, .. } => *job != Some(running),
        RunnerNotice::Cleared { .. }
        | RunnerNotice::Comm { .. }
        | RunnerNotice::CommTaken { .. }
        | RunnerNotice::Asks { .. }
        | RunnerNotice::Agent(_)
        | RunnerNotice::Finished { .. }
        | RunnerNotice::Built { .. }
        | RunnerNotice::Exited { .. } => false,
    }
}

/// Whom to suspect where a worker is lost during a replay without a word: the submission that ran, unless the worker was ended
/// from outside. Were it never left out, each new worker would be lost in the same way.
fn suspected(job: JobId, exit: WorkerExit) -> Option<LastWords> {
    let is_known = exit != WorkerExit::Unknown && !exit.is_from_outside();
    let reason = "it was lost while a submission ran again".to_owned();
    let (blame, reason) = (Blame { job, is_sure: false }, Some(reason));
    is_known.then_some(LastWords { blame, reason, diagnostics: Vec::new() })
}
