//! One of every kind of event, outcome, metadata, and of what a session can be doing.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_model::Language;
use mainstay_model::decide::Answer;
use mainstay_model::event::CancelEnding;
use mainstay_model::grant::{Amounts, AskedOperation, Lease, LeaseChange, LeaseTerms, OperationKind};
use mainstay_model::session::{Waiting, WorkerInfo};
use mainstay_model::vote::Vote;
use mainstay_model::{
    Activity, Application, ApplicationEnding, Ask, AskEnding, AskId, Base64, Binding, Blame, Channel, CommId,
    CommMessage, CommStep, CommandId, Compaction, CompletedPart, Cost, Deadline, Delivery, Delta, Diagnostic,
    Display, DisplayId, Divergence, DivergenceKind, EndedApplication, Environment, Error, EvalEnding,
    EvalOutcome, EvalResult, EventBody, EventKind, Failure, ForkPoint, IdempotencyKey, JobId, JobKind,
    JobSpec, Labels, LeaseId, Limits, MergePoint, Message, Metadata, Note, ObjectHash, Origin, Outcome,
    OutputStream, Part, PartRole, PendingAsk, Principal, Prompt, Question, QueuedCommand, QueuedPrompt,
    RaisedError, Raiser, Reference, References, Response, RunningJob, Segment, Seq, Session, SessionCommand,
    Severity, Source, TextPosition, Timestamp, TokenUsage, Transcript, Version, WaitReason, WarmUpReason,
    WorkEnding, WorkerExit,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{answer, command_id, created, fingerprint, output, session_id, warm_up};

/// One body of every kind, the optional parts there; but for the deletion, after which nothing comes.
#[allow(clippy::too_many_lines, reason = "a list of samples")]
pub fn bodies() -> Vec<EventBody> {
    let bodies = vec![
        created("again", "/work"),
        EventBody::EntriesMerged(Box::new(MergePoint {
            from: session_id(9),
            entries: std::iter::once(2..4).collect(),
            brought: vec![Segment { kept: true, ..Segment::new(session_id(9), 2, 4) }],
            at: 1,
            wanted: Some(0),
            transcript: Transcript::beginning_with(vec![Segment::new(session_id(9), 0, 4)]),
            replay: vec![Segment::new(session_id(9), 2, 4)],
        })),
        EventBody::SessionForked(ForkPoint {
            from: session_id(9),
            entries: 4,
            asked: Some(3),
            segments: vec![Segment::new(session_id(9), 0, 4)],
            replay: vec![Segment::new(session_id(9), 2, 4)],
            labels: labels(),
        }),
        EventBody::SessionImported { hash: ObjectHash::of(b"file") },
        EventBody::SessionUnloaded { alias: Some("main".to_owned()) },
        EventBody::SessionLoaded { alias: None },
        EventBody::SessionRenamed { name: "ü \"x\"".to_owned() },
        warm_up(),
        warmed_up(),
        EventBody::SessionFaulted { message: "the worker was lost 6 times".to_owned() },
        EventBody::SessionReset,
        EventBody::SessionHardReset,
        EventBody::SessionStopped,
        EventBody::WorkerExited {
            exit: WorkerExit::Signal(9),
            attempt: 2,
            restart_after_ms: Some(2_000),
            reason: Some("the worker did not start".to_owned()),
            blame: Some(Blame { job: job(), is_sure: false }),
        },
        EventBody::CommandQueued(Box::new(queued())),
        EventBody::CommandDequeued {
            principal: Principal::local(),
            command: command_id("b-command"),
            error: Some(Error::Cancelled),
        },
        EventBody::AskRaised(Box::new(ask())),
        EventBody::AskVoted { ask: ask().ask, value: Value::Null, missing: 1, channel: None, lease: None },
        EventBody::AskEnded {
            ask: ask().ask,
            ending: AskEnding::Answered { value: Value::Null },
            channel: Some(Channel::new("ntfy:phone").unwrap()),
        },
        EventBody::AskEnded { ask: ask().ask, ending: AskEnding::Cancelled, channel: None },
        requested(),
        EventBody::EvalTimedOut { job: job(), limit_ms: 5_000 },
        EventBody::JobDenied { job: job(), error: Error::BudgetExhausted { currency: "USD".to_owned() } },
        EventBody::JobDelegated {
            job: job(),
            child: command_id("child"),
            agent: "pi".to_owned(),
            grants: Some(Box::default()),
        },
        EventBody::DelegationEnded { job: job(), child: command_id("child"), unspent: Amounts::new() },
        EventBody::JobHandedOver {
            command: command_id("a-command"),
            from: "sess_a".to_owned(),
            to: "sess_b".to_owned(),
        },
        EventBody::LeaseChanged {
            job: job(),
            lease: LeaseId::from(ask().ask),
            change: LeaseChange::Granted { terms: Box::new(lease()) },
        },
        EventBody::LeaseChanged {
            job: job(),
            lease: LeaseId::from(ask().ask),
            change: LeaseChange::Revoked { reason: "no longer needed".to_owned() },
        },
        EventBody::OutputProduced {
            job: Some(job()),
            stream: OutputStream::Stderr,
            text: "\u{1b}[31mred\n".to_owned(),
        },
        EventBody::OutputDisplayed { job: Some(job()), display: Box::new(display()) },
        EventBody::OutputCleared { job: job(), is_replaced: false },
        EventBody::CommPublished { job: None, message: Box::new(comm()) },
        EventBody::OutputCut { job: job(), limit: u64::MAX },
        EventBody::CancelRequested { job: job(), grace_ms: None },
        EventBody::EvalCompleted { job: job(), result: result(), changes_state: true, duration_ms: 12 },
        failed(Failure::Rejected),
        failed(Failure::Raised { error: raised() }),
        failed(Failure::WorkerExited { exit: WorkerExit::Code(3) }),
        EventBody::EvalCancelled { job: job(), ending: CancelEnding::Killed, kept: None, grace_ms: None },
        EventBody::EvalCancelled {
            job: job(),
            ending: CancelEnding::Yielded,
            kept: Some(CompletedPart { bytes: 3, bindings: result().bindings }),
            grace_ms: None,
        },
        EventBody::EvalInterrupted { job: job() },
        EventBody::JobRequested {
            job: job(),
            command: CommandId::from_uuid(job().as_uuid()),
            fingerprint: fingerprint("a-command"),
            key: None,
            deadline: None,
            grants: Some(Box::default()),
            work: JobSpec::Turn { prompt: Prompt::text("hello") },
        },
        EventBody::MessageStreamed(Delta {
            job: job(),
            message: 0,
            part: 1,
            role: PartRole::Assistant,
            offset: 7,
            text: "hi".to_owned(),
            tool: None,
        }),
        EventBody::PromptQueued(queued_prompt()),
        EventBody::QueueChanged { queue: vec![queued_prompt()] },
        EventBody::AgentChanged(Box::default()),
        EventBody::AgentNoted(Note::Told { level: "info".to_owned(), message: "a word".to_owned() }),
        EventBody::JobEnded { job: job(), ending: WorkEnding::Interrupted, duration_ms: 5, grace_ms: None },
        EventBody::MessageAdded(Box::new(message())),
        EventBody::EnvironmentChanged { references: references() },
        EventBody::AssembliesChanged {
            old: references(),
            new: References::new(),
            changed: vec!["a.dll".to_owned()],
        },
        EventBody::SourcesChanged { changed: vec!["/p/a.fs".to_owned()], in_build: false },
        EventBody::SourcesSwapped(Box::default()),
        EventBody::ApplicationStarted(Box::new(Application {
            name: "Shop".to_owned(),
            entry: None,
            arguments: Vec::new(),
            addresses: vec!["http://127.0.0.1:5000".to_owned()],
            pid: 4711,
            job: None,
        })),
        EventBody::ApplicationEnded(Box::new(EndedApplication {
            name: "Shop".to_owned(),
            ending: ApplicationEnding::Stopped,
        })),
        EventBody::TranscriptCompacted(Box::new(Compaction {
            covers: vec![Segment::new(session_id(9), 0, 4)],
            summary: "So far.".to_owned(),
            metadata: BTreeMap::new(),
        })),
        EventBody::EntryLabeled { entry: entry(3), label: Some("the \"good\" one".to_owned()) },
        EventBody::EntryLabeled { entry: entry(3), label: None },
        output(""),
    ];
    let shown = bodies.iter().map(EventBody::kind).collect::<BTreeSet<_>>();
    assert_eq!(shown.len(), EventKind::ALL.len() - 1, "one of every kind");
    bodies
}

fn entry(number: u64) -> Origin {
    Origin { session: session_id(9), number }
}

fn labels() -> Labels {
    let mut labels = Labels::default();
    labels.set(entry(2), "2026-02-13T13:30:20.000001Z".parse().expect("a moment"), Some("good".to_owned()));
    labels
}

/// The events after which a session's every moment is set: it lost a worker, has another, and runs a job.
pub fn busy() -> Vec<EventBody> {
    let lost = EventBody::WorkerExited {
        exit: WorkerExit::Unknown,
        attempt: 1,
        restart_after_ms: Some(1_000),
        reason: None,
        blame: None,
    };
    let again = EventBody::WarmUpStarted { reason: WarmUpReason::WorkerLost };
    vec![warm_up(), warmed_up(), lost, again, warmed_up(), requested()]
}

/// An ask of a command.
pub fn ask() -> Ask {
    Ask {
        ask: AskId::from_uuid(job().as_uuid()),
        raiser: Raiser::Command {
            command: command_id("a-command"),
            fingerprint: fingerprint("a-command"),
            key: None,
        },
        question: Question { default: Some("b".into()), ..Question::text("Which?") },
        deadline: Some(Deadline { at: Timestamp::UNIX_EPOCH, limit_ms: 5_000 }),
    }
}

/// Every kind of source, with and without the rest.
pub fn metadata() -> Vec<Metadata> {
    let environment = Environment { runtime: ".NET".to_owned(), references: references() }.fingerprint();
    let client =
        Source::Client { principal: Principal::new("ann").expect("a name"), name: "mcp:\"x\"".to_owned() };
    vec![
        Metadata {
            source: client,
            correlation: Some(command_id("a-command")),
            causation: Some(Seq(1)),
            environment: Some(environment),
        },
        Metadata { source: Source::Worker, correlation: None, causation: Some(Seq(2)), environment: None },
        Metadata { source: Source::System, correlation: None, causation: None, environment: None },
    ]
}

fn queued_prompt() -> QueuedPrompt {
    QueuedPrompt { prompt: Prompt::text("wait"), hears: Delivery::Steer }
}

/// The session, waiting in the middle of a job.
pub fn session(session: &Session) -> Session {
    let running = RunningJob {
        job: job(),
        command: CommandId::from_uuid(job().as_uuid()),
        source: Source::System,
        fingerprint: fingerprint("a-command"),
        requested: Seq(2),
        requested_at: session.last_activity,
        cancel_requested: true,
        grace_ms: Some(5_000),
        key: Some(IdempotencyKey::new("once").unwrap()),
        deadline: Some(Deadline { at: session.last_activity, limit_ms: 5_000 }),
        grants: Some(Box::default()),
        withheld: false,
        is_answered: true,
        kind: JobKind::Turn,
    };
    let worker = WorkerInfo {
        kernel: "F# 4.7".to_owned(),
        runtime: ".NET 3.1".to_owned(),
        pid: Some(u32::MAX),
        ready_at: session.created_at,
    };
    Session {
        life: Activity::Waiting { running, reason: WaitReason::Ask },
        worker: Some(worker),
        losses: vec![session.created_at],
        project: Some("/projects/a.fsproj".to_owned()),
        version: Version(4),
        owner: Principal::new("ann").unwrap(),
        asks: vec![PendingAsk {
            ask: ask(),
            raised: Seq(2),
            raised_at: session.created_at,
            source: Source::System,
            votes: vec![Vote { source: Source::System, value: Value::Null, channel: None, lease: None }],
        }],
        lane: vec![Waiting {
            principal: Principal::local(),
            command: command_id("b-command"),
            queued: Seq(2),
        }],
        ..session.clone()
    }
}

/// Answers of every kind.
pub fn answers() -> Vec<Answer> {
    let eval = EvalOutcome {
        job: job(),
        requested: Seq(2),
        completed: Seq(3),
        ending: EvalEnding::Raised { error: raised() },
        value: Some("2".to_owned()),
        value_type: Some("int".to_owned()),
        bindings: result().bindings,
        display: "val x : int = 2".to_owned(),
        diagnostics: result().diagnostics,
        withheld: false,
        live: None,
        duration_ms: u64::MAX,
    };
    let exited = EvalEnding::WorkerExited { exit: WorkerExit::Signal(11) };
    let outcomes = [
        Outcome::Done { response: Response::Created { session: session_id(1) } },
        Outcome::Done { response: Response::Forked { session: session_id(1), entries: 4, asked: Some(3) } },
        Outcome::Done { response: Response::Merged { seq: Seq(4), entries: 2, at: 4, asked: Some(3) } },
        Outcome::Done { response: Response::Compacted { seq: Seq(4), entries: 4, asked: Some(5) } },
        Outcome::Done { response: Response::Evaluated(EvalOutcome { ending: exited, ..eval.clone() }) },
        Outcome::Done { response: Response::Evaluated(eval) },
        Outcome::Done { response: Response::Cancelling { job: job() } },
        Outcome::Done { response: Response::Withdrawn { command: command_id("other") } },
        Outcome::Done { response: Response::Voted { ask: ask().ask, seq: Seq(4), votes: 1, missing: 1 } },
        Outcome::Done { response: Response::Recorded { seq: Seq(4) } },
        Outcome::Failed { error: Error::SessionStopped },
        Outcome::Failed { error: Error::CommandConflict { command: command_id("other") } },
    ];
    let names = (0..).map(|number| format!("answer-{number}"));
    outcomes
        .into_iter()
        .zip(names)
        .map(|(outcome, name)| Answer { outcome, ..answer(&name, Seq(1)) })
        .collect()
}

fn warmed_up() -> EventBody {
    EventBody::WarmUpCompleted {
        kernel: "F# 4.7".to_owned(),
        runtime: ".NET 3.1".to_owned(),
        language: Some(Language::named("fsharp")),
        pid: Some(4711),
        replayed: 3,
        diverged: vec![Divergence {
            requested: Seq(2),
            session: None,
            kind: DivergenceKind::Ending { error: Some("NU1101 no such package".to_owned()) },
        }],
        startup: None,
        reload: None,
        restored: None,
        duration_ms: 700,
    }
}

fn queued() -> QueuedCommand {
    QueuedCommand {
        command: command_id("b-command"),
        fingerprint: fingerprint("b-command"),
        key: Some(IdempotencyKey::new("once").unwrap()),
        depends_on: vec![command_id("a-command")],
        if_version: Some(Version(7)),
        deadline: None,
        grants: Some(Box::default()),
        body: SessionCommand::Reset,
    }
}

/// A model's message with all that one may have.
fn message() -> Message {
    Message {
        parts: vec![
            Part::text(PartRole::Assistant, "I look: \"x\""),
            Part::tool_call("call-1", "read", &serde_json::json!({ "path": "a.txt" })),
        ],
        metadata: [("model".to_owned(), "a-model".into())].into(),
        usage: Some(TokenUsage {
            input: 10,
            output: 5,
            cache_read: 3,
            cache_write: 1,
            cost: Cost::of_dollars(0.0125),
        }),
    }
}

fn requested() -> EventBody {
    EventBody::EvalRequested {
        job: job(),
        command: command_id("a-command"),
        fingerprint: fingerprint("a-command"),
        key: None,
        deadline: None,
        grants: Some(Box::default()),
        code: "let x = 1 + 1\r\n// \\ \"".to_owned(),
        file: Some("/projects/a.fsx".to_owned()),
        command_line: None,
        withheld: false,
        origin: None,
    }
}

fn failed(failure: Failure) -> EventBody {
    EventBody::EvalFailed { job: job(), failure, result: result(), changes_state: false, duration_ms: 0 }
}

fn references() -> References {
    let reference = Reference { path: Some("/p/a.dll".to_owned()), hash: Some("ab12".to_owned()) };
    BTreeMap::from([("a.dll".to_owned(), reference)])
}

fn comm() -> CommMessage {
    CommMessage {
        comm: CommId::new("5f3c").unwrap(),
        step: CommStep::Say,
        data: json!({ "state": { "value": 3 } }),
        metadata: Value::Null,
        buffers: vec![Base64::of(&[0, 255])],
    }
}

fn display() -> Display {
    let forms =
        json!({ "text/plain": "\u{1b}[31m", "image/png": "iVBORw==", "application/json": { "a": null } });
    Display {
        id: Some(DisplayId::new("é").unwrap()),
        is_value: true,
        is_update: true,
        is_in_place: false,
        data: serde_json::from_value(forms).unwrap(),
    }
}

fn result() -> EvalResult {
    let binding = Binding { name: "x".to_owned(), value_type: "int".to_owned(), value: Some("2".to_owned()) };
    let diagnostic = Diagnostic {
        severity: Severity::Warning,
        code: "FS0020".to_owned(),
        message: "implicitly ignored".to_owned(),
        file: None,
        start: TextPosition { line: 1, column: 2 },
        end: TextPosition { line: 1, column: u32::MAX },
    };
    EvalResult {
        value: Some("2".to_owned()),
        value_type: Some("int".to_owned()),
        bindings: vec![binding],
        display: "val it : int = 2".to_owned(),
        diagnostics: vec![diagnostic],
        uses_last: false,
        touched: Some(vec!["a.dll".to_owned()]),
    }
}

fn raised() -> RaisedError {
    let (kind, message) = ("System.Exception".to_owned(), "no".to_owned());
    RaisedError { kind, message, stack: Some("at f".to_owned()), coloured_stack: None }
}

fn lease() -> Lease {
    let asked = AskedOperation {
        kind: OperationKind::FS_WRITE,
        target: "/project/a".to_owned(),
        is_recursive: false,
    };
    let terms = LeaseTerms { duration_ms: 60_000, pattern: Some("/project/**".to_owned()) };
    Lease::new(asked, &terms, Timestamp::UNIX_EPOCH, &Limits::default()).unwrap()
}

fn job() -> JobId {
    JobId::from_uuid(Uuid::from_u128(0x0189_0a5d_0000_7000_8000_0000_0000_4711))
}
