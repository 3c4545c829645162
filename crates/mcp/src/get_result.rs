//! `get_result`: waiting for what came of a call that was answered before its end.

use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use mainstay_engine::{ClientSubscription, CommandStatus};
use mainstay_model::affordance::offered;
use mainstay_model::{Action, CommandId, Error, EventBody, PendingAsk};
use mainstay_protocol::{OperationId, operations};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::ask::AnswerAsk;
use super::bounds::{LONGEST_WAIT, Within};
use super::call::Call;
use super::cancel::CancelEval;
use super::get_output::{GetOutput, put_out};
use super::needs::{Waits, Works};
use super::notebook::RunNotebook;
use super::running_calls::{CallResult, RunningCall};
use super::running_command::{WAITS_TURN, asks_of};
use super::stored_result::result_of;
use super::text::ending;
use super::tool::{Answer, Effect, Tool};

/// How much of what code has printed so far is told, in bytes.
const PRINTED_BYTES: usize = 4 * 1024;

/// Waits for a result.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetResult {
    /// As the answer said that it still runs.
    id: String,
    /// Seconds to wait at most.
    wait: Option<Within<0, LONGEST_WAIT>>,
}

impl Tool for GetResult {
    const NAME: &'static str = "get_result";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::GetCommand>()];
    const DESCRIPTION: &'static str = "Wait for a call answered `still running`, and get its result.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    const WAITS: Waits = Waits::Itself;
    const IS_BASIC: bool = true;
    type Answer = Awaited;

    async fn carry_out(self, call: &Call) -> Result<Awaited, Error> {
        let wait = call.patience(self.wait)?;
        let id = CommandId::new(self.id)?;
        awaited(call, &id, wait).await
    }
}

/// What came of a call, or how far it is.
pub(super) enum Awaited {
    /// Its result, as the call itself would have been answered.
    Ended(Box<CallToolResult>),
    /// The call is still running.
    Still(StillRunning),
}

/// Waits for the result of a call, or a command, of this id; less where its code asks something.
pub(super) async fn awaited(call: &Call, id: &CommandId, wait: Duration) -> Result<Awaited, Error> {
    let Some(under_way) = call.calls().find(call.client().principal(), id) else {
        return of_command(call, id, wait).await;
    };
    if let Some(session) = under_way.session() {
        call.is_about(session);
    }
    let mut waited = std::pin::pin!(sleep(wait));
    let mut asks = under_way.asks();
    loop {
        let still = still_running(call, id, Some(&under_way)).await?;
        if under_way.end().is_none() && !still.asks.is_empty() {
            return Ok(Awaited::Still(still));
        }
        tokio::select! {
            biased;
            ended = under_way.ended() => {
                call.calls().mark_told(&under_way, call.server().connection);
                return as_result(ended.clone());
            }
            Ok(()) = asks.changed() => {}
            () = call.cancelled() => break,
            () = &mut waited => break,
        }
    }
    under_way.leave();
    still_running(call, id, Some(&under_way)).await.map(Awaited::Still)
}

/// The same of a command that no call here is under way for: its call may have come to a daemon that is gone. To cancel this is to wait no
/// longer, and stops nothing.
async fn of_command(call: &Call, id: &CommandId, wait: Duration) -> Result<Awaited, Error> {
    let mut waited = std::pin::pin!(sleep(wait));
    let mut events: Option<ClientSubscription> = None;
    loop {
        let session = match call.client().command(id).await? {
            CommandStatus::Ended(stored) => return as_result(result_of(call, id, *stored).await),
            CommandStatus::Waits { session } | CommandStatus::Runs { session } => session,
        };
        call.is_about(session);
        let Some(events) = &mut events else {
            let seen = call.client().status(session).await?.session.last_seq;
            events = Some(call.client().subscribe(session, seen).await?);
            // It may have ended meanwhile; from now on nothing is missed.
            continue;
        };
        let still = still_running(call, id, None).await?;
        if !still.asks.is_empty() {
            return Ok(Awaited::Still(still));
        }
        let is_news = async {
            while matches!(events.next().await?.body, EventBody::OutputProduced { .. }) {}
            Ok::<(), Error>(())
        };
        tokio::select! {
            news = is_news => news?,
            () = call.cancelled() => return Ok(Awaited::Still(still)),
            () = &mut waited => return still_running(call, id, None).await.map(Awaited::Still),
        }
    }
}

fn as_result(ended: CallResult) -> Result<Awaited, Error> {
    let result = ended.map_err(|error| Error::BadRequest { reason: error.message.into_owned() })?;
    Ok(Awaited::Ended(Box::new(result)))
}

/// How far a call is that still runs.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StillRunning {
    /// The id for `get_result`.
    id: String,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
    /// The end of what its code has printed so far.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    /// What its code asks, and waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asks: Vec<AskedLine>,
    /// What it asks its client's user by a form that is on the screen: whoever types is not overtaken by a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forms: Vec<AskedLine>,
    /// What it asks that no model may be told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<AskedLine>,
    /// Whether `cancel_eval` is not refused now: a session that warms up runs nothing that it could stop.
    #[serde(skip)]
    is_cancellable: bool,
    #[serde(skip)]
    names: super::names::Names,
}

/// The question that running code asks.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct AskedLine {
    ask: String,
    prompt: String,
}

