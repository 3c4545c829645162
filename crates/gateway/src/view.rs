//! What clients see of sessions, evals and errors, whatever the protocol.

use mainstay_engine::{
    Client, CommandStatus, MergeStop, Merged, MergedInput, Relative, SearchHit, SessionStatus, Statistics,
    WaitingAsk,
};
use mainstay_log::SessionStatistics;
use mainstay_model::Language;
use mainstay_model::outcome::{OutputItem, WithheldResult};
use mainstay_model::session::{Parent, Rebuilt};
use mainstay_model::{
    Action, Ask, AskId, Binding, Capabilities, Capability, CommandId, Diagnostic, Display, Error, EvalEnding,
    EvalOutcome, EvalResult, Event, JobId, JobPart, Outcome, OutputStream, PendingAsk, Principal, Question,
    RaisedError, Raiser, Role, Seq, Session, SessionId, SessionKind, Source, Startup, Timestamp, TokenUsage,
    TranscriptEntry, Validity, ValidityCounts, Version,
};
use mainstay_runner::{ResourceUsage, WarmUpProgress};
use serde::{Deserialize, Serialize};

pub mod agent;

use self::agent::AgentView;

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// A session as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// The id of the session.
    pub session: SessionId,
    /// The end of its id, enough to name it.
    pub short_id: String,
    /// What people call it.
    pub name: String,
    /// How its first input begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What does its work.
    pub kind: SessionKind,
    /// What it can do, where that is not what is usual of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The language of its code, where its kernel has said it, or its kind tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The state of the session, by name.
    pub state: String,
    /// Why it is Faulted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// How far it is, where it is given its definitions back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpProgress>,
    /// What its last rebuilding left otherwise than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<Rebuilt>,
    /// How many of its evals do not surely hold any more; none where its code rests on nothing that could change, or that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<ValidityCounts>,
    /// How many commands have changed it.
    #[serde(default)]
    pub version: Version,
    /// The commands that wait for their turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<CommandId>,
    /// The principal that created the session.
    #[serde(default = "Principal::local")]
    pub owner: Principal,
    /// How many asks wait for an answer.
    #[serde(default, skip_serializing_if = "is_none")]
    pub asks: usize,
    /// What may be done now.
    pub offered: Vec<Action>,
    /// The folder its code runs in.
    pub working_directory: String,
    /// The project it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What its worker brought in before its own code, in few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<StartupView>,
    /// The session it was forked off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Parent>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_activity: Timestamp,
    /// The sequence number of the session's newest event.
    pub last_seq: Seq,
    /// How many evals were accepted; in an agent's session, how many turns.
    pub evals: u64,
    /// How many of them did not run to their end; in an agent's session, how many of all its jobs.
    pub failures: u64,
    /// How many tokens its messages took.
    #[serde(default, skip_serializing_if = "TokenUsage::is_zero")]
    pub usage: TokenUsage,
    /// The job that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<JobId>,
    /// Who asked for the job that runs, where that connection has left since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphaned: Option<Orphaned>,
    /// That its creator's environment was too large to be taken, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_environment: Option<String>,
    /// How its agent goes on, where something is known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentView>,
    /// The worker process, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerView>,
}

/// A job that runs though the connection which asked for it has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Orphaned {
    /// What the client called itself.
    pub by: String,
    /// When the job was requested.
    pub requested_at: Timestamp,
}

impl Orphaned {
    /// The job that runs in a session, where a client asked for it.
    pub fn of(session: &Session) -> Option<Self> {
        let running = session.running()?;
        match &running.source {
            Source::Client { name, .. } => {
                Some(Self { by: name.clone(), requested_at: running.requested_at })
            }
            Source::Worker | Source::System => None,
        }
    }

    /// The same, where this client may know that whoever asked has left.
    pub fn seen_by(client: &Client, session: &Session) -> Option<Self> {
        client.is_orphaned(session).then(|| Self::of(session)).flatten()
    }
}

