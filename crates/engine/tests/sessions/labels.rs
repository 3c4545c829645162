//! Labels of entries: they belong to the session that gave them, and forks begin with those that stood then.

use mainstay_engine::Merge;
use mainstay_model::{Error, ForkSession, Limits, Outcome, Response, SessionCommand, Version};

use crate::support::{Client, Daemon, command, id, next_id, quick};

/// What is called what, by index.
async fn labels(session: &Client) -> Vec<(u64, String)> {
    let listed = session.attached.labels(session.id).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|(index, label)| (index, label.text)).collect();
    let entries = session.attached.entries(session.id, 0, usize::MAX).await.unwrap();
    let of_entries = session.attached.labels_of(session.id, &entries).await.unwrap();
    let of_entries = (0..).zip(of_entries).filter_map(|(index, label)| Some((index, label?)));
    assert_eq!(of_entries.collect::<Vec<_>>(), listed, "pages and the list say the same");
    listed
}

async fn label(session: &Client, index: u64, label: Option<&str>) -> Result<Outcome, Error> {
    let labeling = session.attached.labeling(session.id, index, label.map(str::to_owned)).await?;
    session.submit(labeling).await
}

async fn fork(daemon: &Daemon, of: &Client, entries: Option<u64>) -> Client {
    let forked = daemon
        .local
        .fork(next_id(), ForkSession { from: of.id, entries, name: None, before_reset: false })
        .await
        .unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    let child = daemon.client(session);
    child.until("warmUpCompleted").await;
    child
}

fn named(labels: &[(u64, &str)]) -> Vec<(u64, String)> {
    labels.iter().map(|(index, label)| (*index, (*label).to_owned())).collect()
}

async fn with_cells(daemon: &Daemon, names: &[&str]) -> Client {
    let session = daemon.session().await;
    for name in names {
        session.eval(&format!("define {name}")).await;
    }
    session
}

#[tokio::test]
async fn a_label_is_given_changed_taken_off_and_outlives_the_daemon() {
    let daemon = Daemon::start().await;
    let session = with_cells(&daemon, &["a", "b"]).await;
    label(&session, 2, Some("first try")).await.unwrap();
    label(&session, 1, Some("gone")).await.unwrap();
    label(&session, 2, Some("the good one")).await.unwrap();
    label(&session, 1, None).await.unwrap();
    label(&session, 0, None).await.unwrap();
    assert_eq!(labels(&session).await, named(&[(2, "the good one")]));
    session.submit(SessionCommand::Reset).await.unwrap();
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    assert_eq!(labels(&session).await, named(&[(2, "the good one")]), "a reset drops definitions only");
}

#[tokio::test]
async fn a_fork_has_the_labels_of_its_entries_as_they_were_and_both_go_on() {
    let daemon = Daemon::start().await;
    let parent = with_cells(&daemon, &["a", "b"]).await;
    label(&parent, 0, Some("start")).await.unwrap();
    label(&parent, 3, Some("end")).await.unwrap();
    let child = fork(&daemon, &parent, Some(2)).await;
    assert_eq!(labels(&child).await, named(&[(0, "start")]), "what stood behind the cut is not in it");
    label(&parent, 0, Some("parent's")).await.unwrap();
    label(&parent, 1, Some("later")).await.unwrap();
    label(&child, 0, None).await.unwrap();
    label(&child, 1, Some("child's")).await.unwrap();
    let grandchild = fork(&daemon, &child, None).await;
    assert_eq!(labels(&grandchild).await, named(&[(1, "child's")]));
    assert_eq!(labels(&parent).await, named(&[(0, "parent's"), (1, "later"), (3, "end")]));
}

#[tokio::test]
async fn labels_stay_with_their_entries_when_others_come_before_them() {
    let daemon = Daemon::start().await;
    let (into, from) = (with_cells(&daemon, &["a"]).await, with_cells(&daemon, &["b"]).await);
    label(&into, 0, Some("mine")).await.unwrap();
    label(&from, 0, Some("not mine")).await.unwrap();
    let merge = Merge { from: from.id, entries: std::iter::once(0..2).collect() };
    into.attached.insert(into.id, next_id(), merge, Some(0)).await.unwrap();
    assert_eq!(labels(&into).await, named(&[(2, "mine")]), "a label is a fact of the session that gave it");
}

#[tokio::test]
async fn what_was_asked_for_is_answered_once_also_where_the_entry_stands_elsewhere_by_now() {
    let daemon = Daemon::start().await;
    let (into, from) = (with_cells(&daemon, &["a"]).await, with_cells(&daemon, &["b"]).await);
    let same = async || {
        let body = into.attached.labeling(into.id, 0, Some("mine".to_owned())).await.unwrap();
        into.give(command(id("label-1"), Default::default(), body)).await.unwrap()
    };
    let first = same().await;
    let merge = Merge { from: from.id, entries: std::iter::once(0..2).collect() };
    into.attached.insert(into.id, next_id(), merge, Some(0)).await.unwrap();
    assert_eq!(same().await, first);
    assert_eq!(labels(&into).await, named(&[(2, "mine")]));
}

#[tokio::test]
async fn a_label_that_cannot_be_is_refused_and_changes_nothing() {
    let daemon = Daemon::with(Limits { label_bytes: 4, labels: 1, ..quick() }).await;
    let session = with_cells(&daemon, &["a"]).await;
    label(&session, 0, Some("good")).await.unwrap();
    let version = async || session.attached.status(session.id).await.unwrap().session.version;
    let before: Version = version().await;
    let refused = async |index, text| label(&session, index, Some(text)).await.unwrap_err().to_string();
    let of_entry = "entry is not valid: it has 2 entries, and number 3 is meant";
    assert_eq!(refused(2, "x").await, of_entry);
    assert_eq!(refused(0, "longer").await, "label is not valid: it has 6 bytes; `label-bytes` allows 4");
    let full = "label is not valid: the session has 1 already; `labels` allows no more: take one off first";
    assert_eq!(refused(1, "more").await, full);
    assert_eq!((version().await, labels(&session).await), (before, named(&[(0, "good")])));
    label(&session, 0, Some("best")).await.unwrap();
    label(&session, 0, None).await.unwrap();
    label(&session, 1, Some("more")).await.unwrap();
    assert_eq!(labels(&session).await, named(&[(1, "more")]));
}
