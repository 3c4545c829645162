//! Runners that outlive the daemon that started them: the next daemon goes on with them, and what they said is stored once.

use std::path::Path;
use std::sync::Arc;

use mainstay_engine::Engine;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_log::{EventLog, Log};
use mainstay_model::command;
use mainstay_model::{
    Access, Admission, CreateSession, Delivery, Error, EvalEnding, EventBody, JobId, JobSpec, Limits,
    NoticeNumber, Outcome, OutputStream, Prompt, QueuedPrompt, Response, RunnerNotice, Seq, SessionCommand,
    SessionId, SessionKind, SessionState,
};
use mainstay_runner::RunnerFactory;
use proptest::prelude::*;
use tokio::task::AbortHandle;

use crate::store_double::StoreDouble;
use crate::support::{
    CANCEL, Client, Running, breathe, command, create, eval, evaluated, eventually, id, next_id, patient,
};
use crate::survivor::{Survivor, Survivors};

/// A daemon whose runners outlive it.
pub(crate) struct Mortal {
    engine: Engine,
    local: mainstay_engine::Client,
    pub(crate) store: Arc<StoreDouble>,
    survivors: Arc<Survivors>,
}

impl Mortal {
    async fn open(folder: &Path, survivors: &Arc<Survivors>) -> Self {
        Self::open_with(folder, survivors, patient()).await
    }

    pub(crate) async fn open_with(folder: &Path, survivors: &Arc<Survivors>, limits: Limits) -> Self {
        let log = SqliteLog::open(folder, &SqliteOptions::default()).unwrap();
        let store = Arc::new(StoreDouble::over(Arc::new(log)));
        let log: Arc<dyn Log> = Arc::<StoreDouble>::clone(&store);
        let factories: Vec<Arc<dyn RunnerFactory>> = vec![survivors.access()];
        let engine = Engine::open(log, factories, limits).await.unwrap();
        let local = engine.attach(Access::local(), "cli");
        Self { engine, local, store, survivors: Arc::clone(survivors) }
    }

    /// A new session, Ready.
    async fn session(&self) -> SessionId {
        self.session_named("lasting").await
    }

