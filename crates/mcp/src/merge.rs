//! `merge_session` and `cherry_pick`: entries of another session, run in this one or put into its transcript.

use std::fmt::{Display, Formatter};
use std::ops::Range;

use mainstay_engine::{Inserted, Merge};
use mainstay_model::affordance::Reach;
use mainstay_model::{Action, CommandId, Error, SessionId, SessionState};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::command_wait;
use super::error::next_step_in;
use super::eval::EvalAnswer;
use super::names::Names;
use super::needs::Works;
use super::tool::{Answer, Effect, PictureBlock, Tool};
use mainstay_gateway::view::merge_view;
use mainstay_protocol::entries::{numbered, with_context};
use mainstay_protocol::view::{BroughtView, MergeView, RefusedView};

/// Brings entries of another session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MergeSession {
    session_id: Option<String>,
    /// Session to merge from.
    from: String,
    /// Their numbers, as of search_sessions: `3,4,7-9`.
    entries: String,
    /// Put them behind so many entries of the transcript instead.
    at: Option<u64>,
    /// Repeated with it, nothing runs twice.
    idempotency_key: Option<String>,
}

/// Brings one entry of another session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CherryPick {
    session_id: Option<String>,
    /// Session to pick from.
    from: String,
    /// Its number, as of search_sessions.
    entry: u64,
    /// So many entries before it as well.
    context: Option<u64>,
    /// Put it behind so many entries of the transcript instead.
    at: Option<u64>,
    idempotency_key: Option<String>,
}

/// What came of what was brought.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MergeAnswer {
    session_id: String,
    success: bool,
    /// What ran, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ran: Vec<RanLine>,
    /// What could not be run, and ended the merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedLine>,
    /// The numbers of the inputs behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_run: Vec<u64>,
    /// What was put into the transcript instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    inserted: Option<InsertedLine>,
}

/// An input that ran.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct RanLine {
    entry: u64,
    /// As send_code tells it.
    eval: EvalAnswer,
}

/// An input that could not be run.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RefusedLine {
    entry: u64,
    code: String,
    message: String,
    next_step: String,
}

/// Entries that were put into a transcript.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct InsertedLine {
    entries: u64,
    /// How many entries stand before it.
    at: u64,
    state: &'static str,
}

impl Tool for MergeSession {
    const NAME: &'static str = "merge_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::MergeSession>()];
    const DESCRIPTION: &'static str =
        "Run entries of another session in this one, up to the first that fails.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: false };
    const ACTION: Option<Action> = Some(Action::Merge);
    const WORKS: Works = Works::InAny(Action::Merge, Reach::InTurn);
    const SAYS_ANSWER: bool = false;
    type Answer = MergeAnswer;

    async fn carry_out(self, call: &Call) -> Result<MergeAnswer, Error> {
        let Self { session_id, from, entries, at, idempotency_key } = self;
        let entries = numbered(&entries).map_err(|reason| invalid("entries", reason))?;
        MergeRequest { session_id, from, entries, at, key: idempotency_key }.bring(call).await
    }
}

impl Tool for CherryPick {
    const NAME: &'static str = "cherry_pick";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::MergeSession>()];
    const DESCRIPTION: &'static str = "Run one entry of another session in this one.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: false };
    const ACTION: Option<Action> = Some(Action::Merge);
    const WORKS: Works = Works::InAny(Action::Merge, Reach::InTurn);
    const SAYS_ANSWER: bool = false;
    type Answer = MergeAnswer;

    async fn carry_out(self, call: &Call) -> Result<MergeAnswer, Error> {
        let Self { session_id, from, entry, context, at, idempotency_key } = self;
        if entry == 0 {
            return Err(invalid("entry", "it is 0, and entries are numbered from 1 on".to_owned()));
        }
        let entries = vec![with_context(entry, context.unwrap_or_default())];
        MergeRequest { session_id, from, entries, at, key: idempotency_key }.bring(call).await
    }
}

fn invalid(argument: &str, reason: String) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason }
}

