//! The vocabulary of Mainstay: what a session is, what may be asked of it, and what follows.
//!
//! Everything here is pure: no I/O, no async, no clock, no randomness. Time and new ids come in as arguments.
//! The rules live in [`decide`](decide::decide) (a command or a notice from the worker → events and effects) and in
//! [`Session::evolve`] (an event → the session after it). The engine does what the effects say.

pub mod access;
pub mod affordance;
pub mod agent;
pub mod application;
pub mod ask;
mod base64;
pub mod breaker;
pub mod capability;
pub mod client_info;
pub mod comm;
pub mod command;
pub mod command_line;
pub mod decide;
pub mod diagnostic;
pub mod display;
pub mod elevation;
pub mod entry;
mod epoch;
pub mod error;
pub mod eval;
pub mod event;
pub mod filter;
pub mod fingerprint;
pub mod grant;
mod guidance;
pub mod history;
pub mod id;
mod identity;
pub mod label;
mod language;
pub mod limits;
pub mod live;
pub mod message;
pub mod object;
pub mod outcome;
mod parent_ending;
pub mod permission;
pub mod project;
pub mod rate;
pub mod reload;
pub mod replay;
pub mod runner_notice;
pub mod schedule;
pub mod screen;
pub mod search;
pub mod secret;
pub mod session;
pub mod session_search;
pub mod startup;
pub mod state;
pub mod store;
pub mod supervision;
pub mod swap;
pub mod testing;
pub mod timeline;
pub mod tool_call;
pub mod transcribe;
pub mod transcript;
mod trust;
mod trust_refusal;
pub mod validity;
pub mod vote;

pub use access::{Access, NamePattern, Right, Rights};
pub use affordance::{Action, Availability};
pub use agent::{
    AgentNotice, AgentState, Delivery, Delta, JobKind, JobSpec, Note, Prompt, QueuedPrompt, Setting,
    ThinkingLevel, WorkEnding, WorkOutcome, YieldReason,
};
pub use application::{
    Application, ApplicationEnding, ApplicationNotice, ApplicationStart, EndedApplication, SessionApplication,
};
pub use ask::{Ask, AskEnding, PendingAsk, Question, Raiser};
pub use base64::Base64;
pub use capability::{Capabilities, Capability};
pub use comm::{CommMessage, CommStep};
pub use command::{Admission, Command, CreateSession, ForkSession, SessionCommand};
pub use command_line::CommandLine;
pub use decide::{Decision, Effect, Input, Notice, WrittenFile, decide};
pub use diagnostic::{Diagnostic, Severity, TextPosition};
pub use display::{Bundle, Display, Form, Picture, PictureFormat, WantedSize};
pub use entry::{Content, Entry, EntryHash, Origin, Role, TranscriptEntry};
pub use epoch::Epoch;
pub use error::{Error, ErrorClass, ErrorCode, RateScope};
pub use eval::{Binding, EvalResult, Failure, RaisedError, WorkerExit};
pub use event::{
    Blame, CompletedPart, Deadline, EvalEnd, Event, EventBody, EventKind, ForkPoint, JobEnd, JobPart,
    MergePoint, Metadata, OutputStream, QueuedCommand, Source, WarmUpReason,
};
pub use filter::{EventFilter, SourceName};
pub use fingerprint::{CommandFingerprint, Environment, EnvironmentFingerprint, Reference, References};
pub use grant::{
    Amount, Amounts, Budget, Currency, Decimal, Denial, Grants, Lease, LeaseChange, LeaseTerms, NotASubset,
    Operation, OperationKind, Pattern, PatternLimits,
};
pub use history::{HistoryExtent, HistoryLine, HistoryPage, LineNumber, NewLine};
pub use id::{
    AskId, Channel, CommId, CommandId, DisplayId, IdempotencyKey, JobId, LeaseId, Position, Principal,
    RunnerId, Seq, SessionId, SessionKind, Version,
};
pub use label::{Label, Labels};
pub use language::Language;
pub use limits::Limits;
pub use live::Live;
pub use message::{Compaction, Cost, Message, Part, PartRole, TokenUsage};
pub use object::ObjectHash;
pub use outcome::{Answered, EvalEnding, EvalOutcome, Outcome, Response};
pub use parent_ending::ParentEnding;
pub use project::{ChosenProject, ProjectChoice};
pub use reload::Reload;
pub use replay::{Divergence, DivergenceKind, Restored};
pub use runner_notice::{
    BuildReport, JobEnding, JobReport, LastWords, NoticeNumber, RunnerInfo, RunnerNotice, TakenNotices,
};
pub use session::{Activity, Delegation, RunningJob, Session};
pub use session_search::{SessionSearch, SessionWork};
pub use startup::{LoadedAssembly, LoadedProject, ProfileRun, ProjectRoad, Startup, Unopened};
pub use state::{SessionState, Transition, WaitReason, transition};
pub use swap::{KeptVersion, Swap, SwapObstacle, SwappedDeclaration};
pub use testing::{
    BufferEnding, BufferRun, CallingDeclaration, ChosenPart, CodeMark, Coverage, CoveredRange, CoveringTest,
    EndingCounts, FailedTest, FileCoverage, LineCounts, LineState, LiveTesting, ReachedLines, RecordedRun,
    RecordedRuns, TestChoice, TestEnding, TestFailure, TestHistory, TestOutcome, TestPart, TestPlace,
    TestPolicy, TestProgress, TestResult, TestResultFeed, TestRun, TestSelection, TestTimeout, UnsavedBuffer,
};
pub use tool_call::ToolCall;
pub use transcript::{Bond, Segment, Transcript};
pub use trust_refusal::TrustRefusal;
pub use validity::{Validity, ValidityCounts};

/// A moment, UTC, to the microsecond.
pub use jiff::Timestamp;