/// What a worker brought in before its session's own code, in few words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartupView {
    /// The startup in one line.
    pub summary: String,
    /// What did not go as it was meant to: the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// What of its project no build has taken in yet, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbuilt: Option<String>,
}

impl StartupView {
    /// How many faults are told of.
    const FAULTS: usize = 10;

    /// What there is to say of a session's; none where there is nothing.
    pub fn of(session: &Session) -> Option<Self> {
        let passed_over = passed_over(session);
        match &session.startup {
            None => passed_over.map(|fault| Self {
                summary: "for no project".to_owned(),
                faults: vec![fault],
                unbuilt: None,
            }),
            Some(startup) => {
                let mut view = Self::new(startup, session.unbuilt_words());
                view.faults.extend(passed_over);
                Some(view)
            }
        }
    }

    fn new(startup: &Startup, unbuilt: Option<String>) -> Self {
        let mut faults = startup.faults();
        let more = faults.len().saturating_sub(Self::FAULTS);
        if more > 0 {
            faults.truncate(Self::FAULTS);
            faults.push(format!("and {more} more"));
        }
        Self { summary: startup.to_string(), faults, unbuilt }
    }
}

/// What is said of a session in whose folder there are several projects, of which none was named.
fn passed_over(session: &Session) -> Option<String> {
    let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let names: Vec<String> = session.passed_over.iter().map(name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "its folder has several projects ({}) and none was named, so it is for none of them; name one for a new session: --project {}",
            names.join(", "),
            names[0]
        )
    })
}

/// A session's worker as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    /// The language tool and its version.
    pub kernel: String,
    /// The runtime under it.
    pub runtime: String,
    /// The process id of the worker; 0 where it is no process of this machine.
    pub pid: u32,
    /// The memory and time that the worker uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
}

impl SessionView {
    /// What it can do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities.unwrap_or_else(|| Capabilities::of_kind(&self.kind))
    }

    /// Whether it has a conversation.
    pub fn is_agent(&self) -> bool {
        self.capabilities().has(Capability::Conversation)
    }

    /// The view of a session as committed.
    pub fn new(session: &Session, usage: Option<ResourceUsage>) -> Self {
        Self {
            session: session.id,
            short_id: session.id.short(),
            name: session.name.clone(),
            title: session.title.clone(),
            kind: session.kind.clone(),
            capabilities: session.capabilities,
            language: session.language(),
            state: session.state().name().to_owned(),
            fault: session.fault().map(str::to_owned),
            warm_up: None,
            rebuilt: session.rebuilt.clone(),
            validity: None,
            version: session.version,
            waiting: session.lane.iter().map(|waiting| waiting.command.clone()).collect(),
            owner: session.owner.clone(),
            asks: session.asks.len(),
            offered: session.offered(),
            working_directory: session.working_directory.clone(),
            project: session.project.clone(),
            startup: StartupView::of(session),
            forked_from: session.forked_from.clone(),
            deleted_at: session.deleted_at,
            created_at: session.created_at,
            last_activity: session.last_activity,
            last_seq: session.last_seq,
            evals: session.evals,
            failures: session.failures,
            usage: session.usage,
            running: session.running().map(|running| running.job),
            orphaned: None,
            dropped_environment: None,
            agent: Some(AgentView::new(session)).filter(|agent| *agent != AgentView::default()),
            worker: session.worker.as_ref().map(|worker| WorkerView {
                kernel: worker.kernel.clone(),
                runtime: worker.runtime.clone(),
                pid: worker.pid.unwrap_or_default(),
                usage,
            }),
        }
    }
}

/// An entry of a transcript, and how far it still holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    /// The entry, and where it stands.
    #[serde(flatten)]
    pub placed: TranscriptEntry,
    /// How far it still holds; none of what is no cell's, and where nothing could change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
    /// What it is called in the session whose transcript was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// What an entry of a transcript is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelView {
    /// Its index in the transcript.
    pub index: u64,
    /// The text of the label.
    pub label: String,
    /// When the label was set.
    pub at: Timestamp,
}

