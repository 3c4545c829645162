//! Which of the things that were said in a session still hold once a file that its code uses has changed.

use std::fs;
use std::path::Path;

use mainstay_engine::RefreshOutlook;
use mainstay_model::command;
use mainstay_model::{
    Action, Admission, Error, SessionCommand, SessionKind, SessionState, Validity, ValidityCounts,
};
use tempfile::TempDir;

use crate::support::{Client, Daemon, command, id, next_id, quick};

/// A file that code refers to.
fn file(folder: &TempDir, content: &str) -> String {
    let path = folder.path().join("lib.txt");
    write(&path, content);
    path.display().to_string()
}

/// Writes a file so that it is not the one it was.
fn write(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// A session that has used a file, and another thing.
async fn using(daemon: &Daemon, path: &str) -> Client {
    let session = daemon.session().await;
    for code in ["define before", &format!("refer {path}"), "use lib.txt", "define after"] {
        session.eval(code).await;
    }
    session
}

async fn counts(session: &Client) -> ValidityCounts {
    session.attached.validity(session.id).await.unwrap().unwrap()
}

fn stale(stale: u64) -> ValidityCounts {
    ValidityCounts { stale, ..ValidityCounts::default() }
}

/// What is said of each output.
async fn validities(session: &Client) -> Vec<Option<Validity>> {
    let entries = session.attached.entries(session.id, 0, 100).await.unwrap();
    let all = session.attached.validities_of_entries(&entries).await.unwrap();
    all.into_iter().skip(1).step_by(2).collect()
}

/// How often a change was recorded.
async fn changes(session: &Client) -> usize {
    session.story().await.iter().filter(|told| told.starts_with("changed")).count()
}

#[tokio::test]
async fn of_a_session_that_rests_on_nothing_else_nothing_is_said() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    assert_eq!(session.attached.validity(session.id).await.unwrap(), None);
    assert_eq!(validities(&session).await, [None]);
}

#[tokio::test]
async fn what_used_a_file_is_stale_once_that_has_changed_and_nothing_else_is() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    assert_eq!(counts(&session).await, stale(0));
    write(path.as_ref(), "2");
    assert_eq!(counts(&session).await, stale(1));
    let valid = Some(Validity::Valid);
    assert_eq!(validities(&session).await, [valid, valid, Some(Validity::Stale), valid]);
    session.until("assembliesChanged").await;
    assert_eq!((counts(&session).await, changes(&session).await), (stale(1), 1));
}

#[tokio::test]
async fn a_file_that_is_gone_makes_invalid_and_one_that_is_as_it_was_valid_again() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    fs::remove_file(&path).unwrap();
    assert_eq!(counts(&session).await, ValidityCounts { invalid: 1, ..stale(0) });
    write(path.as_ref(), "1");
    assert_eq!(counts(&session).await, stale(0));
}

#[tokio::test]
async fn a_change_is_noticed_at_the_end_of_an_eval() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    write(path.as_ref(), "2");
    session.eval("define more").await;
    session.until("assembliesChanged").await;
    assert_eq!(changes(&session).await, 1);
}

#[tokio::test]
async fn a_session_at_rest_is_told_as_well() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    session.submit(SessionCommand::Stop).await.unwrap();
    write(path.as_ref(), "2");
    assert_eq!(counts(&session).await, stale(1));
    session.until("assembliesChanged").await;
}

#[tokio::test]
async fn a_worker_that_is_rebuilt_has_what_is_there_then_and_what_ran_again_with_it_is_brought_up_to_date() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    write(path.as_ref(), "2");
    session.eval("signal 9").await;
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(session.story().await.last().unwrap(), "ready, 4 replayed, 1 diverged");
    assert_eq!(changes(&session).await, 1);
    assert_eq!(counts(&session).await, stale(0));
    // Its entry says what it gave then.
    assert_eq!(validities(&session).await[2], Some(Validity::Stale));
    session.eval("use lib.txt").await;
    assert_eq!(validities(&session).await.last(), Some(&Some(Validity::Valid)));
}

#[tokio::test]
async fn what_was_said_before_a_crash_of_the_daemon_is_known_after_it() {
    let (daemon, folder) = (Daemon::with(quick()).await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await.leave();
    write(path.as_ref(), "2");
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(counts(&session).await, stale(0));
    write(path.as_ref(), "3");
    assert_eq!(counts(&session).await, stale(1), "what it has from the rebuilding holds no longer");
    session.eval("use lib.txt").await;
    assert_eq!(counts(&session).await, stale(2), "the worker has the file as it was");
}

#[tokio::test]
async fn a_refresh_runs_the_definitions_again_against_what_is_there_now() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    let outlook = async || session.attached.outlook(session.id).await.unwrap();
    assert!(!outlook().await.is_due());
    write(path.as_ref(), "2");
    assert_eq!((outlook().await.is_due(), outlook().await.changed), (true, vec!["lib.txt".to_owned()]));
    let refresh =
        command(id("refresh"), Admission::Now, SessionCommand::Refresh(command::Refresh { all: false }));
    let answer = session.give(refresh.clone()).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(session.give(refresh).await.unwrap(), answer, "sent again it is answered and not carried out");
    assert_eq!((outlook().await, counts(&session).await), (RefreshOutlook::default(), stale(0)));
    assert_eq!(session.count("warmUpStarted").await, 2);
    assert_eq!(session.eval("use lib.txt").await.bindings[0].value.as_deref(), Some("2"));
    fs::remove_file(&path).unwrap();
    assert_eq!((outlook().await.is_due(), outlook().await.gone), (false, vec!["lib.txt".to_owned()]));
}

#[tokio::test]
async fn a_reset_drops_what_was_stale_and_a_refresh_waits_for_its_turn() {
    let (daemon, folder) = (Daemon::start().await, tempfile::tempdir().unwrap());
    let path = file(&folder, "1");
    let session = using(&daemon, &path).await;
    write(path.as_ref(), "2");
    session.submit(SessionCommand::Reset).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(counts(&session).await, stale(0));
    assert_eq!(validities(&session).await[2], Some(Validity::Stale), "the transcript has it still");
    let running = session.begin("wait").await;
    let refused = session.submit(SessionCommand::Refresh(command::Refresh { all: false })).await;
    let state = SessionState::Evaluating;
    assert_eq!(
        refused,
        Err(Error::NotOffered { action: Action::Refresh, state, kind: SessionKind::fsharp(), fault: None })
    );
    let waits = session.send(command(
        next_id(),
        Admission::Queue,
        SessionCommand::Refresh(command::Refresh { all: false }),
    ));
    session.until("commandQueued").await;
    daemon.workers.let_go();
    running.await.unwrap().unwrap();
    waits.await.unwrap().unwrap();
    session.until_count("warmUpCompleted", 3).await;
}
