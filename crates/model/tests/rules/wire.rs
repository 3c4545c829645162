//! The shape of everything that is stored or sent. What these snapshots show may be added to, and never changed.

use std::collections::BTreeSet;
use std::fmt::Debug;

use crate::support::{
    amounts, any_create, any_error, any_event, any_outcome, any_session, any_session_command, ask_id, client,
    command_id, creation, error_examples, job_id, lease, second, session_id,
};
use mainstay_model::Language;
use mainstay_model::agent::{AgentState, Image, Model, ToolCall};
use mainstay_model::command;
use mainstay_model::diagnostic::{Severity, TextPosition};
use mainstay_model::elevation::{Elevation, TrustLevel};
use mainstay_model::event::CancelEnding;
use mainstay_model::grant::{Budget, Grants, LeaseChange, LeaseTerms, PatternLimits};
use mainstay_model::{
    Application, ApplicationEnding, Ask, AskEnding, Base64, Binding, Blame, Bundle, Channel, CommId,
    CommMessage, CommStep, CommandFingerprint, CommandLine, Compaction, CompletedPart, Cost, CreateSession,
    Deadline, Delivery, Delta, Diagnostic, Display, DisplayId, Divergence, DivergenceKind, EndedApplication,
    Environment, Error, ErrorCode, EvalResult, Event, EventBody, Failure, ForkPoint, IdempotencyKey, JobSpec,
    KeptVersion, Labels, LeaseId, Limits, LoadedAssembly, LoadedProject, MergePoint, Message, Metadata, Note,
    ObjectHash, Origin, Outcome, OutputStream, Part, PartRole, Principal, ProfileRun, ProjectRoad, Prompt,
    Question, QueuedCommand, QueuedPrompt, RaisedError, Raiser, Reference, References, Segment, Seq, Session,
    SessionCommand, SessionKind, SessionState, Setting, Source, Startup, Swap, SwapObstacle,
    SwappedDeclaration, ThinkingLevel, TokenUsage, Transcript, Unopened, Version, WarmUpReason, WorkEnding,
    WorkerExit, YieldReason,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
}

proptest! {
    #[test]
    fn an_event_is_read_back_as_it_was(event in any_event()) {
        round_trip(&event);
        round_trip(&event.body);
        round_trip(&event.metadata);
    }

    #[test]
    fn the_kind_of_an_event_is_the_one_that_is_stored(event in any_event()) {
        let stored = serde_json::to_value(&event).unwrap();
        prop_assert_eq!(&stored["kind"], event.body.kind());
    }

    #[test]
    fn a_session_is_read_back_as_it_was(session in any_session()) {
        round_trip(&session);
    }

    #[test]
    fn an_outcome_is_read_back_as_it_was(outcome in any_outcome()) {
        round_trip(&outcome);
    }

    #[test]
    fn an_error_is_read_back_as_it_was(error in any_error()) {
        round_trip(&error);
    }

    #[test]
    fn a_command_is_read_back_as_it_was(command in any_session_command(), create in any_create()) {
        round_trip(&command);
        round_trip(&create);
    }
}

#[test]
fn the_limits_are_read_back_as_they_were() {
    round_trip(&Limits::default());
}

#[test]
fn the_code_of_an_error_is_the_one_that_is_stored() {
    let mut seen = BTreeSet::new();
    for error in error_examples() {
        let stored = serde_json::to_value(&error).unwrap();
        assert_eq!(stored["error"], error.code().0);
        seen.insert(error.code().0.to_owned());
    }
    assert_eq!(
        seen,
        ErrorCode::ALL.iter().map(|code| code.0.to_owned()).collect(),
        "there is an example of every error"
    );
    assert_eq!(seen, known_tags::<Error>("error"));
}

#[test]
fn the_shape_of_every_event() {
    let examples = event_examples();
    let shown: BTreeSet<&str> = examples.iter().map(EventBody::kind).collect();
    assert_eq!(
        shown,
        known_tags::<EventBody>("kind").iter().map(String::as_str).collect(),
        "one of every kind"
    );
    let stored: Vec<String> = examples.iter().map(|body| serde_json::to_string(body).unwrap()).collect();
    insta::assert_snapshot!(stored.join("\n"));
}

