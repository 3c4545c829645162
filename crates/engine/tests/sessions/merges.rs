//! Merges into live sessions.

use std::iter::once;
use std::ops::Range;

use mainstay_engine::{Merge, MergeStop, Merged};
use mainstay_model::command;
use mainstay_model::{CommandId, Error, EvalEnding, Origin, SessionCommand};

use crate::support::{Client, Daemon, eval, id, next_id, patient, until_it};

async fn merge(
    daemon: &Daemon,
    into: &Client,
    command: CommandId,
    from: &Client,
    entries: impl IntoIterator<Item = Range<u64>>,
) -> Result<Merged, Error> {
    daemon
        .local
        .merge(into.id, command, Merge { from: from.id, entries: entries.into_iter().collect() })
        .await
}

async fn names(session: &Client) -> String {
    session.eval("names").await.value.unwrap_or_default()
}

/// Two sessions, one of which knows a, b and c.
async fn two(daemon: &Daemon) -> (Client, Client) {
    let (from, into) = (daemon.session().await, daemon.session().await);
    for name in ["a", "b", "c"] {
        from.eval(&format!("define {name}")).await;
    }
    (from, into)
}

fn indices(merged: &Merged) -> Vec<u64> {
    merged.applied.iter().map(|brought| brought.index).collect()
}

#[tokio::test]
async fn what_is_brought_runs_in_its_order_and_says_where_it_is_from() {
    let daemon = Daemon::start().await;
    let (from, into) = two(&daemon).await;
    into.eval("define own").await;
    let merged = merge(&daemon, &into, next_id(), &from, [4..6, 0..1]).await.unwrap();
    assert_eq!((indices(&merged), merged.stopped, merged.left), (vec![0, 4], None, vec![]));
    assert_eq!((names(&into).await, names(&from).await), ("own a c".to_owned(), "a b c".to_owned()));
    let entries = daemon.local.entries(into.id, 2, 4).await.unwrap();
    let origins: Vec<_> = entries.iter().map(|placed| placed.origin).collect();
    let brought = |number| Some(Origin { session: from.id, number });
    assert_eq!(origins, [brought(0), None, brought(4), None]);
}

#[tokio::test]
async fn an_output_brings_its_input() {
    let daemon = Daemon::start().await;
    let (from, into) = two(&daemon).await;
    let merged = merge(&daemon, &into, next_id(), &from, once(3..4)).await.unwrap();
    assert_eq!(indices(&merged), [2]);
    assert_eq!(names(&into).await, "b");
}

#[tokio::test]
async fn what_was_brought_is_brought_further_from_where_it_came_to_be() {
    let daemon = Daemon::start().await;
    let (from, into) = two(&daemon).await;
    merge(&daemon, &into, next_id(), &from, once(0..2)).await.unwrap();
    let third = daemon.session().await;
    merge(&daemon, &third, next_id(), &into, once(0..2)).await.unwrap();
    let origin = daemon.local.entries(third.id, 0, 1).await.unwrap()[0].origin;
    assert_eq!(origin, Some(Origin { session: into.id, number: 0 }), "whose origin says the rest");
}

#[tokio::test]
async fn a_merge_stops_at_the_first_failure_and_says_what_was_not_run() {
    let daemon = Daemon::start().await;
    let (from, into) = (daemon.session().await, daemon.session().await);
    for code in ["define a", "raise", "define b", "define c"] {
        from.eval(code).await;
    }
    let merged = merge(&daemon, &into, next_id(), &from, once(0..8)).await.unwrap();
    assert_eq!((indices(&merged), &merged.left), (vec![0], &vec![4, 6]));
    let Some(MergeStop::Ended(stopped)) = merged.stopped else { panic!("{merged:?}") };
    assert!(matches!((stopped.index, stopped.outcome.ending), (2, EvalEnding::Raised { .. })));
    assert_eq!(names(&into).await, "a");
}

#[tokio::test]
async fn a_merge_that_is_sent_again_runs_nothing_twice() {
    let daemon = Daemon::start().await;
    let (from, into) = two(&daemon).await;
    let first = merge(&daemon, &into, id("m"), &from, once(0..4)).await;
    assert_eq!(merge(&daemon, &into, id("m"), &from, once(0..4)).await, first);
    assert_eq!(into.count("evalRequested").await, 2);
    let further = merge(&daemon, &into, id("m"), &from, once(0..6)).await.unwrap();
    assert_eq!(indices(&further), [0, 2, 4], "one that was cut off goes on");
    assert_eq!(into.count("evalRequested").await, 3);
    let other = merge(&daemon, &into, id("m"), &from, once(2..6)).await.unwrap();
    let conflict = Error::CommandConflict { command: id("m.1") };
    assert_eq!(other.stopped, Some(MergeStop::Refused { index: 2, error: conflict }));
    assert_eq!(other.left, [4]);
}

#[tokio::test]
async fn an_id_that_is_too_long_for_the_last_cell_is_refused_before_the_first() {
    let daemon = Daemon::start().await;
    let (from, into) = (daemon.session().await, daemon.session().await);
    for number in 0..10 {
        from.eval(&format!("define n{number}")).await;
    }
    let refused = merge(&daemon, &into, id(&"x".repeat(254)), &from, once(0..20)).await;
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    assert_eq!(into.count("evalRequested").await, 0);
}

#[tokio::test]
async fn a_merge_takes_its_turn_and_may_be_cancelled() {
    let daemon = Daemon::with(patient()).await;
    let (from, into) = (daemon.session().await, daemon.session().await);
    from.eval("define a").await;
    let looping = from.begin("loop").await;
    from.submit(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })).await.unwrap();
    looping.await.unwrap().unwrap();
    let merging = merge(&daemon, &into, id("m"), &from, once(0..4));
    let cancelling = async {
        until_it(async || into.count("evalRequested").await == 2).await;
        into.submit(SessionCommand::Cancel(command::Cancel { target: Some(id("m.2")), grace_ms: None }))
            .await
            .unwrap();
    };
    let (merged, ()) = tokio::join!(merging, cancelling);
    let Some(MergeStop::Ended(stopped)) = merged.unwrap().stopped else { panic!("it was not stopped") };
    assert_eq!(stopped.outcome.ending, EvalEnding::Cancelled);
    assert_eq!(names(&into).await, "a");
}

#[tokio::test]
async fn entries_that_are_not_there_are_refused_and_nothing_runs() {
    let daemon = Daemon::start().await;
    let (from, into) = two(&daemon).await;
    for entries in [vec![(6, 7)], vec![(0, 1), (5, 9)], vec![(2, 2)], vec![]] {
        let entries = entries.into_iter().map(|(first, end)| first..end);
        let refused = merge(&daemon, &into, next_id(), &from, entries).await;
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    assert_eq!(into.count("evalRequested").await, 0);
}

#[tokio::test]
async fn what_was_brought_is_there_after_the_worker_was_lost_and_in_forks() {
    let daemon = Daemon::start().await;
    let (from, into) = two(&daemon).await;
    merge(&daemon, &into, next_id(), &from, once(0..2)).await.unwrap();
    into.submit(eval("exit 1")).await.unwrap();
    into.until_count("warmUpCompleted", 2).await;
    assert_eq!(names(&into).await, "a");
}