/// A session among those it is related to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelativeView {
    /// The session that is related.
    #[serde(flatten)]
    pub session: SessionView,
    /// How many entries its transcript has.
    pub entries: u64,
    /// What of them was merged, by the sessions in which it came to be; a fork has what its parent had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedEntries>,
}

/// Entries that were merged into a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedEntries {
    /// The session in which they came to be.
    pub session: SessionId,
    /// How many they are.
    pub entries: u64,
}

impl From<Relative> for RelativeView {
    fn from(Relative { session, entries, merged }: Relative) -> Self {
        let merged = merged.into_iter().map(|(session, entries)| MergedEntries { session, entries });
        Self { session: SessionView::new(&session, None), entries, merged: merged.collect() }
    }
}

/// A session in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatisticsView {
    /// The session that the figures describe.
    pub session: SessionView,
    /// How many entries its transcript has, those of other sessions included.
    pub transcript: u64,
    /// What is stored of it.
    #[serde(flatten)]
    pub stored: SessionStatistics,
}

impl From<Statistics> for StatisticsView {
    fn from(Statistics { session, transcript, stored }: Statistics) -> Self {
        Self { session: SessionView::new(&session, None), transcript, stored }
    }
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// An ask that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskView {
    /// The id of the ask.
    pub ask: AskId,
    /// The end of its id, enough to name it.
    pub short_id: String,
    /// The session that raised the ask.
    pub session: SessionId,
    /// What people call that.
    pub session_name: String,
    /// What is asked, and what an answer must be.
    #[serde(flatten)]
    pub question: Question,
    /// Who asks: a client by its command, or the worker for its job.
    pub source: Source,
    /// The job that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The command that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
    /// When it was raised.
    pub raised_at: Timestamp,
    /// When it must have been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

impl From<WaitingAsk> for AskView {
    fn from(WaitingAsk { session, pending }: WaitingAsk) -> Self {
        let PendingAsk { ask, raised: _, raised_at, source } = pending;
        let Ask { ask, raiser, question, deadline } = ask;
        let (job, command) = match raiser {
            Raiser::Job { job } => (Some(job), None),
            Raiser::Command { command, .. } => (None, Some(command)),
        };
        Self {
            ask,
            short_id: ask.short(),
            session: session.id,
            session_name: session.name,
            question,
            source,
            job,
            command,
            raised_at,
            deadline: deadline.map(|deadline| deadline.at),
        }
    }
}

impl From<SessionStatus> for SessionView {
    fn from(status: SessionStatus) -> Self {
        let orphaned = status.is_orphaned.then(|| Orphaned::of(&status.session)).flatten();
        let dropped_environment = status.dropped_environment;
        let view = Self::new(&status.session, status.usage);
        Self { warm_up: status.warm_up, orphaned, dropped_environment, ..view }
    }
}

/// What came of an eval, with what it printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalView {
    /// The session that ran the code.
    pub session: SessionId,
    /// The command that asked for it.
    pub command: CommandId,
    /// The event that ended it: the cursor for what comes later.
    pub seq: Seq,
    /// Whether the code ran to its end.
    pub success: bool,
    /// How it ended: `completed`, `rejected`, `raised`, `cancelled`, `interrupted`, `workerExited`.
    pub ending: String,
    /// The last expression's value as the language's prompt prints it.
    #[serde(default)]
    pub value: Option<String>,
    /// The type of the value, as the language writes it.
    #[serde(default, rename = "type")]
    pub value_type: Option<String>,
    /// What the code defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// What the language's own prompt would have printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display: String,
    /// What it printed to standard output.
    #[serde(default)]
    pub stdout: String,
    /// What it printed to standard error.
    #[serde(default)]
    pub stderr: String,
    /// What it showed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub displays: Vec<DisplayView>,
    /// Whether it printed more than is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_cut: bool,
    /// The compiler's warnings and errors.
    #[serde(default)]
    pub diagnostics: Vec<Diagnostic>,
    /// Why it did not run to its end, where the diagnostics do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RaisedError>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The session's version once it had ended.
    #[serde(default)]
    pub version: Version,
    /// Whether an earlier submission of the same command had brought this about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether its code, and what it gave and printed, is stored nowhere: who asks again is not told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// Something that an eval showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisplayView {
    /// How many bytes it had printed to standard output before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub printed_before: usize,
    /// The content that was displayed.
    #[serde(flatten)]
    pub display: Display,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl EvalView {
    /// What it printed to standard output, with what it showed on lines of their own as plain text, where it did. Not its value, which it
    /// also has as the language's prompt prints it, unless that stands in its place there.
    pub fn put_out(&self) -> String {
        let (mut text, mut done) = (String::new(), 0);
        for DisplayView { printed_before, display } in
            self.displays.iter().filter(|view| view.display.is_put_out())
        {
            // A view that came over a wire may say anything.
            text.push_str(self.stdout.get(done..*printed_before).unwrap_or_default());
            done = (*printed_before).max(done);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(display.data.words().trim_end());
            text.push('\n');
        }
        text.push_str(self.stdout.get(done..).unwrap_or_default());
        text
    }
}

/// How far a command has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandView {
    /// The id of the command.
    pub command: CommandId,
    /// Its session, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// `waits`, `runs` or `ended`.
    pub state: CommandState,
    /// The session's version once it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Its one stored answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// Where a command stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandState {
    /// It waits for its turn.
    Waits,
    /// It is carried out.
    Runs,
    /// It has its outcome.
    Ended,
}

