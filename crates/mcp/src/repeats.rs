//! What a bridge says of a call that it may have to send again, to another daemon: the id of its command, so that a call that is repeated
//! is answered with the stored outcome and nothing runs twice. In return the answer says which session the connection used last, for the bridge
//! to hand over when it connects again.

use mainstay_engine::{Client, CommandStatus};
use mainstay_model::{CommandId, Outcome, Response, SessionId};
use rmcp::model::{CallToolResponse, MetaObject};
use serde_json::Value;
use uuid::Uuid;

/// The member of a call's `_meta` that has its command's id, a UUID.
pub const COMMAND: &str = "mainstay/command";
/// The member of a call's `_meta` that is true where an earlier daemon was sent it.
pub const AGAIN: &str = "mainstay/again";
/// The member of an answer's `_meta` that has the id of the session that the connection used last.
pub const SESSION: &str = "mainstay/session";

/// What a bridge says of a call.
#[derive(Debug, Default)]
pub(super) struct Repeatable {
    command: Option<CommandId>,
    /// Whether it was sent before.
    is_again: bool,
}

impl Repeatable {
    /// What a call's `_meta` says.
    pub(super) fn of(meta: &MetaObject) -> Self {
        let command = meta.get(COMMAND).and_then(Value::as_str).and_then(command);
        let is_again = meta.get(AGAIN) == Some(&Value::Bool(true));
        Self { command, is_again }
    }

    /// Whether a daemon that is gone was sent it.
    pub(super) fn is_again(&self) -> bool {
        self.is_again
    }

    /// The id of the command that the call is for.
    pub(super) fn command(&self) -> Option<&CommandId> {
        self.command.as_ref()
    }

    /// The session that a repeated call was about, where its command got there.
    pub(super) async fn session_before(&self, client: &Client) -> Option<SessionId> {
        let command = self.command.as_ref().filter(|_| self.is_again)?;
        match client.command(command).await.ok()? {
            // What it was about is not the session that it made.
            CommandStatus::Ended(stored) => match stored.outcome {
                Outcome::Done { response: Response::Created { .. } | Response::Forked { .. } } => None,
                Outcome::Done { .. } | Outcome::Failed { .. } => stored.session,
            },
            CommandStatus::Waits { session } | CommandStatus::Runs { session } => Some(session),
        }
    }
}

/// The command's id. Of a UUID alone: those of other clients of the same principal are not taken by chance.
fn command(said: &str) -> Option<CommandId> {
    CommandId::new(command_id(Uuid::try_parse(said).ok()?)).ok()
}

/// The id by which `get_result` finds a call that carries this in [`COMMAND`].
#[must_use]
pub fn command_id(number: Uuid) -> String {
    format!("mcp:{}", number.simple())
}

/// The answer, with the session that the connection used last where its bridge wants to know it.
pub(super) fn with_session(
    answer: CallToolResponse,
    repeatable: &Repeatable,
    session: Option<SessionId>,
) -> CallToolResponse {
    let (Some(_), Some(session)) = (&repeatable.command, session) else { return answer };
    let mut answer = answer;
    let meta = match &mut answer {
        CallToolResponse::Complete(result) => &mut result.meta,
        CallToolResponse::InputRequired(required) => &mut required.meta,
        CallToolResponse::Task(task) => &mut task.meta,
        _ => return answer,
    };
    meta.get_or_insert_with(MetaObject::default)
        .insert(SESSION.to_owned(), Value::String(session.to_string()));
    answer
}
