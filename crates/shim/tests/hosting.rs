//! Runners in shims, as several daemons in a row have them. Each shim is a task here and not a process, so that nothing but the socket
//! is between it and its daemon.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mainstay_model::{
    AgentState, Capabilities, Epoch, Error, JobId, NoticeNumber, Principal, RunnerNotice, Seq, SessionId,
    SessionKind, TakenNotices,
};
use mainstay_runner::query::KernelQuery;
use mainstay_runner::{
    AskAnswer, Environment, FoundRunner, Kernel, RunnerFactory, RunnerSpec, StartObserver, StartedRunner,
    StoredProgress, Submission,
};
use mainstay_shim::messages::Terms;
use mainstay_shim::{Activity, LaunchShim, ShimFolder, ShimSettings, Shims, StandbyTerms, host};
use mainstay_test_support::scripted_kernel::{self, Scripted};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

/// Where shims lie, and what they are started with.
struct Place {
    folder: TempDir,
    terms: Terms,
    shims: std::sync::Mutex<Vec<JoinHandle<()>>>,
}

impl Place {
    fn new(terms: Terms) -> Arc<Self> {
        Arc::new(Self { folder: tempfile::tempdir().unwrap(), terms, shims: std::sync::Mutex::default() })
    }

    fn patient() -> Arc<Self> {
        Self::new(Terms { orphan_ms: 3_600_000, buffer_bytes: 1 << 20, file_bytes: 1 << 20 })
    }

    fn shims(&self) -> PathBuf {
        self.folder.path().join("shims")
    }

    /// What a daemon has.
    fn daemon(self: &Arc<Self>) -> Shims {
        Shims::around(Arc::new(Scripted), Arc::new(self.settings()))
    }

    fn settings(self: &Arc<Self>) -> ShimSettings {
        let run = self.folder.path().join("run");
        std::fs::create_dir_all(&run).unwrap();
        let place = Arc::clone(self);
        let launch: LaunchShim = Arc::new(move |folder: &ShimFolder, listener| {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::UnixListener::from_std(listener)?;
            let make = |_: &Value, _: &SessionKind| Some(Arc::new(Scripted) as Arc<dyn RunnerFactory>);
            let folder = folder.clone();
            let shim = tokio::spawn(async move {
                host::serve(listener, folder, "test", Box::new(make)).await;
            });
            place.shims.lock().unwrap().push(shim);
            Ok(())
        });
        ShimSettings {
            launch,
            shims: self.shims(),
            run,
            factory: Value::Null,
            terms: self.terms,
            standby: None,
            activity: Activity::default(),
        }
    }

    /// Waits until the shims that were started so far have ended, and gives what of them is left on disk.
    async fn ended(&self) -> BTreeSet<String> {
        let shims = std::mem::take(&mut *self.shims.lock().unwrap());
        for shim in shims {
            timeout(Duration::from_secs(20), shim).await.unwrap().unwrap();
        }
        names(&self.folder.path().join("run")).chain(names(&self.shims())).collect()
    }

    fn spec(&self, epoch: u64) -> RunnerSpec {
        RunnerSpec {
            session: session(),
            epoch: Epoch(epoch),
            kind: SessionKind::fsharp(),
            owner: Principal::local(),
            working_directory: self.folder.path().to_owned(),
            project: None,
            arguments: Vec::new(),
            environment: Environment::default(),
            conversation: None,
            gathered: None,
        }
    }

    async fn start(self: &Arc<Self>) -> StartedRunner {
        self.daemon().start(self.spec(1), StartObserver::default()).await.unwrap()
    }

    async fn adopt(
        self: &Arc<Self>,
        epoch: u64,
        stored: StoredProgress,
    ) -> Result<Option<FoundRunner>, Error> {
        self.daemon().adopt(&self.spec(epoch), stored).await
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(1))
}

fn job(number: u128) -> JobId {
    JobId::from_uuid(Uuid::from_u128(number))
}

fn submission(number: u128, code: &str) -> Submission {
    Submission { job: job(number), code: code.to_owned(), file: None, command_line: None, is_withheld: false }
}

fn kernel(started: &StartedRunner) -> Arc<dyn Kernel> {
    Arc::clone(started.runner.kernel().unwrap())
}

/// The notices with their numbers, up to the one that is looked for.
async fn heard(
    started: &mut StartedRunner,
    mut is_it: impl FnMut(&RunnerNotice) -> bool,
) -> Vec<(u64, RunnerNotice)> {
    let mut heard = Vec::new();
    loop {
        let next = timeout(Duration::from_secs(20), started.notices.recv()).await.unwrap();
        let notice = next.unwrap_or_else(|| panic!("it never came; before: {heard:?}"));
        let is_last = is_it(&notice);
        heard.push((started.next.0, notice));
        started.next = started.next.next();
        if is_last {
            return heard;
        }
    }
}

