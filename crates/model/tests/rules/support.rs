//! Arbitrary values of the vocabulary. Jobs, seqs and texts come from small sets, so that they often meet.

use std::collections::BTreeMap;

use crate::agents::{any_agent_body, any_queued_prompt, any_work};
use mainstay_model::Language;
use mainstay_model::command;
use mainstay_model::diagnostic::{Severity, TextPosition};
use mainstay_model::elevation::{Elevation, TrustLevel};
use mainstay_model::event::CancelEnding;
use mainstay_model::grant::{
    Amounts, AskedOperation, Budget, Grants, Lease, LeaseChange, LeaseTerms, OperationKind, PatternLimits,
};
use mainstay_model::session::{Parent, Rebuilt, Surroundings, Waiting, WorkerInfo};
use mainstay_model::vote::Vote;
use mainstay_model::{
    Action, Activity, Application, ApplicationEnding, Ask, AskEnding, AskId, Base64, Binding, Blame, Bundle,
    Channel, CommId, CommMessage, CommStep, CommandFingerprint, CommandId, Compaction, CompletedPart, Cost,
    CreateSession, Deadline, Diagnostic, Display, DisplayId, Divergence, DivergenceKind, EndedApplication,
    Environment, EnvironmentFingerprint, Error, EvalEnding, EvalOutcome, EvalResult, Event, EventBody,
    Failure, ForkPoint, IdempotencyKey, JobId, JobKind, Labels, LeaseId, Limits, MergePoint, Message,
    Metadata, ObjectHash, Origin, Outcome, OutputStream, ParentEnding, Part, PartRole, PendingAsk, Position,
    Principal, ProjectChoice, Question, QueuedCommand, RaisedError, Raiser, RateScope, Reference, References,
    Response, RunningJob, Segment, Seq, Session, SessionApplication, SessionCommand, SessionId, SessionKind,
    SessionState, Source, Swap, SwapObstacle, SwappedDeclaration, Timestamp, TokenUsage, Transcript,
    Transition, TrustRefusal, Version, WaitReason, WarmUpReason, WorkerExit,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) fn session_id() -> SessionId {
    "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
}

pub(crate) fn job_id(number: u128) -> JobId {
    JobId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn ask_id(number: u128) -> AskId {
    AskId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn command_id(number: usize) -> CommandId {
    CommandId::new(format!("c{number}")).unwrap()
}

pub(crate) fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn client() -> Source {
    Source::Client { principal: Principal::local(), name: "cli".to_owned() }
}

pub(crate) fn any_job() -> impl Strategy<Value = JobId> {
    (0_u128..3).prop_map(job_id)
}

pub(crate) fn any_command_id() -> impl Strategy<Value = CommandId> {
    select(vec!["a", "c:1", "anon:A_B-2.3"]).prop_map(|text| CommandId::new(text).unwrap())
}

pub(crate) fn any_moment() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_000_000_000_000_000).prop_map(|micros| Timestamp::from_microsecond(micros).unwrap())
}

/// Small, and with everything that a format could stumble over.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    vec(select(vec!["a", "1", " ", "\n", "\0", "\"", "\\", "{", "é", "\u{2028}", "😀"]), 0..6)
        .prop_map(|parts| parts.concat())
}

fn any_kind() -> impl Strategy<Value = SessionKind> {
    select(vec!["fsharp", "python3", "pi"]).prop_map(|text| SessionKind::new(text).unwrap())
}

pub(crate) fn any_fingerprint() -> impl Strategy<Value = CommandFingerprint> {
    (0_u64..4).prop_map(|number| CommandFingerprint::from_stored(format!("{number:064x}")))
}

pub(crate) fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..10, Just(u64::MAX)]
}

fn any_seq() -> impl Strategy<Value = Seq> {
    (0_u64..10).prop_map(Seq)
}

pub(crate) fn any_source() -> impl Strategy<Value = Source> {
    let client =
        (any_principal(), any_text()).prop_map(|(principal, name)| Source::Client { principal, name });
    prop_oneof![client, Just(Source::Worker), Just(Source::System)]
}

fn any_environment() -> impl Strategy<Value = EnvironmentFingerprint> {
    (any_text(), any_references())
        .prop_map(|(runtime, references)| Environment { runtime, references }.fingerprint())
}

pub(crate) fn any_references() -> impl Strategy<Value = References> {
    let reference = (option::of(any_text()), option::of(any_text()));
    btree_map(any_text(), reference.prop_map(|(path, hash)| Reference { path, hash }), 0..3)
}

pub(crate) fn any_metadata() -> impl Strategy<Value = Metadata> {
    (any_source(), option::of(any_command_id()), option::of(any_seq()), option::of(any_environment()))
        .prop_map(|(source, correlation, causation, environment)| Metadata {
            source,
            correlation,
            causation,
            environment,
        })
}

fn any_position() -> impl Strategy<Value = TextPosition> {
    any::<(u32, u32)>().prop_map(|(line, column)| TextPosition { line, column })
}

pub(crate) fn any_diagnostic() -> impl Strategy<Value = Diagnostic> {
    let severity = prop_oneof![
        Just(Severity::Error),
        Just(Severity::Warning),
        Just(Severity::Info),
        Just(Severity::Hidden)
    ];
    (severity, any_text(), any_text(), option::of(any_text()), any_position(), any_position()).prop_map(
        |(severity, code, message, file, start, end)| Diagnostic {
            severity,
            code,
            message,
            file,
            start,
            end,
        },
    )
}

fn any_binding() -> impl Strategy<Value = Binding> {
    (any_text(), any_text(), option::of(any_text())).prop_map(|(name, value_type, value)| Binding {
        name,
        value_type,
        value,
    })
}

pub(crate) fn any_result() -> impl Strategy<Value = EvalResult> {
    let plain = (option::of(any_text()), option::of(any_text()), any_text());
    let touched = option::of(vec(any_text(), 0..3));
    (plain, vec(any_binding(), 0..3), vec(any_diagnostic(), 0..3), any::<bool>(), touched).prop_map(
        |((value, value_type, display), bindings, diagnostics, uses_last, touched)| EvalResult {
            value,
            value_type,
            bindings,
            display,
            diagnostics,
            uses_last,
            touched,
        },
    )
}

