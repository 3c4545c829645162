//! Events: the immutable facts of a session, in the order of its log. Source: seed 000, "Domain Events".
//!
//! Kinds are only ever added. An old shape that can no longer be read as it is gets a pure upcast here.

mod deadline;
mod description;
mod job_details;
mod job_part;
mod metadata;
mod points;
mod queued;
mod table;

use std::collections::BTreeMap;

pub use deadline::Deadline;
pub(crate) use deadline::ends_by;
pub use description::{Description, Tone};
pub use job_part::{EvalEnd, JobEnd, JobPart};
pub use points::{ForkPoint, MergePoint};
pub use queued::QueuedCommand;
use serde::{Deserialize, Serialize};
pub use table::{EventKind, Subject};

use crate::Timestamp;
use crate::agent::{AgentState, Delta, JobSpec, Note, QueuedPrompt, WorkEnding};
use crate::ask::{Ask, AskEnding};
use crate::capability::Capabilities;
use crate::comm::CommMessage;
use crate::command_line::CommandLine;
use crate::display::Display;
use crate::entry::Origin;
use crate::error::Error;
use crate::eval::{EvalResult, Failure, WorkerExit};
use crate::fingerprint::{CommandFingerprint, References};
use crate::grant::{Amounts, Grants, LeaseChange, LeaseTerms};
use crate::id::{
    AskId, Channel, CommandId, IdempotencyKey, JobId, LeaseId, Position, Principal, Seq, SessionId,
    SessionKind,
};
use crate::language::Language;
use crate::message::{Compaction, Message};
use crate::object::ObjectHash;
use crate::reload::Reload;
use crate::replay::{Divergence, Restored};
use crate::startup::Startup;

pub use self::job_details::{Blame, CancelEnding, CompletedPart, OutputStream, WarmUpReason};
pub use self::metadata::{Metadata, Source};

