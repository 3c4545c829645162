//! Sessions are exported and imported.

use mainstay_engine::ImportSession;
use mainstay_formats::exchange::{self, ExportCursor, Header, Item, Lines};
use mainstay_model::command;
use mainstay_model::{
    CreateSession, Deadline, Error, ForkSession, Label, Limits, Outcome, ProjectChoice, Response,
    SessionCommand, SessionKind, Timestamp,
};

use crate::support::{Client, Daemon, id, next_id, quick};

/// The file of a session, read in pages of about so many bytes.
async fn exported(session: &Client, page_bytes: usize) -> String {
    let mut lines = Lines::default();
    let mut file = String::new();
    let mut cursor = Some(ExportCursor::default());
    while let Some(at) = cursor {
        let page = session.attached.export(session.id, at, page_bytes).await.unwrap();
        if file.is_empty() {
            file.push_str(&lines.header(&page.header));
        }
        file.extend(page.items.iter().map(|item| lines.item(item)));
        cursor = page.next;
    }
    file + &lines.end()
}

fn import(file: &str, folder: &str) -> ImportSession {
    let imported = exchange::read(file).unwrap();
    let Header { kind, .. } = imported.header.clone();
    let create = CreateSession {
        kind,
        working_directory: folder.to_owned(),
        project: ProjectChoice::exactly(imported.header.project.clone()),
        arguments: Vec::new(),
        name: None,
        alias: None,
    };
    ImportSession { create, imported }
}

async fn imported(daemon: &Daemon, file: &str) -> Client {
    let created = daemon.local.import(next_id(), import(file, "/")).await.unwrap();
    let Outcome::Done { response: Response::Created { session } } = created else { panic!("{created:?}") };
    let session = daemon.client(session);
    session.until("warmUpCompleted").await;
    session
}

async fn names(session: &Client) -> String {
    session.eval("names").await.value.unwrap_or_default()
}

#[tokio::test]
async fn what_was_exported_is_there_again_in_another_daemon() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    for code in ["define a", "print hello", "raise", "ask name?", "define b"] {
        let running = session.queue(code);
        if code.starts_with("ask") {
            session.until("askRaised").await;
            let ask = daemon.local.asks().await.unwrap()[0].pending.ask.ask;
            session.submit(SessionCommand::Answer(command::Answer::new(ask, "ada".into()))).await.unwrap();
        }
        running.await.unwrap().unwrap();
    }
    let file = exported(&session, usize::MAX).await;
    assert_eq!(exported(&session, 1).await, file, "pages change nothing");

    let other = Daemon::start().await;
    let copy = imported(&other, &file).await;
    assert_eq!(exported(&copy, usize::MAX).await, file, "byte by byte");
    assert_eq!(names(&copy).await, names(&session).await);
    assert_ne!(copy.id, session.id);
    let entries = async |of: &Client| of.attached.entries(of.id, 0, 10).await.unwrap();
    let hashes = async |of: &Client| entries(of).await.iter().map(|placed| placed.hash).collect::<Vec<_>>();
    assert_eq!(hashes(&copy).await, hashes(&session).await);
    assert_eq!(entries(&copy).await[0].at, entries(&session).await[0].at);
}

#[tokio::test]
async fn labels_are_in_the_file_and_there_again() {
    let daemon = Daemon::with(Limits { labels: 3, ..quick() }).await;
    let session = daemon.session().await;
    for code in ["define a", "define b"] {
        session.eval(code).await;
    }
    let label = async |of: &Client, index, text: &str| {
        let labeling = of.attached.labeling(of.id, index, Some(text.to_owned())).await.unwrap();
        of.submit(labeling).await.unwrap();
    };
    label(&session, 3, "last").await;
    label(&session, 0, "the \"good\" one").await;
    let forked = daemon
        .local
        .fork(next_id(), ForkSession { from: session.id, entries: Some(2), name: None, before_reset: false });
    let Outcome::Done { response: Response::Forked { session: fork, .. } } = forked.await.unwrap() else {
        panic!("no fork")
    };
    let fork = daemon.client(fork);
    fork.until("warmUpCompleted").await;
    fork.eval("define c").await;
    label(&fork, 2, "new").await;
    for (of, indices) in [(&session, vec![0, 3]), (&fork, vec![0, 2])] {
        let file = exported(of, usize::MAX).await;
        assert_eq!(exported(of, 1).await, file, "pages change nothing");
        let other = Daemon::start().await;
        let copy = imported(&other, &file).await;
        assert_eq!(exported(&copy, usize::MAX).await, file, "byte by byte");
        let of_copy = copy.attached.labels(copy.id).await.unwrap();
        let of_original = of.attached.labels(of.id).await.unwrap();
        assert_eq!(of_copy.iter().map(|(index, _)| *index).collect::<Vec<_>>(), indices);
        let said = |(_, label): &(u64, Label)| (label.at, label.text.clone());
        assert_eq!(
            of_copy.iter().map(said).collect::<Vec<_>>(),
            of_original.iter().map(said).collect::<Vec<_>>()
        );
    }
    label(&session, 1, "one more").await;
    let file = exported(&session, usize::MAX).await;
    let refused = async |limits: Limits| {
        let tight = Daemon::with(limits).await;
        tight.local.import(next_id(), import(&file, "/")).await.unwrap_err().to_string()
    };
    let of_file = refused(Limits { labels: 2, ..quick() }).await;
    assert_eq!(of_file, "file is not valid: it has 3 labels; `labels` allows 2");
    let of_label = refused(Limits { label_bytes: 4, ..quick() }).await;
    assert_eq!(of_label, "label is not valid: it has 14 bytes; `label-bytes` allows 4");
}

