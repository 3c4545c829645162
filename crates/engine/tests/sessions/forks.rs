//! Forks: sessions that begin with entries of others.

use mainstay_model::command;
use mainstay_model::{
    Access, Error, ForkSession, Outcome, Principal, Response, Rights, SessionCommand, SessionId, SessionState,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::support::{Client, Daemon, id, next_id, patient, until_it};

/// Forks, and waits until the child is ready.
async fn fork(daemon: &Daemon, of: &Client, entries: Option<u64>) -> Client {
    let forked = daemon.local.fork(next_id(), whole(of, entries)).await.unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    let child = daemon.client(session);
    child.until("warmUpCompleted").await;
    child
}

fn whole(of: &Client, entries: Option<u64>) -> ForkSession {
    ForkSession { from: of.id, entries, name: None, before_reset: false }
}

async fn said(session: &Client) -> Vec<String> {
    let entries = session.attached.entries(session.id, 0, usize::MAX).await.unwrap();
    entries.iter().map(|placed| placed.entry.content.beginning().to_owned()).collect()
}

async fn names(session: &Client) -> String {
    session.eval("names").await.value.unwrap_or_default()
}

#[tokio::test]
async fn a_fork_has_the_others_values_and_both_go_on() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    parent.eval("print hello").await;
    let child = fork(&daemon, &parent, None).await;
    assert_eq!(said(&child).await, said(&parent).await);
    parent.eval("define b").await;
    child.eval("define c").await;
    assert_eq!((names(&parent).await, names(&child).await), ("a b".to_owned(), "a c".to_owned()));
    let (of_parent, of_child) = (said(&parent).await, said(&child).await);
    assert_eq!(of_parent[..4], of_child[..4]);
    assert_eq!((&*of_parent[4], &*of_child[4]), ("define b", "define c"));
}

#[tokio::test]
async fn a_fork_of_what_was_there_before_a_reset_undoes_it() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    let before_reset = || ForkSession { before_reset: true, ..whole(&parent, None) };
    let undone = async || {
        let forked = daemon.local.fork(next_id(), before_reset()).await.unwrap();
        let Outcome::Done { response: Response::Forked { session, .. } } = forked else {
            panic!("{forked:?}")
        };
        let child = daemon.client(session);
        child.until("warmUpCompleted").await;
        child
    };
    parent.eval("define a").await;
    let refused = daemon.local.fork(next_id(), before_reset()).await;
    let is_refused = |refused: &Result<Outcome, Error>| {
        let argument = match refused {
            Ok(Outcome::Failed { error: Error::InvalidArgument { argument, .. } })
            | Err(Error::InvalidArgument { argument, .. }) => argument.as_str(),
            _ => "",
        };
        argument == "beforeReset"
    };
    assert!(is_refused(&refused), "{refused:?}");
    for (reset, name) in [(SessionCommand::Reset, "b"), (SessionCommand::HardReset, "c")] {
        parent.submit(reset).await.unwrap();
        until_it(async || parent.state().await == SessionState::Ready).await;
        let child = undone().await;
        assert_eq!(names(&child).await, "a", "right after it");
        parent.eval(&format!("define {name}")).await;
        assert_eq!(names(&undone().await).await, "a", "and later");
        assert_eq!(names(&parent).await, name, "the other goes on as it is");
        parent.submit(SessionCommand::Reset).await.unwrap();
        until_it(async || parent.state().await == SessionState::Ready).await;
        assert_eq!(names(&undone().await).await, name, "the last one counts");
        parent.eval("define a").await;
    }
    let child = undone().await;
    child.eval("define d").await;
    child.submit(SessionCommand::Reset).await.unwrap();
    until_it(async || child.state().await == SessionState::Ready).await;
    let forked =
        daemon.local.fork(next_id(), ForkSession { before_reset: true, ..whole(&child, None) }).await;
    let Ok(Outcome::Done { response: Response::Forked { session, .. } }) = forked else {
        panic!("{forked:?}")
    };
    let grandchild = daemon.client(session);
    grandchild.until("warmUpCompleted").await;
    assert_eq!(names(&grandchild).await, format!("{} d", "c"), "what it had begun with too");
}