pub(crate) fn any_raised() -> impl Strategy<Value = RaisedError> {
    (any_text(), any_text(), option::of(any_text())).prop_map(|(kind, message, stack)| RaisedError {
        kind,
        message,
        coloured_stack: stack.as_ref().map(|stack| format!("\u{1b}[31m{stack}\u{1b}[0m")),
        stack,
    })
}

pub(crate) fn any_exit() -> impl Strategy<Value = WorkerExit> {
    prop_oneof![
        any::<i32>().prop_map(WorkerExit::Code),
        prop_oneof![Just(9), any::<i32>()].prop_map(WorkerExit::Signal),
        Just(WorkerExit::Unknown)
    ]
}

fn any_failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        Just(Failure::Rejected),
        any_raised().prop_map(|error| Failure::Raised { error }),
        any_exit().prop_map(|exit| Failure::WorkerExited { exit }),
    ]
}

pub(crate) fn any_stream() -> impl Strategy<Value = OutputStream> {
    prop_oneof![Just(OutputStream::Stdout), Just(OutputStream::Stderr)]
}

fn any_kept() -> impl Strategy<Value = CompletedPart> {
    (0_usize..4, vec(any_binding(), 0..3)).prop_map(|(bytes, bindings)| CompletedPart { bytes, bindings })
}

fn any_principal() -> impl Strategy<Value = Principal> {
    select(vec!["local", "ada"]).prop_map(|principal| Principal::new(principal).unwrap())
}

pub(crate) fn any_key() -> impl Strategy<Value = IdempotencyKey> {
    (0_u32..4).prop_map(|number| IdempotencyKey::new(format!("k{number}")).unwrap())
}

/// What a job may do, with what of it is spent.
pub(crate) fn any_grants() -> impl Strategy<Value = Box<Grants>> {
    let kinds = [("fs.read", "/work/**"), ("tool.call", "bash"), ("model.use", "p/*")];
    let granted = subsequence(kinds.to_vec(), 0..=kinds.len());
    let spent = option::of(0..200_u64);
    (granted, option::of(any_moment()), spent, option::of("[a-z]{1,8}")).prop_map(
        |(granted, until, spent, revoked)| {
            let granted = granted.into_iter().map(|(kind, pattern)| (kind, [pattern]));
            let mut grants = Grants::parse(granted, &PatternLimits::REQUEST).unwrap().until(until);
            if let Some(cents) = spent {
                grants = grants.costing(Budget::parse(["USD:1.00"]).unwrap());
                let cost = Cost::of_dollars(cents as f64 / 100.0);
                grants.spend_on(&TokenUsage { cost, ..TokenUsage::default() });
            }
            if let Some(reason) = revoked {
                let change = LeaseChange::Granted { terms: Box::new(lease(Some("/work/**"))) };
                grants.change_lease(LeaseId::from(ask_id(1)), &change, second(0));
                grants.revoke(&reason);
            }
            Box::new(grants)
        },
    )
}

pub(crate) fn any_deadline() -> impl Strategy<Value = Deadline> {
    (any_moment(), any_count()).prop_map(|(at, limit_ms)| Deadline { at, limit_ms })
}

fn any_version() -> impl Strategy<Value = Version> {
    (0_u64..4).prop_map(Version)
}

pub(crate) fn any_queued() -> impl Strategy<Value = QueuedCommand> {
    let known = (any_command_id(), any_fingerprint(), option::of(any_key()));
    let conditions = (
        vec(any_command_id(), 0..3),
        option::of(any_version()),
        option::of(any_deadline()),
        option::of(any_grants()),
    );
    (known, conditions, any_session_command()).prop_map(
        |((command, fingerprint, key), (depends_on, if_version, deadline, grants), body)| QueuedCommand {
            command,
            fingerprint,
            key,
            depends_on,
            if_version,
            deadline,
            grants,
            body,
        },
    )
}

fn any_ask_id() -> impl Strategy<Value = AskId> {
    (0_u128..3).prop_map(ask_id)
}

pub(crate) fn any_question() -> impl Strategy<Value = Question> {
    let text = (json!({ "type": "string" }), json!("a"));
    let one_or_two = (json!({ "enum": [1, 2] }), json!(1));
    let quorum = select(vec![None, None, Some(1), Some(2)]);
    (select(vec!["Which?", "Go on?"]), select(vec![text, one_or_two]), any::<bool>(), quorum).prop_map(
        |(prompt, (schema, fitting), has_default, quorum)| Question {
            prompt: prompt.to_owned(),
            schema,
            default: has_default.then_some(fitting),
            quorum,
        },
    )
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    select(vec![json!("a"), json!(1), json!(null), json!({ "b": [true] })])
}

/// What remains of a budget of which nothing is spent.
pub(crate) fn amounts(budget: &str) -> Amounts {
    Grants::default().costing(Budget::parse([budget]).unwrap()).remaining()
}

fn denied(job: JobId) -> EventBody {
    EventBody::JobDenied { job, error: Error::BudgetExhausted { currency: "USD".to_owned() } }
}

/// A lease for a file that is asked about, given at the beginning of time.
pub(crate) fn lease(pattern: Option<&str>) -> Lease {
    let asked =
        AskedOperation { kind: OperationKind::FS_WRITE, target: "/work/a".to_owned(), is_recursive: false };
    let terms = LeaseTerms { duration_ms: 60_000, pattern: pattern.map(str::to_owned) };
    Lease::new(asked, &terms, second(0), &Limits::default()).unwrap()
}

fn any_lease_change() -> impl Strategy<Value = LeaseChange> {
    prop_oneof![
        select(vec![None, Some("/work/**")])
            .prop_map(|pattern| LeaseChange::Granted { terms: Box::new(lease(pattern)) }),
        any_moment().prop_map(|expires_at| LeaseChange::Extended { expires_at }),
        "[a-z]{0,8}".prop_map(|reason| LeaseChange::Revoked { reason }),
    ]
}

fn any_lease_terms() -> impl Strategy<Value = LeaseTerms> {
    (any_count(), option::of("[a-z/*]{1,8}"))
        .prop_map(|(duration_ms, pattern)| LeaseTerms { duration_ms, pattern })
}