#[tokio::test]
async fn what_was_reset_stays_reset_and_what_runs_is_left_out() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    session.submit(SessionCommand::HardReset).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    session.eval("define b").await;
    let running = session.begin("loop").await;
    let copy = imported(&daemon, &exported(&session, usize::MAX).await).await;
    assert_eq!(names(&copy).await, "b");
    assert_eq!(copy.attached.entries(copy.id, 0, 10).await.unwrap().len(), 6);
    session.submit(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })).await.unwrap();
    running.await.unwrap().unwrap();
    session.submit(SessionCommand::HardReset).await.unwrap();
    session.until_count("warmUpCompleted", 3).await;
    let copy = imported(&daemon, &exported(&session, usize::MAX).await).await;
    assert_eq!(names(&copy).await, "", "a reset behind the last cell counts too");
}

#[tokio::test]
async fn a_fork_is_exported_whole() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    parent.eval("define b").await;
    let fork = ForkSession { from: parent.id, entries: Some(2), name: None, before_reset: false };
    let forked = daemon.local.fork(next_id(), fork).await.unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    let child = daemon.client(session);
    child.eval("define c").await;
    let file = exported(&child, usize::MAX).await;
    assert_eq!(exported(&child, 1).await, file);
    assert_eq!(names(&imported(&daemon, &file).await).await, "a c");
}

#[tokio::test]
async fn an_import_that_is_sent_again_is_made_once() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let file = exported(&session, usize::MAX).await;
    let first = daemon.local.import(id("i"), import(&file, "/")).await;
    assert_eq!(daemon.local.import(id("i"), import(&file, "/")).await, first);
    assert_eq!(daemon.local.count_sessions(Default::default()).await, Ok(2));
}

#[tokio::test]
async fn an_empty_session_is_exported_and_one_that_nothing_runs_is_refused() {
    let daemon = Daemon::start().await;
    let file = exported(&daemon.session().await, usize::MAX).await;
    assert_eq!(file.lines().count(), 2);
    assert_eq!(names(&imported(&daemon, &file).await).await, "");
    let mut import = import(&file, "/");
    import.create.kind = SessionKind::new("cobol").unwrap();
    let refused = daemon.local.import(next_id(), import).await;
    assert!(matches!(refused, Err(Error::KernelUnknown { .. })), "{refused:?}");
}

#[tokio::test]
async fn what_is_later_than_now_cannot_be_imported_and_harms_nobody() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let file = exported(&session, usize::MAX).await;
    let now = Timestamp::now();
    for later in [Timestamp::MAX, Deadline::after(now, 3_600_000).at] {
        let mut import = import(&file, "/");
        for item in &mut import.imported.items {
            if let Item::Cell { events, .. } = item {
                events[1].at = later;
            }
        }
        let refused = daemon.local.import(next_id(), import).await;
        assert!(matches!(refused, Err(Error::ImportInvalid { line: 2, .. })), "{refused:?}");
    }
    assert_eq!(daemon.local.sessions(Default::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_fork_whose_beginning_was_dropped_is_exported_so() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    parent.submit(SessionCommand::Reset).await.unwrap();
    parent.until_count("warmUpCompleted", 2).await;
    let fork = ForkSession { from: parent.id, entries: None, name: None, before_reset: false };
    let forked = daemon.local.fork(next_id(), fork).await.unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    let child = daemon.client(session);
    child.eval("define b").await;
    let file = exported(&child, usize::MAX).await;
    assert_eq!(exported(&child, 1).await, file);
    assert_eq!(names(&imported(&daemon, &file).await).await, "b");
}

#[tokio::test]
async fn code_that_could_not_be_given_cannot_be_imported() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let mut import = import(&exported(&session, usize::MAX).await, "/");
    for item in &mut import.imported.items {
        if let Item::Cell { events, .. } = item
            && let mainstay_model::EventBody::EvalRequested { code, .. } = &mut events[0].body
        {
            *code = "x".repeat(10_000_000);
        }
    }
    let refused = daemon.local.import(next_id(), import).await;
    assert!(matches!(refused, Err(Error::CodeTooLarge { .. })), "{refused:?}");
}