    /// The same, called this.
    pub(crate) async fn session_named(&self, name: &str) -> SessionId {
        match self.local.create(next_id(), create(name)).await.unwrap() {
            Outcome::Done { response: Response::Created { session } } => {
                self.client(session).until("warmUpCompleted").await;
                session
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn client(&self, session: SessionId) -> Client {
        Client { attached: self.local.clone(), id: session }
    }

    /// A session of an agent that has been prompted, and works.
    async fn talk(&self, folder: &Path) -> (SessionId, Running) {
        let create = CreateSession {
            kind: SessionKind::pi(),
            working_directory: folder.display().to_string(),
            ..create("talk")
        };
        let session = match self.local.create(next_id(), create).await.unwrap() {
            Outcome::Done { response: Response::Created { session } } => session,
            other => panic!("{other:?}"),
        };
        let client = self.client(session);
        let turn = SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text("begin") });
        let running = client.send(command(next_id(), Admission::Queue, turn));
        client.until("jobRequested").await;
        self.survivor().until_ran(1).await;
        (session, running)
    }

    /// Ends the daemon as a signal that cannot be caught does: from one moment on, nothing that it does reaches the store or a runner.
    async fn kill(self) {
        let Self { engine, local, store, survivors } = self;
        store.cut_after(0, false);
        survivors.cut_off();
        store.tell_cut();
        drop((engine, local));
        until_alone(store).await;
    }

    fn survivor(&self) -> Arc<Survivor> {
        self.survivors.started().last().cloned().unwrap()
    }
}

/// Waits until nothing of an engine that was dropped holds its store any more, however long that takes: who follows a task holds it while it looks.
async fn until_alone(mut store: Arc<StoreDouble>) {
    while Arc::get_mut(&mut store).is_none() {
        tokio::task::yield_now().await;
    }
}

/// The clients of a daemon that is killed hold it no longer.
pub(crate) fn hang_up(client: Client, sent: impl IntoIterator<Item = Running>) {
    client.leave();
    sent.into_iter().for_each(|running| running.abort());
}

/// One daemon after another over a store, each with what the one before left.
pub(crate) async fn succeed(daemon: Mortal, folder: &Path) -> Mortal {
    let survivors = Arc::clone(&daemon.survivors);
    daemon.kill().await;
    Mortal::open(folder, &survivors).await
}

/// What a job put out: neighbours of one stream as one text.
type PutOut = Vec<(JobId, &'static str, String)>;

fn join(put_out: &mut PutOut, job: Option<JobId>, stream: &'static str, text: &str) {
    let job = job.unwrap();
    // Output of one job keeps its order; how that of two mixes depends on the time.
    match put_out.iter_mut().rev().find(|(of, ..)| *of == job) {
        Some((_, last, joined)) if *last == stream && stream != "shown" => joined.push_str(text),
        Some(_) | None => put_out.push((job, stream, text.to_owned())),
    }
}

fn name(stream: OutputStream) -> &'static str {
    match stream {
        OutputStream::Stdout => "printed",
        OutputStream::Stderr => "error",
    }
}

fn said_by(survivor: &Survivor) -> PutOut {
    let mut put_out = PutOut::new();
    for notice in survivor.said() {
        match notice {
            RunnerNotice::Output { job, stream, text } => join(&mut put_out, job, name(stream), &text),
            RunnerNotice::Display { job, display } => {
                join(&mut put_out, job, "shown", display.data.text());
            }
            _ => {}
        }
    }
    put_out.sort_by_key(|(job, ..)| *job);
    put_out
}

async fn stored_of(session: &Client) -> PutOut {
    let mut put_out = PutOut::new();
    for event in session.attached.events(session.id, Seq::ZERO, usize::MAX).await.unwrap() {
        match event.body {
            EventBody::OutputProduced { job, stream, text } => join(&mut put_out, job, name(stream), &text),
            EventBody::OutputDisplayed { job, display } => {
                join(&mut put_out, job, "shown", display.data.text());
            }
            _ => {}
        }
    }
    put_out.sort_by_key(|(job, ..)| *job);
    put_out
}

fn send_all(session: &Client, codes: &[String]) -> Vec<Running> {
    let send = |(number, code): (usize, &String)| {
        session.send(command(id(&format!("job-{number}")), Admission::Queue, eval(code)))
    };
    codes.iter().enumerate().map(send).collect()
}

fn any_statement() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "print [a-z]{1,5}",
        2 => "error [a-z]{1,5}",
        2 => "late [a-z]{1,5}",
        1 => "show [a-z]{1,5}",
        1 => (2000..6000_usize).prop_map(|bytes| format!("long {bytes}")),
    ]
}

fn any_code() -> impl Strategy<Value = String> {
    prop::collection::vec(any_statement(), 0..8).prop_map(|statements| statements.join("\n"))
}

/// Runs the jobs while daemons are killed with these appends, each stored or not; the last daemon lives.
async fn run_through(kills: Vec<(usize, bool)>, codes: Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    for (appends, last_is_stored) in kills {
        daemon.store.cut_after(appends, last_is_stored);
        let sent = send_all(&daemon.client(session), &codes);
        let aborts: Vec<_> = sent.iter().map(Running::abort_handle).collect();
        tokio::select! {
            _ = futures::future::join_all(sent) => {}
            () = daemon.store.is_cut() => {}
        }
        breathe().await;
        aborts.iter().for_each(AbortHandle::abort);
        daemon = succeed(daemon, folder.path()).await;
    }
    let client = daemon.client(session);
    for running in send_all(&client, &codes) {
        assert_eq!(evaluated(running.await.unwrap()).ending, EvalEnding::Completed);
    }
    let survivor = daemon.survivor();
    survivor.until_all_acknowledged().await;
    assert_eq!(survivor.ran(), codes, "each ran once, in order");
    assert_eq!(stored_of(&client).await, said_by(&survivor));
    assert_eq!(daemon.survivors.started().len(), 1);
    for (kind, count) in
        [("warmUpStarted", 1), ("evalRequested", codes.len()), ("evalCompleted", codes.len())]
    {
        assert_eq!(client.count(kind).await, count, "{kind}");
    }
    let taken = EventLog::taken(&*daemon.store, session).await.unwrap().unwrap();
    assert_eq!(taken.up_to, NoticeNumber(survivor.said().len() as u64));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_a_runner_says_is_stored_once_and_in_order_whenever_daemons_are_killed(
        kills in prop::collection::vec((0..6_usize, any::<bool>()), 1..5),
        codes in prop::collection::vec(any_code(), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_through(kills, codes));
    }
}

