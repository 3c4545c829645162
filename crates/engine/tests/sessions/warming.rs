//! A session that is given its definitions back: how far it is, and what can be done meanwhile.

use mainstay_formats::exchange::ExportCursor;
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::command;
use mainstay_model::search::Words;
use mainstay_model::{
    Admission, Error, Event, EventBody, ForkSession, JobId, Limits, Outcome, Response, Seq, SessionCommand,
    SessionState, TextPosition,
};
use mainstay_runner::query::KernelQuery;
use mainstay_runner::{WarmUpPhase, WarmUpProgress};

use crate::support::{Client, Daemon, cancel, command, eval, evaluated, id, next_id, quick};

/// A fork of a session with three definitions, the second of which waits when it is run again.
async fn warming_fork(daemon: &Daemon) -> (Client, Client) {
    let parent = daemon.session().await;
    for code in ["define a", "again wait", "define c"] {
        parent.eval(code).await;
    }
    let child = fork(daemon, &parent).await;
    (parent, child)
}

async fn fork(daemon: &Daemon, of: &Client) -> Client {
    let fork = ForkSession { from: of.id, entries: None, name: None, before_reset: false };
    match daemon.local.fork(next_id(), fork).await.unwrap() {
        Outcome::Done { response: Response::Forked { session, .. } } => daemon.client(session),
        other => panic!("{other:?}"),
    }
}

/// Waits until so much of a session's definitions has run again.
async fn until_done(session: &Client, done: u32) -> WarmUpProgress {
    let mut followed = session.attached.follow_warm_up(session.id).await.unwrap();
    loop {
        if let Some(progress) = followed.next().await.filter(|progress| progress.done == done) {
            return progress;
        }
    }
}

fn all_with(words: &str) -> EntryFilter {
    EntryFilter {
        words: Words::parse(words).unwrap(),
        roles: Vec::new(),
        sessions: SessionFilter::default(),
        since: None,
        until: None,
        offset: 0,
        limit: 9,
    }
}

#[tokio::test]
async fn how_far_a_session_is_is_known_while_it_is_given_its_definitions_back() {
    let daemon = Daemon::start().await;
    let (parent, child) = warming_fork(&daemon).await;
    let far = WarmUpProgress { phase: WarmUpPhase::Replay, done: 1, total: 3 };
    assert_eq!(until_done(&child, 1).await, far);
    let status = child.attached.status(child.id).await.unwrap();
    assert_eq!((status.session.state(), status.warm_up), (SessionState::WarmingUp, Some(far)));
    assert_eq!(child.attached.warm_up(&status.session), Some(far));
    assert_eq!(parent.attached.status(parent.id).await.unwrap().warm_up, None);
    daemon.workers.let_go();
    child.until("warmUpCompleted").await;
    assert_eq!(child.attached.status(child.id).await.unwrap().warm_up, None);
    assert_eq!(child.eval("names").await.value.as_deref(), Some("a c"));
}

#[tokio::test]
async fn nothing_is_said_of_how_far_it_is_by_a_worker_that_is_gone() {
    let daemon = Daemon::start().await;
    let (_, child) = warming_fork(&daemon).await;
    until_done(&child, 1).await;
    child.submit(SessionCommand::HardReset).await.unwrap();
    child.until_count("warmUpCompleted", 1).await;
    assert_eq!(child.attached.status(child.id).await.unwrap().warm_up, None);
    assert_eq!(child.eval("names").await.value.as_deref(), Some(""));
    let daemon = Daemon::start().await;
    let (_, child) = warming_fork(&daemon).await;
    until_done(&child, 1).await;
    child.submit(SessionCommand::Stop).await.unwrap();
    let rested = child.attached.status(child.id).await.unwrap();
    assert_eq!((rested.session.state(), rested.warm_up), (SessionState::Uninitialized, None));
}

