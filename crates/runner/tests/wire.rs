//! What goes between the engine and a runner can be written to a stream and read back, so that a runner may live in a process of its own.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use std::time::Duration;

use mainstay_model::agent::AgentState;
use mainstay_model::reload::Description;
use mainstay_model::{
    AgentNotice, AskId, Blame, BuildReport, Capabilities, ChosenProject, CommMessage, Delivery, Delta,
    Display, Epoch, Error, EvalResult, JobEnding, JobId, JobReport, JobSpec, LastWords, Message,
    NoticeNumber, OutputStream, Part, PartRole, Principal, Prompt, Question, QueuedPrompt, RunnerInfo,
    RunnerNotice, SessionId, SessionKind, Startup, TextPosition, WorkEnding, WorkerExit,
};
use mainstay_runner::query::{
    Completeness, KernelAnswer, KernelQuery, Member, Members, Review, Symbol, Symbols, Tests,
};
use mainstay_runner::{
    AgentQuestion, AskAnswer, CodeText, Completions, Conversation, Environment, ResourceUsage, RunnerSpec,
    Submission, Upcoming, WarmUpPhase, WarmUpProgress,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

fn is_read_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value, "{text}");
}

#[test]
fn a_start_is_read_back_as_it_was() {
    let environment: Environment = [("PATH".to_owned(), "/usr/bin".to_owned())].into_iter().collect();
    is_read_back(&RunnerSpec {
        session: SessionId::from_uuid(Uuid::from_u128(1)),
        epoch: Epoch(3),
        kind: SessionKind::fsharp(),
        owner: Principal::local(),
        working_directory: PathBuf::from("/home/ada/demo"),
        project: Some(PathBuf::from("/home/ada/demo/demo.fsproj")),
        arguments: vec!["--langversion:preview".to_owned()],
        environment,
        conversation: Some(Conversation { name: "demo".to_owned(), ..Conversation::default() }),
        gathered: Some(json!({ "assemblies": ["/tmp/demo.dll"] })),
    });
}

#[test]
fn each_question_and_answer_is_read_back_as_it_was() {
    let cursor = TextPosition { line: 1, column: 3 };
    let (text, code) = ("Map".to_owned(), "1 +".to_owned());
    for query in [
        KernelQuery::Members { name: text.clone() },
        KernelQuery::Symbols { text: text.clone(), limit: 50 },
        KernelQuery::Values,
        KernelQuery::Tests { pattern: Some(text.clone()), category: None },
        KernelQuery::Coverage {
            file: Some(text.clone()),
            name: None,
            since: vec![mainstay_model::CodeMark(text.clone())],
        },
        KernelQuery::Measure { policies: text.clone(), limit_ms: 1, timeout_ms: 1 },
        KernelQuery::TakeMeasurement {
            code: mainstay_model::CodeMark(text.clone()),
            measurement: serde_json::json!({ "tests": [] }),
        },
        KernelQuery::Review { code: code.clone() },
        KernelQuery::Completeness { code: code.clone() },
        KernelQuery::Inspection { code: code.clone(), cursor, in_detail: true },
        KernelQuery::Comms { target: None },
    ] {
        is_read_back(&query);
    }
    let member =
        Member { name: text.clone(), kind: "method".to_owned(), signature: None, documentation: None };
    let symbol = Symbol {
        name: text.clone(),
        full_name: text.clone(),
        assembly: None,
        kind: "module".to_owned(),
        signature: None,
        documentation: None,
    };
    for answer in [
        KernelAnswer::Members(Members { members: vec![member], ..Members::default() }),
        KernelAnswer::Symbols(Symbols { items: vec![symbol], found: 7 }),
        KernelAnswer::Values(Vec::new()),
        KernelAnswer::Tests(Tests::default()),
        KernelAnswer::Coverage(mainstay_model::ReachedLines::default()),
        KernelAnswer::Measured(serde_json::json!({ "tests": [] })),
        KernelAnswer::MeasurementTaken(true),
        KernelAnswer::Review(Review::default()),
        KernelAnswer::Completeness(Completeness::Incomplete { indent: "  ".to_owned() }),
        KernelAnswer::Inspection(None),
        KernelAnswer::Comms(BTreeMap::new()),
    ] {
        is_read_back(&answer);
    }
}