#[tokio::test]
async fn a_job_goes_on_asks_and_is_answered_though_its_daemon_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let same = || command(id("same"), Admission::Queue, eval("print before\nask which?\nprint after"));
    let running = daemon.client(session).send(same());
    daemon.client(session).until("askRaised").await;
    running.abort();
    let daemon = succeed(daemon, folder.path()).await;
    assert_eq!(daemon.engine.lost_jobs(), []);
    let client = daemon.client(session);
    assert!(matches!(client.state().await, SessionState::Waiting(_)));
    let again = client.send(same());
    let ask = client.attached.status(session).await.unwrap().session.asks[0].ask.ask;
    let answer = SessionCommand::Answer(command::Answer::new(ask, "this".into()));
    // It is stored, and the runner is not told.
    daemon.store.cut_after(0, true);
    daemon.survivors.cut_off();
    let answered = client.send(command(id("answer"), Admission::Now, answer.clone()));
    daemon.store.is_cut().await;
    breathe().await;
    hang_up(client, [again, answered]);
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    assert!(client.give(command(id("answer"), Admission::Now, answer)).await.is_ok());
    assert_eq!(evaluated(client.give(same()).await).ending, EvalEnding::Completed);
    assert_eq!(stored_of(&client).await, said_by(&daemon.survivor()));
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn a_check_whose_answer_is_lost_with_the_daemon_is_answered_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("loop").await;
    let survivor = daemon.survivor();
    survivor.until_ran(1).await;
    let check = survivor.check_in_vain(survivor.job());
    survivor.until_all_acknowledged().await;
    hang_up(client, [running]);
    let survivors = Arc::clone(&daemon.survivors);
    daemon.kill().await;
    survivor.hears_answers();
    let daemon = Mortal::open(folder.path(), &survivors).await;
    let answer = survivor.answer_to(check).await;
    assert!(matches!(answer, Err(Error::WorkerFailed { .. })), "it may be tried again: {answer:?}");
    assert_eq!(daemon.engine.lost_jobs(), []);
}

#[tokio::test]
async fn a_cancel_that_was_stored_reaches_a_job_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("loop").await;
    daemon.survivors.cut_off();
    daemon.store.cut_after(0, true);
    let cancel = client.send(command(next_id(), Admission::Now, CANCEL));
    daemon.store.is_cut().await;
    breathe().await;
    hang_up(client, [running, cancel]);
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    daemon.survivor().until_interrupted(1).await;
    client.until("evalCancelled").await;
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn a_cancel_that_is_not_stored_has_interrupted_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("loop").await;
    daemon.store.cut_after(0, false);
    let cancel = client.send(command(next_id(), Admission::Now, CANCEL));
    daemon.store.is_cut().await;
    breathe().await;
    hang_up(client, [running, cancel]);
    let daemon = succeed(daemon, folder.path()).await;
    assert_eq!(daemon.survivor().interrupts(), 0);
    let client = daemon.client(session);
    client.submit(CANCEL).await.unwrap();
    client.until("evalCancelled").await;
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn a_job_that_was_cancelled_and_whose_runner_is_gone_too_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("loop").await;
    daemon.survivors.cut_off();
    daemon.store.cut_after(0, true);
    let cancel = client.send(command(next_id(), Admission::Now, CANCEL));
    daemon.store.is_cut().await;
    breathe().await;
    hang_up(client, [running, cancel]);
    daemon.survivors.end_all();
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    client.until("evalCancelled").await;
    assert_eq!(client.count("evalInterrupted").await, 0);
}

