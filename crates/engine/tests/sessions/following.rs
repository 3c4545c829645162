//! Following a session from a cursor on.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use mainstay_engine::{ClientSubscription, Cursor};
use mainstay_model::command;
use mainstay_model::{
    Admission, CommandId, Error, Event, EventFilter, EventKind, Position, Seq, SessionCommand, SourceName,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::sync::watch;

use crate::support::{Client, Daemon, command, eval, next_id, quick};

/// How a follower goes about it: pauses between its reads, after how many events it begins anew from its cursor, and after how
/// many it sleeps until all has happened.
#[derive(Clone, Debug)]
struct Manner {
    pauses: Vec<u8>,
    stays: usize,
    sleeps_after: Option<usize>,
    /// Behind each, so many more of what is at hand, as they are.
    takes_at_hand: Vec<u8>,
}

fn any_manner() -> impl Strategy<Value = Manner> {
    let pauses = vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 1..20);
    let stays = prop_oneof![1..40_usize, Just(usize::MAX)];
    let at_hand = vec(prop_oneof![2 => Just(0_u8), 1 => any::<u8>()], 1..5);
    (pauses, stays, option::of(0..60_usize), at_hand).prop_map(
        |(pauses, stays, sleeps_after, takes_at_hand)| Manner { pauses, stays, sleeps_after, takes_at_hand },
    )
}

/// What a follower sees until its cursor has passed `end`, which is told once it is known.
async fn follow(
    client: mainstay_engine::Client,
    cursor: Cursor,
    filter: EventFilter,
    manner: Manner,
    mut end: watch::Receiver<Option<Cursor>>,
) -> Vec<Event> {
    let mut subscription = client.follow(cursor, filter.clone()).await.unwrap();
    let (mut seen, mut has_slept) = (Vec::new(), false);
    let mut pauses = manner.pauses.iter().cycle();
    let mut at_hand = manner.takes_at_hand.iter().cycle();
    while end.borrow().is_none_or(|end| !has_reached(subscription.cursor(), end)) {
        for _ in 0..pauses.next().copied().unwrap_or_default() {
            tokio::task::yield_now().await;
        }
        // Giving up in the middle of a wait must lose nothing.
        if let Ok(event) = tokio::time::timeout(Duration::from_micros(50), subscription.next()).await {
            seen.push(event.unwrap().as_ref().clone());
            for _ in 0..at_hand.next().copied().unwrap_or_default() {
                seen.extend(subscription.try_next().map(|event| event.as_ref().clone()));
            }
            if seen.len() % manner.stays == 0 {
                subscription = client.follow(subscription.cursor(), filter.clone()).await.unwrap();
            }
            if !has_slept && manner.sleeps_after.is_some_and(|after| seen.len() >= after) {
                has_slept = true;
                end.wait_for(Option::is_some).await.unwrap();
            }
        }
    }
    seen
}

fn has_reached(cursor: Cursor, end: Cursor) -> bool {
    match (cursor, end) {
        (Cursor::Session { after, .. }, Cursor::Session { after: end, .. }) => after >= end,
        (Cursor::Log { after }, Cursor::Log { after: end }) => after >= end,
        (Cursor::Session { .. }, Cursor::Log { .. }) | (Cursor::Log { .. }, Cursor::Session { .. }) => {
            panic!("these are of different orders")
        }
    }
}

/// In parts: which of the sessions, kinds, source, and the how manieth of the commands.
type Expected = (BTreeSet<usize>, BTreeSet<EventKind>, Option<SourceName>, Option<usize>);

fn any_wanted() -> impl Strategy<Value = Expected> {
    let kinds = ["sessionRenamed", "evalRequested", "evalCompleted", "outputProduced", "sessionFaulted"];
    let kinds = kinds.map(|kind| kind.parse::<EventKind>().unwrap()).to_vec();
    let sources = ["cli", "worker", "system", "nobody"].map(|source| source.parse().unwrap()).to_vec();
    (
        btree_set(0..3_usize, 0..2),
        prop_oneof![Just(BTreeSet::new()), btree_set(select(kinds), 1..4)],
        option::weighted(0.3, select(sources)),
        option::weighted(0.2, 0..20_usize),
    )
}

/// What one session is asked for at a time.
#[derive(Clone, Debug)]
enum Step {
    Renames(usize),
    Eval,
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    vec(prop_oneof![2 => (1..150_usize).prop_map(Step::Renames), 2 => Just(Step::Eval)], 0..5)
}

