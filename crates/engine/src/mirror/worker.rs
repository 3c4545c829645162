//! The process in which tests of unsaved texts run: started with what the session's worker was started with, brought to what is saved, and
//! then to what is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mainstay_model::{
    BufferEnding, BufferRun, CodeMark, Error, JobEnding, JobId, Limits, LiveTesting, RunnerNotice, Swap,
    SwapObstacle, TestPart, TestPolicy, TestProgress, TestRun, TestSelection, TestTimeout,
};
use mainstay_runner::query::KernelQuery;
use mainstay_runner::{AskAnswer, Kernel, RunnerFactory, RunnerSpec, SourceText, StartObserver, Submission};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc};
use uuid::Uuid;

use super::terms::BufferTerms;
use crate::sync::task::spawn;
use crate::sync::time::{Instant, sleep_until, timeout};

/// A pattern that no test has in its name: such a run tells what the code is, and has the tests found.
const NO_TEST: &str = "mainstay runs none of the tests";

/// What a mirror is started with.
pub(crate) struct Beginning {
    pub(crate) factory: Arc<dyn RunnerFactory>,
    pub(crate) spec: RunnerSpec,
    pub(crate) limits: Limits,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    pub(crate) terms: Arc<BufferTerms>,
}

/// The process of a mirror.
pub(super) struct MirrorWorker {
    kernel: Arc<dyn Kernel>,
    notices: mpsc::Receiver<RunnerNotice>,
    /// What its code was when it was as it is saved.
    saved: CodeMark,
    /// What its code is, where that is known.
    present: Option<CodeMark>,
    /// How many times it was given texts.
    given: u64,
}

/// What came of giving a process texts.
pub(super) enum PutIn {
    /// They run from now on.
    Runs,
    /// They do not, and what ran before goes on.
    Refused(Vec<SwapObstacle>),
}

/// How a run of tests left its process.
enum Left {
    /// It is as it was.
    Fit,
    /// It is to end, or has ended, and this is why.
    Unfit(&'static str),
}

impl MirrorWorker {
    /// Starts one, brings it to what is saved, and takes what runs for that.
    pub(super) async fn start(beginning: &Beginning) -> Result<Self, Error> {
        let mut worker = Self::start_unsettled(beginning).await?;
        worker.settle(beginning).await?;
        Ok(worker)
    }

    /// Starts one, and brings it to what is saved. None of its tests' code has run, not even what finds them.
    pub(super) async fn start_unsettled(beginning: &Beginning) -> Result<Self, Error> {
        let Beginning { factory, spec, limits, starts, .. } = beginning;
        // The semaphore is never closed.
        let permit = starts.acquire().await;
        let limit_ms = limits.worker_start_ms;
        let start = factory.start_mirror(spec.clone(), StartObserver::default());
        let started = timeout(Duration::from_millis(limit_ms), start).await;
        drop(permit);
        let started = started.unwrap_or(Err(Error::Timeout { limit_ms }))?;
        let Some(kernel) = started.runner.kernel().cloned() else {
            return Err(Error::WorkerFailed {
                reason: "what was started as a mirror runs no code".to_owned(),
            });
        };
        let nothing = CodeMark(String::new());
        let mut worker = Self { kernel, notices: started.notices, saved: nothing, present: None, given: 1 };
        let kernel = Arc::clone(&worker.kernel);
        let caught_up = worker.hears_while(limit_ms, async move { kernel.swap_all().await }).await?;
        if let Some(swap) = caught_up.filter(|swap| !swap.is_nothing()) {
            tracing::debug!(session = %spec.session, %swap, "a mirror has what was saved");
        }
        Ok(worker)
    }

    /// Its process, where it is one of this machine.
    pub(super) fn pid(&self) -> Option<u32> {
        self.kernel.info().pid
    }

    /// Whether it has taken as many texts as one may: each leaves memory behind.
    pub(super) fn is_full(&self, terms: &BufferTerms) -> bool {
        terms.texts.is_some_and(|most| self.given >= most)
    }

    /// Has it run these sources.
    pub(super) async fn put_in(&mut self, sources: Vec<SourceText>, limits: &Limits) -> Result<PutIn, Error> {
        self.given += 1;
        let kernel = Arc::clone(&self.kernel);
        let swapped =
            self.hears_while(limits.query_ms, async move { kernel.swap_texts(sources).await }).await?;
        let no_code = || Error::WorkerFailed { reason: "its kernel exchanges no code".to_owned() };
        let Swap { swapped, obstacles, .. } = swapped.ok_or_else(no_code)?;
        if !swapped.is_empty() {
            self.present = None;
        }
        Ok(if obstacles.is_empty() { PutIn::Runs } else { PutIn::Refused(obstacles) })
    }

    /// Takes what runs for what is saved.
    pub(super) async fn settle(&mut self, beginning: &Beginning) -> Result<(), Error> {
        if self.present.is_none() {
            let selection = TestSelection { pattern: Some(NO_TEST.to_owned()), ..TestSelection::default() };
            let limit = Duration::from_millis(beginning.limits.worker_start_ms);
            let mut told = BufferRun::without_tests(String::new(), 0, BufferEnding::Ran);
            if let Left::Unfit(why) =
                self.run(selection.code(), &mut told, &Notify::new(), (limit, limit)).await
            {
                return Err(Error::WorkerFailed { reason: why.to_owned() });
            }
        }
        match self.present.clone() {
            Some(present) => self.saved = present,
            None => return Err(Error::WorkerFailed { reason: "its tests cannot be found".to_owned() }),
        }
        Ok(())
    }

