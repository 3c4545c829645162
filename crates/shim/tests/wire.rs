//! Each message of the runner protocol as it is on the wire: a daemon of one version speaks with shims of another.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Debug;

use mainstay_model::replay::{Snapshot, SnapshotCell};
use mainstay_model::{
    AskId, CommMessage, Delivery, Epoch, Error, JobId, JobSpec, NoticeNumber, Prompt, QueuedPrompt, RunnerId,
    RunnerInfo, RunnerNotice, Seq, SessionId, SessionKind, Swap, TakenNotices, TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AgentQuestion, AskAnswer, CodeText, Completions, GivenToRunner, StoredProgress, Submission, Upcoming,
    WarmUpPhase, WarmUpProgress,
};
use mainstay_shim::messages::{
    FromShim, Hello, Purpose, Refusal, RunnerDescription, ShimAnswer, ShimQuestion, ToShim, Welcome,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

/// The messages as JSON, one a line, each of which is read back as it was.
fn lines<T: Serialize + DeserializeOwned + PartialEq + Debug>(messages: &[T]) -> String {
    let line = |message: &T| {
        let text = serde_json::to_string(message).unwrap();
        assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *message, "{text}");
        // Of a newer version there may be more members.
        let mut more: serde_json::Value = serde_json::from_str(&text).unwrap();
        more.as_object_mut().unwrap().insert("ofANewerVersion".to_owned(), json!(1));
        assert_eq!(serde_json::from_value::<T>(more).unwrap(), *message, "{text}");
        text
    };
    messages.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn job() -> JobId {
    JobId::from_uuid(Uuid::from_u128(2))
}

fn ask() -> AskId {
    AskId::from_uuid(Uuid::from_u128(3))
}

fn runner() -> RunnerDescription {
    RunnerDescription {
        id: RunnerId::from_uuid(Uuid::from_u128(4)),
        is_agent: false,
        pauses: false,
        info: info(),
    }
}

fn info() -> RunnerInfo {
    let (kernel, runtime) = ("F# 10".to_owned(), ".NET 10".to_owned());
    RunnerInfo { kernel, runtime, language: None, pid: Some(7), references: None, startup: None }
}

fn snapshot() -> Snapshot {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let cell = SnapshotCell {
        job: job(),
        is_replayed: true,
        binds: names(&["rows"]),
        mentions: names(&["load"]),
        declares: names(&[]),
        atoms: names(&[]),
        is_definition: false,
        is_dynamic: false,
        must_rerun: false,
    };
    let not_kept = [("db".to_owned(), "it cannot be pickled".to_owned())].into();
    Snapshot { cells: vec![cell], kept: names(&["rows"]), not_kept, inert: names(&["rows"]) }
}

#[test]
fn the_first_messages_stay_as_they_are() {
    let hello = |purpose| Hello {
        protocol: 1,
        oldest_protocol: 1,
        token: "token".to_owned(),
        session: SessionId::from_uuid(Uuid::from_u128(1)),
        epoch: Epoch(3),
        purpose,
    };
    let taken = TakenNotices { runner: runner().id, up_to: NoticeNumber(5) };
    let adopt = Purpose::Adopt { stored: StoredProgress { taken, last_seq: Seq(9) } };
    let stand_by = Purpose::StandBy {
        kind: SessionKind::fsharp(),
        plan: json!({ "program": "dotnet" }),
        settings: json!({ "home": "/home" }),
    };
    insta::assert_snapshot!(lines(&[hello(adopt), hello(Purpose::End), hello(stand_by)]));
    let refusals = [
        Refusal::Stranger,
        Refusal::StaleEpoch { newest: Epoch(4) },
        Refusal::StoreIsBehind { stored: Seq(10) },
        Refusal::NoRunner,
        Refusal::Protocol { newest: 2, oldest: 2 },
    ];
    let given = GivenToRunner {
        jobs: vec![job()],
        unanswered: vec![ask()],
        checks: Vec::new(),
        secrets: vec![json!("secret")],
    };
    let welcomes = [
        Welcome::Obeys { protocol: 1, pid: 8 },
        Welcome::Adopted {
            protocol: 1,
            pid: 8,
            runner: runner(),
            next: NoticeNumber(6),
            given,
            is_gone: false,
        },
    ];
    let refused = refusals.into_iter().map(|reason| Welcome::Refused { reason });
    insta::assert_snapshot!(lines(&welcomes.into_iter().chain(refused).collect::<Vec<_>>()));
}

#[test]
fn what_a_shim_is_told_stays_as_it_is() {
    let code = "1 + 1".to_owned();
    let submission =
        Submission { job: job(), code: code.clone(), file: None, command_line: None, is_withheld: false };
    let comm: CommMessage =
        serde_json::from_value(json!({ "comm": "c1", "step": "open", "target": "widget" })).unwrap();
    let question = |question| ToShim::Question { id: 1, question };
    insta::assert_snapshot!(lines(&[
        ToShim::Run { submission },
        ToShim::Expect { upcoming: vec![Upcoming { job: job(), code: code.clone(), file: None }] },
        ToShim::Build { job: job() },
        ToShim::TakeComm { job: job(), message: Box::new(comm) },
        ToShim::Work { job: job(), work: JobSpec::Turn { prompt: Prompt::text("hello") }, is_bounded: false },
        ToShim::Steer {
            queued: QueuedPrompt { prompt: Prompt::text("stop"), hears: Delivery::Steer },
            requested: Seq(4),
        },
        ToShim::Pause { job: job(), ask: ask() },
        ToShim::Answer { answer: AskAnswer { ask: ask(), answer: Ok(json!("yes")), is_secret: true } },
        ToShim::Answer { answer: AskAnswer::open(ask(), Err(Error::Cancelled)) },
        ToShim::Interrupt { job: Some(job()) },
        ToShim::Acknowledge { up_to: NoticeNumber(5), stored: Seq(9) },
        ToShim::Consumed { up_to: NoticeNumber(5) },
        question(ShimQuestion::Describe { codes: vec![CodeText { code: code.clone(), file: None }] }),
        question(ShimQuestion::Swap { files: vec!["/shop/Cart.fs".to_owned()] }),
        question(ShimQuestion::Reset),
        question(ShimQuestion::Snapshot),
        question(ShimQuestion::ForgetSnapshot),
        question(ShimQuestion::Restore),
        question(ShimQuestion::Check { code: code.clone(), file: None }),
        question(ShimQuestion::Complete { code, cursor: TextPosition { line: 1, column: 3 } }),
        question(ShimQuestion::Query { query: KernelQuery::Values }),
        question(ShimQuestion::Tell { question: AgentQuestion::Models }),
        ToShim::Kill,
    ]));
}

#[test]
fn what_a_shim_tells_stays_as_it_is() {
    let answer = |answer| FromShim::Answer { id: 1, answer };
    insta::assert_snapshot!(lines(&[
        FromShim::Progress { progress: WarmUpProgress { phase: WarmUpPhase::Build, done: 1, total: 2 } },
        FromShim::StartLines { lines: Some("no key".to_owned()) },
        FromShim::StandsBy { pid: 9 },
        FromShim::Started { runner: runner() },
        FromShim::NotStarted { error: Error::KernelUnavailable { reason: "no SDK".to_owned() } },
        FromShim::Notice { number: NoticeNumber(6), notice: RunnerNotice::CommTaken { job: job() } },
        answer(Ok(ShimAnswer::Described(None))),
        answer(Ok(ShimAnswer::Swapped(Some(Swap::default())))),
        answer(Ok(ShimAnswer::Reset(info()))),
        answer(Ok(ShimAnswer::Snapshot(Some(snapshot())))),
        answer(Ok(ShimAnswer::SnapshotForgotten)),
        answer(Ok(ShimAnswer::Restored)),
        answer(Ok(ShimAnswer::Checked(Vec::new()))),
        answer(Ok(ShimAnswer::Completed(Completions::default()))),
        answer(Ok(ShimAnswer::Queried(KernelAnswer::Values(Vec::new())))),
        answer(Ok(ShimAnswer::Told(json!({})))),
        answer(Err(Error::Cancelled)),
    ]));
}