fn is_end(of: u128) -> impl Fn(&RunnerNotice) -> bool {
    move |notice| matches!(notice, RunnerNotice::Finished { job: ended, .. } if *ended == job(of))
}

fn is_output(of: &str) -> impl Fn(&RunnerNotice) -> bool {
    let of = of.to_owned();
    move |notice| matches!(notice, RunnerNotice::Output { text, .. } if text.contains(&of))
}

fn stored(runner: &StartedRunner, up_to: u64, last_seq: u64) -> StoredProgress {
    StoredProgress {
        taken: TakenNotices { runner: runner.id, up_to: NoticeNumber(up_to) },
        last_seq: Seq(last_seq),
    }
}

fn first_and_last(heard: &[(u64, RunnerNotice)]) -> (u64, u64) {
    (heard.first().unwrap().0, heard.last().unwrap().0)
}

#[tokio::test(start_paused = true)]
async fn one_that_was_to_stand_by_and_that_nobody_came_to_leaves_nothing() {
    let place = Place::patient();
    let folder = place.shims().join("standby-0123456789ab");
    let sockets = place.folder.path().join("run").join("0123456789ab");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&sockets).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(sockets.join("shim.sock")).unwrap();
    (place.settings().launch)(&ShimFolder::at(folder), listener).unwrap();
    let shim = place.shims.lock().unwrap().pop().unwrap();
    shim.await.unwrap();
    assert_eq!(place.ended().await, BTreeSet::new());
}

#[tokio::test]
async fn code_runs_and_questions_are_answered_and_a_kill_ends_all() {
    let place = Place::patient();
    let mut started = place.start().await;
    let kernel = kernel(&started);
    kernel.run(submission(1, "let a = 3")).await;
    let heard = heard(&mut started, is_end(1)).await;
    assert_eq!(heard.first().unwrap().0, 1);
    let values = kernel.query(KernelQuery::Values).await.unwrap().values().unwrap();
    assert_eq!(values[0].name, "rex");
    let refused = kernel.complete("a.".to_owned(), mainstay_model::TextPosition { line: 1, column: 3 }).await;
    assert_eq!(refused, without_a_shim(&place).await);
    assert!(kernel.outlives_daemon());
    kernel.kill();
    assert_eq!(place.ended().await, BTreeSet::new());
    // Who asks a runner that is gone is told so.
    assert!(matches!(kernel.query(KernelQuery::Values).await, Err(Error::WorkerFailed { .. })));
}

/// What the same kernel answers without a shim.
async fn without_a_shim(place: &Place) -> Result<mainstay_runner::Completions, Error> {
    let started = Scripted.start(place.spec(1), StartObserver::default()).await.unwrap();
    let kernel = kernel(&started);
    kernel.complete("a.".to_owned(), mainstay_model::TextPosition { line: 1, column: 3 }).await
}

#[tokio::test]
async fn a_job_goes_on_without_a_daemon_and_the_next_hears_all_that_was_not_taken() {
    let place = Place::patient();
    let mut started = place.start().await;
    let first = kernel(&started);
    first.run(submission(1, "printfn \"one\"")).await;
    let (_, taken) = first_and_last(&heard(&mut started, is_end(1)).await);
    first.acknowledge(NoticeNumber(taken), Seq(5));
    first.run(submission(2, "stdin.ReadLine()")).await;
    let asked = heard(&mut started, |notice| matches!(notice, RunnerNotice::Asks { .. })).await;
    let RunnerNotice::Asks { ask, .. } = asked.last().unwrap().1 else { panic!() };
    let id = started.id;
    let progress = stored(&started, taken, 5);
    drop((first, started));

    let FoundRunner { started: mut adopted, given, .. } = place.adopt(2, progress).await.unwrap().unwrap();
    assert_eq!((adopted.id, adopted.next), (id, NoticeNumber(taken + 1)));
    assert_eq!(
        (given.jobs.as_slice(), given.unanswered.as_slice()),
        ([job(1), job(2)].as_slice(), [ask].as_slice())
    );
    let again = heard(&mut adopted, |notice| matches!(notice, RunnerNotice::Asks { .. })).await;
    assert_eq!(again, asked);
    let second = kernel(&adopted);
    // Nobody knows whether it came there the first time.
    second.run(submission(2, "stdin.ReadLine()")).await;
    second.answer(AskAnswer::open(ask, Ok(json!("Ada")))).await;
    second.answer(AskAnswer::open(ask, Ok(json!("Bob")))).await;
    let ended = heard(&mut adopted, is_end(2)).await;
    let RunnerNotice::Finished { report, .. } = &ended.last().unwrap().1 else { panic!() };
    assert!(report.result.value.as_ref().is_some_and(|value| value.contains("Ada")), "{report:?}");
    second.run(submission(3, "1 + 1")).await;
    heard(&mut adopted, is_end(3)).await;
    second.kill();
    assert_eq!(place.ended().await, BTreeSet::new());
}