#[tokio::test]
async fn a_cut_keeps_an_output_with_its_input_and_says_so() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    for name in ["a", "b", "c"] {
        parent.eval(&format!("define {name}")).await;
    }
    for (asked, entries, known) in [(0, 0, ""), (1, 2, "a"), (2, 2, "a"), (3, 4, "a b"), (6, 6, "a b c")] {
        let forked = daemon.local.fork(next_id(), whole(&parent, Some(asked))).await.unwrap();
        let Outcome::Done { response: Response::Forked { session, entries: given, asked: moved } } = forked
        else {
            panic!("{forked:?}")
        };
        assert_eq!((given, moved), (entries, (asked != entries).then_some(asked)));
        let child = daemon.client(session);
        assert_eq!(said(&child).await.len() as u64, entries);
        child.until("warmUpCompleted").await;
        assert_eq!(names(&child).await, known);
    }
    let refused = daemon.local.fork(next_id(), whole(&parent, Some(7))).await;
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_empty_session_can_be_forked() {
    let daemon = Daemon::start().await;
    let child = fork(&daemon, &daemon.session().await, None).await;
    assert_eq!(said(&child).await, [""; 0]);
    child.eval("define a").await;
    assert_eq!(names(&fork(&daemon, &child, None).await).await, "a");
}

#[tokio::test]
async fn a_chain_of_forks_keeps_all_that_came_before() {
    let daemon = Daemon::start().await;
    let mut line = vec![daemon.session().await];
    for name in ["a", "b", "c", "d"] {
        let last = line.last().unwrap();
        last.eval(&format!("define {name}")).await;
        line.push(fork(&daemon, last, None).await);
    }
    assert_eq!(names(line.last().unwrap()).await, "a b c d");
    let side = fork(&daemon, &line[1], Some(2)).await;
    let mut expected: Vec<(SessionId, u64)> =
        line.iter().zip([2, 4, 6, 8, 10]).map(|(of, count)| (of.id, count)).collect();
    expected.push((side.id, 2));
    for session in line.iter().chain([&side]) {
        let lineage = daemon.local.lineage(session.id).await.unwrap();
        let found: Vec<_> = lineage.iter().map(|relative| (relative.session.id, relative.entries)).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_reset_drops_what_a_session_began_with_too() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    parent.submit(SessionCommand::Reset).await.unwrap();
    parent.until_count("warmUpCompleted", 2).await;
    parent.eval("define b").await;
    let child = fork(&daemon, &parent, None).await;
    assert_eq!(names(&child).await, "b");
    child.submit(SessionCommand::HardReset).await.unwrap();
    child.until_count("warmUpCompleted", 2).await;
    assert_eq!(names(&child).await, "");
    assert_eq!(said(&child).await.len(), 8, "what was said is there all the same");
}

#[tokio::test]
async fn what_was_dropped_is_not_there_again_in_any_fork() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    let child = fork(&daemon, &parent, None).await;
    child.submit(SessionCommand::HardReset).await.unwrap();
    child.until_count("warmUpCompleted", 2).await;
    assert_eq!(names(&fork(&daemon, &child, Some(2)).await).await, "", "nothing was said since");
    child.eval("define b").await;
    for entries in [None, Some(4)] {
        let grandchild = fork(&daemon, &child, entries).await;
        assert_eq!(names(&grandchild).await, "b", "{entries:?}");
        assert_eq!(names(&fork(&daemon, &grandchild, None).await).await, "b");
    }
    assert_eq!(names(&fork(&daemon, &child, Some(2)).await).await, "a", "as it was then");
    parent.submit(SessionCommand::Reset).await.unwrap();
    parent.until_count("warmUpCompleted", 2).await;
    assert_eq!(names(&fork(&daemon, &parent, None).await).await, "");
}

#[tokio::test]
async fn a_fork_of_a_session_with_a_long_name_has_one_too() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    let name = async |of: &Client| daemon.local.status(of.id).await.unwrap().session.name;
    parent.submit(SessionCommand::Rename(command::Rename { name: "x".repeat(120) })).await.unwrap();
    assert_eq!(name(&fork(&daemon, &parent, None).await).await, format!("{}-2", "x".repeat(108)));
    parent.submit(SessionCommand::Rename(command::Rename { name: "sprint-7".to_owned() })).await.unwrap();
    assert_eq!(name(&fork(&daemon, &parent, None).await).await, "sprint-8");
}

#[tokio::test]
async fn a_fork_survives_its_worker_and_the_daemon() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    let child = fork(&daemon, &parent, None).await;
    child.eval("define b").await;
    child.eval("exit 1").await;
    child.until_count("warmUpCompleted", 2).await;
    assert_eq!(names(&child).await, "a b");
    let child = child.leave();
    drop(parent);
    let daemon = daemon.crash().await;
    let child = daemon.client(child);
    assert_eq!(names(&child).await, "a b");
}