/// What is brought, and where to.
struct MergeRequest {
    session_id: Option<String>,
    from: String,
    entries: Vec<Range<u64>>,
    at: Option<u64>,
    /// The client's name for what it wants done once.
    key: Option<String>,
}

impl MergeRequest {
    async fn bring(self, call: &Call) -> Result<MergeAnswer, Error> {
        let Self { session_id, from, entries, at, key } = self;
        let client = call.client();
        let id = match key {
            Some(key) => CommandId::new(format!("merge:{key}"))?,
            None => call.command_id(),
        };
        let merge = Merge { from: client.resolve(&from).await?, entries };
        let session = call.workplace(session_id.as_deref(), Action::Merge).await?;
        let present = client.status(session).await?.session;
        // In an agent's conversation no code runs.
        if at.is_some() || present.is_agent() {
            let inserted = client.insert(session, id, merge, at).await?;
            return MergeAnswer::of_inserted(call, session, inserted).await;
        }
        let ready = call.bring_up(session).await?;
        if !ready.reaches(Action::Merge, Reach::InTurn) {
            return Err(ready.refusal(Action::Merge));
        }
        if ready.state() == SessionState::Evaluating {
            call.say("other code runs; this waits for its turn").await;
        }
        let merged =
            command_wait::parts_ended(call, &ready, &id, client.merge(session, id.clone(), merge)).await??;
        let view = merge_view(client, session, merged).await?;
        Ok(MergeAnswer::of_run(session, call.names(), view))
    }
}

impl MergeAnswer {
    fn of_run(session: SessionId, names: Names, view: MergeView) -> Self {
        let MergeView { success, ran, refused, not_run } = view;
        let line = |BroughtView { index, eval }| RanLine { entry: index + 1, eval: EvalAnswer::from(eval) };
        let refused = refused.map(|RefusedView { index, error }| RefusedLine {
            entry: index + 1,
            code: error.error.code().to_string(),
            next_step: next_step_in(&error.error, names),
            message: error.message,
        });
        Self {
            session_id: session.short(),
            success,
            ran: ran.into_iter().map(line).collect(),
            refused,
            not_run: not_run.into_iter().map(|index| index + 1).collect(),
            inserted: None,
        }
    }

    /// Waits until a session that is built anew is so.
    async fn of_inserted(call: &Call, session: SessionId, inserted: Inserted) -> Result<Self, Error> {
        let Inserted { entries, at, asked: _ } = inserted;
        let now = call.client().status(session).await?.session;
        let state = match now.state() {
            SessionState::WarmingUp => call.settled(session).await?.state(),
            state => state,
        };
        Ok(Self {
            session_id: session.short(),
            success: state != SessionState::Faulted,
            ran: Vec::new(),
            refused: None,
            not_run: Vec::new(),
            inserted: Some(InsertedLine { entries, at, state: state.name() }),
        })
    }
}

impl Answer for MergeAnswer {
    const IS_MARKED: bool = true;

    fn is_failure(&self) -> bool {
        !self.success
    }

    fn pictures(&mut self) -> Vec<PictureBlock> {
        self.ran.iter_mut().flat_map(|ran| ran.eval.pictures()).collect()
    }

    fn fit(&mut self, bytes: usize) {
        let share = bytes / self.ran.len().max(1);
        self.ran.iter_mut().for_each(|ran| ran.eval.fit(share));
    }
}

impl Display for MergeAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, success, ran, refused, not_run, inserted } = self;
        for RanLine { entry, eval } in ran {
            writeln!(f, "entry {entry}:\n{eval}")?;
        }
        if let Some(RefusedLine { entry, code, message, next_step }) = refused {
            writeln!(f, "entry {entry} was not run: {code}: {message}. {next_step}")?;
        }
        if !not_run.is_empty() {
            let numbers: Vec<String> = not_run.iter().map(ToString::to_string).collect();
            writeln!(f, "not run: {}", numbers.join(", "))?;
        }
        if let Some(InsertedLine { entries, at, state }) = inserted {
            writeln!(f, "{entries} entries put behind the first {at}, {state}")?;
        }
        write!(f, "{} [session {session_id}]", if *success { "ok" } else { "failed" })
    }
}