#[test]
fn the_shape_of_an_event_with_its_place() {
    let body = EventBody::OutputCut { job: job_id(1), limit: 1024 };
    let environment =
        Environment { runtime: ".NET 10.0.1".to_owned(), references: references("cd34") }.fingerprint();
    let metadata = Metadata {
        source: client(),
        correlation: Some(command_id(1)),
        causation: Some(Seq(6)),
        environment: Some(environment),
    };
    let bare = Metadata { source: Source::System, correlation: None, causation: None, environment: None };
    let events = [
        Event { seq: Seq(7), metadata, body, ..creation() },
        Event { seq: Seq(8), metadata: bare, body: EventBody::SessionStopped, ..creation() },
    ];
    insta::assert_json_snapshot!(events);
}

#[test]
fn every_error_has_a_code_a_message_and_a_next_step() {
    let mut table = String::new();
    for error in error_examples() {
        let stored = serde_json::to_string(&error).unwrap();
        table.push_str(&format!("{}\n  {error}\n  {}\n  {stored}\n", error.code(), error.next_step()));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_refusal_says_in_every_state_what_would_help() {
    let mut table = String::new();
    for state in SessionState::ALL {
        for action in mainstay_model::Action::ALL {
            if mainstay_model::affordance::availability(state, action)
                == mainstay_model::Availability::Refused
            {
                let error = Error::NotOffered { action, state, kind: SessionKind::fsharp(), fault: None };
                table.push_str(&format!("{error}. {}\n", error.next_step()));
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_shape_of_every_command() {
    let commands = [
        SessionCommand::Eval(command::Eval {
            code: "1 + 1".to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        }),
        SessionCommand::Eval(command::Eval {
            code: "1 + 1".to_owned(),
            file: Some("/home/ada/a.fsx".to_owned()),
            command_line: None,
            withheld: false,
            origin: None,
        }),
        SessionCommand::Eval(command::Eval {
            code: "1 + 1".to_owned(),
            file: Some("/home/ada/a.fsx".to_owned()),
            command_line: Some(CommandLine {
                script: "a.fsx".to_owned(),
                arguments: vec!["data.csv".to_owned()],
            }),
            withheld: false,
            origin: None,
        }),
        SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None }),
        SessionCommand::Cancel(command::Cancel { target: Some(command_id(1)), grace_ms: None }),
        SessionCommand::Reset,
        SessionCommand::Refresh(command::Refresh { all: false }),
        SessionCommand::HardReset,
        SessionCommand::Start,
        SessionCommand::Stop,
        SessionCommand::Merge(command::Merge { point: Box::new(merge_point()), planned: Version(2) }),
        SessionCommand::Delete,
        SessionCommand::Unload(command::Unload { alias: Some("main".to_owned()) }),
        SessionCommand::Load(command::Load { alias: Some("main".to_owned()) }),
        SessionCommand::Rename(command::Rename { name: "demo".to_owned() }),
        SessionCommand::Compact(command::Compact {
            covers: vec![Segment::new(session_id(), 0, 4)],
            asked: Some(5),
            summary: "So far.".to_owned(),
        }),
        SessionCommand::Label(command::Label {
            index: 5,
            entry: entry(3),
            label: Some("the good one".to_owned()),
        }),
        SessionCommand::Label(command::Label { index: 5, entry: entry(3), label: None }),
        SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text("What is this?") }),
        SessionCommand::Work(JobSpec::Compaction { instructions: None }),
        SessionCommand::Work(JobSpec::Shell { line: "ls".to_owned(), is_private: true }),
        SessionCommand::Work(JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::Low })),
        SessionCommand::Work(JobSpec::Build),
        SessionCommand::Work(JobSpec::Rebuild),
        SessionCommand::Work(JobSpec::Comm(Box::new(comm()))),
        SessionCommand::Steer(QueuedPrompt { prompt: Prompt::text("Shorter."), hears: Delivery::FollowUp }),
        SessionCommand::Pause(command::Pause { target: None, prompt: Some("Is it wanted?".to_owned()) }),
        SessionCommand::Ask(Question::text("Which?")),
        SessionCommand::Answer(command::Answer::new(ask_id(1), json!("a"))),
        SessionCommand::Answer(command::Answer {
            channel: Some(Channel::new("ntfy:phone").unwrap()),
            lease: Some(LeaseTerms { duration_ms: 60_000, pattern: Some("/work/**".to_owned()) }),
            ..command::Answer::new(ask_id(1), json!("once"))
        }),
        SessionCommand::Decline(command::Decline { ask: ask_id(1) }),
        SessionCommand::Delegate(command::Delegate {
            parent: command_id(1),
            child: command_id(2),
            agent: "pi".to_owned(),
            inherits: vec!["fs.read".parse().unwrap()],
        }),
        SessionCommand::HandOver(command::HandOver {
            target: command_id(1),
            from: "sess_a".to_owned(),
            to: "sess_b".to_owned(),
        }),
        SessionCommand::Elevate(command::Elevate {
            target: command_id(1),
            elevation: Elevation {
                level: TrustLevel::Trusted,
                kind: "fs.write".parse().unwrap(),
                pattern: "/work/**".to_owned(),
                duration_ms: 60_000,
                reason: Some("the build writes there".to_owned()),
                asker: Some("sess_1".to_owned()),
            },
        }),
        SessionCommand::ExtendLease(command::ExtendLease {
            lease: LeaseId::from(ask_id(1)),
            duration_ms: Some(60_000),
        }),
        SessionCommand::RevokeLease(command::RevokeLease {
            lease: LeaseId::from(ask_id(1)),
            reason: "that was enough".to_owned(),
        }),
    ];
    let create = CreateSession {
        kind: SessionKind::fsharp(),
        working_directory: "/home/ada/demo".to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: None,
        alias: None,
    };
    let mut lines: Vec<String> = commands.iter().map(shown_with_fingerprint).collect();
    lines.push(shown_with_fingerprint(&create));
    insta::assert_snapshot!(lines.join("\n"));
}