impl CommandView {
    /// The view of a command.
    pub fn new(command: CommandId, status: CommandStatus) -> Self {
        let under_way = |state, session| (state, Some(session), None, None);
        let (state, session, version, outcome) = match status {
            CommandStatus::Waits { session } => under_way(CommandState::Waits, session),
            CommandStatus::Runs { session } => under_way(CommandState::Runs, session),
            CommandStatus::Ended(stored) => {
                (CommandState::Ended, stored.session, Some(stored.version), Some(stored.outcome))
            }
        };
        Self { command, session, state, version, outcome }
    }
}

impl EvalView {
    /// With the lines of a file that the code is a part of, behind so many others, in place of the code's own. Of an error's frames only
    /// that of the code itself is known to be in this part of the file.
    pub fn in_lines_of(mut self, file: Option<&str>, lines_before: u32) -> Self {
        for diagnostic in self.diagnostics.iter_mut().filter(|diagnostic| diagnostic.file.is_none()) {
            diagnostic.start.line += lines_before;
            diagnostic.end.line += lines_before;
        }
        if let (Some(file), Some(stack)) = (file, self.error.as_mut().and_then(|error| error.stack.as_mut()))
        {
            let own = format!("   at {file}:line ");
            let moved = stack.lines().map(|frame| match frame.strip_prefix(&own).map(str::parse::<u32>) {
                Some(Ok(line)) => format!("{own}{}", line + lines_before),
                Some(Err(_)) | None => frame.to_owned(),
            });
            *stack = moved.collect::<Vec<_>>().join("\n");
        }
        self
    }

    /// The view of an outcome; what the code printed is read from the log.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn load(
        client: &Client,
        session: SessionId,
        command: CommandId,
        outcome: EvalOutcome,
    ) -> Result<Self, Error> {
        let mut printed = Printed::default();
        let job = outcome.job;
        for_each_between(client, session, outcome.requested, outcome.completed, |event| {
            printed.push(job, event);
        })
        .await?;
        let success = outcome.success();
        let outcome = match outcome.live.clone() {
            Some(live) => printed.with_live(*live, outcome),
            None => outcome,
        };
        let EvalOutcome {
            completed,
            ending,
            value,
            value_type,
            bindings,
            display,
            diagnostics,
            duration_ms,
            withheld,
            ..
        } = outcome;
        Ok(Self {
            session,
            command,
            seq: completed,
            success,
            ending: ending.name().to_owned(),
            value,
            value_type,
            bindings,
            display,
            stdout: printed.stdout,
            stderr: printed.stderr,
            displays: printed.displays,
            output_cut: printed.cut,
            diagnostics,
            error: explain(ending, printed.cancelled_by.as_ref()),
            duration_ms,
            version: Version::ZERO,
            replayed: false,
            withheld,
        })
    }
}

