//! Tasks that jobs give to others: the end of the one reaches the others, what is not spent comes back, and both hold whatever is killed when.

use mainstay_engine::GivenTask;
use mainstay_log::EventLog;
use mainstay_model::command::Delegate;
use mainstay_model::grant::{Budget, Grants, OperationKind, PatternLimits};
use mainstay_model::{
    Admission, AgentNotice, Command, CommandId, Cost, Error, EvalEnding, EventBody, JobSpec, Message,
    Outcome, ParentEnding, Part, PartRole, Prompt, Seq, SessionCommand, TokenUsage,
};
use proptest::prelude::*;

use crate::adoption::{Mortal, hang_up, succeed};
use crate::support::{
    CANCEL, Client, Daemon, Running, breathe, cancel, command, ending, eval, id, next_id, patient, quick,
    until_it,
};

const PARENT: &str = "parent";

/// A grant with which tasks may be given to others, and which costs so much.
fn grants(budget: &[&str]) -> Option<Box<Grants>> {
    let held = Grants::parse([("agent.delegate", ["*"]), ("fs.read", ["/work/**"])], &PatternLimits::REQUEST);
    Some(Box::new(held.unwrap().costing(Budget::parse(budget.iter().copied()).unwrap())))
}

fn bounded(id: CommandId, body: SessionCommand, grants: Option<Box<Grants>>) -> Command {
    Command { grants, ..command(id, Admission::Queue, body) }
}

/// Runs code as the job that gives tasks to others; comes back once it runs.
async fn begin_parent(session: &Client, code: &str) -> Running {
    let running = session.send(bounded(id(PARENT), eval(code), grants(&["USD:8"])));
    session.until("evalRequested").await;
    running
}

async fn delegate(session: &Client, child: &str) -> Result<GivenTask, Error> {
    let (parent, child, agent) = (id(PARENT), id(child), "any".to_owned());
    let inherits = vec![OperationKind::FS_READ];
    session.attached.delegate(Delegate { parent, child, agent, inherits }).await
}

/// Gives a task to a command of another session, and submits that.
async fn give(parent: &Client, child: &Client, name: &str, body: SessionCommand) -> Running {
    let given = delegate(parent, name).await.unwrap();
    let running = child.send(bounded(id(name), body, Some(given.grants.clone())));
    until_it(async || child.attached.command(&id(name)).await.is_ok()).await;
    running
}

fn parent_ended(ending: ParentEnding) -> Result<Outcome, Error> {
    Ok(Outcome::Failed { error: Error::ParentEnded { parent: id(PARENT), ending } })
}

/// What the running job of a session has left, in dollars.
async fn left(session: &Client) -> Option<String> {
    let found = session.attached.status(session.id).await.unwrap().session;
    let held = found.running()?.grants.clone()?;
    held.remaining().into_values().next().map(|left| left.to_string())
}

async fn open_tasks(session: &Client) -> usize {
    session.attached.status(session.id).await.unwrap().session.delegations.len()
}

#[tokio::test]
async fn jobs_that_run_or_wait_are_told_to_stop_when_the_job_is_cancelled_that_gave_them_their_tasks() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.session().await, daemon.session().await);
    let parent = begin_parent(&first, "loop").await;
    let runs = give(&first, &second, "runs", eval("loop")).await;
    second.until("evalRequested").await;
    let waits = give(&first, &second, "waits", eval("pure 1")).await;
    second.until("commandQueued").await;
    assert_eq!(open_tasks(&first).await, 2);
    first.submit(CANCEL).await.unwrap();
    assert_eq!(ending(parent).await, EvalEnding::Cancelled);
    assert_eq!(runs.await.unwrap(), parent_ended(ParentEnding::Cancelled));
    assert_eq!(waits.await.unwrap(), parent_ended(ParentEnding::Cancelled));
    first.until_count("delegationEnded", 2).await;
    second.until("evalCancelled").await;
    assert_eq!(second.count("jobDenied").await, 1, "its end says why");
    let after = second.eval("pure 2").await;
    assert_eq!(after.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_command_that_comes_after_the_end_of_the_job_that_gave_its_task_never_begins() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.session().await, daemon.session().await);
    let parent = begin_parent(&first, "loop").await;
    let given = delegate(&first, "late").await.unwrap();
    first.submit(CANCEL).await.unwrap();
    assert_eq!(ending(parent).await, EvalEnding::Cancelled);
    for _ in 0..2 {
        let late = bounded(id("late"), eval("pure 1"), Some(given.grants.clone()));
        assert_eq!(second.give(late).await, parent_ended(ParentEnding::Cancelled));
    }
    drop(given);
    first.until("delegationEnded").await;
    assert_eq!(second.count("evalRequested").await, 0);
}

