//! `get_status`: a session's state and what it offers.

use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use mainstay_engine::SessionStatus;
use mainstay_model::{
    Action, Ask, Error, EventBody, PendingAsk, Question, RunningJob, Session, SessionId, SessionKind,
    SessionState, Source, Timestamp, ValidityCounts,
};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::bounds::{LONGEST_WAIT, Within};
use super::call::Call;
use super::needs::{Waits, Works};
use super::offer::Offered;
use super::running_calls::RunningCall;
use super::tool::{Answer, Effect, Tool};

/// Asks for the status.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetStatus {
    pub(super) session_id: Option<String>,
    /// With folder, versions, memory, times.
    pub(super) verbose: Option<bool>,
    /// Seconds to wait until nothing runs or warms up.
    pub(super) wait: Option<Within<0, LONGEST_WAIT>>,
}

/// The status of a session, for an agent.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusAnswer {
    /// Absent where there is no session yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    state: &'static str,
    offered: Offered,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// How far it is, where it warms up.
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_up: Option<String>,
    /// What its last rebuilding left otherwise than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    rebuilt: Option<String>,
    /// What is to be known of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<RunningLine>,
    /// Calls that were left before their end and have ended, untold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended: Vec<EndedLine>,
    /// What waits for an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asks: Vec<AskLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evals: Option<u64>,
    /// What an agent's session counts in their place.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    failures: u64,
    /// How many evals used what has changed since, or is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<u64>,
    /// What of its project no build has taken in.
    #[serde(skip_serializing_if = "Option::is_none")]
    unbuilt: Option<String>,
    /// The number of the newest event.
    cursor: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

/// The job that runs now.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RunningLine {
    /// Its id, for get_result; absent of another principal's.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    seconds: i64,
    /// Whether the connection that asked for it has left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    client_gone: bool,
}

/// A call of this principal that was left before its end, has ended, and was told to nobody.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct EndedLine {
    id: String,
    tool: String,
    success: bool,
}

/// An ask that waits for an answer.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct AskLine {
    ask: String,
    prompt: String,
}

/// The details that few callers need.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Details {
    name: String,
    kind: String,
    working_directory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<WorkerLine>,
}

/// The process that runs the code.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WorkerLine {
    kernel: String,
    runtime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    uptime_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<u64>,
}

impl Tool for GetStatus {
    const NAME: &'static str = "get_status";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::GetSession>()];
    const SEED_NAME: Option<&'static str> = Some("get_fsi_status");
    const DESCRIPTION: &'static str = "A session's state and the tools it offers now.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Status);
    const WORKS: Works = Works::Always;
    const WAITS: Waits = Waits::Itself;
    const IS_BASIC: bool = true;
    type Answer = StatusAnswer;

    async fn carry_out(self, call: &Call) -> Result<StatusAnswer, Error> {
        let Some(session) = call.find(self.session_id.as_deref()).await? else {
            return Ok(StatusAnswer::of_none(call, &call.meant().kind().await));
        };
        if self.wait.is_some() {
            idle(call, session, call.patience(self.wait)?).await?;
        }
        let status = call.client().status(session).await?;
        let validity = call.client().validity(session).await?;
        Ok(StatusAnswer::new(call, status, validity, self.verbose.unwrap_or(false)))
    }
}

/// Waits until a session neither warms up nor runs anything, at most `limit`.
async fn idle(call: &Call, session: SessionId, limit: Duration) -> Result<(), Error> {
    let client = call.client();
    let waited = timeout(limit, async {
        let now = client.status(session).await?.session;
        let mut events = client.subscribe(session, now.last_seq).await?;
        let mut present = now;
        while is_busy(&present) {
            while let EventBody::OutputProduced { .. } | EventBody::OutputDisplayed { .. } =
                events.next().await?.body
            {}
            present = client.status(session).await?.session;
        }
        Ok(())
    });
    // Whether it became idle or not, the caller sees the state.
    waited.await.unwrap_or(Ok(()))
}

fn is_busy(session: &Session) -> bool {
    match session.state() {
        SessionState::WarmingUp | SessionState::Evaluating | SessionState::Waiting(_) => true,
        SessionState::Uninitialized | SessionState::Ready | SessionState::Faulted => false,
    }
}

/// What is to be known of a session's SDK, and of the application that runs in it.
fn notes_of(session: &Session) -> Vec<String> {
    let notes = session.startup.iter().flat_map(|startup| startup.notes.iter().cloned());
    let application = session.application.iter().filter(|_| session.runs_application());
    notes.chain(application.map(|known| format!("the application runs: {}", known.application))).collect()
}

impl StatusAnswer {
    /// There is no session yet.
    fn of_none(call: &Call, kind: &SessionKind) -> Self {
        let state = SessionState::Uninitialized;
        Self {
            session_id: None,
            state: state.name(),
            offered: Offered::now(call, None, kind),
            fault: None,
            warm_up: None,
            rebuilt: None,
            notes: Vec::new(),
            running: None,
            ended: Vec::new(),
            asks: Vec::new(),
            evals: Some(0),
            turns: None,
            failures: 0,
            stale: None,
            unbuilt: None,
            cursor: 0,
            details: None,
        }
    }