#[tokio::test]
async fn a_session_is_read_found_exported_forked_and_completed_in_while_it_warms_up() {
    let daemon = Daemon::start().await;
    let (_, child) = warming_fork(&daemon).await;
    until_done(&child, 1).await;
    let Client { attached, id } = child.clone();
    let inputs: Vec<_> = attached
        .entries(id, 0, usize::MAX)
        .await
        .unwrap()
        .iter()
        .step_by(2)
        .map(|placed| placed.entry.content.beginning().to_owned())
        .collect();
    assert_eq!(inputs, ["define a", "again wait", "define c"]);
    assert_eq!(attached.search(all_with("define c")).await.unwrap().len(), 1);
    let exported = attached.export(id, ExportCursor::default(), usize::MAX).await.unwrap();
    assert_eq!(exported.items.len(), 3);
    assert_eq!(attached.lineage(id).await.unwrap().len(), 2);
    let cursor = TextPosition { line: 1, column: 1 };
    assert_eq!(attached.complete(id, "a".to_owned(), cursor).await.unwrap().items.len(), 1);
    assert_eq!(
        attached
            .query(id, KernelQuery::Members { name: "List".to_owned() })
            .await
            .unwrap()
            .members()
            .unwrap()
            .name,
        "List"
    );
    let unsure = attached.check(id, "c".to_owned(), None).await;
    assert!(matches!(unsure, Err(Error::NotOffered { state: SessionState::WarmingUp, .. })), "{unsure:?}");
    child.submit(SessionCommand::Rename(command::Rename { name: "idea".to_owned() })).await.unwrap();
    let grandchild = fork(&daemon, &child).await;
    assert_eq!(attached.entries(grandchild.id, 0, usize::MAX).await.unwrap().len(), 6);
    assert_eq!(child.state().await, SessionState::WarmingUp, "nothing of it waited for the replay");
}

#[tokio::test]
async fn an_eval_waits_for_the_replay_or_is_taken_back() {
    let daemon = Daemon::start().await;
    let (_, child) = warming_fork(&daemon).await;
    until_done(&child, 1).await;
    let refused = child.submit(eval("names")).await;
    assert!(matches!(refused, Err(Error::NotOffered { state: SessionState::WarmingUp, .. })), "{refused:?}");
    let (unwanted, wanted) = (id("unwanted"), id("wanted"));
    let first = child.send(command(unwanted.clone(), Admission::Queue, eval("define unwanted")));
    child.until_count("commandQueued", 1).await;
    let second = child.send(command(wanted, Admission::Queue, eval("names")));
    child.until_count("commandQueued", 2).await;
    child.submit(cancel(&unwanted)).await.unwrap();
    assert_eq!(first.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
    assert_eq!(child.state().await, SessionState::WarmingUp);
    daemon.workers.let_go();
    assert_eq!(evaluated(second.await.unwrap()).value.as_deref(), Some("a c"));
}

#[tokio::test]
async fn a_kernel_is_told_of_the_rows_that_it_may_run_together() {
    let daemon = Daemon::with(Limits { replay_batch: 3, ..quick() }).await;
    let parent = daemon.session().await;
    // What failed runs alone.
    let cells = ["define a", "define b", "define c", "define d", "define e", "define g\nraise", "define f"];
    for code in cells {
        parent.eval(code).await;
    }
    let child = fork(&daemon, &parent).await;
    child.until("warmUpCompleted").await;
    assert_eq!(
        daemon.workers.expected(),
        [vec!["define a", "define b", "define c"], vec!["define d", "define e"]]
    );
    assert_eq!(child.eval("names").await.value.as_deref(), Some("a b c d e g f"));
}

/// The jobs whose code printed this, with the command that each is told to be of.
async fn printers(session: &Client, wanted: &str) -> Vec<(JobId, bool)> {
    let printed = |event: Event| match event.body {
        EventBody::OutputProduced { job: Some(job), text, .. } if text.trim_end() == wanted => {
            Some((job, event.metadata.correlation.is_some()))
        }
        _ => None,
    };
    session.attached.events(session.id, Seq(0), 999).await.unwrap().into_iter().filter_map(printed).collect()
}

#[tokio::test]
async fn what_a_job_left_running_prints_is_its_own_also_after_a_replay() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("leave hello").await;
    session.eval("stir").await;
    session.eval("exit 3").await;
    session.eval("stir").await;
    let first =
        session.attached.events(session.id, Seq(0), 999).await.unwrap().into_iter().find_map(|event| {
            match event.body {
                EventBody::EvalRequested { job, code, .. } if code == "leave hello" => Some(job),
                _ => None,
            }
        });
    // It is of no command: that has its outcome.
    let own = (first.unwrap(), false);
    assert_eq!(printers(&session, "hello").await, [own, own]);
}