fn any_channel() -> impl Strategy<Value = Channel> {
    "[a-z]{1,5}:[^\\p{Cc}]{0,5}".prop_map(|text| Channel::new(text).unwrap())
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let command = (any_command_id(), any_fingerprint(), option::of(any_key()))
        .prop_map(|(command, fingerprint, key)| Raiser::Command { command, fingerprint, key });
    let raiser = prop_oneof![any_job().prop_map(|job| Raiser::Job { job }), command];
    (any_ask_id(), raiser, any_question(), option::of(any_deadline()))
        .prop_map(|(ask, raiser, question, deadline)| Ask { ask, raiser, question, deadline })
}

fn any_pending_ask() -> impl Strategy<Value = PendingAsk> {
    (any_ask(), any_seq(), any_moment(), any_source(), vec(any_vote(), 0..3)).prop_map(
        |(ask, raised, raised_at, source, votes)| PendingAsk { ask, raised, raised_at, source, votes },
    )
}

fn any_vote() -> impl Strategy<Value = Vote> {
    (any_source(), any_value(), option::of(any_channel()), option::of(any_lease_terms()))
        .prop_map(|(source, value, channel, lease)| Vote { source, value, channel, lease })
}

fn any_voted() -> impl Strategy<Value = EventBody> {
    (any_ask_id(), any_vote()).prop_map(|(ask, Vote { value, channel, lease, .. })| EventBody::AskVoted {
        ask,
        value,
        missing: 1,
        channel,
        lease,
    })
}

fn any_ask_ending() -> impl Strategy<Value = AskEnding> {
    prop_oneof![
        any_value().prop_map(|value| AskEnding::Answered { value }),
        any_value().prop_map(|value| AskEnding::Defaulted { value }),
        any_count().prop_map(|limit_ms| AskEnding::TimedOut { limit_ms }),
        Just(AskEnding::Cancelled),
        Just(AskEnding::Withheld),
    ]
}

fn any_divergence() -> impl Strategy<Value = Divergence> {
    let kind = prop_oneof![
        option::of(".{0,8}").prop_map(|error| DivergenceKind::Ending { error }),
        (vec(any_text(), 0..3), btree_map(any_text(), any_text(), 0..2))
            .prop_map(|(names, now)| DivergenceKind::Values { names, now }),
        Just(DivergenceKind::LeftOut),
        Just(DivergenceKind::Secret),
    ];
    (any_seq(), option::of(Just(session_id())), kind).prop_map(|(requested, session, kind)| Divergence {
        requested,
        session,
        kind,
    })
}

fn any_reason() -> impl Strategy<Value = WarmUpReason> {
    prop_oneof![
        Just(WarmUpReason::Started),
        Just(WarmUpReason::Reset),
        Just(WarmUpReason::HardReset),
        Just(WarmUpReason::Refreshed),
        Just(WarmUpReason::Cancelled),
        Just(WarmUpReason::WorkerLost),
        Just(WarmUpReason::DaemonLost),
    ]
}

/// Every kind of event, also those that no session would ever decide next.
pub(crate) fn any_body() -> impl Strategy<Value = EventBody> {
    prop_oneof![any_session_body(), any_job_body()]
}

fn any_session_body() -> impl Strategy<Value = EventBody> {
    let created = (any_kind(), any_text(), any_text(), option::of(any_text())).prop_map(
        |(kind, name, working_directory, project)| EventBody::SessionCreated {
            kind,
            name,
            working_directory,
            project,
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias: None,
            capabilities: None,
        },
    );
    let warmed_up = (
        (any_text(), any_text(), any::<Option<u32>>(), any::<u32>()),
        vec(any_divergence(), 0..3),
        any_count(),
        option::of(any_language()),
    )
        .prop_map(|((kernel, runtime, pid, replayed), diverged, duration_ms, language)| {
            EventBody::WarmUpCompleted {
                kernel,
                runtime,
                language,
                pid,
                replayed,
                diverged,
                startup: None,
                reload: None,
                restored: None,
                duration_ms,
            }
        });
    let attempt = prop_oneof![0_u32..4, Just(u32::MAX)];
    let blame = (any_job(), any::<bool>()).prop_map(|(job, is_sure)| Blame { job, is_sure });
    let why = (option::of(any_text()), option::of(blame));
    let exited = (any_exit(), attempt, option::of(any_count()), why).prop_map(
        |(exit, attempt, restart_after_ms, (reason, blame))| EventBody::WorkerExited {
            exit,
            attempt,
            restart_after_ms,
            reason,
            blame,
        },
    );
    prop_oneof![
        1 => created,
        1 => any_fork_point().prop_map(EventBody::SessionForked),
        1 => any_merge_point().prop_map(|point| EventBody::EntriesMerged(Box::new(point))),
        1 => Just(EventBody::SessionImported { hash: ObjectHash::of(b"file") }),
        1 => any_text().prop_map(|name| EventBody::SessionRenamed { name }),
        3 => any_reason().prop_map(|reason| EventBody::WarmUpStarted { reason }),
        3 => warmed_up,
        1 => any_text().prop_map(|message| EventBody::SessionFaulted { message }),
        1 => Just(EventBody::SessionReset),
        1 => Just(EventBody::SessionHardReset),
        1 => Just(EventBody::SessionStopped),
        1 => Just(EventBody::SessionDeleted),
        1 => option::of(any_text()).prop_map(|alias| EventBody::SessionUnloaded { alias }),
        1 => option::of(any_text()).prop_map(|alias| EventBody::SessionLoaded { alias }),
        1 => exited,
    ]
}

/// A display: maybe one of few names, with or without plain text.
pub(crate) fn any_comm() -> impl Strategy<Value = CommMessage> {
    let step = prop_oneof![
        (any_text(), option::of(any_text())).prop_map(|(target, module)| CommStep::Open { target, module }),
        Just(CommStep::Say),
        Just(CommStep::Close),
    ];
    let buffers = vec(vec(any::<u8>(), 0..4).prop_map(|bytes| Base64::of(&bytes)), 0..3);
    ("[ab]", step, any_text(), buffers).prop_map(|(comm, step, said, buffers)| CommMessage {
        comm: CommId::new(comm).unwrap(),
        step,
        data: json!({ "state": said }),
        metadata: Value::Null,
        buffers,
    })
}

