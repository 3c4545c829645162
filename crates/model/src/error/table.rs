//! The table of errors: the class, the stable code and the next step of each. Gateways translate the class and override few.

use super::Error;
use crate::affordance::{self, Action};
use crate::capability::Capabilities;
use crate::id::SessionKind;

/// What kind of failure an error is. Protocols translate the class to their own codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The request, or a file that it names, is wrong by itself. Sending it again unchanged fails again.
    Invalid,
    /// What the request names does not exist, or the principal may not see it.
    NotFound,
    /// The caller has not shown who it is, or lacks the right.
    NotPermitted,
    /// The request contradicts what is stored or what other commands did.
    Conflict,
    /// The session, as it is now, does not do this. Another state or kind of session does.
    NotOffered,
    /// A limit is reached. The same request can succeed later.
    Full,
    /// Something that the request needs does not run, does not answer, or took too long.
    Unavailable,
    /// The store, the machine or the program failed.
    Internal,
}

/// The stable code of an error, such as `not_offered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub &'static str);

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! table {
    ($($variant:ident $({ $($field:ident),* })? => $class:ident, $code:literal, $next_step:expr;)*) => {
        impl Error {
            /// The kind of failure.
            pub const fn class(&self) -> ErrorClass {
                match self {
                    $(Self::$variant { .. } => ErrorClass::$class,)*
                }
            }

            /// Returns the stable code of the error.
            pub const fn code(&self) -> ErrorCode {
                match self {
                    $(Self::$variant { .. } => ErrorCode($code),)*
                }
            }

            /// What to do next: one sentence for a person or an agent, whatever protocol they use. A command of the command line is named only
            /// where nothing else helps; the command line and MCP have words of their own for others.
            pub fn next_step(&self) -> String {
                match self {
                    $(Self::$variant { $($($field,)*)? .. } => String::from($next_step),)*
                }
            }
        }

        impl ErrorCode {
            /// Every code there is.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode($code),)*];
        }
    };
}