#[tokio::test]
async fn the_end_of_a_job_reaches_the_tasks_of_its_tasks() {
    let daemon = Daemon::start().await;
    let (first, second, third) = (daemon.session().await, daemon.session().await, daemon.session().await);
    let _parent = begin_parent(&first, "loop").await;
    let give_on = |parent: &str, child: &str, inherits: Vec<OperationKind>| {
        let (parent, child, agent) = (id(parent), id(child), "any".to_owned());
        Delegate { parent, child, agent, inherits }
    };
    let may_give = give_on(PARENT, "child", vec![OperationKind::AGENT_DELEGATE]);
    let given = first.attached.delegate(may_give).await.unwrap();
    let child = second.send(bounded(id("child"), eval("loop"), Some(given.grants.clone())));
    second.until("evalRequested").await;
    drop(given);
    let given = second.attached.delegate(give_on("child", "grandchild", Vec::new())).await.unwrap();
    let grandchild = third.send(bounded(id("grandchild"), eval("loop"), Some(given.grants.clone())));
    third.until("evalRequested").await;
    drop(given);
    let refused = third.attached.delegate(give_on("grandchild", "further", Vec::new())).await.map(drop);
    assert!(matches!(refused, Err(Error::GrantDenied { .. })), "it was not given that: {refused:?}");
    first.submit(SessionCommand::Stop).await.unwrap();
    for (command, parent) in [(child, PARENT), (grandchild, "child")] {
        let ended = command.await.unwrap();
        let Ok(Outcome::Failed { error: Error::ParentEnded { parent: named, .. } }) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(named, id(parent));
    }
    for (gave, was_given) in [(&first, &second), (&second, &third)] {
        was_given.until("evalCancelled").await;
        gave.until("delegationEnded").await;
    }
}

#[tokio::test]
async fn the_tasks_of_a_job_that_ends_by_itself_go_on() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.session().await, daemon.session().await);
    let parent = begin_parent(&first, "wait").await;
    let child = give(&first, &second, "child", eval("loop")).await;
    second.until("evalRequested").await;
    daemon.workers.let_go();
    assert_eq!(ending(parent).await, EvalEnding::Completed);
    assert_eq!(open_tasks(&first).await, 0);
    second.submit(cancel(&id("child"))).await.unwrap();
    assert_eq!(ending(child).await, EvalEnding::Cancelled);
    assert_eq!(second.count("jobDenied").await, 0);
    assert_eq!(first.count("delegationEnded").await, 0);
}

#[tokio::test]
async fn what_a_job_that_was_given_a_task_has_not_spent_comes_back() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let (session, talk) = (daemon.session().await, daemon.agent_session().await);
    let parent = begin_parent(&session, "loop").await;
    let turn = SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text("go") });
    let child = give(&session, &talk, "child", turn).await;
    assert_eq!(left(&session).await.as_deref(), Some("4"));
    script.work().await;
    let part = Part { role: PartRole::Assistant, text: "so".to_owned(), metadata: Default::default() };
    let usage = Some(TokenUsage { cost: Cost::of_dollars(1.5), ..TokenUsage::default() });
    script
        .tell(AgentNotice::Message(Message { parts: vec![part], metadata: Default::default(), usage }))
        .await;
    script.done().await;
    child.await.unwrap().unwrap();
    session.until("delegationEnded").await;
    assert_eq!(left(&session).await.as_deref(), Some("6.5"));
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(parent).await, EvalEnding::Cancelled);
}