#[tokio::test]
async fn a_job_whose_runner_is_gone_too_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    daemon.client(session).begin("loop").await.abort();
    daemon.survivors.end_all();
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    client.until("evalInterrupted").await;
    assert_eq!(daemon.engine.lost_jobs().len(), 1);
    assert_eq!(client.eval("print x").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.survivors.started().len(), 2);
}

async fn answer_first_ask(client: &Client, value: &str) -> Running {
    let ask = client.attached.status(client.id).await.unwrap().session.asks[0].ask.ask;
    let answer = SessionCommand::Answer(command::Answer::new(ask, value.into()));
    client.send(command(next_id(), Admission::Now, answer))
}

#[tokio::test]
async fn a_job_that_knows_a_secret_goes_on_and_nothing_of_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("secret which?\nask go on?\nreveal").await;
    client.until("askRaised").await;
    assert!(answer_first_ask(&client, "hush-hush").await.await.unwrap().is_ok());
    client.until_count("askRaised", 2).await;
    hang_up(client, [running]);
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    assert!(answer_first_ask(&client, "yes").await.await.unwrap().is_ok());
    client.until("evalCompleted").await;
    let events = client.attached.events(session, Seq::ZERO, usize::MAX).await.unwrap();
    let stored = serde_json::to_string(&events).unwrap();
    assert!(stored.contains("revealed: ***") && !stored.contains("hush-hush"), "{stored}");
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn a_secret_that_was_stored_as_given_and_is_lost_is_answered_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("secret which?").await;
    client.until("askRaised").await;
    daemon.store.cut_after(0, true);
    daemon.survivors.cut_off();
    let answered = answer_first_ask(&client, "hush-hush").await;
    daemon.store.is_cut().await;
    breathe().await;
    hang_up(client, [running, answered]);
    let daemon = succeed(daemon, folder.path()).await;
    daemon.client(session).until("evalCompleted").await;
    let answers = daemon.survivor().answers();
    assert!(matches!(answers[..], [Err(Error::AnswerInvalid { .. })]), "{answers:?}");
}

#[tokio::test]
async fn an_answer_reaches_a_runner_that_lives_on_only_once_it_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("ask which?").await;
    client.until("askRaised").await;
    daemon.store.hold(true);
    let answered = answer_first_ask(&client, "this").await;
    breathe().await;
    assert_eq!(daemon.survivor().answers(), []);
    daemon.store.hold(false);
    assert!(answered.await.unwrap().is_ok());
    assert_eq!(evaluated(running.await.unwrap()).ending, EvalEnding::Completed);
    assert_eq!(daemon.survivor().answers(), [Ok("this".into())]);
}

fn withheld(code: &str) -> SessionCommand {
    SessionCommand::Eval(command::Eval {
        code: code.to_owned(),
        file: None,
        command_line: None,
        origin: None,
        withheld: true,
    })
}

#[tokio::test]
async fn a_withheld_job_goes_on_where_its_runner_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.send(command(id("mine"), Admission::Now, withheld("loop")));
    daemon.survivor().until_ran(1).await;
    hang_up(client, [running]);
    let daemon = succeed(daemon, folder.path()).await;
    assert_eq!(daemon.engine.lost_jobs(), []);
    let client = daemon.client(session);
    assert_eq!(client.state().await, SessionState::Evaluating);
    assert!(client.submit(CANCEL).await.is_ok());
    client.until("evalCancelled").await;
    assert_eq!(daemon.survivor().ran(), ["loop"], "its code is stored nowhere, and so not given again");
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn a_withheld_job_that_never_reached_its_runner_is_interrupted_and_the_runner_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    assert_eq!(client.eval("print before").await.ending, EvalEnding::Completed);
    let same = || command(id("mine"), Admission::Now, withheld("loop"));
    daemon.store.cut_after(0, true);
    daemon.survivors.cut_off();
    let running = client.send(same());
    daemon.store.is_cut().await;
    breathe().await;
    hang_up(client, [running]);
    let daemon = succeed(daemon, folder.path()).await;
    assert_eq!(daemon.engine.lost_jobs().len(), 1);
    let client = daemon.client(session);
    client.until("evalInterrupted").await;
    assert_eq!(evaluated(client.give(same()).await).ending, EvalEnding::Interrupted);
    assert_eq!(client.eval("print after").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.survivor().ran(), ["print before", "print after"]);
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn an_engine_that_is_dropped_lets_its_runners_go() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("loop").await;
    hang_up(client, [running]);
    let Mortal { engine, local, store, survivors } = daemon;
    drop((engine, local));
    until_alone(store).await;
    let daemon = Mortal::open(folder.path(), &survivors).await;
    let client = daemon.client(session);
    assert_eq!(client.state().await, SessionState::Evaluating);
    assert!(client.submit(CANCEL).await.is_ok());
    client.until("evalCancelled").await;
    assert_eq!(survivors.started().len(), 1);
}