pub(crate) fn any_display() -> impl Strategy<Value = Display> {
    let id = option::of("[ab]".prop_map(|id| DisplayId::new(id).unwrap()));
    let forms = (option::of(any_text()), option::of(any_text()), option::of(0..9));
    (id, any::<bool>(), forms).prop_map(|(id, is_value, (plain, html, json))| {
        let text = |name: &str, text: Option<String>| text.map(|text| (name.to_owned(), Value::from(text)));
        let json = json.map(|json| ("application/json".to_owned(), Value::from(json)));
        let forms = [text("text/plain", plain), text("text/html", html), json];
        Display {
            id,
            is_value,
            is_update: false,
            is_in_place: false,
            data: Bundle::from(forms.into_iter().flatten().collect::<BTreeMap<_, _>>()),
        }
    })
}

/// What the event says of a command that begins a job.
fn any_accepted() -> impl Strategy<
    Value = (CommandId, CommandFingerprint, Option<IdempotencyKey>, Option<Deadline>, Option<Box<Grants>>),
> {
    let bounds = (option::of(any_deadline()), option::of(any_grants()));
    (any_command_id(), any_fingerprint(), option::of(any_key()), bounds).prop_map(
        |(command, fingerprint, key, (deadline, grants))| (command, fingerprint, key, deadline, grants),
    )
}

fn any_task_body() -> impl Strategy<Value = EventBody> {
    let child = || command_id(7);
    prop_oneof![
        (any_job(), option::of(any_grants())).prop_map(move |(job, grants)| {
            EventBody::JobDelegated { job, child: child(), agent: "pi".to_owned(), grants }
        }),
        (any_job(), 0..1000_u64).prop_map(move |(job, left)| {
            EventBody::DelegationEnded { job, child: child(), unspent: amounts(&format!("USD:{left}")) }
        }),
        any_command_id().prop_map(|command| EventBody::JobHandedOver {
            command,
            from: "sess_a".to_owned(),
            to: "sess_b".to_owned(),
        }),
    ]
}

fn any_job_body() -> impl Strategy<Value = EventBody> {
    let said = any_accepted();
    let requested = (any_job(), said, any_text(), option::of(any_text())).prop_map(
        |(job, (command, fingerprint, key, deadline, grants), code, file)| EventBody::EvalRequested {
            job,
            command,
            fingerprint,
            key,
            deadline,
            grants,
            code,
            file,
            command_line: None,
            withheld: false,
            origin: None,
        },
    );
    let left = (any_principal(), any_command_id(), option::of(any_error()))
        .prop_map(|(principal, command, error)| EventBody::CommandDequeued { principal, command, error });
    let output = (option::of(any_job()), any_stream(), any_text())
        .prop_map(|(job, stream, text)| EventBody::OutputProduced { job, stream, text });
    let displayed = (option::of(any_job()), any_display())
        .prop_map(|(job, display)| EventBody::OutputDisplayed { job, display: Box::new(display) });
    let completed = (any_job(), any_result(), any::<bool>(), any_count()).prop_map(
        |(job, result, changes_state, duration_ms)| EventBody::EvalCompleted {
            job,
            result,
            changes_state,
            duration_ms,
        },
    );
    let failed = (any_job(), any_failure(), any_result(), any::<bool>(), any_count()).prop_map(
        |(job, failure, result, changes_state, duration_ms)| EventBody::EvalFailed {
            job,
            failure,
            result,
            changes_state,
            duration_ms,
        },
    );
    let ending = prop_oneof![Just(CancelEnding::Yielded), Just(CancelEnding::Killed)];
    prop_oneof![
        3 => requested,
        2 => any_queued().prop_map(|queued| EventBody::CommandQueued(Box::new(queued))),
        1 => left,
        3 => any_ask().prop_map(|ask| EventBody::AskRaised(Box::new(ask))),
        2 => (any_ask_id(), any_ask_ending(), option::of(any_channel()))
            .prop_map(|(ask, ending, channel)| EventBody::AskEnded { ask, ending, channel }),
        2 => any_voted(),
        1 => (any_job(), any_count()).prop_map(|(job, limit_ms)| EventBody::EvalTimedOut { job, limit_ms }),
        1 => any_job().prop_map(denied),
        2 => any_task_body(),
        2 => (any_job(), any_ask_id(), any_lease_change())
            .prop_map(|(job, ask, change)| EventBody::LeaseChanged { job, lease: LeaseId::from(ask), change }),
        1 => output,
        1 => displayed,
        1 => (any_job(), any::<bool>())
            .prop_map(|(job, is_replaced)| EventBody::OutputCleared { job, is_replaced }),
        1 => (option::of(any_job()), any_comm())
            .prop_map(|(job, message)| EventBody::CommPublished { job, message: Box::new(message) }),
        1 => (any_job(), any_count()).prop_map(|(job, limit)| EventBody::OutputCut { job, limit }),
        1 => (any_job(), any::<Option<u64>>())
            .prop_map(|(job, grace_ms)| EventBody::CancelRequested { job, grace_ms }),
        1 => completed,
        1 => failed,
        1 => (any_job(), ending, option::of(any_kept()))
            .prop_map(|(job, ending, kept)| EventBody::EvalCancelled { job, ending, kept, grace_ms: None }),
        1 => any_job().prop_map(|job| EventBody::EvalInterrupted { job }),
        4 => any_agent_body(),
        1 => any_message().prop_map(|message| EventBody::MessageAdded(Box::new(message))),
        1 => any_references().prop_map(|references| EventBody::EnvironmentChanged { references }),
        1 => (any_references(), any_references(), vec(any_text(), 0..3))
            .prop_map(|(old, new, changed)| EventBody::AssembliesChanged { old, new, changed }),
        1 => (vec(any_text(), 0..3), any::<bool>())
            .prop_map(|(changed, in_build)| EventBody::SourcesChanged { changed, in_build }),
        1 => any_swap().prop_map(|swap| EventBody::SourcesSwapped(Box::new(swap))),
        1 => any_application_body(),
        1 => any_compaction().prop_map(|compaction| EventBody::TranscriptCompacted(Box::new(compaction))),
        1 => (any_entry(), option::of(any_text())).prop_map(|(entry, label)| EventBody::EntryLabeled { entry, label }),
    ]
}

