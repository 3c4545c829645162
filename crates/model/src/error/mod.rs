//! Every error that a client can meet. `table.rs` has each one's class, stable code and next step; `docs/errors/<code>.md` explains each.

mod rate_scope;
mod table;
mod words;

pub use rate_scope::RateScope;
pub use table::{ErrorClass, ErrorCode};

use serde::{Deserialize, Serialize};

use crate::Action;
use crate::id::{CommandId, IdempotencyKey, Principal, SessionId, SessionKind, Version};
use crate::state::{SessionState, Transition};

/// What went wrong, as a stable code with fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "error", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Error {
    /// No session answers to the reference.
    #[error("no session answers to `{reference}`")]
    SessionNotFound {
        /// The name or id that was given.
        reference: String,
    },
    /// More than one session answers to the reference.
    #[error("`{reference}` could be any of: {}", candidates.join(", "))]
    SessionAmbiguous {
        /// The name or id that was given.
        reference: String,
        /// The sessions it could be.
        candidates: Vec<String>,
    },
    /// Another session of the same owner has the name in the folder already, or the alias.
    #[error("there is a session `{reference}` already")]
    SessionExists {
        /// The name, or the alias.
        reference: String,
    },
    /// The session's state does not offer the action.
    #[error("cannot {action}: the session is {state}{}", words::colon(fault.as_deref()))]
    NotOffered {
        /// The action that was asked for.
        action: Action,
        /// The state that refuses it.
        state: SessionState,
        /// The kind of session.
        #[serde(default = "SessionKind::fsharp", skip_serializing_if = "SessionKind::is_fsharp")]
        kind: SessionKind,
        /// Why the session is Faulted, where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
    /// Sessions of this kind do not know the action.
    #[error("cannot {action} in a session of the kind `{kind}`")]
    NotOfKind {
        /// The action that was asked for.
        action: Action,
        /// The kind of the session.
        kind: SessionKind,
    },
    /// The state machine has no such arrow.
    #[error("no transition {change:?} from {state}")]
    InvalidTransition {
        /// The state of the session.
        state: SessionState,
        /// The transition that was asked for.
        change: Transition,
    },
    /// Another owner has taken the session over.
    #[error("the session has another owner now")]
    SessionOwned,
    /// Code that is withheld wanted what cannot be done without storing it.
    #[error("code that is withheld cannot {what}: that would be stored")]
    Withheld {
        /// What it wanted: to wait for its turn, or to ask.
        what: String,
    },
    /// As many commands wait in the session's lane as may.
    #[error("{limit} commands wait for this session already")]
    LaneFull {
        /// How many may wait.
        limit: usize,
    },
    /// As many sessions are live as may be.
    #[error("{limit} sessions are live already")]
    TooManySessions {
        /// How many may be.
        limit: usize,
    },
    /// As many clients are connected as may be.
    #[error("{limit} clients are connected already")]
    TooManyConnections {
        /// How many may be.
        limit: usize,
    },
    /// The id was used before, for another command.
    #[error("the command id `{command}` was used before, for a different command")]
    CommandConflict {
        /// The id of the command.
        command: CommandId,
    },
    /// The command that should end neither runs nor waits.
    #[error("the command `{command}` neither runs nor waits in this session")]
    NotRunning {
        /// The command that does not run.
        command: CommandId,
    },
    /// The command was accepted, and taken back before its turn came, or before its ask was answered.
    #[error("the command was cancelled; nothing came of it")]
    Cancelled,
    /// No ask that waits for an answer answers to the reference.
    #[error("no ask `{reference}` waits for an answer")]
    AskNotPending {
        /// The id that was given.
        reference: String,
    },
    /// The answer is not what the ask's schema wants.
    #[error("this is no answer: {reason}")]
    AnswerInvalid {
        /// The reason why the answer is invalid.
        reason: String,
    },
    /// As many asks of the session wait for an answer as may.
    #[error("{limit} asks of this session wait for an answer already")]
    TooManyAsks {
        /// How many may wait.
        limit: usize,
    },
    /// As many outcomes are stored as may be.
    #[error("{limit} outcomes are stored already")]
    TooManyOutcomes {
        /// How many may be.
        limit: u64,
    },
    /// The artifacts of a principal have as many bytes as they may.
    #[error("the artifacts that are stored have {stored} bytes; {limit} are allowed together")]
    ArtifactsTooLarge {
        /// How many bytes they have.
        stored: u64,
        /// How many they may have.
        limit: u64,
    },
    /// One connection has as many requests, or subscriptions, under way as it may.
    #[error("{limit} {what} of this connection are under way already")]
    TooManyRequests {
        /// Of which there are too many: `requests` or `subscriptions`.
        what: String,
        /// How many may be.
        limit: usize,
    },
    /// The client's principal may not do this.
    #[error("the principal `{principal}` may not {what}")]
    NotPermitted {
        /// Whose right is missing.
        principal: Principal,
        /// What it may not do, as in `drive this session`.
        what: String,
    },
    /// No pattern of the job's grant covers the operation, or its target cannot be compared with patterns.
    #[error("the operation `{operation}` on `{target}` is not granted{}", words::colon(reason.as_deref()))]
    GrantDenied {
        /// The kind of the operation, as in `fs.write`.
        operation: String,
        /// What it was to act on.
        target: String,
        /// Why the target cannot be compared, where that is so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The job's grant has expired, and it attempted a further operation.
    #[error("the grant expired at {at}")]
    GrantExpired {
        /// When the grant expired.
        at: crate::Timestamp,
    },
    /// The job's grant was taken back before it expired.
    #[error("the grant was revoked: {reason}")]
    GrantRevoked {
        /// The reason that was given for it.
        reason: String,
    },
    /// Nothing remains of a currency of the job's budget.
    #[error("nothing remains of the budget in {currency}")]
    BudgetExhausted {
        /// The currency of which nothing remains.
        currency: String,
    },
    /// The job cannot be trusted with more than it is.
    #[error("the job cannot be elevated: {reason}")]
    NotElevated {
        /// The reason why it cannot be.
        reason: String,
    },
    /// No job is trusted with more in this way.
    #[error("{refusal}")]
    TrustRefused {
        /// What stands against it.
        refusal: crate::trust_refusal::TrustRefusal,
    },
    /// A job asked for a child's grant that its own does not cover.
    #[error("the grant asks for more than is held: {capability} `{asked}`")]
    GrantExceeded {
        /// The kind of the operation, `budget` or `expiry`.
        capability: String,
        /// The pattern, the amount or the moment that is more than is held.
        asked: String,
    },
    /// The job that gave this one its task has come to its end, and this one was told to stop for that.
    #[error("the job {parent}, which had given the task, {ending}")]
    ParentEnded {
        /// The command whose job had given the task.
        parent: CommandId,
        /// How that job came to its end.
        ending: crate::parent_ending::ParentEnding,
    },
    /// Runners of this kind failed to start, or agents' turns failed with this provider, too often in a row: none begins for a while.
    #[error("{}: {reason}", words::unavailable(kind, provider.as_deref()))]
    RunnerUnavailable {
        /// The kind of the session.
        kind: SessionKind,
        /// The provider of models; none where runners do not start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// How the last one failed.
        reason: String,
        /// When the next one is tried, in milliseconds.
        retry_after_ms: u64,
    },
    /// No command has this id.
    #[error("there is no command `{command}`")]
    CommandNotFound {
        /// The id of the command.
        command: CommandId,
    },
    /// The idempotency key was used before, for another command.
    #[error("the idempotency key `{key}` was used before, for a different command")]
    KeyConflict {
        /// The idempotency key that was used twice.
        key: IdempotencyKey,
    },
    /// A command that has to come first is not known.
    #[error("the command depends on `{dependency}`, which is not known")]
    DependencyUnknown {
        /// The command that is unknown.
        dependency: CommandId,
    },
    /// A command that has to come first did not succeed.
    #[error("the command depends on `{dependency}`, which failed: {reason}")]
    DependencyFailed {
        /// The command that failed.
        dependency: CommandId,
        /// How the dependency ended.
        reason: String,
    },
    /// A command that has to come first waits behind this one in the same lane.
    #[error("the command depends on `{dependency}`, which waits behind it in the same lane")]
    DependencyInLane {
        /// The command that waits in the same lane.
        dependency: CommandId,
    },
    /// A command that has to come first waits, in the end, for this one.
    #[error("the command depends on `{dependency}`, which in the end waits for it")]
    DependencyCycle {
        /// The command that closes the cycle.
        dependency: CommandId,
    },
    /// A command that has to come first has not ended in time.
    #[error("the command depends on `{dependency}`, which has not ended within {limit_ms} ms")]
    DependencyPending {
        /// The command that has no outcome yet.
        dependency: CommandId,
        /// How long was waited.
        limit_ms: u64,
    },
    /// The command depends on itself.
    #[error("the command `{command}` depends on itself")]
    DependsOnItself {
        /// The command that depends on itself.
        command: CommandId,
    },
    /// The session has another version than the command wants.
    #[error("the session has version {actual}, and the command wants {expected}")]
    VersionMismatch {
        /// The version that the command expects.
        expected: Version,
        /// The version that the session has.
        actual: Version,
    },
    /// A newer text of the file was sent before.
    #[error("version {newest} of `{path}` came before this one")]
    BufferOutdated {
        /// The path of the file.
        path: String,
        /// The newest version that came.
        newest: u64,
    },
    /// The command took longer than it may.
    #[error("the command did not end within {limit_ms} ms")]
    TimedOut {
        /// How long it might have taken.
        limit_ms: u64,
    },
    /// Commands come faster than they may.
    #[error("{limit} commands a minute are accepted, {scope}")]
    RateLimited {
        /// The scope whose rate is limited.
        scope: RateScope,
        /// How many a minute.
        limit: u32,
        /// When the next one may come, in milliseconds.
        retry_after_ms: u64,
    },
    /// As many commands are under way as may be, or as many tasks that the jobs of a session gave to others have not ended.
    #[error("{limit} commands, or open tasks of other jobs, are under way already")]
    TooManyCommands {
        /// How many may be.
        limit: usize,
    },
    /// The command was accepted and its session was stopped before its turn came.
    #[error("the session was stopped before the command's turn came")]
    SessionStopped,
    /// The code is larger than accepted.
    #[error("the code has {bytes} bytes; {limit} are accepted")]
    CodeTooLarge {
        /// The size of the code in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A message, or the body of a request, is longer than is read.
    #[error("the message has more than {limit} bytes")]
    MessageTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The code is no text that can be run.
    #[error("the code cannot be run: {reason}")]
    CodeInvalid {
        /// The reason why the code is invalid.
        reason: String,
    },
    /// An argument is not of its form.
    #[error("{argument} is not valid: {reason}")]
    InvalidArgument {
        /// The argument that is invalid.
        argument: String,
        /// The reason why the argument is invalid.
        reason: String,
    },
    /// Nothing here runs sessions of this kind.
    #[error("there is no kernel for sessions of kind `{kind}`")]
    KernelUnknown {
        /// The kind that is unknown.
        kind: SessionKind,
    },
    /// The kernel of this kind cannot be started on this machine.
    #[error("the kernel cannot be started: {reason}")]
    KernelUnavailable {
        /// The reason why the kernel is unavailable.
        reason: String,
    },
    /// There can be no process beside that of the session, which unsaved texts and measured tests need.
    #[error("no process can be started beside the session's: {reason}")]
    MirrorUnavailable {
        /// The reason why there is none.
        reason: String,
    },
    /// The tool worker of this kind cannot be started as the settings say, or does not take calls.
    #[error("the tool worker cannot be used: {reason}")]
    ToolWorkerUnavailable {
        /// The reason why the tool worker is unavailable.
        reason: String,
    },
    /// The worker does not answer, or not as it should.
    #[error("the worker failed: {reason}")]
    WorkerFailed {
        /// The way in which the worker failed.
        reason: String,
    },
    /// A query took longer than it may.
    #[error("no answer within {limit_ms} ms")]
    Timeout {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// The store refused to read or write.
    #[error("the store failed: {reason}")]
    StoreFailed {
        /// The way in which the store failed.
        reason: String,
    },
    /// The store was written by a newer Mainstay.
    #[error("the store has schema version {found}, newer than {known}, the newest this program knows")]
    StoreNewer {
        /// The version of the store's schema.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Another process has the store open.
    #[error("another daemon has the store open")]
    StoreLocked,
    /// An object's bytes do not match its hash.
    #[error("the object {hash} is damaged: its bytes do not match its hash")]
    ObjectDamaged {
        /// The hash it was asked by.
        hash: String,
    },
    /// A file is no exported session, or not what was exported.
    #[error("line {line} of the file cannot be imported: {reason}")]
    ImportInvalid {
        /// The line, from 1.
        line: u64,
        /// The reason why the file is invalid.
        reason: String,
    },
    /// A file is no notebook of its format.
    #[error("line {line} of the notebook cannot be read: {reason}")]
    NotebookInvalid {
        /// The line, from 1.
        line: u64,
        /// The reason why the notebook is invalid.
        reason: String,
    },
    /// There is no project where one was named.
    #[error("there is no project `{path}`")]
    ProjectNotFound {
        /// The path that was given.
        path: String,
    },
    /// A folder was named as a project, and has several.
    #[error("the folder `{folder}` has several projects: {}", projects.join(", "))]
    ProjectAmbiguous {
        /// The folder that holds several projects.
        folder: String,
        /// The projects and solutions in it, by name.
        projects: Vec<String>,
    },
    /// A session has no program that could be run as an application.
    #[error("there is no application to run: {reason}")]
    EntryPointNotFound {
        /// What was looked for, and what there is.
        reason: String,
    },
    /// What was named as a project is none, or cannot be read as one.
    #[error("the project `{path}` cannot be read: {reason}")]
    ProjectInvalid {
        /// The file: the one that was given, or one that it refers to.
        path: String,
        /// The reason why the project is invalid.
        reason: String,
    },
    /// An entry of a transcript is not what was written.
    #[error("entry {number} of session {session} is damaged: what is read is not what was written")]
    EntryDamaged {
        /// The session it came to be in.
        session: SessionId,
        /// Its number among that session's own entries.
        number: u64,
    },
    /// No object has this hash.
    #[error("there is no object {hash}")]
    ObjectNotFound {
        /// The hash of the object.
        hash: String,
    },
    /// The daemon is going down and takes nothing new.
    #[error("the daemon is stopping")]
    DaemonStopping,
    /// No daemon is running in this home.
    #[error("no daemon runs")]
    DaemonNotRunning,
    /// The daemon is there and does not answer: it is suspended, or hangs.
    #[error("the daemon (process {pid}) has not answered within {limit_ms} ms")]
    DaemonSilent {
        /// The process id of the daemon.
        pid: u32,
        /// How long its answer was waited for.
        limit_ms: u64,
    },
    /// The daemon is of another version than this program.
    #[error("the daemon is version {daemon}, this program is {program}")]
    DaemonVersionMismatch {
        /// The version of the daemon.
        daemon: String,
        /// The version of this program.
        program: String,
    },
    /// Someone else listens on the port.
    #[error("port {port} is taken")]
    PortTaken {
        /// The port that is taken.
        port: u16,
    },
    /// The system lets the daemon open fewer files than it needs; sockets and pipes count as files.
    #[error("the daemon may have {limit} files open at once, sockets and pipes included, and needs {needed}")]
    TooFewFiles {
        /// How many it may.
        limit: u64,
        /// How many it needs to begin.
        needed: u64,
    },
    /// The daemon did not come up.
    #[error("the daemon did not start: {reason}")]
    DaemonFailed {
        /// The reason why the daemon failed.
        reason: String,
    },
    /// The caller has not shown a valid token.
    #[error("the token is missing or wrong")]
    Unauthorized,
    /// The request comes from a page or a name that is not this machine's.
    #[error("requests from `{origin}` are not accepted")]
    ForbiddenOrigin {
        /// The Host or Origin header.
        origin: String,
    },
    /// The request has no form that is known here.
    #[error("the request cannot be understood: {reason}")]
    BadRequest {
        /// The reason why the request is invalid.
        reason: String,
    },
}