#[test]
fn every_wanted_event_comes_exactly_once_however_slow_the_follower() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let daemon = runtime.block_on(Daemon::start());
    let sessions: Vec<Client> = (0..3).map(|_| runtime.block_on(daemon.session())).collect();
    proptest!(ProptestConfig::with_cases(24), |(
        steps in vec(any_steps(), 3),
        followers in vec((option::of(0..3_usize), 0..500_u64, any_wanted(), any_manner()), 1..6),
    )| {
        runtime.block_on(async {
            let client = &daemon.local;
            let ids: Vec<CommandId> = (0..20).map(|_| next_id()).collect();
            let mut following = Vec::new();
            for (of, back, (among, kinds, source, command), manner) in followers {
                let cursor = match of {
                    Some(of) => {
                        let now = sessions[of].now().await;
                        Cursor::Session { session: sessions[of].id, after: Seq(now.0.saturating_sub(back)) }
                    }
                    None => {
                        let now = last_position(client).await;
                        Cursor::Log { after: Position(now.0.saturating_sub(back)) }
                    }
                };
                let filter = EventFilter {
                    sessions: among.into_iter().map(|of| sessions[of].id).collect(),
                    kinds,
                    source,
                    correlation: command.map(|number| ids[number].clone()),
                };
                let (tell, end) = watch::channel(None);
                let seen = tokio::spawn(follow(client.clone(), cursor, filter.clone(), manner, end));
                following.push((cursor, filter, tell, seen));
            }
            let mut ids = ids.into_iter();
            let mut busy = Vec::new();
            for (session, steps) in sessions.iter().zip(steps) {
                let (session, ids) = (session.clone(), ids.by_ref().take(6).collect::<Vec<_>>());
                busy.push(tokio::spawn(async move { take(&session, steps, ids).await }));
            }
            for busy in busy {
                busy.await.unwrap();
            }
            for (cursor, filter, tell, seen) in following {
                let (all, end) = everything_after(client, cursor).await;
                tell.send_replace(Some(end));
                let wanted: Vec<Event> = all.into_iter().filter(|event| filter.matches(event)).collect();
                assert_eq!(seen.await.unwrap(), wanted);
            }
        });
    });
}

/// Carries out the steps, one after the other; the first commands have these ids.
async fn take(session: &Client, steps: Vec<Step>, ids: Vec<CommandId>) {
    let mut ids = ids.into_iter();
    for step in steps {
        match step {
            Step::Renames(times) => rename(session, times as u64).await,
            Step::Eval => {
                let id = ids.next().unwrap_or_else(next_id);
                session.give(command(id, Admission::Queue, eval("print a\npure 1"))).await.unwrap();
            }
        }
    }
}

/// The plain list: all there is after a cursor, and where that ends.
async fn everything_after(client: &mainstay_engine::Client, cursor: Cursor) -> (Vec<Event>, Cursor) {
    match cursor {
        Cursor::Session { session, after } => {
            let events = client.events(session, after, usize::MAX).await.unwrap();
            let after = events.last().map_or(after, |event| event.seq);
            (events, Cursor::Session { session, after })
        }
        Cursor::Log { after } => {
            let events = client.all_events(after, usize::MAX).await.unwrap();
            let after = events.last().map_or(after, |event| event.position);
            (events, Cursor::Log { after })
        }
    }
}

async fn last_position(client: &mainstay_engine::Client) -> Position {
    let events = client.all_events(Position::ZERO, usize::MAX).await.unwrap();
    events.last().map_or(Position::ZERO, |event| event.position)
}