/// How far a call of this id is.
pub(super) async fn still_running(
    call: &Call,
    id: &CommandId,
    under_way: Option<&Arc<RunningCall>>,
) -> Result<StillRunning, Error> {
    let session = under_way.map_or_else(|| call.session(), |under_way| under_way.session());
    let mut still = StillRunning {
        id: id.to_string(),
        running: true,
        session_id: session.map(|session| session.short()),
        tool: under_way.map(|under_way| under_way.tool.clone()),
        seconds: under_way.map(|under_way| under_way.began.elapsed().as_secs()),
        progress: under_way.and_then(|under_way| under_way.progress()),
        output: String::new(),
        asks: Vec::new(),
        forms: Vec::new(),
        secrets: Vec::new(),
        is_cancellable: false,
        names: call.names(),
    };
    let Some(session) = session else { return Ok(still) };
    let status = call.client().status(session).await?.session;
    still.is_cancellable = offered(status.state(), status.capabilities()).contains(&Action::Cancel);
    let is_of = |command: &CommandId| command == id || command.is_part_of(id);
    let Some(running) = status.running() else { return Ok(still) };
    // A cell of a notebook has an id of its own.
    let is_cell_of = |under_way: &Arc<RunningCall>| {
        under_way.tool == RunNotebook::NAME && *under_way.source() == running.source
    };
    let is_own = is_of(&running.command) || under_way.is_some_and(is_cell_of);
    let is_in_turn = under_way.is_some_and(|under_way| call.is_in_turn(&under_way.tool));
    let waits = matches!(call.client().command(id).await, Ok(CommandStatus::Waits { .. }));
    match is_own {
        // It has come to its turn since.
        true => still.progress = still.progress.filter(|said| said != WAITS_TURN),
        // It may not have been handed over yet.
        false if waits || is_in_turn => still.progress = Some(WAITS_TURN.to_owned()),
        false => {}
    }
    if is_own {
        let put_out = put_out(call, session, (running.requested, status.last_seq.next())).await?;
        still.output = ending(&put_out, PRINTED_BYTES);
        // Whether a job is trusted more does not hold it up, and may not be for this client to say.
        let (secrets, asks) = asks_of(&status, |_| true)
            .into_iter()
            .filter(|pending| call.client().may_be_asked(pending))
            .partition(|pending: &PendingAsk| pending.ask.question.is_secret());
        let is_form =
            |pending: &PendingAsk| under_way.is_some_and(|under_way| under_way.has_form(pending.ask.ask));
        let (forms, asks) = Vec::into_iter(asks).partition(is_form);
        still.forms = Vec::into_iter(forms).map(AskedLine::from).collect();
        still.asks = Vec::into_iter(asks).map(AskedLine::from).collect();
        still.secrets = Vec::into_iter(secrets).map(AskedLine::from).collect();
    }
    Ok(still)
}

impl From<PendingAsk> for AskedLine {
    fn from(pending: PendingAsk) -> Self {
        Self { ask: pending.ask.ask.short(), prompt: pending.ask.question.prompt.clone() }
    }
}

impl Serialize for Awaited {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ended(result) => result.structured_content.serialize(serializer),
            Self::Still(still) => still.serialize(serializer),
        }
    }
}

impl JsonSchema for Awaited {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Awaited".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StillRunning::json_schema(generator)
    }
}

impl Answer for Awaited {
    fn whole(&mut self) -> Option<CallToolResult> {
        match self {
            Self::Ended(result) => Some((**result).clone()),
            Self::Still(_) => None,
        }
    }
}

impl Display for Awaited {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            // It is given as it is.
            Self::Ended(_) => Ok(()),
            Self::Still(still) => still.fmt(f),
        }
    }
}

impl Display for StillRunning {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { id, session_id, tool, seconds, progress, output, asks, forms, secrets, names, .. } = self;
        if !output.is_empty() {
            writeln!(f, "{}", output.trim_end())?;
        }
        if output.len() >= PRINTED_BYTES {
            writeln!(f, "{} with this id reads what is kept of it, by lines", names.of::<GetOutput>())?;
        }
        let (answer, cancel) = (names.of::<AnswerAsk>(), names.of::<CancelEval>());
        for AskedLine { ask, prompt } in asks {
            writeln!(
                f,
                "the code asks, and waits for the answer: {prompt} [ask {ask}]\nCall {answer} with ask {ask}, or {cancel}; people can answer too."
            )?;
        }
        for AskedLine { prompt, .. } in forms {
            writeln!(f, "the code asks the user, who has a form for it on the screen: {prompt}")?;
        }
        for AskedLine { ask, prompt } in secrets {
            writeln!(
                f,
                "the code asks for a secret, which only a person may answer: {prompt}\nHave the user answer it on Mainstay's page (`mainstay web`), or at a terminal with `mainstay ask answer {ask}`; or call {cancel}."
            )?;
        }
        write!(f, "still running")?;
        if let Some(seconds) = seconds {
            write!(f, " after {seconds} s")?;
        }
        if let Some(tool) = tool {
            write!(f, ": {tool}")?;
        }
        if let Some(progress) = progress {
            write!(f, ", {progress}")?;
        }
        if asks.is_empty() {
            write!(f, ". Call {} with this id to wait on", names.of::<GetResult>())?;
            if self.is_cancellable {
                write!(f, ", or {cancel} to stop it")?;
            }
            write!(f, ".")?;
        }
        write!(f, " [id {id}")?;
        match session_id {
            Some(session) => write!(f, ", session {session}]"),
            None => f.write_str("]"),
        }
    }
}