#[tokio::test]
async fn an_interrupt_that_comes_late_does_not_hit_the_next_job() {
    let place = Place::patient();
    let mut started = place.start().await;
    let kernel = kernel(&started);
    kernel.run(submission(1, "wait")).await;
    heard(&mut started, is_output("waiting")).await;
    kernel.interrupt().await;
    kernel.interrupt().await;
    heard(&mut started, is_end(1)).await;
    kernel.interrupt().await;
    kernel.run(submission(2, "wait")).await;
    heard(&mut started, is_output("waiting")).await;
    kernel.interrupt().await;
    heard(&mut started, is_end(2)).await;
    kernel.kill();
    place.ended().await;
}

#[tokio::test]
async fn only_the_owner_of_a_newer_epoch_with_all_of_the_session_is_obeyed() {
    let place = Place::patient();
    let mut started = place.start().await;
    let first = kernel(&started);
    first.run(submission(1, "1 + 1")).await;
    let (_, last) = first_and_last(&heard(&mut started, is_end(1)).await);
    first.acknowledge(NoticeNumber(last), Seq(9));
    // The shim has heard it once it has answered.
    first.query(KernelQuery::Values).await.unwrap();
    for (epoch, seq) in [(1, 9), (0, 9), (2, 8)] {
        let refused = place.adopt(epoch, stored(&started, last, seq)).await.err();
        assert!(matches!(refused, Some(Error::WorkerFailed { .. })), "{epoch} {seq}: {refused:?}");
    }
    // The first goes on as if nobody had come.
    first.run(submission(2, "1 + 1")).await;
    heard(&mut started, is_end(2)).await;
    let second = place.adopt(2, stored(&started, last, 9)).await.unwrap().unwrap().started;
    // The first has lost its runner, and nothing that it says is heeded.
    heard(&mut started, |notice| matches!(notice, RunnerNotice::Exited { .. })).await;
    first.run(submission(3, "die")).await;
    kernel(&second).query(KernelQuery::Values).await.unwrap();
    // One that the session does not go on with is ended, by a newer owner.
    place.daemon().end_left(&place.spec(3)).await;
    assert_eq!(place.ended().await, BTreeSet::new());
}

#[tokio::test]
async fn a_flood_is_told_whole_and_in_order_however_often_the_daemon_is_lost() {
    let place = Place::new(Terms { orphan_ms: 3_600_000, buffer_bytes: 2_000, file_bytes: 3_000 });
    let mut started = place.start().await;
    let first = kernel(&started);
    for number in 1..=40 {
        first.run(submission(number, &format!("printfn \"{number} {}\"", "x".repeat(200)))).await;
    }
    first.run(submission(41, "printfn \"end\"")).await;
    drop(first);
    let (mut said, mut taken, mut epoch, mut is_over) = (String::new(), 0, 1, false);
    while !is_over {
        // Another number of notices each time, of which the daemon acknowledges all, or is lost before.
        let (mut left, is_acknowledged) = (epoch % 3 + 1, epoch % 2 == 0);
        let some = heard(&mut started, |_| {
            left -= 1;
            left == 0
        });
        for (number, notice) in some.await {
            assert_eq!(number, taken + 1);
            taken = number;
            if let RunnerNotice::Output { text, .. } = &notice {
                said.push_str(text);
            }
            is_over |= said.ends_with("end\n");
        }
        if is_acknowledged {
            started.runner.process().acknowledge(NoticeNumber(taken), Seq::ZERO);
        }
        epoch += 1;
        let progress = stored(&started, taken, 0);
        drop(started);
        started = place.adopt(epoch, progress).await.unwrap().unwrap().started;
        assert_eq!(started.next, NoticeNumber(taken + 1));
    }
    let numbers: Vec<String> = said
        .lines()
        .filter(|line| *line != "end")
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(numbers, (1..=40).map(|number| number.to_string()).collect::<Vec<_>>());
    started.runner.process().kill();
    assert_eq!(place.ended().await, BTreeSet::new());
}