/// So many events, several in one transaction.
async fn rename(session: &Client, times: u64) {
    let mut sent = Vec::new();
    for number in 0..times {
        let rename = SessionCommand::Rename(command::Rename { name: format!("name {number}") });
        sent.push(session.send(command(next_id(), Admission::Now, rename)));
    }
    for rename in sent {
        rename.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_follower_who_lags_behind_the_live_channel_misses_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let mut subscription = daemon.local.subscribe(session.id, Seq::ZERO).await.unwrap();
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
    let mut early = daemon.local.subscribe(session.id, Seq::ZERO).await.unwrap();
    drop(daemon.local.subscribe(session.id, Seq::ZERO).await.unwrap());
    session.eval("pure 1").await;
    let mut late = daemon.local.subscribe(session.id, session.now().await).await.unwrap();
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
    let mut subscription = daemon.local.subscribe(session.id, Seq::ZERO).await.unwrap();
    let mut seen = Vec::new();
    let eval = session.queue("print a\npure 1");
    while seen.last().is_none_or(|event: &mainstay_model::Event| event.body.kind() != "evalCompleted") {
        seen.push(subscription.next().await.unwrap().as_ref().clone());
    }
    eval.await.unwrap().unwrap();
    assert_eq!(daemon.local.events(session.id, Seq::ZERO, 100).await.unwrap(), seen);
}

#[tokio::test]
async fn a_follower_sees_the_daemon_stop_after_the_last_event() {
    let daemon = Daemon::with(quick()).await;
    let session = daemon.session().await;
    let mut subscription = daemon.local.subscribe(session.id, session.now().await).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(1), subscription.next()).await.is_err());
    daemon.engine.shut_down().await;
    assert_eq!(subscription.next().await.unwrap().body.kind(), "sessionStopped");
    assert_eq!(subscription.next().await, Err(Error::DaemonStopping));
    let mut late = daemon.local.subscribe(session.id, session.now().await).await.unwrap();
    assert_eq!(late.next().await, Err(Error::DaemonStopping));
}

/// Everything, from the first event of the log on.
/// What the local principal wants is there at once: nothing is looked up for it.
fn at_once(followed: impl Future<Output = Result<ClientSubscription, Error>>) -> ClientSubscription {
    followed.now_or_never().unwrap().unwrap()
}

fn from_the_first(daemon: &Daemon) -> ClientSubscription {
    at_once(daemon.local.follow(Cursor::Log { after: Position::ZERO }, EventFilter::default()))
}

#[tokio::test]
async fn who_follows_all_sessions_sees_new_ones_and_the_end() {
    let daemon = Daemon::start().await;
    let mut all = from_the_first(&daemon);
    let nothing = tokio::time::timeout(Duration::from_millis(1), all.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    let (one, other) = (daemon.session().await.id, daemon.session().await.id);
    daemon.engine.shut_down().await;
    let mut seen = Vec::new();
    let ended = loop {
        match all.next().await {
            Ok(event) => seen.push((event.session, event.body.kind())),
            Err(error) => break error,
        }
    };
    assert_eq!(ended, Error::DaemonStopping);
    for session in [one, other] {
        assert!(seen.contains(&(session, "sessionCreated")), "{seen:?}");
        assert!(seen.contains(&(session, "sessionStopped")), "{seen:?}");
    }
    let mut late = from_the_first(&daemon);
    for _ in seen {
        late.next().await.unwrap();
    }
    assert_eq!(late.next().await, Err(Error::DaemonStopping));
}

#[tokio::test]
async fn a_cursor_passes_what_is_not_wanted_without_waking_its_follower() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let filter = EventFilter { kinds: ["evalCompleted".parse().unwrap()].into(), ..EventFilter::default() };
    let begin = Cursor::Session { session: session.id, after: Seq::ZERO };
    let mut evals = daemon.local.follow(begin, filter.clone()).await.unwrap();
    rename(&session, 400).await;
    let passed = Cursor::Session { session: session.id, after: session.now().await };
    while evals.cursor() != passed {
        let nothing = tokio::time::timeout(Duration::from_millis(1), evals.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    }
    session.eval("pure 1").await;
    let found = evals.next().await.unwrap();
    assert_eq!(daemon.local.follow(passed, filter).await.unwrap().next().await, Ok(found));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_all_see_everything() {
    const EVENTS: u64 = 1000;
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let (now, position) = (session.now().await, last_position(&daemon.local).await);
    let (begin, may_begin) = watch::channel(false);
    let followers: Vec<_> = (0..1000)
        .map(|number| {
            let cursor = match number % 2 {
                0 => Cursor::Session { session: session.id, after: now },
                _ => Cursor::Log { after: position },
            };
            let mut subscription = at_once(daemon.local.follow(cursor, EventFilter::default()));
            let mut may_begin = may_begin.clone();
            tokio::spawn(async move {
                for seen in 0..EVENTS {
                    // Two of ten, one of either order, stop after its first event until all is published.
                    if number % 10 < 2 && seen == 1 {
                        may_begin.wait_for(|begin| *begin).await.unwrap();
                    }
                    assert_eq!(subscription.next().await.unwrap().seq, Seq(now.0 + 1 + seen));
                }
            })
        })
        .collect();
    assert_eq!(daemon.engine.subscribers(), 1000);
    rename(&session, EVENTS).await;
    begin.send_replace(true);
    for follower in followers {
        follower.await.unwrap();
    }
    assert_eq!(daemon.engine.subscribers(), 0);
}