/// One fact, with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The session that the event belongs to.
    pub session: SessionId,
    /// Its place in the session.
    pub seq: Seq,
    /// Its place in the whole log.
    pub position: Position,
    /// When it was recorded.
    pub at: Timestamp,
    /// Who caused it, and by which command.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// What the event says.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What an event says, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", content = "body", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EventBody {
    /// A session came to be. Always its first event.
    SessionCreated {
        /// What does its work.
        kind: SessionKind,
        /// What people call it.
        name: String,
        /// The folder its code runs in, absolute.
        working_directory: String,
        /// The project it was opened for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        /// The projects that its folder had, where there were several and none was named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        passed_over: Vec<String>,
        /// What the compiler of its language is told, for good: that of each of its workers, and of its forks'.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        arguments: Vec<String>,
        /// What its creator calls it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<String>,
        /// What it can do, as whoever starts its runners declares it; what is usual of its kind where that is not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capabilities: Option<Capabilities>,
    },
    /// It began with entries of another session. Always its second event.
    SessionForked(ForkPoint),
    /// Entries of another session were put into its transcript.
    EntriesMerged(Box<MergePoint>),
    /// It was read from a file, whose cells follow. Always its second event.
    SessionImported {
        /// The file's hash, without its last line.
        hash: ObjectHash,
    },
    /// It has another name.
    SessionRenamed {
        /// The new name of the session.
        name: String,
    },
    /// A worker is being started.
    WarmUpStarted {
        /// The reason for the warm-up.
        reason: WarmUpReason,
    },
    /// The worker is there and has the session's definitions.
    WarmUpCompleted {
        /// The language tool and its version, as in `F# 4.7`.
        kernel: String,
        /// The runtime under it.
        runtime: String,
        /// The language that code is in, as the kernel says; none where it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<Language>,
        /// The process id of the worker, where it is a process of this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// How many submissions were replayed.
        replayed: u32,
        /// Whose part in the session is not what it was before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        diverged: Vec<Divergence>,
        /// What it brought in before them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        startup: Option<Box<Startup>>,
        /// What ran again, where that is because something had changed that the session's code uses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reload: Option<Box<Reload>>,
        /// What it has by a snapshot; none where there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored: Option<Box<Restored>>,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// The session is broken until it is reset.
    SessionFaulted {
        /// The reason of the fault, for people.
        message: String,
    },
    /// The session's definitions are dropped; a fresh session of the language follows in the same worker.
    SessionReset,
    /// The session's definitions and its worker are dropped.
    SessionHardReset,
    /// The session was stopped: its worker is gone, its transcript stays.
    SessionStopped,
    /// The session was deleted. Always its last event. What no other session refers to may be collected.
    SessionDeleted,
    /// The session was unloaded: its alias is free for another session, and its worker is gone. Its transcript stays.
    SessionUnloaded {
        /// The alias that it had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<String>,
    },
    /// A session that was unloaded was loaded again.
    SessionLoaded {
        /// The alias that it has now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<String>,
    },
    /// A worker process ended that nobody had told to.
    WorkerExited {
        /// How the worker's process ended.
        exit: WorkerExit,
        /// The how manieth loss in a row this is; a stable minute, or a reset, begins anew at 1. 0 where the running code
        /// ended it with an exit code (`exit`): that is no loss.
        attempt: u32,
        /// After how many milliseconds another is started; none when workers are lost too often.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restart_after_ms: Option<u64>,
        /// Why, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whose code brought it about, where something is known of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blame: Option<Blame>,
    },
    /// A command was accepted and waits for its turn in the session's lane. The source is its client.
    CommandQueued(Box<QueuedCommand>),
    /// A command that had waited left the lane without another event of its own: it did not begin, or had nothing to do.
    #[serde(rename = "commandLeft")]
    CommandDequeued {
        /// The principal that sent the command.
        principal: Principal,
        /// The id of the command.
        command: CommandId,
        /// Why it did not begin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// A running job, or a client's command, asks whoever is attached.
    AskRaised(Box<Ask>),
    /// A principal answered an ask that needs the same answer of more. The source is who answered.
    AskVoted {
        /// The ask that was answered.
        ask: AskId,
        /// The answer that was given.
        value: serde_json::Value,
        /// How many more principals must give the same.
        missing: u32,
        /// By which way a person answered, where the client said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        /// For how long a permission is given, where the answer gives one for a time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<LeaseTerms>,
    },
    /// An ask ended. The source is who answered.
    AskEnded {
        /// The ask that ended.
        ask: AskId,
        /// How the ask ended.
        #[serde(flatten)]
        ending: AskEnding,
        /// By which way a person answered, where the client said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// Code was accepted for running.
    EvalRequested {
        /// The job that runs it.
        job: JobId,
        /// The command that asked for it; its outcome is stored under (principal, command).
        command: CommandId,
        /// What the command said, so that a cut-off one can be given its outcome.
        fingerprint: CommandFingerprint,
        /// The client's name for what it wants done once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<IdempotencyKey>,
        /// When the command must have ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Deadline>,
        /// What the job may do at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grants: Option<Box<Grants>>,
        /// The code to be run.
        code: String,
        /// The file whose text it is, absolute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The command line that the code was given; without it, the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_line: Option<CommandLine>,
        /// The entry it was brought from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// Whether the code, and what comes of it, is stored nowhere: then there is none here.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        withheld: bool,
    },
    /// Code, or a process it left running, printed.
    OutputProduced {
        /// The running job; none between jobs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        /// The stream that carried the text.
        stream: OutputStream,
        /// What; bytes that are no UTF-8 stand as U+FFFD.
        text: String,
    },
    /// Code, or a thread it left running, showed something. It stands between what was printed before and after it.
    OutputDisplayed {
        /// The running job; none between jobs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        /// The content that was displayed.
        #[serde(flatten)]
        display: Box<Display>,
    },
    /// Code took back what it had printed and shown.
    OutputCleared {
        /// The job that is running.
        job: JobId,
        /// Whether something else takes its place at once, so that nothing need flicker.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_replaced: bool,
    },
    /// A kernel said something to the front ends of its session beside what its code puts out.
    CommPublished {
        /// The running job; none between jobs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        /// The message that was published.
        #[serde(flatten)]
        message: Box<CommMessage>,
    },
    /// A job printed more than is kept as it comes. What follows is left out, but for its end, which comes when the job ends.
    OutputCut {
        /// The job whose output was cut.
        job: JobId,
        /// How many bytes were kept.
        limit: u64,
    },
    /// Someone asked for the running job to stop.
    CancelRequested {
        /// The job to be cancelled.
        job: JobId,
        /// How long it may take to stop before its worker is killed, in milliseconds, where who asked said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_ms: Option<u64>,
    },
    /// The running job's command took longer than it may: it is answered, and the job was told to stop.
    EvalTimedOut {
        /// The job that timed out.
        job: JobId,
        /// How long the command might have taken, in milliseconds.
        limit_ms: u64,
    },
    /// The running job did, or has spent, what its grant does not allow, or the grant has ended: its command is answered, and the job was told
    /// to stop.
    JobDenied {
        /// The job that was denied.
        job: JobId,
        /// What the grant does not allow.
        error: Error,
    },
    /// What the running job may do beside its grant is something else from here on: people gave it a permission for a time, extended that, or took
    /// it back.
    LeaseChanged {
        /// The job that holds the lease.
        job: JobId,
        /// The lease that was changed.
        lease: LeaseId,
        /// What became of it.
        #[serde(flatten)]
        change: LeaseChange,
    },
    /// The running job gave a task to another agent. What that may cost is taken from its budget.
    JobDelegated {
        /// The job that gave the task.
        job: JobId,
        /// The command that is to carry it out, of the same principal.
        child: CommandId,
        /// The agent that is given the task.
        agent: String,
        /// What the other job may do at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grants: Option<Box<Grants>>,
    },
    /// A task that a job gave to another has ended, or was never begun. What is left of its part of the budget is the giving job's again, as long as
    /// that runs.
    DelegationEnded {
        /// The job that gave the task.
        job: JobId,
        /// The command that carried it out, of the same principal.
        child: CommandId,
        /// What the other job did not spend.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        unspent: Amounts,
    },
    /// A job that waits or runs was handed over to another session of ARCP of the same principal, which holds it from here on.
    JobHandedOver {
        /// The command of the job.
        command: CommandId,
        /// The session of ARCP that held it.
        from: String,
        /// The session of ARCP that holds it.
        to: String,
    },
    /// The code ran to its end.
    EvalCompleted {
        /// The job that ran the code.
        job: JobId,
        /// The result that the code returned.
        result: EvalResult,
        /// Whether it must run again to rebuild the session.
        changes_state: bool,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
    },
    /// The code did not run to its end.
    EvalFailed {
        /// The job that ran the code.
        job: JobId,
        /// The reason why the code failed.
        failure: Failure,
        /// What it gave up to there, and the diagnostics.
        result: EvalResult,
        /// Whether it must run again to rebuild the session.
        changes_state: bool,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
    },
    /// A cancelled job ended. It is not run again to rebuild the session, but for the part that is kept.
    EvalCancelled {
        /// The job that was cancelled.
        job: JobId,
        /// How the cancelled job ended.
        ending: CancelEnding,
        /// What had run to its end, where that changed the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<CompletedPart>,
        /// How long the cancel had given it to stop, in milliseconds, where it said so and the job did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_ms: Option<u64>,
    },
    /// A job was cut off: its worker was lost, or the daemon, or the daemon went down. It is not run again.
    EvalInterrupted {
        /// The job that was interrupted.
        job: JobId,
    },
    /// What the session's code rests on is something else from here on: it referred to more, or a worker has it anew.
    EnvironmentChanged {
        /// All of it, by name, with the content that the worker has.
        references: References,
    },
    /// Something that the session's code rests on, or did, has another content than before, wherever that was noticed.
    AssembliesChanged {
        /// All of it, by name, with the content it had.
        old: References,
        /// With the content it has.
        new: References,
        /// The names of what changed.
        changed: Vec<String>,
    },
    /// Files that the session's project is made of were written, and no build has taken them in yet.
    SourcesChanged {
        /// The paths of the changed files.
        changed: Vec<String>,
        /// Whether they were written before the build under way began, which takes them in.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_build: bool,
    },
    /// Changed sources of the session's project were put into the code that runs, or could not be.
    SourcesSwapped(Box<crate::Swap>),
    /// The application of the session's project runs in its worker.
    ApplicationStarted(Box<crate::Application>),
    /// The application of the session's project runs no more.
    ApplicationEnded(Box<crate::EndedApplication>),
    /// A runner was given something to do that is no code. Always before an agent hears of it.
    JobRequested {
        /// The job that was requested.
        job: JobId,
        /// The command that asked for it; its outcome is stored under (principal, command).
        command: CommandId,
        /// What the command said, so that a cut-off one can be given its outcome.
        fingerprint: CommandFingerprint,
        /// The client's name for what it wants done once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<IdempotencyKey>,
        /// When the command must have ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Deadline>,
        /// What the job may do at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grants: Option<Box<Grants>>,
        /// What it is to do.
        work: JobSpec,
    },
    /// A job ended that is no eval.
    JobEnded {
        /// The job that ended.
        job: JobId,
        /// How the job ended.
        #[serde(flatten)]
        ending: WorkEnding,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// How long the cancel had given it to stop, in milliseconds, where it said so and the job did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_ms: Option<u64>,
    },
    /// An agent says a piece of a message. Once the message is whole it is added; of one that never was there are pieces.
    MessageStreamed(Delta),
    /// Something was said to an agent while it works. It hears it when it can.
    PromptQueued(QueuedPrompt),
    /// What an agent has still to hear is this from here on.
    QueueChanged {
        /// All of it, in order.
        queue: Vec<QueuedPrompt>,
    },
    /// An agent goes on so from here on.
    AgentChanged(Box<AgentState>),
    /// Something happened to an agent while it works.
    AgentNoted(Note),
    /// Something was said in a conversation with a model.
    MessageAdded(Box<Message>),
    /// A summary stands for the beginning of the transcript from now on.
    TranscriptCompacted(Box<Compaction>),
    /// An entry of the transcript has a label from now on, or has it no more.
    EntryLabeled {
        /// The entry that has the label.
        entry: Origin,
        /// What it is called; none where that was taken off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
}