#[tokio::test]
async fn one_that_nobody_comes_for_ends_after_its_job_and_leaves_what_it_said() {
    let place = Place::new(Terms { orphan_ms: 1, buffer_bytes: 1 << 20, file_bytes: 1 << 20 });
    let mut started = place.start().await;
    let first = kernel(&started);
    first.run(submission(1, "wait")).await;
    let (_, taken) = first_and_last(&heard(&mut started, is_output("waiting")).await);
    first.interrupt().await;
    let progress = stored(&started, taken, 0);
    drop((first, started));
    assert_eq!(place.ended().await, BTreeSet::from([session().to_string()]));

    let FoundRunner { started: mut left, is_gone, .. } = place.adopt(2, progress).await.unwrap().unwrap();
    assert!(is_gone, "it takes nothing more");
    let heard = heard(&mut left, |notice| matches!(notice, RunnerNotice::Exited { .. })).await;
    let (first, last) = first_and_last(&heard);
    assert_eq!(first, taken + 1);
    assert!(heard.iter().any(|(_, notice)| is_end(1)(notice)), "{heard:?}");
    // It is there until all of it is stored.
    assert_eq!(place.ended().await.len(), 1);
    left.runner.process().acknowledge(NoticeNumber(last), Seq(3));
    assert_eq!(place.ended().await, BTreeSet::new());
    assert!(place.adopt(3, progress).await.unwrap().is_none());
}

#[tokio::test]
async fn a_start_ends_with_the_daemon_that_wanted_it() {
    let place = Place::patient();
    let folder = place.folder.path().join("held");
    std::fs::create_dir(&folder).unwrap();
    let spec = RunnerSpec { working_directory: folder.clone(), ..place.spec(1) };
    let daemon = place.daemon();
    let starting = tokio::spawn(async move { daemon.start(spec, StartObserver::default()).await.map(drop) });
    while ShimFolder::of(&place.shims(), session()).record().is_none() {
        tokio::task::yield_now().await;
    }
    starting.abort();
    assert_eq!(place.ended().await, BTreeSet::new());
    scripted_kernel::release(&folder);
}

#[tokio::test]
async fn a_runner_that_does_not_come_up_says_why() {
    let place = Place::patient();
    let folder = place.folder.path().join("no-sdk");
    std::fs::create_dir(&folder).unwrap();
    let spec = RunnerSpec { working_directory: folder, ..place.spec(1) };
    let refused = place.daemon().start(spec, StartObserver::default()).await.err();
    assert!(matches!(refused, Some(Error::KernelUnavailable { reason }) if reason == "there is no SDK"));
    assert_eq!(place.ended().await, BTreeSet::new());
}

#[tokio::test]
async fn what_the_factory_within_says_of_a_kind_is_what_is_said() {
    let place = Place::patient();
    let shims = place.daemon();
    let kind = SessionKind::fsharp();
    assert!(shims.serves(&kind) && !shims.serves(&SessionKind::pi()));
    assert_eq!(shims.capabilities(&kind), Capabilities::of_kind(&kind));
    assert_eq!(shims.beginning(Path::new("/"), &Environment::default()), AgentState::default());
}

/// Starts what it is asked to, and counts how often it is asked for a plan.
#[derive(Default)]
struct Planning(AtomicUsize);

#[async_trait::async_trait]
impl RunnerFactory for Planning {
    fn serves(&self, kind: &SessionKind) -> bool {
        Scripted.serves(kind)
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Scripted.capabilities(kind)
    }

    async fn standby_plan(&self, _: &RunnerSpec) -> Option<Value> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(json!("plan"))
    }

    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        Scripted.start(spec, observer).await
    }
}

#[tokio::test]
async fn nothing_is_planned_ahead_where_that_is_switched_off() {
    let terms = StandbyTerms { rest: Duration::ZERO, memory_bytes: u64::MAX };
    for (standby, expected) in [(None, 0), (Some(terms), 1)] {
        let place = Place::patient();
        let factory = Arc::new(Planning::default());
        let settings = ShimSettings { standby, ..place.settings() };
        let daemon = Shims::around(Arc::clone(&factory) as Arc<dyn RunnerFactory>, Arc::new(settings));
        let started = daemon.start(place.spec(1), StartObserver::default()).await.unwrap();
        assert_eq!(factory.0.load(Ordering::Relaxed), expected);
        started.runner.process().kill();
        assert_eq!(place.ended().await, BTreeSet::new());
    }
}