#[tokio::test]
async fn what_differs_in_a_fork_is_named_with_the_session_it_ran_in() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    let tick = parent.eval("tick").await;
    let child = fork(&daemon, &parent, None).await;
    let rebuilt = daemon.local.status(child.id).await.unwrap().session.rebuilt.unwrap();
    let [divergence] = rebuilt.diverged.as_slice() else { panic!("{rebuilt:?}") };
    assert_eq!((divergence.session, divergence.requested), (Some(parent.id), tick.requested));
    let expected = format!("{}#{} gave another `tick` (now 2)", parent.id.short(), tick.requested);
    assert_eq!(divergence.to_string(), expected);
}

#[tokio::test]
async fn what_runs_is_not_in_a_fork() {
    let daemon = Daemon::with(patient()).await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    let running = parent.begin("loop").await;
    let child = fork(&daemon, &parent, None).await;
    assert_eq!(said(&child).await.len(), 2);
    assert_eq!(names(&child).await, "a");
    assert_eq!(parent.state().await, SessionState::Evaluating);
    parent.submit(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })).await.unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_fork_that_is_sent_again_is_made_once() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    let first = daemon.local.fork(id("f"), whole(&parent, None)).await;
    parent.eval("define b").await;
    assert_eq!(daemon.local.fork(id("f"), whole(&parent, None)).await, first);
    let other = daemon.local.fork(id("f"), whole(&parent, Some(0))).await;
    assert_eq!(other, Err(Error::CommandConflict { command: id("f") }));
    assert_eq!(daemon.local.count_sessions(Default::default()).await, Ok(2));
}

#[tokio::test]
async fn forks_are_numbered_unless_they_are_named() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    let name = async |of: &Client| daemon.local.status(of.id).await.unwrap().session.name;
    let child = fork(&daemon, &parent, None).await;
    let grandchild = fork(&daemon, &child, None).await;
    assert_eq!((&*name(&child).await, &*name(&grandchild).await), ("demo-2", "demo-3"));
}

#[tokio::test]
async fn who_may_not_see_a_session_cannot_fork_it() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
    let ada = daemon.engine.attach(Access { principal: Principal::new("ada").unwrap(), rights }, "cli");
    let refused = ada.fork(next_id(), whole(&parent, None)).await;
    assert_eq!(refused, Err(Error::SessionNotFound { reference: parent.id.to_string() }));
}

/// What happens to one of a few sessions.
#[derive(Clone, Debug)]
enum Step {
    Define { to: usize },
    Fork { of: usize, at: Option<usize> },
    Reset { of: usize },
    LoseWorker { of: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => any::<usize>().prop_map(|to| Step::Define { to }),
        3 => (any::<usize>(), option::of(any::<usize>())).prop_map(|(of, at)| Step::Fork { of, at }),
        1 => any::<usize>().prop_map(|of| Step::Reset { of }),
        1 => any::<usize>().prop_map(|of| Step::LoseWorker { of }),
    ]
}

/// A session, and the naive model of it: what it knows after each of its cells, in a list that is copied.
struct Line {
    client: Client,
    known: Vec<String>,
    knew: Vec<Vec<String>>,
}

impl Line {
    async fn eval(&mut self, code: &str) {
        self.client.eval(code).await;
        self.knew.push(self.known.clone());
    }
}

async fn take(daemon: &Daemon, lines: &mut Vec<Line>, number: usize, step: Step) {
    let count = lines.len();
    match step {
        Step::Define { to } => {
            let line = &mut lines[to % count];
            line.known.push(format!("n{number:02}"));
            line.eval(&format!("define n{number:02}")).await;
        }
        Step::Fork { of, at } => {
            let parent = &lines[of % count];
            let all = parent.knew.len();
            let cells = at.map_or(all, |at| at % (all + 1));
            let entries = at.map(|_| 2 * cells as u64);
            let client = fork(daemon, &parent.client, entries).await;
            let knew = parent.knew[..cells].to_vec();
            let then = || knew.last().cloned().unwrap_or_default();
            let known = if cells == all { parent.known.clone() } else { then() };
            lines.push(Line { client, known, knew });
        }
        Step::Reset { of } => {
            let line = &mut lines[of % count];
            line.client.submit(SessionCommand::HardReset).await.unwrap();
            line.known.clear();
        }
        Step::LoseWorker { of } => {
            let line = &mut lines[of % count];
            line.eval("exit 1").await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_session_knows_what_its_cells_defined(steps in vec(any_step(), 1..16)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let daemon = Daemon::start().await;
            let client = daemon.session().await;
            let mut lines = vec![Line { client, known: Vec::new(), knew: Vec::new() }];
            for (number, step) in steps.into_iter().enumerate() {
                take(&daemon, &mut lines, number, step).await;
            }
            for line in &lines {
                assert_eq!(said(&line.client).await.len(), 2 * line.knew.len());
                assert_eq!(names(&line.client).await, line.known.join(" "));
            }
        });
    }
}