/// The fingerprint is stored with the outcome: where it drifts, every repeated command becomes a conflict.
fn shown_with_fingerprint(command: &impl Serialize) -> String {
    let fingerprint = CommandFingerprint::of("target", command);
    format!("{}\n  {}", serde_json::to_string(command).unwrap(), fingerprint.as_str())
}

#[test]
fn the_shape_of_every_outcome() {
    use mainstay_model::{EvalEnding, EvalOutcome, Response};
    let eval = |ending, result: EvalResult| {
        let EvalResult { value, value_type, bindings, display, diagnostics, uses_last: _, touched: _ } =
            result;
        let (job, requested, completed) = (job_id(1), Seq(4), Seq(6));
        let outcome = EvalOutcome {
            job,
            requested,
            completed,
            ending,
            value,
            value_type,
            bindings,
            display,
            diagnostics,
            withheld: false,
            live: None,
            duration_ms: 12,
        };
        Response::Evaluated(outcome)
    };
    let responses = [
        Response::Created { session: session_id() },
        Response::Forked { session: session_id(), entries: 4, asked: Some(3) },
        Response::Merged { seq: Seq(9), entries: 2, at: 4, asked: Some(3) },
        Response::Compacted { seq: Seq(9), entries: 4, asked: Some(5) },
        Response::Cancelling { job: job_id(1) },
        Response::Withdrawn { command: command_id(1) },
        Response::Answered { ask: ask_id(1), value: json!("a"), by: client() },
        Response::Voted { ask: ask_id(1), seq: Seq(3), votes: 1, missing: 2 },
        Response::Recorded { seq: Seq(3) },
        eval(EvalEnding::Completed, result()),
        eval(EvalEnding::Rejected, EvalResult::default()),
        eval(EvalEnding::Raised { error: raised() }, EvalResult::default()),
        eval(EvalEnding::Cancelled, EvalResult::default()),
        eval(EvalEnding::Interrupted, EvalResult::default()),
        eval(EvalEnding::WorkerExited { exit: WorkerExit::Code(3) }, EvalResult::default()),
    ];
    let done = responses.into_iter().map(|response| Outcome::Done { response });
    let outcomes: Vec<Outcome> = done.chain([Outcome::Failed { error: Error::SessionStopped }]).collect();
    let stored: Vec<String> =
        outcomes.iter().map(|outcome| serde_json::to_string(outcome).unwrap()).collect();
    insta::assert_snapshot!(stored.join("\n"));
}

#[test]
fn the_shape_of_a_session() {
    let begun = Session::begin(&creation()).unwrap();
    let mut evaluating = begun.clone();
    let bodies = event_examples();
    for wanted in ["warmUpStarted", "warmUpCompleted", "evalRequested"] {
        let body = bodies.iter().find(|body| body.kind() == wanted).unwrap().clone();
        let seq = evaluating.last_seq.next();
        evaluating.evolve(&Event { seq, at: second(60), body, ..creation() });
    }
    evaluating.losses = vec![second(30)];
    insta::assert_json_snapshot!([begun, evaluating]);
}

