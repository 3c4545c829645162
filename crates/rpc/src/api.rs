//! The methods, `resource/verb`, with their parameters and results.

use std::collections::BTreeMap;
use std::ops::Range;

use mainstay_engine::{ClientInfo, ExportCursor, Live};
use mainstay_formats::exchange::{Header, ImportFormat, Item};
use mainstay_log::{Collected, Collection, Manifest, StoreStatistics};
use mainstay_model::breaker::BreakerStatus;
use mainstay_model::{
    Admission, AskId, CommandId, CommandLine, Delivery, Event, EventFilter, HistoryPage, JobId, JobSpec,
    Limits, LineNumber, NewLine, Position, Prompt, Question, Role, Seq, SessionId, SessionKind, Source,
    Startup, Timestamp,
};
use mainstay_runner::{AgentQuestion, Environment, WarmUpProgress};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use mainstay_gateway::command::{Conditions, Sent};
pub use mainstay_gateway::json_rpc::Method;
pub use mainstay_gateway::local_socket::Attached;
use mainstay_gateway::view::agent::WorkView;
use mainstay_gateway::view::{
    AskView, CommandView, EntryView, EvalView, FoundView, LabelView, MergeView, RelativeView, SessionView,
    StatisticsView,
};

macro_rules! methods {
    ($($(#[$doc:meta])* $name:literal $params:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $params {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl Method for $params {
                const NAME: &'static str = $name;
                type Answer = $answer;
            }
        )*

        /// How each method reads its parameters.
        #[cfg(feature = "fuzzing")]
        pub(super) const READERS: &[(&str, fn(&mainstay_gateway::json_rpc::Request))] =
            &[$(($name, super::fuzz_invariants::reads_its_parameters::<$params>),)*];
    };
}