pub(crate) fn any_application() -> impl Strategy<Value = Application> {
    let texts = || vec(any_text(), 0..2);
    (any_text(), option::of(any_text()), texts(), texts(), 1_u32..3, option::of(any_job())).prop_map(
        |(name, entry, arguments, addresses, pid, job)| Application {
            name,
            entry,
            arguments,
            addresses,
            pid,
            job,
        },
    )
}

fn any_application_body() -> impl Strategy<Value = EventBody> {
    let ended = |(name, ending)| EventBody::ApplicationEnded(Box::new(EndedApplication { name, ending }));
    prop_oneof![
        any_application().prop_map(|one| EventBody::ApplicationStarted(Box::new(one))),
        (any_text(), any_application_ending()).prop_map(ended),
    ]
}

pub(crate) fn any_application_ending() -> impl Strategy<Value = ApplicationEnding> {
    prop_oneof![
        Just(ApplicationEnding::Stopped),
        option::of(-1_i32..3).prop_map(|exit_code| ApplicationEnding::Completed { exit_code }),
        any_text().prop_map(|message| ApplicationEnding::Failed { message }),
    ]
}

/// What came of putting files in: either nothing is in the way, or nothing is swapped.
pub(crate) fn any_swap() -> impl Strategy<Value = Swap> {
    let declaration = || {
        (any_text(), any_text(), 1_u32..9).prop_map(|(name, file, line)| SwappedDeclaration {
            name,
            file,
            line,
            kept: None,
        })
    };
    let obstacle = (any_text(), any_text(), 1_u32..9).prop_map(|(file, name, line)| SwapObstacle {
        file,
        code: "shape".to_owned(),
        name,
        line,
        reason: "it changed".to_owned(),
    });
    let files = btree_map(any_text(), any_text(), 0..3);
    let whole = (vec(declaration(), 0..3), vec(declaration(), 0..2), vec(any_text(), 0..2));
    (files, whole, vec(obstacle, 0..2)).prop_map(|(files, (swapped, outdated, assemblies), obstacles)| {
        match obstacles.is_empty() {
            true => Swap { files, assemblies, swapped, outdated, ..Swap::default() },
            false => Swap { files, obstacles, ..Swap::default() },
        }
    })
}

pub(crate) fn any_message() -> impl Strategy<Value = Message> {
    let part = (0..PartRole::ALL.len(), any_text(), option::of(any_text())).prop_map(|(role, text, call)| {
        let metadata = call.map(|call| ("call".to_owned(), call.into())).into_iter().collect();
        Part { role: PartRole::ALL[role], text, metadata }
    });
    let usage = (any::<u64>(), any_count(), any_count(), any_count(), any::<f64>()).prop_map(
        |(input, output, cache_read, cache_write, dollars)| {
            let cost = Cost::of_dollars(dollars);
            TokenUsage { input, output, cache_read, cache_write, cost }
        },
    );
    (vec(part, 0..4), option::of(any_text()), option::of(usage)).prop_map(|(parts, model, usage)| {
        let metadata = model.map(|model| ("model".to_owned(), model.into())).into_iter().collect();
        Message { parts, metadata, usage }
    })
}

pub(crate) fn any_compaction() -> impl Strategy<Value = Compaction> {
    let segment = (any_count(), any_count()).prop_map(|(from, to)| Segment::new(session_id(), from, to));
    let metadata = Default::default();
    (vec(segment, 0..3), any_text()).prop_map(move |(covers, summary)| Compaction {
        covers,
        summary,
        metadata: Clone::clone(&metadata),
    })
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    (any_count(), any_count(), any_moment(), any_metadata(), any_body()).prop_map(
        |(seq, position, at, metadata, body)| Event {
            session: session_id(),
            seq: Seq(seq),
            position: Position(position),
            at,
            metadata,
            body,
        },
    )
}

/// The first event of a session.
pub(crate) fn creation() -> Event {
    creation_of(SessionKind::fsharp())
}

pub(crate) fn creation_of(kind: SessionKind) -> Event {
    let body = EventBody::SessionCreated {
        kind,
        name: "demo".to_owned(),
        working_directory: "/home/ada/demo".to_owned(),
        project: Some("/home/ada/demo/demo.fsproj".to_owned()),
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    };
    let metadata = Metadata { source: client(), correlation: None, causation: None, environment: None };
    Event { session: session_id(), seq: Seq(1), position: Position(1), at: second(0), metadata, body }
}

/// A session's whole history: a creation, then anything at all.
pub(crate) fn any_history() -> impl Strategy<Value = Vec<Event>> {
    vec((any_moment(), any_metadata(), any_body()), 0..40).prop_map(|later| {
        let mut events = vec![creation()];
        for (at, metadata, body) in later {
            let seq = Seq(events.len() as u64 + 1);
            events.push(Event { session: session_id(), seq, position: Position(seq.0), at, metadata, body });
        }
        events
    })
}

pub(crate) fn any_state() -> impl Strategy<Value = SessionState> {
    (0..SessionState::ALL.len()).prop_map(|index| SessionState::ALL[index])
}

fn any_ending() -> impl Strategy<Value = EvalEnding> {
    prop_oneof![
        Just(EvalEnding::Completed),
        Just(EvalEnding::Rejected),
        any_raised().prop_map(|error| EvalEnding::Raised { error }),
        Just(EvalEnding::Cancelled),
        Just(EvalEnding::Interrupted),
        any_exit().prop_map(|exit| EvalEnding::WorkerExited { exit }),
    ]
}