table! {
    SessionNotFound => NotFound, "session_not_found", "List the sessions, and give an id or a name from there.";
    SessionAmbiguous => Conflict, "session_ambiguous", "Give more digits of the id, or the whole of it.";
    SessionExists => Conflict, "session_exists", "Use it, or take another name; the other can be renamed or deleted.";
    NotOffered { action, state } => NotOffered, "not_offered", affordance::remedy(*state, *action);
    NotOfKind { kind } => NotOffered, "not_of_kind", if kind.is_agent() { "Send it a prompt." } else { "Send it code." };
    InvalidTransition => NotOffered, "invalid_transition", "This is a defect of Mainstay; please report it.";
    SessionOwned => Conflict, "session_owned", "Send the command again; the owner will take it.";
    Withheld => NotOffered, "withheld", "Send it when the session is Ready and nothing waits in its lane.";
    LaneFull => Full, "lane_full", "Wait for some of them to end, or cancel the running one.";
    TooManySessions => Full, "too_many_sessions", "Stop one that is not needed, or raise `live-sessions`.";
    TooManyConnections => Full, "too_many_connections", "Close clients that are not needed, or raise `connections`.";
    CommandConflict => Conflict, "command_conflict", "Use a new id for a new command.";
    NotRunning => Conflict, "not_running", "It has ended, or never came; without a command's id, cancelling ends what runs.";
    Cancelled => Conflict, "cancelled", "Send it again under a new id if it should run after all.";
    AskNotPending => NotFound, "ask_not_pending", "It has been answered, has ended, or never was; list the asks for those that wait.";
    AnswerInvalid => Invalid, "answer_invalid", "Answer as the ask's schema wants.";
    TooManyAsks => Full, "too_many_asks", "Answer some of them, or raise `asks`.";
    ArtifactsTooLarge => Full, "artifacts_too_large", "Release artifacts, wait until some expire, or raise `artifact-bytes`.";
    TooManyOutcomes => Full, "too_many_outcomes", "Raise `outcomes`; none that is stored is ever dropped.";
    TooManyRequests => Full, "too_many_requests", "Send it again when some have ended, or open another connection.";
    NotPermitted => NotPermitted, "not_permitted", "Use a token with that right; `principals` in `config.toml` has who may what.";
    GrantDenied => NotPermitted, "grant_denied", "Do without it, or submit the job again with a grant that covers it.";
    GrantExpired => NotPermitted, "grant_expired", "Submit the job again with a grant that lasts longer.";
    GrantRevoked => NotPermitted, "grant_revoked", "Ask whoever revoked it for a new grant.";
    BudgetExhausted => NotPermitted, "budget_exhausted", "Submit the job again with a larger budget for what is left to do.";
    NotElevated => Conflict, "not_elevated", "Name a job of an agent that runs and that a grant bounds; one that holds too many leases can be trusted again once one has ended.";
    TrustRefused { refusal } => NotPermitted, "trust_refused", refusal.next_step();
    GrantExceeded => NotPermitted, "grant_exceeded", "Ask for no more than the job's own grant has, and than remains of its budget.";
    ParentEnded => Conflict, "parent_ended", "Send it again under a new id if it should run by itself.";
    RunnerUnavailable { retry_after_ms } => Unavailable, "runner_unavailable",
        format!("Mend that, and send it again in {retry_after_ms} ms.");
    CommandNotFound => NotFound, "command_not_found", "Check the id; events have it as `correlation`.";
    KeyConflict => Conflict, "key_conflict", "Use a new key for a new command.";
    DependencyUnknown => Conflict, "dependency_unknown", "Send the command that comes first, then this one again under a new id.";
    DependencyFailed => Conflict, "dependency_failed", "See why it failed; then send both again under new ids.";
    DependencyInLane => Conflict, "dependency_in_lane", IN_ORDER;
    DependencyCycle => Conflict, "dependency_cycle", IN_ORDER;
    DependencyPending => Conflict, "dependency_pending",
        "Send this one again under a new id when that has ended, or raise `dependency-wait-ms`.";
    DependsOnItself => Invalid, "depends_on_itself", IN_ORDER;
    VersionMismatch => Conflict, "version_mismatch", "Read the session again, and send the command under a new id if it still holds.";
    BufferOutdated => Conflict, "buffer_outdated", "Send the newest text of the file, with a version not below those that you have sent.";
    TimedOut => Unavailable, "timed_out", "What ran is cancelled. Give it more time, under a new id.";
    RateLimited { retry_after_ms } => Full, "rate_limited", format!("Send it again in {retry_after_ms} ms, or raise the limit.");
    TooManyCommands => Full, "too_many_commands", "Send it again when some have ended.";
    SessionStopped => Conflict, "session_stopped", "Start the session and send the command again under a new id.";
    CodeTooLarge => Invalid, "code_too_large", "Split it, load it with `#load`, or raise `code-bytes`.";
    MessageTooLarge => Invalid, "message_too_large", "Say less at once, or raise `message-bytes`.";
    CodeInvalid => Invalid, "code_invalid", "Send UTF-8 text without NUL characters.";
    InvalidArgument => Invalid, "invalid_argument", "Correct it and try again.";
    KernelUnknown { kind } => Invalid, "kernel_unknown", find_kernel(kind);
    KernelUnavailable => Unavailable, "kernel_unavailable",
        "`mainstay kernel doctor KIND` says what is missing; `mainstay kernel install fsharp` and `mainstay kernel install python` install what such sessions need.";
    MirrorUnavailable => Unavailable, "mirror_unavailable",
        "Save the file, and its tests run in the session. `[tests]` of `config.toml` has `mirrors` and `mirror-memory-bytes`; a session whose worker is of an older version is rebuilt first.";
    ToolWorkerUnavailable => Unavailable, "tool_worker_unavailable",
        "Correct `command` in `[tool-workers.NAME]` of `config.toml`, or what that command lacks; restart the daemon where you have changed the settings.";
    WorkerFailed => Unavailable, "worker_failed", "Stop the session and use it again; see the daemon's log for more.";
    Timeout => Unavailable, "timeout", "Try again; cancel the running job if it starves the worker.";
    StoreFailed => Internal, "store_failed", "See the daemon's log, and whether the disk is full or read-only.";
    StoreNewer => Internal, "store_newer", "Update Mainstay, or set MAINSTAY_HOME to another folder.";
    StoreLocked => Internal, "store_locked", "Use the daemon that runs, or stop it.";
    ObjectDamaged => Internal, "object_damaged", RESTORE;
    EntryDamaged => Internal, "entry_damaged", RESTORE;
    ImportInvalid => Invalid, "import_invalid", "Copy the file whole; where it is an exported session, export it again.";
    NotebookInvalid => Invalid, "notebook_invalid", "Save it as a Jupyter notebook of version 4, or give a script or a .dib file.";
    ProjectNotFound => NotFound, "project_not_found",
        "Give the path of an .fsproj, .sln or .slnx file, or of a folder with one; a solution's own list may be out of date.";
    ProjectAmbiguous => Invalid, "project_ambiguous", "Give the path of one of them, or ask for no project.";
    EntryPointNotFound => NotFound, "entry_point_not_found",
        "Give the project's program an `[<EntryPoint>]` function, or name the function that it begins with.";
    ProjectInvalid => Invalid, "project_invalid", "Correct the file; `dotnet build` says more where the SDK's own build works.";
    ObjectNotFound => NotFound, "object_not_found", "Check the hash.";
    DaemonStopping => Unavailable, "daemon_stopping",
        "Try again in a moment. A command that waited for its turn is kept, and carried out by the next daemon.";
    DaemonNotRunning => Unavailable, "daemon_not_running", "Start the daemon.";
    DaemonSilent { pid } => Unavailable, "daemon_silent", format!(
        "Let it go on with `kill -CONT {pid}` if it is suspended; else end it with `mainstay stop --force`. Sessions are rebuilt by the next daemon; code that runs is cut off."
    );
    DaemonVersionMismatch => Internal, "daemon_version_mismatch",
        "Run `mainstay upgrade`: the daemon goes on as this program, and so does running code.";
    PortTaken => Internal, "port_taken", "Choose another port; 0 takes any free one.";
    TooFewFiles => Internal, "too_few_files",
        "Allow more where it is started, as with `ulimit -n 1024`; where that is refused, whoever runs the machine raises the hard limit.";
    DaemonFailed => Internal, "daemon_failed", "See the log in the `logs` folder of Mainstay's home.";
    Unauthorized => NotPermitted, "unauthorized",
        "Send the token from the `token` file of Mainstay's home as a bearer token; in a browser, open the link that `mainstay web` gives.";
    ForbiddenOrigin => NotPermitted, "forbidden_origin", "Address the daemon as 127.0.0.1 or localhost.";
    BadRequest => Invalid, "bad_request", "Correct the request and try again.";
}

const IN_ORDER: &str = "Send them in an order in which each can come after what it depends on.";
const RESTORE: &str = "Restore the store from a backup.";

/// How to get a kernel of a kind that is unknown.
fn find_kernel(kind: &SessionKind) -> &'static str {
    match kind.as_str() {
        _ if kind.is_agent() => {
            "See `mainstay agent list` for the agents there are; until one is, the conversation can be read, searched, compacted, forked and exported."
        }
        "xpython" => {
            "`mainstay kernel install xpython` installs one; `mainstay kernel list` shows the kinds there are."
        }
        python if python.contains("py") => {
            "`mainstay kernel install python` installs one, for sessions of the kind `python`; `mainstay kernel list` shows the kinds there are."
        }
        _ => {
            "See `mainstay kernel list` for the kinds there are; `mainstay kernel install python` installs Python, other languages come with the Jupyter kernels of your environment."
        }
    }
}

impl Error {
    /// The actions offered instead, where a state refused one.
    pub fn offered(&self) -> Vec<Action> {
        match self {
            Self::NotOffered { state, kind, .. } => affordance::offered(*state, Capabilities::of_kind(kind)),
            _ => Vec::new(),
        }
    }
}