#[test]
fn code_and_answers_of_people_are_read_back_as_they_were() {
    is_read_back(&Submission {
        job: JobId::from_uuid(Uuid::from_u128(2)),
        code: "1 + 1".to_owned(),
        file: Some("/home/ada/a.fsx".to_owned()),
        command_line: None,
        is_withheld: true,
    });
    let ask = AskId::from_uuid(Uuid::from_u128(3));
    is_read_back(&AskAnswer { ask, answer: Ok(json!("yes")), is_secret: true });
    is_read_back(&AskAnswer { ask, answer: Err(Error::Unauthorized), is_secret: false });
}

#[test]
fn each_notice_is_read_back_as_it_was() {
    let job = JobId::from_uuid(Uuid::from_u128(2));
    let report = JobReport {
        ending: JobEnding::Interrupted { kept: 3 },
        result: EvalResult { value: Some("2".to_owned()), ..EvalResult::default() },
        changes_state: true,
        took: Duration::from_millis(7),
        references: None,
    };
    let last_words = LastWords {
        blame: Blame { job, is_sure: true },
        reason: Some("out of memory".to_owned()),
        diagnostics: Vec::new(),
    };
    let display: Display = serde_json::from_value(json!({ "data": { "text/plain": "4" } })).unwrap();
    let comm: CommMessage =
        serde_json::from_value(json!({ "comm": "c1", "step": "open", "target": "widget" })).unwrap();
    let delta = Delta {
        job,
        message: 0,
        part: 0,
        role: PartRole::Assistant,
        offset: 0,
        text: "a".to_owned(),
        tool: None,
    };
    let message = Message { parts: vec![Part::tool_call("c1", "read", &json!({}))], ..Message::default() };
    let ending = WorkEnding::Interrupted;
    for notice in [
        RunnerNotice::Output { job: Some(job), stream: OutputStream::Stdout, text: "é\n".to_owned() },
        RunnerNotice::Display { job: None, display: Box::new(display) },
        RunnerNotice::Cleared { job, is_replaced: true },
        RunnerNotice::Comm { job: Some(job), message: Box::new(comm) },
        RunnerNotice::CommTaken { job },
        RunnerNotice::Asks {
            job,
            ask: AskId::from_uuid(Uuid::from_u128(3)),
            question: Question::text("?"),
            timeout_ms: Some(5),
        },
        RunnerNotice::Agent(AgentNotice::Said(delta)),
        RunnerNotice::Agent(AgentNotice::Message(message)),
        RunnerNotice::Agent(AgentNotice::Queue(vec![(Delivery::Steer, "stop".to_owned())])),
        RunnerNotice::Agent(AgentNotice::State(AgentState::default())),
        RunnerNotice::Agent(AgentNotice::Ended { job, ending }),
        RunnerNotice::Finished { job, report },
        RunnerNotice::Built {
            job,
            report: BuildReport {
                built: Err("no".to_owned()),
                diagnostics: Vec::new(),
                by_warm_compiler: false,
            },
        },
        RunnerNotice::Exited { exit: WorkerExit::Signal(9), last_words: Some(last_words) },
    ] {
        is_read_back(&notice);
    }
    is_read_back(&NoticeNumber(7));
}

#[test]
fn a_runner_is_read_back_as_it_was_also_one_without_a_process() {
    for pid in [None, Some(1)] {
        let (kernel, runtime, startup) =
            ("F# 10".to_owned(), ".NET 10".to_owned(), Some(Box::new(Startup::default())));
        is_read_back(&RunnerInfo { kernel, runtime, language: None, pid, references: None, startup });
    }
    is_read_back(&ResourceUsage { resident_bytes: 1, cpu_ms: 2 });
    is_read_back(&WarmUpProgress { phase: WarmUpPhase::Build, done: 1, total: 2 });
    is_read_back(&Capabilities::of_kind(&SessionKind::fsharp()));
    is_read_back(&ChosenProject::Several(vec!["/a.fsproj".to_owned()]));
}

#[test]
fn what_a_runner_is_told_and_asked_is_read_back_as_it_was() {
    let job = JobId::from_uuid(Uuid::from_u128(2));
    let code = "1 + 1".to_owned();
    is_read_back(&JobSpec::Turn { prompt: Prompt::text("hello") });
    is_read_back(&JobSpec::Rebuild);
    is_read_back(&QueuedPrompt { prompt: Prompt::text("stop"), hears: Delivery::Steer });
    is_read_back(&Upcoming { job, code: code.clone(), file: None });
    is_read_back(&CodeText { code, file: None });
    is_read_back(&Description { defines: vec!["a".to_owned()], ..Description::default() });
    is_read_back(&Completions::default());
    is_read_back(&AgentQuestion::Models);
}