/// Reads the events of a job: those after the one that accepted it, and before the one that ended it.
pub async fn for_each_between(
    client: &Client,
    session: SessionId,
    requested: Seq,
    completed: Seq,
    mut take: impl FnMut(&Event),
) -> Result<(), Error> {
    let mut after = requested;
    while after.next() < completed {
        let page = client.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        page.iter().filter(|event| event.seq < completed).for_each(&mut take);
    }
    Ok(())
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundView {
    /// The session it came to be in.
    pub session: SessionId,
    /// The end of its id, enough to name it.
    pub short_id: String,
    /// What people call the session.
    pub name: String,
    /// What does its work.
    pub kind: SessionKind,
    /// The folder its code runs in.
    pub working_directory: String,
    /// The entry's index in the session's transcript; none where that has it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// What part it plays.
    pub role: Role,
    /// When it came to be.
    pub at: Timestamp,
    /// What was found, and what is around it, on one line.
    pub snippet: String,
    /// How far it still holds; none of what is no cell's, where nothing could change, and of sessions at rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
}

impl From<SearchHit> for FoundView {
    fn from(SearchHit { session, index, placed, snippet, validity }: SearchHit) -> Self {
        Self {
            session: session.id,
            short_id: session.id.short(),
            name: session.name,
            kind: session.kind,
            working_directory: session.working_directory,
            index,
            role: placed.entry.role,
            at: placed.at,
            snippet,
            validity,
        }
    }
}

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeView {
    /// Whether all of it ran to its end.
    pub success: bool,
    /// What ran, in order; where it was not all, the last one stopped the merge.
    pub ran: Vec<BroughtView>,
    /// Why the input behind them could not be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedView>,
    /// The indices of the inputs that were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<u64>,
}

/// An input that was brought, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroughtView {
    /// Its index in the other transcript.
    pub index: u64,
    /// What came of it.
    pub eval: EvalView,
}

/// An input that could not be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedView {
    /// Its index in the other transcript.
    pub index: u64,
    /// The error with which it was refused.
    pub error: ErrorView,
}

impl MergeView {
    /// The view of a merge into this session; what the code printed is read from the log.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn load(client: &Client, session: SessionId, merged: Merged) -> Result<Self, Error> {
        let Merged { mut applied, stopped, left } = merged;
        let success = stopped.is_none();
        let refused = match stopped {
            None => None,
            Some(MergeStop::Ended(brought)) => {
                applied.push(brought);
                None
            }
            Some(MergeStop::Refused { index, error }) => Some(RefusedView { index, error: error.into() }),
        };
        let mut ran = Vec::with_capacity(applied.len());
        for MergedInput { index, command, outcome } in applied {
            let eval = EvalView::load(client, session, command, outcome).await?;
            ran.push(BroughtView { index, eval });
        }
        Ok(Self { success, ran, refused, not_run: left })
    }
}

/// What a job printed.
#[derive(Default)]
struct Printed {
    stdout: String,
    stderr: String,
    displays: Vec<DisplayView>,
    cut: bool,
    /// Who had it cancelled first.
    cancelled_by: Option<Source>,
}

