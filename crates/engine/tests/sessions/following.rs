//! Following a session from a cursor on.

use std::time::Duration;

use mainstay_model::{Error, Seq, SessionCommand};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Client, Daemon, quick};

/// Reads events until a seq, with pauses in between.
async fn follow(client: &Client, after: Seq, until: Seq, pauses: &[u8]) -> Vec<Seq> {
    let mut subscription = client.engine.subscribe(client.id, after);
    let mut seen = Vec::new();
    let mut pauses = pauses.iter().cycle();
    while seen.last().copied().unwrap_or(after) < until {
        for _ in 0..pauses.next().copied().unwrap_or_default() {
            tokio::task::yield_now().await;
        }
        // Giving up in the middle of a wait must lose nothing.
        if let Ok(event) = tokio::time::timeout(Duration::from_micros(50), subscription.next()).await {
            seen.push(event.unwrap().seq);
        }
    }
    seen
}

#[test]
fn every_event_comes_exactly_once_however_slow_the_follower() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let daemon = runtime.block_on(Daemon::start());
    let session = runtime.block_on(daemon.session());
    proptest!(ProptestConfig::with_cases(12), |(
        back in 0_u64..400,
        renames in 0_u64..600,
        pauses in vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 1..20),
    )| {
        runtime.block_on(async {
            let now = session.now().await;
            let (after, until) = (Seq(now.0.saturating_sub(back)), Seq(now.0 + renames));
            let busy = {
                let session = session.clone();
                tokio::spawn(async move { rename(&session, renames).await })
            };
            let seen = follow(&session, after, until, &pauses).await;
            busy.await.unwrap();
            assert_eq!(seen, (after.0 + 1..=until.0).map(Seq).collect::<Vec<_>>());
        });
    });
}

/// So many events, several in one transaction.
async fn rename(session: &Client, times: u64) {
    let mut sent = Vec::new();
    for number in 0..times {
        let rename = SessionCommand::Rename { name: format!("name {number}") };
        let command =
            crate::support::command(crate::support::next_id(), mainstay_model::Admission::Now, rename);
        sent.push(session.send(command));
    }
    for rename in sent {
        rename.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_follower_who_lags_behind_the_live_channel_misses_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let mut subscription = daemon.engine.subscribe(session.id, Seq::ZERO);
    let mut seen: Vec<Seq> = Vec::new();
    // It has read all there is, and waits for live events, before many come at once.
    for _ in 0..session.now().await.0 {
        seen.push(subscription.next().await.unwrap().seq);
    }
    assert!(tokio::time::timeout(Duration::from_millis(1), subscription.next()).await.is_err());
    rename(&session, 600).await;
    let last = session.now().await;
    while seen.last() != Some(&last) {
        seen.push(subscription.next().await.unwrap().seq);
    }
    assert_eq!(seen, (1..=last.0).map(Seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn followers_do_not_disturb_each_other() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let mut early = daemon.engine.subscribe(session.id, Seq::ZERO);
    drop(daemon.engine.subscribe(session.id, Seq::ZERO));
    session.eval("pure 1").await;
    let mut late = daemon.engine.subscribe(session.id, session.now().await);
    session.eval("pure 2").await;
    for seq in 1..=session.now().await.0 {
        assert_eq!(early.next().await.unwrap().seq, Seq(seq));
    }
    assert_eq!(late.next().await.unwrap().body.kind(), "evalRequested");
}

#[tokio::test]
async fn what_a_follower_sees_is_what_the_store_keeps() {
    let daemon = Daemon::start().await;
    let session = daemon.starting_session().await;
    let mut subscription = daemon.engine.subscribe(session.id, Seq::ZERO);
    let mut seen = Vec::new();
    let eval = session.queue("print a\npure 1");
    while seen.last().is_none_or(|event: &mainstay_model::Event| event.body.kind() != "evalCompleted") {
        seen.push(subscription.next().await.unwrap().as_ref().clone());
    }
    eval.await.unwrap().unwrap();
    assert_eq!(daemon.engine.events(session.id, Seq::ZERO, 100).await.unwrap(), seen);
}

#[tokio::test]
async fn a_follower_sees_the_daemon_stop_after_the_last_event() {
    let daemon = Daemon::with(quick()).await;
    let session = daemon.session().await;
    let mut subscription = daemon.engine.subscribe(session.id, session.now().await);
    assert!(tokio::time::timeout(Duration::from_millis(1), subscription.next()).await.is_err());
    daemon.engine.shut_down().await;
    assert_eq!(subscription.next().await.unwrap().body.kind(), "sessionStopped");
    assert_eq!(subscription.next().await, Err(Error::DaemonStopping));
    let mut late = daemon.engine.subscribe(session.id, session.now().await);
    assert_eq!(late.next().await, Err(Error::DaemonStopping));
}