    fn new(call: &Call, status: SessionStatus, validity: Option<ValidityCounts>, verbose: bool) -> Self {
        let session = &status.session;
        let now = Timestamp::now();
        Self {
            session_id: Some(session.id.short()),
            state: session.state().name(),
            offered: Offered::now(call, Some(session), &session.kind),
            fault: session.fault().map(str::to_owned),
            warm_up: status.warm_up.map(|progress| progress.to_string()),
            rebuilt: session.rebuilt.as_ref().map(ToString::to_string),
            notes: notes_of(session),
            running: session
                .running()
                .map(|running| RunningLine::new(call, running, (status.is_orphaned, now))),
            ended: EndedLine::of(call, session.id),
            asks: session.asks.iter().map(AskLine::new).collect(),
            evals: (!session.is_agent()).then_some(session.evals),
            turns: session.is_agent().then_some(session.evals),
            failures: session.failures,
            stale: validity.map(|counts| counts.stale + counts.invalid).filter(|stale| *stale > 0),
            unbuilt: session.unbuilt_words(),
            cursor: session.last_seq.0,
            details: verbose.then(|| Details::new(&status, now)),
        }
    }
}

impl AskLine {
    fn new(pending: &PendingAsk) -> Self {
        let Ask { ask, question, .. } = &pending.ask;
        let Question { prompt, schema, .. } = question;
        let is_any_text = *schema == Question::text("").schema;
        let prompt = match question.is_secret() {
            true => format!("{prompt} (a secret: only a person may answer, on the page or at a terminal)"),
            false if is_any_text => prompt.clone(),
            false => format!("{prompt} (schema {schema})"),
        };
        Self { ask: ask.short(), prompt }
    }
}

impl EndedLine {
    fn of(call: &Call, session: SessionId) -> Vec<Self> {
        let left = call.calls().left(call.client().principal(), session);
        let ended = |call: Arc<RunningCall>| {
            let success = matches!(call.end()?, Ok(result) if result.is_error != Some(true));
            Some(Self { id: call.command().to_string(), tool: call.tool.clone(), success })
        };
        left.into_iter().filter_map(ended).collect()
    }
}

impl RunningLine {
    fn new(call: &Call, running: &RunningJob, (client_gone, now): (bool, Timestamp)) -> Self {
        let is_own = match &running.source {
            Source::Client { principal, .. } => principal == call.client().principal(),
            Source::Worker | Source::System => false,
        };
        let id = is_own.then(|| running.command.to_string());
        let by = match &running.source {
            Source::Client { name, .. } => Some(name.clone()),
            Source::Worker | Source::System => None,
        };
        Self { id, by, seconds: seconds_since(running.requested_at, now), client_gone }
    }
}

impl Details {
    fn new(status: &SessionStatus, now: Timestamp) -> Self {
        let SessionStatus { session, usage, .. } = status;
        Self {
            name: session.name.clone(),
            kind: session.kind.to_string(),
            working_directory: session.working_directory.clone(),
            project: session.project.clone(),
            created_at: session.created_at.to_string(),
            worker: session.worker.as_ref().map(|worker| WorkerLine {
                kernel: worker.kernel.clone(),
                runtime: worker.runtime.clone(),
                pid: worker.pid,
                uptime_seconds: seconds_since(worker.ready_at, now),
                resident_bytes: usage.map(|usage| usage.resident_bytes),
                cpu_ms: usage.map(|usage| usage.cpu_ms),
            }),
        }
    }
}

fn seconds_since(then: Timestamp, now: Timestamp) -> i64 {
    now.duration_since(then).as_secs().max(0)
}

impl Answer for StatusAnswer {}

impl Display for StatusAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.state)?;
        if let Some(fault) = &self.fault {
            write!(f, ": {fault}")?;
        }
        if let Some(progress) = &self.warm_up {
            write!(f, ", {progress}")?;
        }
        if let Some(RunningLine { id, by, seconds, client_gone }) = &self.running {
            write!(f, " for {seconds} s, by {}", by.as_deref().unwrap_or("the daemon"))?;
            if *client_gone {
                f.write_str(", its client is gone")?;
            }
            if let Some(id) = id {
                write!(f, " [id {id}: get_result waits for it]")?;
            }
        }
        for EndedLine { id, tool, success } in &self.ended {
            let ending = if *success { "ok" } else { "failed" };
            write!(f, "\n{tool} of before has ended, {ending}: get_result {id} tells it")?;
        }
        for note in &self.notes {
            write!(f, "\n{note}")?;
        }
        if let Some(rebuilt) = &self.rebuilt {
            write!(f, "\n{rebuilt}")?;
        }
        if let Some(stale) = &self.stale {
            write!(f, "\nstale evals: {stale}")?;
        }
        if let Some(unbuilt) = &self.unbuilt {
            write!(f, "\n{unbuilt}")?;
        }
        for AskLine { ask, prompt } in &self.asks {
            write!(f, "\nasks: {prompt} [ask {ask}]")?;
        }
        writeln!(f, "\noffered: {}", self.offered)?;
        if let Some(details) = &self.details {
            writeln!(f, "{details}")?;
        }
        match &self.session_id {
            Some(session) => write!(f, "[session {session}, seq {}]", self.cursor),
            None => write!(f, "[no session yet]"),
        }
    }
}

impl Display for Details {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { name, kind, working_directory, project, .. } = self;
        write!(f, "{name}: {kind} in {working_directory}")?;
        if let Some(project) = project {
            write!(f, ", project {project}")?;
        }
        match &self.worker {
            Some(WorkerLine { kernel, runtime, pid, uptime_seconds, .. }) => {
                write!(f, "\n{kernel} on {runtime}, ")?;
                if let Some(pid) = pid {
                    write!(f, "process {pid}, ")?;
                }
                write!(f, "up {uptime_seconds} s")
            }
            None => Ok(()),
        }
    }
}