impl Printed {
    /// The outcome with what is not stored of it.
    fn with_live(&mut self, live: WithheldResult, outcome: EvalOutcome) -> EvalOutcome {
        let WithheldResult { error, result, put_out } = live;
        for one in put_out {
            match one {
                OutputItem::Printed(OutputStream::Stdout, text) => self.stdout.push_str(&text),
                OutputItem::Printed(OutputStream::Stderr, text) => self.stderr.push_str(&text),
                OutputItem::Displayed(display) => self.show(*display),
            }
        }
        let ending = match (error, outcome.ending) {
            (Some(error), _) => EvalEnding::Raised { error },
            (None, ending) => ending,
        };
        let EvalResult { value, value_type, bindings, display, diagnostics, uses_last: _, touched: _ } =
            result;
        EvalOutcome { ending, value, value_type, bindings, display, diagnostics, ..outcome }
    }

    /// It took back what it had put out.
    fn clear(&mut self) {
        self.stdout.clear();
        self.stderr.clear();
        self.displays.clear();
    }

    /// A display under the name of another stands in its place.
    fn show(&mut self, display: Display) {
        let is_same = |other: &&mut DisplayView| display.id.is_some() && other.display.id == display.id;
        match self.displays.iter_mut().find(is_same) {
            Some(place) => place.display = display,
            None => self.displays.push(DisplayView { printed_before: self.stdout.len(), display }),
        }
    }

    fn push(&mut self, job: JobId, event: &Event) {
        let Some((of, part)) = event.body.job_part() else { return };
        if of != job {
            return;
        }
        match part {
            JobPart::Printed { stream: OutputStream::Stdout, text } => self.stdout.push_str(text),
            JobPart::Printed { stream: OutputStream::Stderr, text } => self.stderr.push_str(text),
            JobPart::Displayed(display) => self.show(display.clone()),
            JobPart::Cleared => self.clear(),
            JobPart::OutputCut => self.cut = true,
            JobPart::CancelRequested => {
                self.cancelled_by.get_or_insert_with(|| event.metadata.source.clone());
            }
            JobPart::Requested { .. }
            | JobPart::TimedOut
            | JobPart::Completed { .. }
            | JobPart::Failed { .. }
            | JobPart::Cancelled(_)
            | JobPart::Interrupted => {}
        }
    }
}

/// Why an eval did not run to its end, in words; the diagnostics say it where the code has errors.
fn explain(ending: EvalEnding, cancelled_by: Option<&Source>) -> Option<RaisedError> {
    let plain = |kind: &str, message: String| {
        Some(RaisedError { kind: kind.to_owned(), message, stack: None, coloured_stack: None })
    };
    match ending {
        EvalEnding::Completed | EvalEnding::Rejected => None,
        EvalEnding::Raised { error } => Some(error),
        EvalEnding::Cancelled => plain("Cancelled", cancelled(cancelled_by)),
        EvalEnding::Interrupted => {
            plain("Interrupted", "the eval was cut off: its worker or the daemon was lost".to_owned())
        }
        EvalEnding::WorkerExited { exit } => plain(
            "WorkerExited",
            format!("{}; the session is rebuilt from its earlier definitions", exit.of_code()),
        ),
    }
}

/// That an eval was cancelled, and by whom, where a client had it.
fn cancelled(by: Option<&Source>) -> String {
    match by {
        Some(Source::Client { principal, name }) if *principal == Principal::local() => {
            format!("the eval was cancelled by {name}")
        }
        Some(Source::Client { principal, name }) => {
            format!("the eval was cancelled by {name} of {principal}")
        }
        Some(Source::Worker | Source::System) | None => "the eval was cancelled".to_owned(),
    }
}

/// An error as every protocol carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorView {
    /// Its stable code; `mainstay explain CODE` says more.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// What to do next.
    pub next_step: String,
    /// The actions offered instead, where the session's state refused one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Action>,
    /// The error with its fields.
    pub error: Error,
}

impl From<Error> for ErrorView {
    fn from(error: Error) -> Self {
        Self {
            code: error.code().to_string(),
            message: error.to_string(),
            next_step: error.next_step(),
            offered: error.offered(),
            error,
        }
    }
}
