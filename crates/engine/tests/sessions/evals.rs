//! Code, its outcome, and what it prints.

use mainstay_model::command;
use mainstay_model::{
    Action, Admission, Error, EvalEnding, Limits, Seq, SessionCommand, SessionKind, SessionState,
    TextPosition,
};
use mainstay_runner::query::KernelQuery;

use crate::support::{
    CANCEL, Daemon, breathe, command, create, ending, eval, evaluated, next_id, patient, quick,
};

#[tokio::test]
async fn a_new_session_becomes_ready() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    assert_eq!(session.story().await, ["created demo", "warming up, Started", "ready"]);
    assert_eq!(session.state().await, SessionState::Ready);
}

#[tokio::test]
async fn an_eval_has_its_outcome_and_leaves_its_events_in_order() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let before = session.now().await;
    let outcome = session.eval("print hello\npure 2").await;
    assert_eq!((outcome.ending.clone(), outcome.value.as_deref()), (EvalEnding::Completed, Some("2")));
    assert_eq!((outcome.requested, outcome.completed), (Seq(before.0 + 1), Seq(before.0 + 3)));
    let story = session.story_after(before).await;
    assert_eq!(story, ["eval print hello; pure 2", "Stdout hello", "completed"]);
}

#[tokio::test]
async fn what_code_shows_stands_where_it_was_shown_and_not_again_in_a_replay() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let before = session.now().await;
    session.eval("print one\nshow a\nprint two\nshow b\ndefine x").await;
    let shown = |text: &str| format!("shows text/html text/plain: {text}");
    let story = session.story_after(before).await;
    assert_eq!(story[1..5], ["Stdout one".to_owned(), shown("a"), "Stdout two".to_owned(), shown("b")]);
    let before = session.now().await;
    session.eval("exit 0").await;
    session.eval("names").await;
    let story = session.story_after(before).await;
    assert!(story.contains(&"ready, 1 replayed".to_owned()), "{story:?}");
    assert!(!story.iter().any(|told| told.starts_with("shows")), "{story:?}");
}

#[tokio::test]
async fn code_that_fails_leaves_the_session_ready() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    assert_eq!(session.eval("reject").await.ending, EvalEnding::Rejected);
    assert_eq!(session.eval("raise").await.ending.name(), "raised");
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn questions_are_answered_while_a_job_runs() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let engine = &daemon.local;
    let cursor = TextPosition { line: 1, column: 2 };
    assert_eq!(engine.check(session.id, "let".to_owned(), None).await.unwrap()[0].message, "let");
    assert_eq!(engine.complete(session.id, "Li".to_owned(), cursor).await.unwrap().items[0].label, "Li");
    assert_eq!(
        engine
            .query(session.id, KernelQuery::Members { name: "List".to_owned() })
            .await
            .unwrap()
            .members()
            .unwrap()
            .name,
        "List"
    );
    assert!(engine.usage(session.id).await.is_some());
    assert_eq!(session.state().await, SessionState::Evaluating);
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
}

#[tokio::test]
async fn a_question_that_takes_too_long_is_given_up() {
    let daemon = Daemon::with(Limits { query_ms: 5, ..quick() }).await;
    let session = daemon.session().await;
    let answer = daemon.local.query(session.id, KernelQuery::Members { name: "slow".to_owned() }).await;
    assert_eq!(answer, Err(Error::Timeout { limit_ms: 5 }));
}

#[tokio::test]
async fn a_question_to_a_session_at_rest_is_refused() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.submit(SessionCommand::Stop).await.unwrap();
    let answer = daemon.local.check(session.id, "let".to_owned(), None).await;
    assert_eq!(
        answer,
        Err(Error::NotOffered {
            action: Action::Check,
            state: SessionState::Uninitialized,
            kind: SessionKind::fsharp(),
            fault: None
        })
    );
    assert_eq!(daemon.local.usage(session.id).await, None);
}

#[tokio::test]
async fn small_writes_are_joined_and_streams_are_told_apart() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let before = session.now().await;
    session.eval("print a\nprint b\nerror c\nprint d").await;
    let story = session.story_after(before).await;
    assert_eq!(story[1..], ["Stdout ab", "Stderr c", "Stdout d", "completed"]);
}

#[tokio::test]
async fn output_over_the_limit_is_marked_once_and_keeps_its_end() {
    let limits = Limits { output_bytes_per_job: 4, output_end_bytes_per_job: 3, ..quick() };
    let daemon = Daemon::with(limits).await;
    let session = daemon.session().await;
    let mark = "Stdout \n[… 4 bytes of stdout left out …]\n";
    for _ in 0..2 {
        let before = session.now().await;
        session.eval("print abc\nprint defgh\nerror ijk").await;
        let story = session.story_after(before).await;
        assert_eq!(story[1..], ["Stdout abcd", "output cut at 4", mark, "Stderr ijk", "completed"]);
    }
}