fn any_response() -> impl Strategy<Value = Response> {
    let evaluated = (any_job(), any_seq(), any_seq(), any_ending(), any_result(), any_count()).prop_map(
        |(job, requested, completed, ending, result, duration_ms)| {
            let EvalResult { value, value_type, bindings, display, diagnostics, uses_last: _, touched: _ } =
                result;
            Response::Evaluated(EvalOutcome {
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
                duration_ms,
            })
        },
    );
    prop_oneof![
        Just(Response::Created { session: session_id() }),
        Just(Response::Forked { session: session_id(), entries: 4, asked: Some(3) }),
        Just(Response::Compacted { seq: Seq(4), entries: 4, asked: Some(5) }),
        evaluated,
        any_job().prop_map(|job| Response::Cancelling { job }),
        any_command_id().prop_map(|command| Response::Withdrawn { command }),
        (any_ask_id(), any_value(), any_source()).prop_map(|(ask, value, by)| Response::Answered {
            ask,
            value,
            by
        }),
        (any_ask_id(), any_seq()).prop_map(|(ask, seq)| Response::Voted { ask, seq, votes: 1, missing: 2 }),
        any_seq().prop_map(|seq| Response::Recorded { seq }),
    ]
}

pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        any_response().prop_map(|response| Outcome::Done { response }),
        any_error().prop_map(|error| Outcome::Failed { error }),
    ]
}

pub(crate) fn any_error() -> impl Strategy<Value = Error> {
    prop_oneof![
        (0..error_examples().len()).prop_map(|index| error_examples().swap_remove(index)),
        (0..Action::ALL.len(), any_state()).prop_map(|(action, state)| Error::NotOffered {
            action: Action::ALL[action],
            state,
            kind: SessionKind::fsharp(),
            fault: None,
        }),
        (0..Transition::ALL.len(), any_state())
            .prop_map(|(change, state)| Error::InvalidTransition { change: Transition::ALL[change], state }),
        any_text().prop_map(|reason| Error::BadRequest { reason }),
        (any_text(), vec(any_text(), 0..3))
            .prop_map(|(reference, candidates)| Error::SessionAmbiguous { reference, candidates }),
    ]
}

/// One of every error.
#[allow(clippy::too_many_lines, reason = "a list of examples")]
pub(crate) fn error_examples() -> Vec<Error> {
    let text = |text: &str| text.to_owned();
    vec![
        Error::SessionNotFound { reference: text("demo") },
        Error::SessionAmbiguous {
            reference: text("demo"),
            candidates: vec![text("099a8057"), text("17e2b4c1")],
        },
        Error::NotOffered {
            action: Action::Eval,
            state: SessionState::Evaluating,
            kind: SessionKind::fsharp(),
            fault: None,
        },
        Error::NotOffered {
            action: Action::Prompt,
            state: SessionState::Faulted,
            kind: SessionKind::pi(),
            fault: Some(text("the kernel cannot be started: gone.")),
        },
        Error::SessionExists { reference: text("main") },
        Error::NotOfKind { action: Action::Eval, kind: SessionKind::pi() },
        Error::InvalidTransition {
            state: SessionState::Ready,
            change: Transition::StartWait(WaitReason::Ask),
        },
        Error::SessionOwned,
        Error::Withheld { what: "wait for its turn".to_owned() },
        Error::LaneFull { limit: 64 },
        Error::TooManySessions { limit: 64 },
        Error::TooManyConnections { limit: 256 },
        Error::CommandConflict { command: command_id(1) },
        Error::NotRunning { command: command_id(1) },
        Error::Cancelled,
        Error::AskNotPending { reference: text("099a8057") },
        Error::AnswerInvalid { reason: text("5 is not of type \"string\"") },
        Error::TooManyAsks { limit: 32 },
        Error::ArtifactsTooLarge { stored: 1_000_000, limit: 1_000_000 },
        Error::TooManyOutcomes { limit: 1_000_000 },
        Error::TooManyRequests { what: text("requests"), limit: 256 },
        Error::NotPermitted { principal: Principal::local(), what: text("drive this session") },
        Error::GrantDenied { operation: text("fs.write"), target: text("/etc/hosts"), reason: None },
        Error::GrantDenied {
            operation: text("net.fetch"),
            target: text("http://a@b/"),
            reason: Some(text("a URL has no user information")),
        },
        Error::GrantExpired { at: Timestamp::UNIX_EPOCH },
        Error::GrantRevoked { reason: text("the review is over") },
        Error::BudgetExhausted { currency: text("USD") },
        Error::NotElevated { reason: text("nothing bounds it, so it is trusted already") },
        Error::TrustRefused { refusal: TrustRefusal::NotAllRights },
        Error::TrustRefused { refusal: TrustRefusal::OwnRequest },
        Error::TrustRefused { refusal: TrustRefusal::Privileged },
        Error::TrustRefused { refusal: TrustRefusal::Extension },
        Error::GrantExceeded { capability: text("fs.write"), asked: text("/**") },
        Error::ParentEnded { parent: command_id(1), ending: ParentEnding::Cancelled },
        Error::RunnerUnavailable {
            kind: SessionKind::fsharp(),
            provider: None,
            reason: text("there is no .NET SDK"),
            retry_after_ms: 30_000,
        },
        Error::RunnerUnavailable {
            kind: SessionKind::pi(),
            provider: Some(text("anthropic")),
            reason: text("529 overloaded"),
            retry_after_ms: 30_000,
        },
        Error::CommandNotFound { command: command_id(1) },
        Error::KeyConflict { key: IdempotencyKey::new("once").unwrap() },
        Error::DependencyUnknown { dependency: command_id(2) },
        Error::DependencyFailed { dependency: command_id(2), reason: text("rejected") },
        Error::DependencyInLane { dependency: command_id(2) },
        Error::DependencyCycle { dependency: command_id(2) },
        Error::DependencyPending { dependency: command_id(2), limit_ms: 30_000 },
        Error::DependsOnItself { command: command_id(1) },
        Error::VersionMismatch { expected: Version(4), actual: Version(5) },
        Error::BufferOutdated { path: text("/shop/Cart.fs"), newest: 7 },
        Error::TimedOut { limit_ms: 5_000 },
        Error::RateLimited { scope: RateScope::Session, limit: 100, retry_after_ms: 600 },
        Error::TooManyCommands { limit: 10_000 },
        Error::SessionStopped,
        Error::CodeTooLarge { bytes: 5, limit: 4 },
        Error::MessageTooLarge { limit: 4 },
        Error::CodeInvalid { reason: text("it has a NUL at byte 9") },
        Error::InvalidArgument { argument: text("name"), reason: text("it must not be empty") },
        Error::KernelUnknown { kind: SessionKind::new("cobol").unwrap() },
        Error::KernelUnavailable { reason: text("there is no .NET SDK") },
        Error::MirrorUnavailable { reason: text("`mirrors` in `[tests]` is 0") },
        Error::ToolWorkerUnavailable { reason: text("`/nowhere/tool` could not be started") },
        Error::WorkerFailed { reason: text("its channel closed") },
        Error::Timeout { limit_ms: 30_000 },
        Error::StoreFailed { reason: text("database or disk is full") },
        Error::StoreNewer { found: 9, known: 1 },
        Error::StoreLocked,
        Error::ObjectDamaged { hash: text("af13") },
        Error::EntryDamaged { session: session_id(), number: 4 },
        Error::ImportInvalid { line: 3, reason: text("it was cut off") },
        Error::NotebookInvalid { line: 1, reason: text("it is of version 3") },
        Error::ProjectNotFound { path: text("src/Shop.fsproj") },
        Error::ProjectAmbiguous { folder: text("/src"), projects: vec![text("A.fsproj"), text("B.fsproj")] },
        Error::EntryPointNotFound { reason: text("the session has no project") },
        Error::ProjectInvalid { path: text("src/Shop.fsproj"), reason: text("line 3: it ends too early") },
        Error::ObjectNotFound { hash: text("af13") },
        Error::DaemonStopping,
        Error::DaemonNotRunning,
        Error::DaemonSilent { pid: 4711, limit_ms: 20_000 },
        Error::DaemonVersionMismatch { daemon: text("0.1.0"), program: text("0.2.0") },
        Error::PortTaken { port: 7878 },
        Error::TooFewFiles { limit: 64, needed: 128 },
        Error::DaemonFailed { reason: text("it ended with exit code 1") },
        Error::Unauthorized,
        Error::ForbiddenOrigin { origin: text("https://example.org") },
        Error::BadRequest { reason: text("expected value at line 1 column 1") },
    ]
}