#[tokio::test]
async fn a_job_goes_on_with_the_next_use_of_its_session_after_an_append_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { store_wait_ms: 0, ..patient() };
    let daemon = Mortal::open_with(folder.path(), &Arc::default(), limits).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("print one\nask which?\nprint two").await;
    client.until("askRaised").await;
    daemon.store.refuse_after(0);
    let refused = answer_first_ask(&client, "this").await;
    assert!(matches!(refused.await.unwrap(), Err(Error::StoreFailed { .. })));
    assert!(running.await.unwrap().is_err());
    assert!(answer_first_ask(&client, "that").await.await.unwrap().is_ok());
    client.until("evalCompleted").await;
    let survivor = daemon.survivor();
    assert_eq!(survivor.answers(), [Ok("that".into())]);
    assert_eq!(stored_of(&client).await, said_by(&survivor));
    assert_eq!((survivor.ran().len(), daemon.survivors.started().len()), (1, 1));
}

#[tokio::test]
async fn a_session_that_stops_kills_its_runner() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    assert!(client.submit(SessionCommand::Stop).await.is_ok());
    assert!(daemon.survivor().is_killed());
    assert_eq!(client.eval("print x").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.survivors.started().len(), 2);
}

#[tokio::test]
async fn a_runner_that_cannot_be_adopted_is_ended_before_another_starts() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("loop").await;
    hang_up(client, [running]);
    let first = daemon.survivor();
    first.refuse(Error::WorkerFailed { reason: "it speaks another version".to_owned() });
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    client.until_count("warmUpCompleted", 2).await;
    assert!(first.is_killed());
    assert_eq!((daemon.survivors.left_ended(), daemon.survivors.started().len()), (1, 2));
    assert_eq!(client.count("evalInterrupted").await, 1);
}

#[tokio::test]
async fn a_runner_of_a_session_that_was_warming_up_is_ended_before_another_starts() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    // The runner of the next warm-up is there, and of what it says nothing is stored.
    daemon.store.cut_after(0, true);
    let reset = client.send(command(next_id(), Admission::Now, SessionCommand::HardReset));
    daemon.store.is_cut().await;
    eventually(|| daemon.survivors.started().len() == 2).await;
    hang_up(client, [reset]);
    let daemon = succeed(daemon, folder.path()).await;
    daemon.client(session).until_count("warmUpCompleted", 2).await;
    let started = daemon.survivors.started();
    assert_eq!(started.iter().map(|survivor| survivor.is_killed()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(daemon.survivors.left_ended(), 1);
}

#[tokio::test]
async fn the_grace_of_a_cancelled_job_begins_when_the_runner_has_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { cancel_grace_ms: 20, ..patient() };
    let daemon = Mortal::open_with(folder.path(), &Arc::default(), limits).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let first = daemon.survivor();
    daemon.store.hold(true);
    let running = client.send(command(id("mine"), Admission::Now, eval("loop")));
    breathe().await;
    let cancelled = client.send(command(next_id(), Admission::Now, CANCEL));
    breathe().await;
    // Longer than the grace.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!first.is_killed() && first.ran().is_empty());
    daemon.store.hold(false);
    assert!(cancelled.await.unwrap().is_ok());
    assert_eq!(evaluated(running.await.unwrap()).ending, EvalEnding::Cancelled);
    assert_eq!((first.ran().len(), daemon.survivors.started().len()), (1, 1));
}