#[tokio::test]
async fn output_is_there_before_the_job_ends() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("print early\nloop").await;
    session.until("outputProduced").await;
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
}

#[tokio::test]
async fn what_a_job_printed_stands_before_its_end_however_it_ends() {
    let ends = [SessionCommand::HardReset, SessionCommand::Stop, CANCEL];
    for end in ends {
        let daemon = Daemon::start().await;
        let session = daemon.session().await;
        let before = session.now().await;
        let running = session.begin("print last words\nstubborn").await;
        breathe().await;
        session.submit(end.clone()).await.unwrap();
        let outcome = evaluated(running.await.unwrap());
        let events = daemon.local.events(session.id, before, 100).await.unwrap();
        let printed =
            events.iter().find(|event| event.body.kind() == "outputProduced").expect("it was printed");
        assert!(printed.seq > outcome.requested && printed.seq < outcome.completed, "{end:?}: {events:#?}");
    }
}

#[tokio::test]
async fn code_that_is_too_large_or_has_a_nul_is_refused() {
    let daemon = Daemon::with(Limits { code_bytes: 10, ..quick() }).await;
    let session = daemon.session().await;
    let refused = session.submit(eval("pure 456789x")).await;
    assert_eq!(refused, Err(Error::CodeTooLarge { bytes: 12, limit: 10 }));
    assert!(matches!(session.submit(eval("pure \0")).await, Err(Error::CodeInvalid { .. })));
    assert!(daemon.workers.ran().is_empty());
}

#[tokio::test]
async fn a_session_needs_a_kernel_a_name_and_an_absolute_folder() {
    let daemon = Daemon::start().await;
    let refused = async |create| daemon.local.create(next_id(), create).await.unwrap_err();
    let mut other = create("demo");
    other.kind = mainstay_model::SessionKind::new("cobol").unwrap();
    assert_eq!(refused(other.clone()).await, Error::KernelUnknown { kind: other.kind });
    assert!(matches!(refused(create("  ")).await, Error::InvalidArgument { .. }));
    let mut relative = create("demo");
    relative.working_directory = "demo".to_owned();
    assert!(matches!(refused(relative).await, Error::InvalidArgument { .. }));
    assert_eq!(daemon.local.sessions(mainstay_log::SessionFilter::default()).await.unwrap(), []);
}

#[tokio::test]
async fn a_session_takes_its_name_from_its_folder() {
    let daemon = Daemon::start().await;
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("demo");
    std::fs::create_dir(&folder).unwrap();
    let mut create = create("");
    (create.name, create.working_directory) = (None, folder.display().to_string());
    daemon.local.create(next_id(), create).await.unwrap();
    let session = daemon.local.resolve("demo").await.unwrap();
    daemon
        .client(session)
        .submit(SessionCommand::Rename(command::Rename { name: "other".to_owned() }))
        .await
        .unwrap();
    assert_eq!(daemon.local.resolve("other").await, Ok(session));
    let gone = daemon.local.resolve("demo").await;
    assert_eq!(gone, Err(Error::SessionNotFound { reference: "demo".to_owned() }));
}

#[tokio::test]
async fn a_session_is_not_created_in_a_folder_that_is_not_there() {
    let daemon = Daemon::start().await;
    for folder in ["relative", "/nowhere/at/all", "/etc/passwd"] {
        let mut create = create("lost");
        create.working_directory = folder.to_owned();
        let refused = daemon.local.create(next_id(), create).await;
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{folder}: {refused:?}");
    }
}

#[tokio::test]
async fn no_more_sessions_are_live_than_may_be() {
    let daemon = Daemon::with(Limits { live_sessions: 2, ..quick() }).await;
    let first = daemon.session().await;
    daemon.session().await;
    let full = Err(Error::TooManySessions { limit: 2 });
    assert_eq!(daemon.local.create(next_id(), create("third")).await, full);
    first.submit(SessionCommand::Stop).await.unwrap();
    daemon.session().await;
    assert_eq!(first.submit(SessionCommand::Start).await, full);
    let queued = command(next_id(), Admission::Queue, eval("pure 1"));
    assert_eq!(first.give(queued).await, full);
    assert_eq!(first.submit(SessionCommand::HardReset).await, full);
    assert_eq!(first.state().await, SessionState::Uninitialized);
}