/// The tags that a type can be read from, as serde itself lists them when it meets another.
fn known_tags<T: DeserializeOwned + Debug>(tag: &str) -> BTreeSet<String> {
    let unknown: Value = json!({ tag: "?" });
    let refusal = serde_json::from_value::<T>(unknown).unwrap_err().to_string();
    let (_, known) = refusal.split_once("expected one of ").unwrap();
    known.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

fn raised() -> RaisedError {
    RaisedError {
        kind: "System.DivideByZeroException".to_owned(),
        message: "Attempted to divide by zero.".to_owned(),
        stack: Some("   at <StartupCode$FSI_0003>.$FSI_0003.main@()".to_owned()),
        coloured_stack: None,
    }
}

fn references(hash: &str) -> References {
    let reference = Reference { path: Some("/p/a.dll".to_owned()), hash: Some(hash.to_owned()) };
    [("a.dll".to_owned(), reference)].into()
}

fn startup() -> Startup {
    let path = "/p/bin/Shop.dll".to_owned();
    let unopened = Unopened {
        name: "Shop.Money".to_owned(),
        reason: "it requires qualified access".to_owned(),
        is_meant: true,
    };
    let project = LoadedProject {
        path: "/p/Shop.fsproj".to_owned(),
        road: Some(ProjectRoad::Msbuild),
        framework: Some("net10.0".to_owned()),
        assemblies: vec![LoadedAssembly { path, error: None }],
        sources: vec!["/p/Shop.fs".to_owned(), "/p/Shop.fsproj".to_owned()],
        unbuilt: vec!["/p/Shop.fs".to_owned()],
        references: 3,
        missing: vec![LoadedAssembly {
            path: "/p/bin/a.dll".to_owned(),
            error: Some("bad image".to_owned()),
        }],
        opened: vec!["Shop".to_owned()],
        unopened: vec![unopened],
        notes: vec!["a note".to_owned()],
        problem: None,
    };
    let profile = ProfileRun {
        path: "/home/ada/.mainstay/init.fsx".to_owned(),
        diagnostics: Vec::new(),
        error: Some("System.Exception: no".to_owned()),
        output: "hello\n".to_owned(),
        duration_ms: 4,
    };
    Startup { notes: vec!["another SDK".to_owned()], project: Some(project), profiles: vec![profile] }
}

fn comm() -> CommMessage {
    CommMessage {
        comm: CommId::new("5f3c").unwrap(),
        step: CommStep::Open { target: "jupyter.widget".to_owned(), module: None },
        data: json!({ "state": { "value": 3 } }),
        metadata: json!({ "version": "2.1.0" }),
        buffers: vec![Base64::of(&[0, 255])],
    }
}

fn display() -> Display {
    let forms = json!({
        "text/plain": "Name  Age\nAda   36",
        "text/html": "<table></table>",
        "image/png": "iVBORw==",
        "application/vnd.vegalite.v5+json": { "mark": "line" },
    });
    let data: Bundle = serde_json::from_value(forms).unwrap();
    Display {
        id: Some(DisplayId::new("table").unwrap()),
        is_value: true,
        is_update: true,
        is_in_place: false,
        data,
    }
}

fn result() -> EvalResult {
    EvalResult {
        value: Some("3".to_owned()),
        value_type: Some("int".to_owned()),
        bindings: vec![Binding {
            name: "x".to_owned(),
            value_type: "int".to_owned(),
            value: Some("3".to_owned()),
        }],
        display: "val x: int = 3\n".to_owned(),
        diagnostics: vec![Diagnostic {
            severity: Severity::Warning,
            code: "FS0025".to_owned(),
            message: "Incomplete pattern matches on this expression.".to_owned(),
            file: None,
            start: TextPosition { line: 1, column: 5 },
            end: TextPosition { line: 1, column: 9 },
        }],
        uses_last: false,
        touched: Some(vec!["a.dll".to_owned()]),
    }
}

fn changed(change: LeaseChange) -> EventBody {
    EventBody::LeaseChanged { job: job_id(1), lease: LeaseId::from(ask_id(1)), change }
}

fn ended(ending: AskEnding) -> EventBody {
    EventBody::AskEnded { ask: ask_id(1), ending, channel: None }
}

#[allow(clippy::too_many_lines, reason = "a list of examples")]
fn event_examples() -> Vec<EventBody> {
    let (job, text) = (job_id(1), |text: &str| text.to_owned());
    vec![
        EventBody::SessionCreated {
            kind: SessionKind::fsharp(),
            name: text("demo"),
            working_directory: text("/home/ada/demo"),
            project: Some(text("/home/ada/demo/demo.fsproj")),
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias: None,
            capabilities: None,
        },
        EventBody::EntriesMerged(Box::new(merge_point())),
        EventBody::SessionForked(ForkPoint {
            from: session_id(),
            entries: 4,
            asked: Some(3),
            segments: vec![Segment::new(session_id(), 0, 4)],
            replay: vec![Segment::new(session_id(), 2, 4)],
            labels: labels(),
        }),
        EventBody::SessionImported { hash: ObjectHash::of(b"file") },
        EventBody::SessionRenamed { name: text("other") },
        EventBody::WarmUpStarted { reason: WarmUpReason::Started },
        EventBody::WarmUpCompleted {
            kernel: text("F# 10.0"),
            runtime: text(".NET 10.0.1"),
            language: Some(Language::named("F#")),
            pid: Some(4242),
            replayed: 2,
            diverged: vec![
                Divergence {
                    requested: Seq(4),
                    session: None,
                    kind: DivergenceKind::Ending { error: Some("NU1101 no such package".to_owned()) },
                },
                Divergence {
                    session: Some(session_id()),
                    requested: Seq(7),
                    kind: DivergenceKind::Values {
                        names: vec![text("now"), text("it")],
                        now: [(text("it"), text("3"))].into(),
                    },
                },
                Divergence { requested: Seq(9), session: None, kind: DivergenceKind::LeftOut },
            ],
            startup: Some(Box::new(startup())),
            reload: None,
            restored: None,
            duration_ms: 1200,
        },
        EventBody::SessionFaulted { message: text("the kernel cannot be started") },
        EventBody::SessionReset,
        EventBody::SessionHardReset,
        EventBody::SessionStopped,
        EventBody::SessionDeleted,
        EventBody::SessionUnloaded { alias: Some(text("main")) },
        EventBody::SessionLoaded { alias: None },
        EventBody::WorkerExited {
            exit: WorkerExit::Signal(9),
            attempt: 1,
            restart_after_ms: Some(1000),
            reason: None,
            blame: None,
        },
        EventBody::WorkerExited {
            exit: WorkerExit::Signal(6),
            attempt: 2,
            restart_after_ms: Some(2000),
            reason: Some(text("System.Exception: too late")),
            blame: Some(Blame { job, is_sure: true }),
        },
        EventBody::AskRaised(Box::new(Ask {
            ask: ask_id(1),
            raiser: Raiser::Job { job },
            question: Question { default: Some(json!("a")), ..Question::text("Which?") },
            deadline: Some(Deadline::after(second(0), 5_000)),
        })),
        EventBody::AskRaised(Box::new(Ask {
            ask: ask_id(1),
            raiser: Raiser::Command {
                command: command_id(1),
                fingerprint: CommandFingerprint::of("s", &()),
                key: Some(IdempotencyKey::new("k1").unwrap()),
            },
            question: Question::text("Which?"),
            deadline: None,
        })),
        EventBody::AskVoted {
            ask: ask_id(1),
            value: json!("a"),
            missing: 2,
            channel: Some(Channel::new("ntfy:phone").unwrap()),
            lease: Some(LeaseTerms { duration_ms: 60_000, pattern: Some(text("/work/**")) }),
        },
        EventBody::AskVoted { ask: ask_id(1), value: json!(1), missing: 1, channel: None, lease: None },
        ended(AskEnding::Answered { value: json!("a") }),
        EventBody::AskEnded {
            ask: ask_id(1),
            ending: AskEnding::Answered { value: json!("a") },
            channel: Some(Channel::new("ntfy:phone").unwrap()),
        },
        ended(AskEnding::Defaulted { value: json!("a") }),
        ended(AskEnding::TimedOut { limit_ms: 5_000 }),
        ended(AskEnding::Cancelled),
        EventBody::EvalRequested {
            job,
            command: command_id(1),
            fingerprint: CommandFingerprint::from_stored(text("ab12")),
            key: None,
            deadline: None,
            grants: None,
            code: text("let x = 1 + 2"),
            file: Some(text("/home/ada/demo/a.fsx")),
            command_line: None,
            withheld: false,
            origin: None,
        },
        EventBody::CommandQueued(Box::new(QueuedCommand {
            command: command_id(2),
            fingerprint: CommandFingerprint::from_stored(text("cd34")),
            key: Some(IdempotencyKey::new("once").unwrap()),
            depends_on: vec![command_id(1)],
            if_version: Some(Version(3)),
            deadline: Some(Deadline { at: second(60), limit_ms: 60_000 }),
            grants: Some(Box::new(grants())),
            body: SessionCommand::Reset,
        })),
        EventBody::CommandDequeued {
            principal: Principal::local(),
            command: command_id(2),
            error: Some(Error::Cancelled),
        },
        EventBody::OutputProduced { job: Some(job), stream: OutputStream::Stdout, text: text("hello\n") },
        EventBody::OutputDisplayed { job: Some(job), display: Box::new(display()) },
        EventBody::OutputCleared { job, is_replaced: true },
        EventBody::CommPublished { job: Some(job), message: Box::new(comm()) },
        EventBody::OutputCut { job, limit: 1_048_576 },
        EventBody::CancelRequested { job, grace_ms: None },
        EventBody::EvalTimedOut { job, limit_ms: 5_000 },
        EventBody::JobDenied { job, error: Error::GrantExpired { at: second(60) } },
        changed(LeaseChange::Granted { terms: Box::new(lease(None)) }),
        changed(LeaseChange::Granted { terms: Box::new(lease(Some("/work/**"))) }),
        changed(LeaseChange::Extended { expires_at: second(70) }),
        changed(LeaseChange::Revoked { reason: text("that was enough") }),
        EventBody::JobDelegated {
            job,
            child: command_id(2),
            agent: text("pi"),
            grants: Some(Box::new(grants())),
        },
        EventBody::DelegationEnded { job, child: command_id(2), unspent: amounts("USD:1.5") },
        EventBody::JobHandedOver { command: command_id(1), from: text("sess_a"), to: text("sess_b") },
        EventBody::EvalCompleted { job, result: result(), changes_state: true, duration_ms: 12 },
        EventBody::EvalFailed {
            job,
            failure: Failure::Raised { error: raised() },
            result: EvalResult::default(),
            changes_state: true,
            duration_ms: 12,
        },
        EventBody::EvalFailed {
            job,
            failure: Failure::WorkerExited { exit: WorkerExit::Unknown },
            result: EvalResult::default(),
            changes_state: false,
            duration_ms: 12,
        },
        EventBody::EvalCancelled { job, ending: CancelEnding::Killed, kept: None, grace_ms: None },
        EventBody::EvalCancelled {
            job,
            ending: CancelEnding::Yielded,
            kept: Some(CompletedPart { bytes: 14, bindings: result().bindings }),
            grace_ms: None,
        },
        EventBody::EvalInterrupted { job },
        EventBody::JobRequested {
            job,
            command: command_id(1),
            fingerprint: CommandFingerprint::of("s", &()),
            key: None,
            deadline: None,
            grants: None,
            work: JobSpec::Turn {
                prompt: Prompt {
                    text: text("What is this?"),
                    images: vec![Image { mime_type: text("image/png"), data: text("aGk=") }],
                },
            },
        },
        EventBody::MessageStreamed(Delta {
            job,
            message: 1,
            part: 0,
            role: PartRole::Assistant,
            offset: 0,
            text: text("It is"),
            tool: None,
        }),
        EventBody::PromptQueued(QueuedPrompt { prompt: Prompt::text("Shorter."), hears: Delivery::Steer }),
        EventBody::QueueChanged { queue: Vec::new() },
        EventBody::AgentChanged(Box::new(AgentState {
            model: Some(Model {
                provider: text("local"),
                id: text("m"),
                name: None,
                context_window: Some(128_000),
                about: json!({ "id": "m" }),
            }),
            thinking: ThinkingLevel::High,
            auto_compaction: true,
            context_tokens: Some(812),
        })),
        EventBody::AgentNoted(Note::ToolStarted {
            call: ToolCall { call: text("call-1"), tool: text("bash") },
            arguments: json!({ "command": "ls" }),
        }),
        EventBody::AgentNoted(Note::RetryStarted {
            attempt: 1,
            attempts: 3,
            delay_ms: 2_000,
            message: text("429 slow down"),
        }),
        EventBody::JobEnded {
            job,
            ending: WorkEnding::Done { reason: YieldReason::EndTurn, value: json!(null) },
            duration_ms: 12,
            grace_ms: None,
        },
        EventBody::JobEnded {
            job,
            ending: WorkEnding::Cancelled { by: CancelEnding::Killed },
            duration_ms: 12,
            grace_ms: Some(5_000),
        },
        EventBody::MessageAdded(Box::new(Message {
            parts: vec![
                Part::text(PartRole::Thinking, "A file.").with("signature", "c2ln"),
                Part::text(PartRole::Assistant, "I look."),
                Part::tool_call("call-1", "read", &json!({ "path": "a.txt" })),
            ],
            metadata: [("model".to_owned(), json!("a-model"))].into(),
            usage: Some(TokenUsage {
                input: 10,
                output: 5,
                cache_read: 3,
                cache_write: 1,
                cost: Cost::default(),
            }),
        })),
        EventBody::EnvironmentChanged { references: references("ab12") },
        EventBody::AssembliesChanged {
            old: references("ab12"),
            new: references("cd34"),
            changed: vec!["a.dll".to_owned()],
        },
        EventBody::SourcesChanged { changed: vec!["/shop/Cart.fs".to_owned()], in_build: false },
        EventBody::SourcesChanged { changed: vec!["/shop/Cart.fs".to_owned()], in_build: true },
        EventBody::SourcesSwapped(Box::new(Swap {
            files: [("/shop/Cart.fs".to_owned(), "ab12".to_owned())].into(),
            assemblies: vec!["Shop.dll".to_owned()],
            swapped: vec![SwappedDeclaration {
                name: "Shop.Cart.total".to_owned(),
                file: "/shop/Cart.fs".to_owned(),
                line: 3,
                kept: Some(KeptVersion::Closures),
            }],
            ..Swap::default()
        })),
        EventBody::SourcesSwapped(Box::new(Swap {
            obstacles: vec![SwapObstacle {
                file: "/shop/Cart.fs".to_owned(),
                code: "shape".to_owned(),
                name: "the type `Cart`".to_owned(),
                line: 5,
                reason: "the type `Cart` changed".to_owned(),
            }],
            ..Swap::default()
        })),
        EventBody::ApplicationStarted(Box::new(Application {
            name: "Shop".to_owned(),
            entry: Some("Shop.Web.main".to_owned()),
            arguments: vec!["--urls".to_owned(), "http://127.0.0.1:0".to_owned()],
            addresses: vec!["http://127.0.0.1:41234".to_owned()],
            pid: 4711,
            job: Some(job_id(7)),
        })),
        EventBody::ApplicationEnded(Box::new(EndedApplication {
            name: "Shop".to_owned(),
            ending: ApplicationEnding::Failed { message: "the port is taken".to_owned() },
        })),
        EventBody::ApplicationEnded(Box::new(EndedApplication {
            name: "Shop".to_owned(),
            ending: ApplicationEnding::Completed { exit_code: Some(3) },
        })),
        EventBody::TranscriptCompacted(Box::new(Compaction {
            covers: vec![Segment::new(session_id(), 0, 4)],
            summary: text("So far."),
            metadata: Default::default(),
        })),
        EventBody::EntryLabeled { entry: entry(3), label: Some(text("the good one")) },
        EventBody::EntryLabeled { entry: entry(3), label: None },
    ]
}

fn entry(number: u64) -> Origin {
    Origin { session: session_id(), number }
}

fn labels() -> Labels {
    let mut labels = Labels::default();
    labels.set(entry(3), mainstay_model::Timestamp::UNIX_EPOCH, Some("the good one".to_owned()));
    labels
}

fn merge_point() -> MergePoint {
    let brought = vec![Segment { kept: true, ..Segment::new(session_id(), 2, 4) }];
    let mut transcript = Transcript::default();
    transcript.insert(session_id(), 4, 2, &brought);
    let replay = transcript.inherited().to_vec();
    let from = session_id();
    MergePoint { from, entries: vec![3..4, 7..9], brought, at: 2, wanted: Some(1), transcript, replay }
}

fn grants() -> Grants {
    let granted = Grants::parse([("fs.read", ["/work/**"])], &PatternLimits::REQUEST).unwrap();
    granted.until(Some(second(60))).costing(Budget::parse(["USD:5.00"]).unwrap())
}
