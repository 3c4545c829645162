//! The application of a session: that it runs is a fact, and whoever has the session next starts it again.

use mainstay_model::{EvalEnding, SessionCommand};

use crate::support::{Client, Daemon, quick};

/// A session whose application runs, with one definition.
async fn serving(daemon: &Daemon, start: &str) -> Client {
    let session = daemon.session().await;
    session.eval("define a").await;
    assert_eq!(session.eval(start).await.ending, EvalEnding::Completed);
    session
}

async fn runs(session: &Client) -> Option<(bool, Vec<String>)> {
    let session = session.attached.status(session.id).await.unwrap().session;
    let known = session.application.as_ref()?;
    Some((session.runs_application(), known.application.addresses.clone()))
}

fn on_port(port: u16) -> Option<(bool, Vec<String>)> {
    Some((true, vec![format!("http://127.0.0.1:{port}")]))
}

#[tokio::test]
async fn it_is_started_again_where_the_worker_is_lost_and_before_the_session_is_ready() {
    let daemon = Daemon::start().await;
    let session = serving(&daemon, r#"Mainstay.App.run("--urls")"#).await;
    assert_eq!(runs(&session).await, on_port(5001));
    let before = session.now().await;
    session.eval("signal 6").await;
    session.until_count("warmUpCompleted", 2).await;
    let story = session.story_after(before).await;
    let place = |line: &str| {
        story.iter().position(|told| told == line).unwrap_or_else(|| panic!("{line}: {story:?}"))
    };
    assert!(
        place("the application runs: Shop on http://127.0.0.1:5002") < place("ready, 1 replayed"),
        "{story:?}"
    );
    assert_eq!(runs(&session).await, on_port(5002));
    assert_eq!(session.eval("exit 3").await.ending.name(), "workerExited");
    session.until_count("applicationStarted", 3).await;
    assert_eq!(session.eval("Mainstay.App.stop()").await.ending, EvalEnding::Completed);
    assert_eq!(runs(&session).await, None);
    session.eval("signal 6").await;
    session.until_count("warmUpCompleted", 4).await;
    assert_eq!((runs(&session).await, session.count("applicationStarted").await), (None, 3));
}

#[tokio::test]
async fn what_does_not_start_again_is_told_and_the_session_is_ready_without_it() {
    let daemon = Daemon::start().await;
    let session = serving(&daemon, r#"Mainstay.App.run("1")"#).await;
    let before = session.now().await;
    session.eval("signal 6").await;
    session.until_count("warmUpCompleted", 2).await;
    let story = session.story_after(before).await;
    assert!(story.iter().any(|line| line == "the application runs no more: Shop: boom"), "{story:?}");
    assert_eq!(runs(&session).await, None);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn one_whose_code_ended_the_worker_is_not_started_again() {
    let daemon = Daemon::with(quick()).await;
    let session = serving(&daemon, "Mainstay.App.run()\nhaunt").await;
    session.eval("pure 1").await;
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!((runs(&session).await, session.count("applicationStarted").await), (None, 1));
    let story = session.story().await;
    let ended = "the application runs no more: Shop: its code ended the worker";
    assert!(story.iter().any(|line| line == ended), "{story:?}");
}

#[tokio::test]
async fn a_reset_has_it_go_on_and_a_client_that_stops_the_session_ends_it() {
    let daemon = Daemon::start().await;
    let session = serving(&daemon, "Mainstay.App.run()").await;
    session.submit(SessionCommand::Reset).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    // It says again what is known.
    assert_eq!((runs(&session).await, session.count("applicationStarted").await), (on_port(5001), 1));
    session.submit(SessionCommand::HardReset).await.unwrap();
    session.until_count("warmUpCompleted", 3).await;
    assert_eq!(runs(&session).await, on_port(5002));
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(runs(&session).await, None);
    session.eval("pure 1").await;
    assert_eq!((runs(&session).await, session.count("applicationStarted").await), (None, 2));
}