    /// Runs the tests that reach what is not as it is saved. Gives whether the process can go on.
    pub(super) async fn run_reached(
        &mut self,
        beginning: &Beginning,
        told: &mut BufferRun,
        newer: &Notify,
    ) -> bool {
        let terms = &beginning.terms;
        let selection = TestSelection {
            timeout_ms: TestTimeout::new(terms.test.as_millis() as u64),
            live: Some(LiveTesting {
                part: Some(TestPart::Reached(self.saved.clone())),
                policies: terms.policies.clone(),
                code: None,
            }),
            ..TestSelection::default()
        };
        // A run ends with the test under way, which has no longer than any.
        match self.run(selection.code(), told, newer, (terms.run, terms.test)).await {
            Left::Fit => true,
            Left::Unfit(why) => {
                told.notes.push(why.to_owned());
                self.kernel.kill();
                false
            }
        }
    }

    /// Runs code that runs tests, for so long, and tells what came of them. Where it is to end, it has so long for that.
    async fn run(
        &mut self,
        code: String,
        told: &mut BufferRun,
        newer: &Notify,
        (limit, grace): (Duration, Duration),
    ) -> Left {
        let job = JobId::from_uuid(Uuid::now_v7());
        let submission = Submission { job, code, file: None, command_line: None, is_withheld: false };
        self.kernel.run(submission).await;
        let mut until = Instant::now() + limit;
        let mut cut = None;
        loop {
            let reason = tokio::select! {
                notice = self.notices.recv() => match self.hear(job, notice, told).await {
                    Heard::Nothing => continue,
                    Heard::End(left) => {
                        told.ending = cut.unwrap_or(told.ending);
                        return left;
                    }
                },
                () = newer.notified(), if cut.is_none() => BufferEnding::Overtaken,
                () = sleep_until(until) => BufferEnding::OutOfTime,
            };
            if let Some(reason) = cut {
                told.ending = reason;
                return Left::Unfit("a test did not end when it was to: the process that ran it was ended");
            }
            cut = Some(reason);
            until = Instant::now() + grace;
            let kernel = Arc::clone(&self.kernel);
            // What it says meanwhile is heard, or it could not answer.
            spawn(async move { kernel.interrupt().await });
        }
    }

    /// Runs the tests one at a time, and gives which lines each ran; only kernels know in which form. The process is for nothing else from then on.
    /// `policies` say when tests of categories run.
    pub(super) async fn measure(
        &mut self,
        beginning: &Beginning,
        policies: &BTreeMap<String, TestPolicy>,
    ) -> Result<Value, Error> {
        let terms = &beginning.terms;
        let [limit_ms, timeout_ms] = [terms.measure, terms.measure_test].map(|time| time.as_millis() as u64);
        let policies = TestPolicy::written(policies);
        let kernel = Arc::clone(&self.kernel);
        let query = KernelQuery::Measure { policies, limit_ms, timeout_ms };
        // It ends with the test under way, behind which it may take as long to end in order.
        let most_ms = limit_ms.saturating_add(2 * timeout_ms).saturating_add(beginning.limits.query_ms);
        self.hears_while(most_ms, async move { kernel.query(query).await?.measured() }).await
    }

    async fn hear(&mut self, job: JobId, notice: Option<RunnerNotice>, told: &mut BufferRun) -> Heard {
        match notice {
            Some(RunnerNotice::Display { job: of, display }) if of == Some(job) => {
                if let Some(progress) = TestProgress::shown(&display) {
                    told.progress(progress);
                } else if let Some(run) = TestRun::shown(&display) {
                    self.present = run.code.clone();
                    let must_restart = run.must_restart;
                    told.report(run);
                    if must_restart {
                        return Heard::End(Left::Unfit(
                            "a test goes on although its time is over: the process that ran it was ended",
                        ));
                    }
                }
                Heard::Nothing
            }
            Some(RunnerNotice::Finished { job: of, report }) if of == job => {
                match report.ending {
                    JobEnding::Raised(error) => told.notes.push(error.message),
                    JobEnding::Rejected => told.notes.push("the tests could not be run".to_owned()),
                    JobEnding::Completed | JobEnding::Interrupted { .. } => {}
                }
                Heard::End(Left::Fit)
            }
            Some(notice) if !is_end(&notice) => {
                self.refuse_asks(notice).await;
                Heard::Nothing
            }
            Some(_) | None => {
                told.ending = BufferEnding::Lost;
                Heard::End(Left::Unfit("the process that ran the tests has ended"))
            }
        }
    }

    /// Hears what it says between runs, until it has ended.
    pub(super) async fn ended(&mut self) {
        while let Some(notice) = self.notices.recv().await {
            if is_end(&notice) {
                return;
            }
            self.refuse_asks(notice).await;
        }
    }

    /// Nobody is there to answer.
    async fn refuse_asks(&self, notice: RunnerNotice) {
        if let RunnerNotice::Asks { ask, .. } = notice {
            let reason = "nobody answers what tests ask that run beside the session".to_owned();
            let refused = Error::InvalidArgument { argument: "input".to_owned(), reason };
            self.kernel.answer(AskAnswer::open(ask, Err(refused))).await;
        }
    }

    /// Waits for an answer of the process, and hears what it says meanwhile: else it could not answer.
    async fn hears_while<T>(
        &mut self,
        limit_ms: u64,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let gone = || Err(Error::WorkerFailed { reason: "the process of the tests has ended".to_owned() });
        let answered = timeout(Duration::from_millis(limit_ms), async {
            tokio::select! {
                answer = answer => answer,
                () = self.ended() => gone(),
            }
        });
        answered.await.unwrap_or(Err(Error::Timeout { limit_ms }))
    }
}

/// What a notice says of a run of tests.
enum Heard {
    Nothing,
    End(Left),
}

fn is_end(notice: &RunnerNotice) -> bool {
    matches!(notice, RunnerNotice::Exited { .. })
}