#[tokio::test]
async fn a_task_that_is_given_anew_has_what_was_decided_last() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let _parent = begin_parent(&session, "loop").await;
    let first = delegate(&session, "child").await.unwrap();
    let larger = first.grants.clone();
    drop(first);
    session.until("delegationEnded").await;
    let _other = delegate(&session, "other").await.unwrap();
    let anew = delegate(&session, "child").await.unwrap();
    assert_ne!(anew.grants, larger);
    let again = delegate(&session, "child").await.unwrap();
    assert_eq!(again.grants, anew.grants);
    assert_eq!(open_tasks(&session).await, 2);
}

#[tokio::test]
async fn what_went_with_a_task_whose_command_is_never_accepted_comes_back_and_the_task_can_be_given_anew() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let parent = begin_parent(&session, "loop").await;
    for times in 1..=2 {
        let given = delegate(&session, "child").await.unwrap();
        let again = delegate(&session, "child").await.unwrap();
        assert_eq!(given.grants, again.grants, "it is the same task");
        drop(given);
        breathe().await;
        assert_eq!(left(&session).await.as_deref(), Some("4"));
        drop(again);
        session.until_count("delegationEnded", times).await;
        assert_eq!(left(&session).await.as_deref(), Some("8"));
    }
    assert_eq!(session.attached.delegated(&id("child")).await.unwrap().unwrap().remaining().len(), 1);
    let held = delegate(&session, "child").await.unwrap();
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(parent).await, EvalEnding::Cancelled);
    let refused = delegate(&session, "child").await.map(drop);
    assert_eq!(refused, Err(Error::NotRunning { command: id(PARENT) }));
    drop(held);
    until_it(async || open_tasks(&session).await == 0).await;
}

#[tokio::test]
async fn a_task_ends_whose_command_could_not_be_stored() {
    let daemon = Daemon::start().await;
    let (from, to) = (daemon.session().await, daemon.session().await);
    let _parent = begin_parent(&from, "loop").await;
    let given = delegate(&from, "child").await.unwrap();
    daemon.store.refuse_after(0);
    let refused = to.give(bounded(id("child"), eval("pure 1"), Some(given.grants.clone()))).await;
    assert!(matches!(refused, Err(Error::StoreFailed { .. })), "{refused:?}");
    drop(given);
    from.until("delegationEnded").await;
    assert_eq!(left(&from).await.as_deref(), Some("8"));
}

#[tokio::test]
async fn what_a_stopped_job_has_left_is_found_without_reading_its_session_from_the_start() {
    let daemon = Daemon::start().await;
    let (from, to) = (daemon.session().await, daemon.session().await);
    for _ in 0..40 {
        to.submit(eval("pure 1")).await.unwrap();
    }
    let _parent = begin_parent(&from, "ask which?").await;
    from.until("askRaised").await;
    let _child = give(&from, &to, "child", eval("ask what?")).await;
    to.until("askRaised").await;
    let before = daemon.store.read_of(to.id);
    from.submit(CANCEL).await.unwrap();
    from.until("delegationEnded").await;
    let read = daemon.store.read_of(to.id) - before;
    assert!(read < 40, "{read} events were read");
}