fn any_running() -> impl Strategy<Value = RunningJob> {
    let known = (any_command_id(), any_source(), any_fingerprint(), option::of(any_key()));
    let cancel = (any::<bool>(), any::<bool>(), any::<Option<u64>>());
    let state = (option::of(any_deadline()), option::of(any_grants()), cancel);
    (any_job(), known, any_seq(), any_moment(), state).prop_map(
        |(job, (command, source, fingerprint, key), requested, requested_at, state)| {
            let (deadline, grants, (cancel_requested, is_answered, grace_ms)) = state;
            RunningJob {
                job,
                command,
                source,
                fingerprint,
                requested,
                requested_at,
                cancel_requested,
                grace_ms,
                key,
                deadline,
                grants,
                withheld: false,
                is_answered,
                kind: JobKind::Eval,
            }
        },
    )
}

fn any_life() -> impl Strategy<Value = Activity> {
    prop_oneof![
        Just(Activity::Uninitialized),
        any_reason().prop_map(|reason| Activity::WarmingUp { reason }),
        Just(Activity::Ready),
        any_running().prop_map(|running| Activity::Evaluating { running }),
        any_running().prop_map(|running| Activity::Waiting { running, reason: WaitReason::Ask }),
        any_text().prop_map(|message| Activity::Faulted { message }),
    ]
}

fn any_segment() -> impl Strategy<Value = Segment> {
    (any::<u128>(), 0..100_u64, 0..100_u64, any::<bool>()).prop_map(|(session, from, count, kept)| Segment {
        session: SessionId::from_uuid(Uuid::from_u128(session)),
        from,
        to: from + count,
        kept,
    })
}

fn any_merge_point() -> impl Strategy<Value = MergePoint> {
    (any_fork_point(), vec(any_segment(), 0..4)).prop_map(|(fork, brought)| MergePoint {
        from: fork.from,
        entries: std::iter::once(0..fork.entries).collect(),
        brought,
        at: fork.entries,
        wanted: fork.asked,
        transcript: Transcript::beginning_with(fork.segments),
        replay: fork.replay,
    })
}

fn any_fork_point() -> impl Strategy<Value = ForkPoint> {
    (any::<u128>(), any::<u64>(), option::of(any::<u64>()), vec(any_segment(), 0..4), any_labels()).prop_map(
        |(from, entries, asked, segments, labels)| ForkPoint {
            from: SessionId::from_uuid(Uuid::from_u128(from)),
            entries,
            asked,
            replay: segments.clone(),
            segments,
            labels,
        },
    )
}

fn any_entry() -> impl Strategy<Value = Origin> {
    (0..5_u64).prop_map(|number| Origin { session: session_id(), number })
}

fn any_labels() -> impl Strategy<Value = Labels> {
    vec((any_entry(), any_moment(), any_text()), 0..4).prop_map(|given| {
        let mut labels = Labels::default();
        given.into_iter().for_each(|(entry, at, text)| labels.set(entry, at, Some(text)));
        labels
    })
}

fn any_language() -> impl Strategy<Value = Language> {
    any_text().prop_map(|name| Language::named(&name))
}

