//! Folding a session of a million events, as they come from a REPL: accepted code, what it printed, how it ended.
//!
//! `cargo bench -p mainstay-model`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use mainstay_model::{
    CommandFingerprint, CommandId, EvalResult, Event, EventBody, JobId, Metadata, OutputStream, Position,
    Seq, Session, SessionId, SessionKind, Source, Timestamp, WarmUpReason,
};
use uuid::Uuid;

const EVENTS: u64 = 1_000_000;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 10)]
fn fold_of_a_million_events(bencher: Bencher<'_, '_>) {
    let events: Vec<_> = (1..=EVENTS).map(event).collect();
    bencher
        .counter(ItemsCount::new(events.len()))
        .bench_local(|| Session::fold(black_box(&events)).unwrap().evals);
}

fn event(seq: u64) -> Event {
    Event {
        session: SessionId::from_uuid(Uuid::from_u128(1)),
        seq: Seq(seq),
        position: Position(seq),
        at: Timestamp::from_microsecond(i64::try_from(seq).unwrap()).unwrap(),
        metadata: Metadata { source: Source::Worker, correlation: None, causation: None, environment: None },
        body: body(seq),
    }
}

fn body(seq: u64) -> EventBody {
    let job = JobId::from_uuid(Uuid::from_u128(u128::from(seq / 4)));
    match (seq, seq % 4) {
        (1, _) => EventBody::SessionCreated {
            kind: SessionKind::fsharp(),
            name: "bench".to_owned(),
            working_directory: "/work".to_owned(),
            project: None,
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias: None,
            capabilities: None,
        },
        (2, _) => EventBody::WarmUpStarted { reason: WarmUpReason::Started },
        (3, _) => EventBody::WarmUpCompleted {
            kernel: "F# 4.7".to_owned(),
            runtime: ".NET 3.1".to_owned(),
            language: None,
            pid: Some(1),
            replayed: 0,
            diverged: Vec::new(),
            startup: None,
            reload: None,
            restored: None,
            duration_ms: 700,
        },
        (_, 0) => EventBody::EvalRequested {
            job,
            command: CommandId::from_uuid(job.as_uuid()),
            key: None,
            deadline: None,
            grants: None,
            fingerprint: CommandFingerprint::from_stored("ab".repeat(32)),
            code: "let x = 1 + 1".to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        },
        (_, 1 | 2) => EventBody::OutputProduced {
            job: Some(job),
            stream: OutputStream::Stdout,
            text: "what a job printed, of a usual length\n".to_owned(),
        },
        (_, _) => EventBody::EvalCompleted {
            job,
            result: EvalResult::default(),
            changes_state: true,
            duration_ms: 3,
        },
    }
}