methods! {
    /// Shows a token. Must be the first request of a connection.
    "client/attach" Attach {
        /// The token of the principal that the client stands for.
        token: String,
        /// What the client is: `cli`, `terminal`.
        name: String,
        /// What the client has in its environment: the sessions that it creates get it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<Environment>,
    } -> Attached;

    /// The daemon and its sessions.
    "daemon/status" GetStatus {} -> DaemonStatus;

    /// An address that lets a browser in, once, on behalf of who asks.
    "daemon/link" GetLink {
        /// The page to open; the list of sessions where it does not say.
        #[serde(default)]
        session: Option<String>,
    } -> Link;

    /// Puts every session to rest and ends the daemon.
    "daemon/stop" StopDaemon {} -> Nothing;

    /// The sessions, most recently active first.
    "session/list" ListSessions {
        /// Only those that run in this folder.
        #[serde(default)]
        working_directory: Option<String>,
        /// Only those that run in this folder or below it, or are for a project that lies there.
        #[serde(default)]
        within: Option<String>,
        /// Only those that are not at rest.
        #[serde(default)]
        live: bool,
        /// At most so many.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<SessionView>;

    /// Creates a session and starts it.
    "session/create" CreateSession {
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// What does its work.
        kind: SessionKind,
        /// The folder its code runs in, absolute.
        working_directory: String,
        /// The project it is for, or the folder that one lies in, absolute; that of its own folder where it does not say.
        #[serde(default)]
        project: Option<String>,
        /// For no project, whatever lies in its folder.
        #[serde(default)]
        no_project: bool,
        /// Options of the F# compiler, parted by spaces.
        #[serde(default)]
        fsi_args: Option<String>,
        /// What people call it.
        #[serde(default)]
        name: Option<String>,
    } -> SessionView;

    /// Creates a session that begins with entries of another, and has its values once it is ready.
    "session/fork" ForkSession {
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// The other: its id, the end of it, or its name.
        session: String,
        /// How many entries of its transcript, from the first; all where it does not say.
        #[serde(default)]
        entries: Option<u64>,
        /// What people call the new one; by default the other's name, numbered.
        #[serde(default)]
        name: Option<String>,
        /// With what there was before the other's last reset, instead of a number of entries.
        #[serde(default)]
        before_reset: bool,
    } -> Forked;

    /// Entries of a session's transcript.
    "session/entries" ListEntries {
        /// Its id, the end of it, or its name.
        session: String,
        /// From the one with this index on.
        #[serde(default)]
        from: u64,
        /// At most so many, at most 1000; a page of large entries ends earlier.
        #[serde(default)]
        limit: Option<usize>,
        /// Large ones with all that they say instead of an object, at most 16 of them.
        #[serde(default)]
        full: bool,
    } -> Vec<EntryView>;

    /// Runs the inputs of another session's entries in a session, up to the first that does not run to its end.
    "session/merge" MergeSession {
        /// The session they run in: its id, the end of it, or its name.
        session: String,
        /// The client's name for the command: sent again under it, it goes on where it was cut off, and runs nothing twice.
        /// Each input is a command of its own: `NAME.1`, `NAME.2`, …
        #[serde(default)]
        command: Option<CommandId>,
        /// The session to merge from.
        from: String,
        /// Which entries of its transcript, each by the first index and the one after the last.
        entries: Vec<Range<u64>>,
    } -> MergeView;

    /// Puts entries of another session into a session's transcript, at a place. Nothing is copied; what is live is built anew with them.
    "session/insert" InsertEntries {
        /// The session whose transcript it is: its id, the end of it, or its name.
        session: String,
        /// The client's name for the command: sent again under it, it gets the first answer.
        #[serde(default)]
        command: Option<CommandId>,
        /// The session to pick from.
        from: String,
        /// Which entries of its transcript, each by the first index and the one after the last.
        entries: Vec<Range<u64>>,
        /// Behind how many entries; at the end where it does not say.
        #[serde(default)]
        at: Option<u64>,
    } -> Inserted;

    /// Has a summary stand for the beginning of a session's transcript. What it stands for stays readable.
    "session/compact" CompactSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// For the entries before the one with this index; for fewer, where a call would lose its result.
        before: u64,
        /// The summary that replaces the older entries.
        summary: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Compacted;

    /// Gives an entry of a session's transcript a label, or takes it off. Forks that are made then have it too.
    "session/label" LabelEntry {
        /// Its id, the end of it, or its name.
        session: String,
        /// The index of the entry.
        entry: u64,
        /// The label; none to take it off.
        #[serde(default)]
        label: Option<String>,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// What entries of a session's transcript are called, in their order.
    "session/labels" ListLabels {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<LabelView>;

    /// A part of a session's export.
    "session/export" ExportSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Where the part begins; the first one where it does not say.
        #[serde(default)]
        cursor: ExportCursor,
    } -> Exported;

    /// Creates a session with the cells of an exported one, and has its values once it is ready; or with an agent's conversation,
    /// as Claude Code or pi keeps it.
    "session/import" ImportSession {
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// The file, as `session/export` and the format of its lines have it, or as Claude Code or pi wrote it.
        file: String,
        /// The folder its code runs in, absolute; by default the one it ran in.
        #[serde(default)]
        working_directory: Option<String>,
        /// What people call it; by default as before, numbered where a session is called so.
        #[serde(default)]
        name: Option<String>,
    } -> Imported;

    /// Entries by the words in them, the best first.
    "session/search" SearchEntries {
        /// Words, all of which must be in an entry: `word other "several in a row" begin*`.
        words: String,
        /// Only in this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
        /// Only in sessions that run in this folder.
        #[serde(default)]
        working_directory: Option<String>,
        /// Only in sessions whose work this does.
        #[serde(default)]
        kind: Option<SessionKind>,
        /// Only those with one of these roles.
        #[serde(default)]
        roles: Vec<Role>,
        /// Only those that came to be then or later.
        #[serde(default)]
        since: Option<Timestamp>,
        /// Only those that came to be before.
        #[serde(default)]
        until: Option<Timestamp>,
        /// Not the first so many.
        #[serde(default)]
        offset: usize,
        /// At most so many, at most 100; 20 where it does not say.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<FoundView>;

    /// Keeps lines of the principal's own history, those over 10 KiB as objects.
    "history/add" AddHistory {
        /// The lines, oldest first; one that is sent again under its id is kept once.
        lines: Vec<NewLine>,
    } -> HistoryAdded;

    /// Lines of the principal's own history, newest first.
    "history/list" ListHistory {
        /// Only those of this folder, and those of no folder.
        #[serde(default)]
        folder: Option<String>,
        /// Only those of this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
        /// Only those in which each of these stands; of an object only the beginning is looked at.
        #[serde(default)]
        words: Vec<String>,
        /// Return only lines older than this one.
        #[serde(default)]
        before: Option<LineNumber>,
        /// Return only lines newer than this one.
        #[serde(default)]
        after: Option<LineNumber>,
        /// At most so many, at most 1000; a page of large lines ends earlier.
        #[serde(default)]
        limit: Option<usize>,
    } -> HistoryPage;

    /// All that a line says.
    "history/get" GetHistory {
        /// The number of the line.
        number: LineNumber,
    } -> HistoryText;

    /// Removes lines of the principal's own history: all, where nothing says which.
    "history/remove" RemoveHistory {
        /// Remove only the line of this number.
        #[serde(default)]
        number: Option<LineNumber>,
        /// Only those of this folder, and those of no folder.
        #[serde(default)]
        folder: Option<String>,
        /// Only those of this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
    } -> HistoryRemoved;

    /// All sessions that have an ancestor with this one in common, each after the one it was forked off.
    "session/lineage" GetLineage {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<RelativeView>;

    /// Returns one session with its state.
    "session/get" GetSession {
        /// Its id, the end of it, or its name.
        session: String,
    } -> SessionView;

    /// Waits until a session is neither at rest nor warming up.
    "session/settle" SettleSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// How long at most, in milliseconds.
        timeout_ms: u64,
    } -> SessionView;

    /// Starts a session at rest.
    "session/start" StartSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Puts a session to rest.
    "session/stop" StopSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Deletes a session. What other sessions have of it stays there for them; the rest goes with the next collection.
    "session/delete" DeleteSession {
        /// Its id, the end of it, or its name; once it was deleted only its id.
        session: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Deleted;

    /// What a session holds, in numbers.
    "session/statistics" GetSessionStatistics {
        /// Its id, the end of it, or its name.
        session: String,
    } -> StatisticsView;

    /// What the store holds, in numbers.
    "store/statistics" GetStoreStatistics {} -> StoreStatistics;

    /// Removes some of what deleted sessions have left and no other has.
    "store/collect" Collect {
        /// Where to go on; from the beginning where it does not say.
        #[serde(default)]
        from: Collection,
    } -> CollectedPart;

    /// Writes a backup of all that is stored now.
    "store/backup" BackUp {
        /// A folder on the daemon's machine, absolute, that is empty or not there.
        folder: String,
    } -> Manifest;

    /// Gives a session another name.
    "session/rename" RenameSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// The new name of the session.
        name: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Drops a session's definitions.
    "session/reset" ResetSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Whether to start a new worker too.
        #[serde(default)]
        hard: bool,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Runs a session's definitions again, where what they rest on has changed: those that depend on scripts that changed in the worker
    /// that is there, or where that cannot be, all in a new one. Nothing runs where nothing has changed, or where something is gone. A
    /// session at rest takes in what has changed when it is next used.
    "session/refresh" RefreshSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Run all of them in a new worker, also where nothing has changed.
        #[serde(default)]
        all: bool,
        /// Only say what it would be for.
        #[serde(default)]
        dry_run: bool,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Refreshed;

    /// Asks a job to stop, or takes back a command that waits for its turn.
    "session/cancel" CancelSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// The command whose end is wanted; without it, that of the job that runs.
        #[serde(default)]
        target: Option<CommandId>,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Cancelling;

    /// Runs code; answered when it has ended.
    "session/eval" Eval {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be run.
        code: String,
        /// The file whose text it is, absolute.
        #[serde(default)]
        file: Option<String>,
        /// The command line that the code is given, of F# and Python; without it, the session's own.
        #[serde(default)]
        command_line: Option<CommandLine>,
        /// Whether it, and what it gives and prints, is stored nowhere and told to who asked alone. It cannot wait.
        #[serde(default)]
        withheld: bool,
        /// What to do where the session cannot run it yet.
        #[serde(default)]
        admission: Admission,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> EvalView;

    /// Has something done that is no code, by an agent: a turn, in which it answers what is said to it, a compaction, a line of a shell, a
    /// setting; of a kernel: a rebuild of its project, or what a front end says in a comm. Answered when that has ended. What is said meanwhile is heard by `session/listen`,
    /// and in the events.
    "session/work" DoWork {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// What: `{"work": "turn", "prompt": {"text": "…"}}`, and so on.
        #[serde(flatten)]
        work: JobSpec,
        /// What to do where the session cannot do it yet. An agent at rest is started for what waits.
        #[serde(default = "waiting")]
        admission: Admission,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> WorkView;

    /// Says something to an agent while it works.
    "session/steer" SteerSession {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// The prompt for the agent.
        prompt: Prompt,
        /// When it is to hear it: before its `next` step, or `atEnd`, when it would be done.
        hears: Delivery,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// What an agent that is there knows: its `models`, its `commands`, its `state`, its `statistics`; in its own words.
    "agent/question" AskAgent {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// The question for the agent.
        question: AgentQuestion,
    } -> Value;

    /// Sends what is going on in a session as `session/live` notifications, from now on and before events say it. Who reads too slowly
    /// misses some of them; events say it all.
    "session/listen" Listen {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Subscribed;

    /// Asks whoever is attached; answered when someone has answered, or its time is over.
    "session/ask" RaiseAsk {
        /// Its id, the end of it, or its name.
        session: String,
        /// The question for the clients.
        #[serde(flatten)]
        question: Question,
        /// Under what name and conditions; a time that is over takes the default, where there is one.
        #[serde(flatten)]
        sent: Sent,
    } -> AskAnswer;

    /// The asks that wait for an answer.
    "ask/list" ListAsks {
        /// Only those of this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
    } -> Vec<AskView>;

    /// Answers an ask. The first valid answer wins.
    "ask/answer" AnswerAsk {
        /// Its id, or the end of it; the whole id where it may be sent again.
        ask: String,
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// The answer, as its schema wants it.
        value: Value,
    } -> Answered;

    /// How far a command has come.
    "command/get" GetCommand {
        /// The id of the command.
        command: CommandId,
    } -> CommandView;

    /// Checks code without running it.
    "session/check" Check {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be checked.
        code: String,
        /// The file whose text it is, absolute.
        #[serde(default)]
        file: Option<String>,
    } -> Vec<mainstay_model::Diagnostic>;

    /// Says what of F# code could be written more plainly, by its syntax. Nothing of it runs.
    "session/review" ReviewCode {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be reviewed.
        code: String,
    } -> mainstay_runner::query::Review;

    /// Writes property-based tests of an F# function from its type. Nothing runs.
    "session/scaffold" ScaffoldTest {
        /// Its id, the end of it, or its name.
        session: String,
        /// The function, as code names it.
        name: String,
        /// Its type, where the session does not know it.
        #[serde(default)]
        signature: Option<String>,
        /// What they are written for: `plain`, where it is not said, `fscheck-xunit`, `expecto`.
        #[serde(default)]
        framework: Option<String>,
        /// A function that undoes it.
        #[serde(default)]
        inverse: Option<String>,
    } -> mainstay_scaffold::Scaffolded;

    /// Completes at a cursor.
    "session/complete" Complete {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be completed.
        code: String,
        /// Where the cursor is.
        cursor: mainstay_model::TextPosition,
    } -> mainstay_runner::Completions;

    /// Says whether code is finished, as for the Enter of a prompt. Nothing of it runs.
    "session/isComplete" IsComplete {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be examined for completeness.
        code: String,
    } -> mainstay_runner::query::Completeness;

    /// Tells what the name at a place in some code stands for; nothing where that is unknown.
    "session/inspect" Inspect {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code that holds the name.
        code: String,
        /// The place of the name in the code.
        cursor: mainstay_model::TextPosition,
        /// Whether to tell all there is.
        #[serde(default)]
        in_detail: bool,
    } -> Option<mainstay_model::Bundle>;

    /// Lists the comms of a Jupyter kernel, each with its target: the lines between it and its front ends beside code. What one says there is
    /// work for the session.
    "session/comms" ListComms {
        /// Its id, the end of it, or its name.
        session: String,
        /// Those of this target alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    } -> std::collections::BTreeMap<mainstay_model::CommId, String>;

    /// Lists what a namespace, module or type holds.
    "session/explore" Explore {
        /// Its id, the end of it, or its name.
        session: String,
        /// The name of a type, module or namespace.
        name: String,
    } -> mainstay_runner::query::Members;

    /// Tells what a session's worker brought in before the session's own code: its project, and the scripts of its user.
    "session/startup" GetStartup {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Startup;

    /// Finds what the session defined or refers to by a text in its name.
    "session/symbols" FindSymbols {
        /// Its id, the end of it, or its name.
        session: String,
        /// The text, in any case; with a dot it is looked for in full names.
        text: String,
        /// How many at most.
        #[serde(default)]
        limit: Option<u32>,
    } -> mainstay_runner::query::Symbols;

    /// Lists what the session's code bound at the prompt, the newest first.
    "session/values" ListValues {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<mainstay_model::Binding>;

    /// Lists the tests that the session's code defined, and those of the assemblies it refers to. Nothing runs.
    "session/tests" ListTests {
        /// Its id, the end of it, or its name.
        session: String,
        /// Those with this in their names, in any case; with `*` it is the whole name.
        #[serde(default)]
        pattern: Option<String>,
        /// Those of this category, or with this trait, written `name=value`.
        #[serde(default)]
        category: Option<String>,
    } -> mainstay_runner::query::Tests;

    /// A page of a session's events.
    "session/events" ListEvents {
        /// Its id, the end of it, or its name.
        session: String,
        /// Those after this one.
        #[serde(default)]
        after: Seq,
        /// At most so many, at most 1000; a page of large events ends earlier.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<Event>;

    /// A page of the events of all sessions, in the order of the log.
    "log/events" ListAllEvents {
        /// Those after this position.
        #[serde(default)]
        after_position: Position,
        /// At most so many, at most 1000; a page of large events ends earlier.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<Event>;

    /// Sends every event after a cursor that the filter lets through as a `session/event` notification, then live ones, and of
    /// one session, as `session/warmUp`, how far it is while it is given its definitions back. With
    /// `session` the cursor is `after`, a seq of that session; without, it is `afterPosition`, and all sessions are meant.
    "session/subscribe" Follow {
        /// Its id, the end of it, or its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Those after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Seq>,
        /// Those after this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_position: Option<Position>,
        /// The events that are wanted.
        #[serde(flatten)]
        filter: EventFilter,
    } -> Subscribed;
}

/// Lists all sessions, without a filter.
impl Default for ListSessions {
    fn default() -> Self {
        Self { working_directory: None, within: None, live: false, limit: None }
    }
}

impl Follow {
    /// All events of one session after a cursor.
    pub fn session(session: impl Into<String>, after: Seq) -> Self {
        let session = Some(session.into());
        Self { session, after: Some(after), after_position: None, filter: EventFilter::default() }
    }
}

/// The name of the notification that carries an event.
pub const EVENT_NOTIFICATION: &str = "session/event";

/// The name of the notification that carries a piece of what is going on.
pub const LIVE_NOTIFICATION: &str = "session/live";

/// A piece of what is going on in a session. It is stored nowhere: what it says is in an event sooner or later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveNotice {
    /// The session that produced the output.
    pub session: SessionId,
    /// The output that was not yet stored.
    #[serde(flatten)]
    pub live: Live,
}

const fn waiting() -> Admission {
    Admission::Queue
}

/// The name of the notification that says how far a session is that is given its definitions back. Who follows one session
/// gets the newest of them, ten a second at most. It is stored nowhere: that a session is ready is an event.
pub const WARM_UP_NOTIFICATION: &str = "session/warmUp";

/// How far a session is that is given its definitions back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpNotice {
    /// The session that warms up.
    pub session: SessionId,
    /// How far; none once it is not given them any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<WarmUpProgress>,
}

/// No answer but that it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

/// An address that works once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The address of the page, with its token.
    pub url: String,
}

/// Lines that are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryAdded {
    /// Their places, in the order in which they came.
    pub numbers: Vec<LineNumber>,
}

/// A line of the prompt's history, in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryText {
    /// The text of the line.
    pub text: String,
}

/// Lines that are kept no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRemoved {
    /// How many lines were removed.
    pub removed: u64,
}

/// A part of a session's export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// What the file begins with.
    pub header: Header,
    /// The items of the export, in order.
    pub items: Vec<Item>,
    /// Where the next part begins; none behind the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ExportCursor>,
}

/// A session that was forked off another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The session that the fork created.
    pub session: SessionView,
    /// How many entries of the other it begins with.
    pub entries: u64,
    /// How many were asked for, where that would have parted an answer from what it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// A transcript whose beginning a summary stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The session that was compacted.
    pub session: SessionView,
    /// For how many entries the summary stands.
    pub entries: u64,
    /// How many were asked for, where that would have parted what belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// A session whose definitions run again, where there is a reason for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refreshed {
    /// The session. How many of its evals were out of date before is its `validity`.
    pub session: SessionView,
    /// The names of what has changed since its worker took it in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The names of what is gone: nothing runs while something is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Whether there is a reason for it.
    pub is_due: bool,
    /// What would run again, where that is only asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would: Option<WouldRun>,
    /// The event behind which they run again; none where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
}

/// What a refresh would run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WouldRun {
    /// How many submissions would run.
    pub count: u32,
    /// How many a rebuilding runs.
    pub of: u32,
    /// Why a new worker would run them; without it the one that is there would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A session that was read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The session that the import created.
    #[serde(flatten)]
    pub session: SessionView,
    /// What wrote the file: `mainstay`, `claude-code` or `pi`.
    pub format: ImportFormat,
    /// How many entries came of it.
    pub entries: u64,
    /// What did not come along, and how often.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// What a cancel met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelling {
    /// The session whose job is cancelled.
    pub session: SessionView,
    /// The job that was asked to stop; none where the command still waited, and will not run.
    pub job: Option<JobId>,
}

/// Entries that were put into a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inserted {
    /// The session that received the entries.
    pub session: SessionView,
    /// How many entries were inserted.
    pub entries: u64,
    /// Behind how many they stand.
    pub at: u64,
    /// Behind how many they were to stand, where that would have parted what belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// A session that was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// The session that was deleted.
    pub session: SessionId,
    /// The session's last event, which records the deletion.
    pub seq: Seq,
}

/// A part of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectedPart {
    /// What this part of the collection removed.
    #[serde(flatten)]
    pub collected: Collected,
    /// Where to go on; nothing more to do where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Collection>,
}

/// What an ask was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskAnswer {
    /// The ask that was answered.
    pub ask: AskId,
    /// The answer that was accepted.
    pub value: Value,
    /// By whom; the daemon took the default.
    pub by: Source,
    /// Whether an earlier submission of the same command had brought this about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// An answer that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The ask that was answered.
    pub ask: AskId,
    /// The session that raised the ask.
    pub session: SessionId,
    /// The event that says so.
    pub seq: Seq,
}

/// The subscription that now runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed {
    /// Its session; none where all are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// What the daemon says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// The version of the daemon.
    pub version: String,
    /// The process id of the daemon.
    pub pid: u32,
    /// The loopback port it listens on.
    pub port: u16,
    /// The one on which it speaks the pi protocol alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pi_port: Option<u16>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// The home folder of the daemon.
    pub home: String,
    /// Its resident memory, in bytes, where that can be told.
    pub resident_bytes: Option<u64>,
    /// The limits in force.
    pub limits: Limits,
    /// How many commands are under way in all sessions.
    pub commands: usize,
    /// How many sessions are being created, or wait for that.
    pub creations: usize,
    /// How many asks wait for an answer.
    pub asks: usize,
    /// How many subscriptions there are.
    pub subscribers: usize,
    /// The clients that are connected.
    pub clients: Vec<ClientInfo>,
    /// Whether runners of the kinds that were used are started.
    pub breakers: BTreeMap<SessionKind, BreakerStatus>,
    /// Whether turns begin with the providers of models that agents used.
    #[serde(default)]
    pub providers: BTreeMap<String, BreakerStatus>,
    /// The sessions that are not at rest.
    pub live: Vec<SessionView>,
    /// How many sessions are stored.
    pub stored: usize,
}
