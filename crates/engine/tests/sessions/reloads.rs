//! What of a session runs again in its worker when a script has changed, and what becomes of that where something happens meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_engine::Reloading;
use mainstay_model::command;
use mainstay_model::reload::FullReplayReason;
use mainstay_model::{
    Event, EventBody, Reload, Seq, SessionCommand, SessionState, ValidityCounts, WarmUpReason,
};
use tempfile::TempDir;

use crate::support::{Client, Daemon, quick};

/// Writes a file so that it is not the one it was.
fn write(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// A session that has loaded a script and used it, and has something besides; the requests are 4, 7, 9, 11.
async fn using(daemon: &Daemon, used_by: &str) -> (Client, TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lib.fsx");
    write(&path, "1");
    let session = daemon.session().await;
    for code in [&format!("load {}", path.display()), "tick", used_by, "define after"] {
        session.eval(code).await;
    }
    (session, folder, path)
}

async fn refresh(session: &Client, all: bool) {
    let before = session.count("warmUpCompleted").await;
    session.submit(SessionCommand::Refresh(command::Refresh { all })).await.unwrap();
    session.until_count("warmUpCompleted", before + 1).await;
}

async fn events(session: &Client) -> Vec<Event> {
    session.attached.events(session.id, Seq::ZERO, usize::MAX).await.unwrap()
}

/// What the last warm-up says of a reload.
async fn reload(session: &Client) -> Option<Reload> {
    let events = events(session).await;
    let reload = events.into_iter().rev().find_map(|event| match event.body {
        EventBody::WarmUpCompleted { reload, .. } => Some(reload),
        _ => None,
    });
    reload.unwrap().map(|reload| *reload)
}

async fn stale(session: &Client) -> u64 {
    let counts = session.attached.validity(session.id).await.unwrap().unwrap();
    assert_eq!(counts, ValidityCounts { stale: counts.stale, ..ValidityCounts::default() });
    counts.stale
}

/// How often each of these ran so far.
fn ran(daemon: &Daemon, codes: &[&str]) -> Vec<usize> {
    let ran = daemon.workers.ran();
    codes.iter().map(|code| ran.iter().filter(|ran| ran.starts_with(code)).count()).collect()
}

#[tokio::test]
async fn what_depends_on_a_script_runs_again_in_the_worker_and_nothing_else_does() {
    let daemon = Daemon::start().await;
    let (session, _folder, path) = using(&daemon, "use lib.fsx").await;
    write(&path, "2");
    assert_eq!(stale(&session).await, 2);
    let planned = session.attached.reloading(session.id).await.unwrap();
    let part = planned.in_place.clone().unwrap();
    assert_eq!((part.len(), planned.of), (2, 4));
    refresh(&session, false).await;
    assert_eq!(ran(&daemon, &["load", "tick", "use", "define"]), [2, 1, 2, 1]);
    assert_eq!((daemon.workers.started(), stale(&session).await), (1, 0));
    let told = reload(&session).await.unwrap();
    assert_eq!((told.in_place.clone(), told.of), (Some(part), 4));
    assert_eq!(told.line(&[]), "2 of 4 submissions ran again: lib.fsx is 2 (was 1)");
    assert_eq!(session.eval("use lib.fsx").await.bindings[0].value.as_deref(), Some("2"));

    write(&path, "1");
    refresh(&session, false).await;
    let told = reload(&session).await.unwrap();
    assert_eq!(told.line(&[]), "3 of 5 submissions ran again: lib.fsx is 1 (was 2), lib.fsx is 1 (was 2)");

    refresh(&session, true).await;
    assert_eq!(daemon.workers.started(), 2);
    let told = reload(&session).await.unwrap();
    assert_eq!((told.in_place, told.of, told.because), (None, 5, None));
    assert_eq!(session.count("warmUpCompleted").await, 4);
}

#[tokio::test]
async fn where_it_cannot_be_a_new_worker_runs_all_and_the_reason_is_told() {
    let daemon = Daemon::start().await;
    let (session, _folder, path) = using(&daemon, "use lib.fsx\nprint once").await;
    write(&path, "2");
    let requested = Seq(9);
    let because = FullReplayReason::Once { requested, reason: "has effects".to_owned() };
    let planned = session.attached.reloading(session.id).await.unwrap();
    assert_eq!(planned, Reloading { in_place: Err(because), of: 4 });
    refresh(&session, false).await;
    let told = reload(&session).await.unwrap();
    assert_eq!((told.in_place, told.because.as_deref()), (None, Some("#9 has effects")));
    assert_eq!((daemon.workers.started(), stale(&session).await), (2, 0));
    session.submit(SessionCommand::Stop).await.unwrap();
    let planned = session.attached.reloading(session.id).await.unwrap();
    assert_eq!(planned, Reloading { in_place: Err(FullReplayReason::NoWorker), of: 4 });
}

#[tokio::test]
async fn a_script_that_fails_keeps_what_depends_on_it_from_running() {
    let daemon = Daemon::start().await;
    let (session, _folder, path) = using(&daemon, "use lib.fsx").await;
    write(&path, "broken");
    refresh(&session, false).await;
    let told = reload(&session).await.unwrap();
    assert_eq!((told.in_place, told.left), (Some(vec![Seq(4)]), vec![Seq(9)]));
    assert_eq!((daemon.workers.started(), ran(&daemon, &["load", "use"])), (1, vec![2, 1]));
    assert_eq!(stale(&session).await, 2);
    write(&path, "3");
    refresh(&session, false).await;
    assert_eq!(
        reload(&session).await.unwrap().line(&[]),
        "2 of 4 submissions ran again: lib.fsx is 3 (was 1)"
    );
    assert_eq!((daemon.workers.started(), stale(&session).await), (1, 0));
}

#[tokio::test]
async fn what_other_code_prints_meanwhile_is_told() {
    let daemon = Daemon::start().await;
    let (session, _folder, path) = using(&daemon, "use lib.fsx\nagain stir").await;
    session.eval("leave late").await;
    write(&path, "2");
    refresh(&session, false).await;
    assert_eq!(daemon.workers.started(), 1);
    let printed = events(&session).await.into_iter().filter_map(|event| match event.body {
        EventBody::OutputProduced { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(printed.collect::<Vec<_>>(), ["late"]);
}

#[tokio::test]
async fn a_worker_that_is_lost_in_the_middle_is_replaced_and_has_all() {
    let daemon = Daemon::with(quick()).await;
    let (session, _folder, path) = using(&daemon, "use lib.fsx\nagain signal 6").await;
    write(&path, "2");
    session.submit(SessionCommand::Refresh(command::Refresh { all: false })).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    // What ran then is suspected once, and left out the second time; and `tick` counts how often it ran.
    assert_eq!(session.count("workerExited").await, 2);
    assert_eq!((daemon.workers.started(), reload(&session).await), (3, None));
    assert_eq!(session.story().await.last().unwrap(), "ready, 3 replayed, 2 diverged");
}

#[tokio::test]
async fn a_daemon_that_is_lost_in_the_middle_brings_all_back_and_a_hard_reset_ends_it() {
    let daemon = Daemon::with(quick()).await;
    let (session, _folder, path) = using(&daemon, "use lib.fsx\nagain wait").await;
    write(&path, "2");
    session.submit(SessionCommand::Refresh(command::Refresh { all: false })).await.unwrap();
    while ran(&daemon, &["use"]) != [2] {
        tokio::task::yield_now().await;
    }
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    daemon.workers.let_go();
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!((reload(&session).await, stale(&session).await), (None, 0));
    assert_eq!(session.story().await.last().unwrap(), "ready, 4 replayed, 2 diverged");

    write(&path, "3");
    session.submit(SessionCommand::Refresh(command::Refresh { all: false })).await.unwrap();
    assert_eq!(session.state().await, SessionState::WarmingUp);
    session.submit(SessionCommand::HardReset).await.unwrap();
    session.until_count("warmUpCompleted", 3).await;
    assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
    let reasons = events(&session).await.into_iter().filter_map(|event| match event.body {
        EventBody::WarmUpStarted { reason } => Some(reason),
        _ => None,
    });
    let wanted = [
        WarmUpReason::Started,
        WarmUpReason::Refreshed,
        WarmUpReason::DaemonLost,
        WarmUpReason::Refreshed,
        WarmUpReason::HardReset,
    ];
    assert_eq!(reasons.collect::<Vec<_>>(), wanted);
}