#[tokio::test]
async fn prompts_that_were_queued_reach_an_agent_that_goes_on_once_each_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let (session, running) = daemon.talk(folder.path()).await;
    let client = daemon.client(session);
    let steer = |text: &str| {
        SessionCommand::Steer(QueuedPrompt { prompt: Prompt::text(text), hears: Delivery::Steer })
    };
    assert!(client.submit(steer("heard")).await.is_ok());
    daemon.survivor().until_steered(1).await;
    daemon.survivors.cut_off();
    assert!(client.submit(steer("same")).await.is_ok());
    assert!(client.submit(steer("same")).await.is_ok());
    hang_up(client, [running]);
    let daemon = succeed(daemon, folder.path()).await;
    let survivor = daemon.survivor();
    survivor.until_steered(3).await;
    let (seqs, texts): (Vec<_>, Vec<_>) = survivor.steered().into_iter().unzip();
    assert_eq!(texts, ["heard", "same", "same"]);
    let events = daemon.client(session).attached.events(session, Seq::ZERO, usize::MAX).await.unwrap();
    let queued = events.iter().filter(|event| matches!(event.body, EventBody::PromptQueued(_)));
    assert_eq!(seqs, queued.map(|event| event.seq).collect::<Vec<_>>());
    assert_eq!(daemon.survivors.started().len(), 1);
}

#[tokio::test]
async fn an_agent_is_told_to_pause_and_how_to_go_on_though_its_daemons_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open(folder.path(), &Arc::default()).await;
    let (session, running) = daemon.talk(folder.path()).await;
    // It is stored, and the agent is not told.
    daemon.survivors.cut_off();
    let client = daemon.client(session);
    assert!(client.submit(SessionCommand::Pause(command::Pause::default())).await.is_ok());
    assert_eq!(daemon.survivor().paused(), []);
    hang_up(client, [running]);
    let daemon = succeed(daemon, folder.path()).await;
    let survivor = daemon.survivor();
    let (_, ask) = survivor.until_paused().await;
    let client = daemon.client(session);
    assert!(matches!(client.state().await, SessionState::Waiting(_)));
    daemon.survivors.cut_off();
    let words = SessionCommand::Answer(command::Answer::new(ask, "with care".into()));
    assert!(client.submit(words).await.is_ok());
    assert_eq!(client.state().await, SessionState::Evaluating);
    drop(client);
    let daemon = succeed(daemon, folder.path()).await;
    assert_eq!(survivor.answer_to(ask).await, Ok("with care".into()));
    assert_eq!((survivor.paused().len(), daemon.survivors.started().len()), (1, 1));
}

#[tokio::test]
async fn notices_that_led_to_nothing_do_not_end_their_runner() {
    let folder = tempfile::tempdir().unwrap();
    let survivors = Arc::default();
    // Of what is printed past the limit nothing is stored, and it is acknowledged all the same.
    let limits = Limits { output_bytes_per_job: 8, ..patient() };
    let daemon = Mortal::open_with(folder.path(), &survivors, limits).await;
    let session = daemon.session().await;
    let client = daemon.client(session);
    let running = client.begin("print 0123456789\nprint more\nprint more\nloop").await;
    client.until("outputCut").await;
    daemon.survivor().until_said(3).await;
    daemon.survivor().until_all_acknowledged().await;
    hang_up(client, [running]);
    let daemon = succeed(daemon, folder.path()).await;
    let client = daemon.client(session);
    assert_eq!(client.state().await, SessionState::Evaluating);
    assert!(client.submit(CANCEL).await.is_ok());
    client.until("evalCancelled").await;
    assert_eq!(daemon.survivors.started().len(), 1);
}