/// Kills the daemon with the append after so many, once a job is cancelled that gave tasks to others, and lets the next one go on.
async fn kill_between_the_ends(appends: usize, last_is_stored: bool) {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Mortal::open_with(folder.path(), &Default::default(), quick()).await;
    let (first, second) = (daemon.session_named("first").await, daemon.session_named("second").await);
    let parent = begin_parent(&daemon.client(first), "ask which?").await;
    daemon.client(first).until("askRaised").await;
    let (from, to) = (daemon.client(first), daemon.client(second));
    let runs = give(&from, &to, "runs", eval("ask what?")).await;
    to.until("askRaised").await;
    let waits = give(&from, &to, "waits", eval("print never")).await;
    to.until("commandQueued").await;
    daemon.store.cut_after(appends, last_is_stored);
    let cancelling = from.send(command(next_id(), Admission::Now, CANCEL));
    tokio::select! {
        () = daemon.store.is_cut() => {}
        () = until_it(async || open_tasks(&from).await == 0 && from.count("delegationEnded").await == 2) => {}
    }
    hang_up(from, [parent, runs, waits, cancelling]);
    hang_up(to, []);
    let daemon = succeed(daemon, folder.path()).await;
    let (from, to) = (daemon.client(first), daemon.client(second));
    // Where nothing of it was stored, it is cancelled now.
    let body =
        SessionCommand::Cancel(mainstay_model::command::Cancel { target: Some(id(PARENT)), grace_ms: None });
    from.submit(body).await.ok();
    from.until_count("delegationEnded", 2).await;
    for name in ["runs", "waits"] {
        let grants = from.attached.delegated(&id(name)).await.unwrap();
        let body = if name == "runs" { eval("ask what?") } else { eval("print never") };
        let outcome = to.give(bounded(id(name), body, grants)).await;
        assert_eq!(outcome, parent_ended(ParentEnding::Cancelled), "{name}");
    }
    assert_eq!(from.count("delegationEnded").await, 2);
}

/// Kills daemons while a job gives a task to another that runs to its end: what went with it is the job's again, once.
async fn kill_around_a_return(kills: Vec<(usize, bool)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Mortal::open_with(folder.path(), &Default::default(), patient()).await;
    let (first, second) = (daemon.session_named("first").await, daemon.session_named("second").await);
    let parent = begin_parent(&daemon.client(first), "ask which?").await;
    daemon.client(first).until("askRaised").await;
    parent.abort();
    for (appends, last_is_stored) in kills.into_iter().chain([(usize::MAX, true)]) {
        daemon.store.cut_after(appends, last_is_stored);
        let (from, to) = (daemon.client(first), daemon.client(second));
        let run = async {
            // What was given is given again while its command is not known; afterwards it is what was decided.
            let known = from.attached.command(&id("child")).await.is_ok();
            let task = match known {
                true => None,
                false => Some(delegate(&from, "child").await?),
            };
            let grants = match &task {
                Some(task) => Some(task.grants.clone()),
                None => from.attached.delegated(&id("child")).await?,
            };
            to.give(bounded(id("child"), eval("print x"), grants)).await?;
            drop(task);
            until_it(async || open_tasks(&from).await == 0).await;
            Ok::<_, Error>(())
        };
        tokio::select! {
            ended = run => ended.unwrap(),
            () = daemon.store.is_cut() => {}
        }
        breathe().await;
        hang_up(from, []);
        hang_up(to, []);
        if appends == usize::MAX {
            break;
        }
        daemon = succeed(daemon, folder.path()).await;
    }
    let from = daemon.client(first);
    assert_eq!(left(&from).await.as_deref(), Some("8"));
    let (given, ended) = (from.count("jobDelegated").await, from.count("delegationEnded").await);
    assert_eq!(given, ended);
    let events = EventLog::events(&*daemon.store, first, Seq::ZERO, usize::MAX).await.unwrap();
    let returned = events.iter().filter(|event| match &event.body {
        EventBody::DelegationEnded { unspent, .. } => !unspent.is_empty(),
        _ => false,
    });
    assert_eq!(returned.count(), ended);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_end_of_a_job_reaches_those_it_gave_tasks_to_whenever_the_daemon_is_killed(
        appends in 0..8_usize,
        last_is_stored: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(kill_between_the_ends(appends, last_is_stored));
    }

    #[test]
    fn what_was_not_spent_comes_back_once_whenever_daemons_are_killed(
        kills in prop::collection::vec((0..6_usize, any::<bool>()), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(kill_around_a_return(kills));
    }
}