#[allow(clippy::too_many_lines, reason = "a list of fields")]
pub(crate) fn any_session() -> impl Strategy<Value = Session> {
    let worker = ((any_text(), any_text(), any::<Option<u32>>()), any_moment())
        .prop_map(|((kernel, runtime, pid), ready_at)| WorkerInfo { kernel, runtime, pid, ready_at });
    let texts = (
        any_kind(),
        option::of(any_language()),
        any_principal(),
        (any_text(), option::of(any_text()), any_text(), option::of(any_text())),
    );
    let numbers = (any_seq(), any_seq(), 0_u64..10, 0_u64..10);
    let rebuilt = (vec(any_divergence(), 1..3), any::<bool>())
        .prop_map(|(diverged, is_news)| Rebuilt { diverged, is_news });
    let surroundings = (any_text(), any_references(), any_references())
        .prop_map(|(runtime, loaded, present)| Surroundings { runtime, loaded, present });
    let waiting = (any_principal(), any_command_id(), any_seq())
        .prop_map(|(principal, command, queued)| Waiting { principal, command, queued });
    let history = (
        vec(any_moment(), 0..4),
        option::of(rebuilt),
        any_version(),
        vec(waiting, 0..3),
        vec(any_pending_ask(), 0..3),
        option::of(any_fork_point()),
        option::of(surroundings),
        option::of((any_application(), any_moment())),
    );
    (texts, any_moment(), any_moment(), any_life(), numbers, option::of(worker), history).prop_map(
        |(
            (kind, language, owner, (name, title, working_directory, project)),
            created_at,
            last_activity,
            life,
            (last_seq, definitions_since, evals, failures),
            worker,
            (losses, rebuilt, version, lane, asks, fork, surroundings, application),
        )| Session {
            id: session_id(),
            kind,
            name,
            title,
            owner,
            working_directory,
            project,
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias: None,
            capabilities: None,
            created_at,
            last_activity,
            life,
            last_seq,
            definitions_since,
            evals,
            failures,
            worker,
            language,
            losses,
            rebuilt,
            version,
            lane,
            asks,
            secret_asks: Default::default(),
            transcript: fork
                .clone()
                .map(|fork| Transcript::beginning_with(fork.segments))
                .unwrap_or_default(),
            begins_with: fork.clone().map(|fork| fork.replay).unwrap_or_default(),
            labels: fork.clone().map(|fork| fork.labels).unwrap_or_default(),
            forked_from: fork.map(|fork| Parent { session: fork.from, entries: fork.entries }),
            merged_at: None,
            deleted_at: None,
            unloaded_at: None,
            usage: TokenUsage { input: evals, ..TokenUsage::default() },
            surroundings,
            startup: None,
            unbuilt: BTreeMap::new(),
            obstacles: BTreeMap::new(),
            built: None,
            agent: None,
            queue: Vec::new(),
            messages: evals,
            delegations: Vec::new(),
            summary_is_new: evals == 3,
            application: application
                .map(|(application, since)| Box::new(SessionApplication { application, since })),
        },
    )
}

pub(crate) fn any_session_command() -> impl Strategy<Value = SessionCommand> {
    prop_oneof![
        4 => (any_text(), option::of(any_text())).prop_map(|(code, file)| SessionCommand::Eval(command::Eval { code, file, command_line: None, withheld: false, origin: None })),
        1 => (option::weighted(0.3, any_command_id()), any::<Option<u64>>())
            .prop_map(|(target, grace_ms)| SessionCommand::Cancel(command::Cancel { target, grace_ms })),
        1 => Just(SessionCommand::Reset),
        1 => any::<bool>().prop_map(|all| SessionCommand::Refresh(command::Refresh { all })),
        1 => Just(SessionCommand::HardReset),
        1 => any_work().prop_map(SessionCommand::Work),
        1 => any_queued_prompt().prop_map(SessionCommand::Steer),
        1 => Just(SessionCommand::Pause(command::Pause::default())),
        3 => Just(SessionCommand::Start),
        1 => Just(SessionCommand::Stop),
        1 => option::of(Just("main".to_owned())).prop_map(|alias| SessionCommand::Unload(command::Unload { alias })),
        1 => option::of(Just("main".to_owned())).prop_map(|alias| SessionCommand::Load(command::Load { alias })),
        1 => any_text().prop_map(|name| SessionCommand::Rename(command::Rename { name })),
        1 => any_compaction().prop_map(|Compaction { covers, summary, .. }| SessionCommand::Compact(command::Compact {
            covers, asked: None, summary
        })),
        1 => (any_count(), any_entry(), option::of(any_text()))
            .prop_map(|(index, entry, label)| SessionCommand::Label(command::Label { index, entry, label })),
        2 => any_question().prop_map(SessionCommand::Ask),
        1 => (any_ask_id(), any_value(), option::of(any_channel()), option::of(any_lease_terms())).prop_map(
            |(ask, value, channel, lease)| SessionCommand::Answer(command::Answer { ask, value, channel, lease })
        ),
        1 => (any_ask_id(), option::of(any_count())).prop_map(|(ask, duration_ms)| {
            let lease = LeaseId::from(ask);
            SessionCommand::ExtendLease(command::ExtendLease { lease, duration_ms })
        }),
        1 => (any_command_id(), option::of(Just(OperationKind::FS_READ))).prop_map(|(parent, inherits)| {
            let (child, inherits) = (command_id(7), inherits.into_iter().collect());
            SessionCommand::Delegate(command::Delegate { parent, child, agent: "pi".to_owned(), inherits })
        }),
        1 => any_command_id().prop_map(|target| {
            let (from, to) = ("sess_a".to_owned(), "sess_b".to_owned());
            SessionCommand::HandOver(command::HandOver { target, from, to })
        }),
        1 => (any_command_id(), any_count()).prop_map(|(target, duration_ms)| {
            let (kind, pattern) = (OperationKind::FS_WRITE, "/work/**".to_owned());
            let level = TrustLevel::Trusted;
            let elevation = Elevation { level, kind, pattern, duration_ms, reason: None, asker: None };
            SessionCommand::Elevate(command::Elevate { target, elevation })
        }),
        1 => (any_ask_id(), "[a-z]{0,8}").prop_map(|(ask, reason)| {
            let lease = LeaseId::from(ask);
            SessionCommand::RevokeLease(command::RevokeLease { lease, reason })
        }),
        1 => any_ask_id().prop_map(|ask| SessionCommand::Decline(command::Decline { ask })),
    ]
}

fn any_project() -> impl Strategy<Value = ProjectChoice> {
    prop_oneof![
        any_text().prop_map(ProjectChoice::At),
        Just(ProjectChoice::Nothing),
        Just(ProjectChoice::OfFolder)
    ]
}

pub(crate) fn any_create() -> impl Strategy<Value = CreateSession> {
    (any_kind(), (any_text(), any_project(), option::of(any_text()))).prop_map(
        |(kind, (working_directory, project, name))| CreateSession {
            kind,
            working_directory,
            project,
            arguments: Vec::new(),
            name,
            alias: None,
        },
    )
}
