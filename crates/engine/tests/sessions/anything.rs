//! Several clients who do anything at all at once, workers that end as they like, and a store that fails now and then.
//! Whatever happens: everyone is answered, the same id has the same answer, and the log tells one consistent story.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_log::EventLog;
use mainstay_model::command;
use mainstay_model::{
    Admission, CommandId, Error, Event, EventBody, Limits, Outcome, Principal, Seq, Session, SessionCommand,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{CANCEL, Client, Daemon, cancel, command, eval, evaluated, id, quick};

/// How long one case may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one client does, and how long it waits first.
#[derive(Clone, Debug)]
struct Deed {
    pause: usize,
    admission: Admission,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Command(SessionCommand),
    /// The command before this one, under the same id.
    Again,
    /// A cancel of the command before this one.
    CancelLast,
    /// The store refuses the append after so many.
    Refuse(usize),
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let code = select(vec![
        "pure 1",
        "define a",
        "print x",
        "raise",
        "loop",
        "stubborn",
        "noisy",
        "exit 1",
        "signal 9",
        "vanish",
        "again exit 1",
        "haunt",
        "tick",
    ]);
    let what = prop_oneof![
        10 => code.prop_map(|code| What::Command(eval(code))),
        5 => Just(What::Command(CANCEL)),
        3 => Just(What::CancelLast),
        1 => Just(What::Command(SessionCommand::Reset)),
        1 => Just(What::Command(SessionCommand::Refresh(command::Refresh { all: false }))),
        2 => Just(What::Command(SessionCommand::HardReset)),
        1 => Just(What::Command(SessionCommand::Stop)),
        1 => Just(What::Command(SessionCommand::Start)),
        1 => Just(What::Command(SessionCommand::Rename(command::Rename { name: "other".to_owned() }))),
        3 => Just(What::Again),
        1 => (0_usize..4).prop_map(What::Refuse),
    ];
    let admission = select(vec![Admission::Now, Admission::Queue, Admission::Queue]);
    let pause = prop_oneof![Just(0), 0_usize..300];
    (pause, admission, what).prop_map(|(pause, admission, what)| Deed { pause, admission, what })
}

/// Does all of it; gives every answer that came, by the id of its command.
async fn act(
    daemon: &Daemon,
    client: &Client,
    case: usize,
    deeds: Vec<Deed>,
) -> Vec<(CommandId, Result<Outcome, Error>)> {
    let mut sent = Vec::new();
    let mut last: Option<mainstay_model::Command> = None;
    for (number, Deed { pause, admission, what }) in deeds.into_iter().enumerate() {
        for _ in 0..pause {
            tokio::task::yield_now().await;
        }
        let next = match what {
            What::Command(body) => command(id(&format!("{case}-{number}")), admission, body),
            What::CancelLast => match &last {
                Some(last) => command(id(&format!("{case}-{number}")), admission, cancel(&last.id)),
                None => continue,
            },
            What::Again => match &last {
                Some(last) => last.clone(),
                None => continue,
            },
            What::Refuse(skipped) => {
                daemon.store.refuse_after(skipped);
                continue;
            }
        };
        last = Some(next.clone());
        sent.push((next.id.clone(), client.send(next)));
    }
    // What still runs may run for ever.
    while let Err(error) = client.submit(SessionCommand::Stop).await {
        assert!(matches!(error, Error::StoreFailed { .. }), "{error:?}");
    }
    let mut answers = Vec::new();
    for (id, running) in sent {
        while !running.is_finished() {
            // It may have been taken in after the stop, and have started the session again.
            client.submit(SessionCommand::Stop).await.ok();
        }
        answers.push((id, running.await.unwrap()));
    }
    while let Err(error) = client.submit(SessionCommand::Stop).await {
        assert!(matches!(error, Error::StoreFailed { .. }), "{error:?}");
    }
    answers
}

fn assert_one_answer_each(answers: &[(CommandId, Result<Outcome, Error>)]) {
    let mut outcomes = BTreeMap::new();
    for (id, answer) in answers {
        if let Ok(outcome) = answer {
            assert_eq!(outcomes.entry(id).or_insert(outcome), &outcome, "{id}");
        }
    }
}

async fn assert_one_story(daemon: &Daemon, client: &Client, answers: &[(CommandId, Result<Outcome, Error>)]) {
    // A task that took over from one whose append failed answers what waited by itself.
    while daemon.store.session(client.id).await.unwrap().is_some_and(|session| !session.lane.is_empty()) {
        tokio::task::yield_now().await;
    }
    let events = daemon.store.events(client.id, Seq::ZERO, usize::MAX).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "the events are gapless");
    assert_eq!(Session::fold(&events), daemon.store.session(client.id).await.unwrap());
    let mut requested = BTreeSet::new();
    for event in &events {
        if let EventBody::EvalRequested { job, command, .. } = &event.body {
            assert!(requested.insert(command.clone()), "{command} ran twice");
            assert_eq!(events.iter().filter(|event| ends(event, *job)).count(), 1, "{command} has one end");
            let stored = daemon.store.outcome(&Principal::local(), command).await.unwrap().unwrap();
            let (end, _) = (evaluated(Ok(stored.outcome)).completed, ());
            assert!(events.iter().any(|event| event.seq == end && ends(event, *job)));
        }
    }
    for (id, answer) in answers {
        if let Ok(outcome) = answer {
            let stored = daemon.store.outcome(&Principal::local(), id).await.unwrap();
            assert_eq!(
                stored.map(|stored| stored.outcome).as_ref(),
                Some(outcome),
                "what was answered is stored"
            );
        }
    }
}

fn ends(event: &Event, of: mainstay_model::JobId) -> bool {
    event.body.job_end().is_some_and(|(job, _)| job == of)
}

#[test]
fn whatever_happens_everyone_is_answered_and_the_log_tells_one_story() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limits = Limits { cancel_grace_ms: 2, lane_commands: 8, output_bytes_per_job: 100_000, ..quick() };
    let daemon = runtime.block_on(Daemon::with(limits));
    let case = std::cell::Cell::new(0);
    proptest!(ProptestConfig::with_cases(64), |(deeds in vec(any_deed(), 1..40))| {
        case.set(case.get() + 1);
        runtime.block_on(async {
            daemon.store.refuse_after(usize::MAX - 1);
            let client = daemon.starting_session().await;
            let acted = tokio::time::timeout(PATIENCE, act(&daemon, &client, case.get(), deeds)).await;
            let answers = acted.expect("somebody waits for ever");
            assert_one_answer_each(&answers);
            assert_one_story(&daemon, &client, &answers).await;
            crate::support::eventually(|| daemon.workers.alive() == 0).await;
        });
    });
}
