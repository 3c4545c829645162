//! How many principals must give the same answer to what a job asks: an extension of this runtime. Source: draft-arcp-01, 12.3 and 21.

use mainstay_arcp_protocol::a::control::Nack;
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::{Question, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::capabilities::QUORUM;
use super::errors;

/// What the field of the extension says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    quorum: u32,
}

/// The fields of extensions in an envelope.
pub(super) type Extensions = Map<String, Value>;

/// Whether a message has jobs begin.
pub(super) const fn begins_jobs(message: &Message) -> bool {
    matches!(message, Message::ToolInvoke(_) | Message::AgentDelegate(_) | Message::JobSchedule(_))
}

/// How many principals must give the same answer to what the job asks that a message begins, where it says so. `is_agreed` is whether the session has
/// the extension.
///
/// # Errors
/// The answer to a message that cannot say so, or says it in another form.
pub(super) fn wanted_in(
    message: &Message,
    extensions: Option<&Extensions>,
    is_agreed: bool,
) -> Result<Option<u32>, Nack> {
    let Some(wanted) = extensions.and_then(|fields| fields.get(QUORUM)) else { return Ok(None) };
    if !is_agreed {
        let reason = format!("this session does not have `{QUORUM}`");
        return Err(errors::not_agreed(reason, QUORUM));
    }
    if !matches!(message, Message::ToolInvoke(_)) {
        let reason = format!("`{QUORUM}` goes with tool.invoke alone");
        let step = "Leave the field out, or invoke the agent with `tool.invoke`.";
        return Err(errors::nack(ErrorCode::Unimplemented, reason, step));
    }
    match Wanted::deserialize(wanted) {
        Ok(Wanted { quorum }) => Ok(Some(quorum)),
        Err(error) => {
            let reason = format!("`{QUORUM}` is not valid: {error}");
            let step = "Send the field as `{ \"quorum\": 2 }`, with how many must give the same answer.";
            Err(errors::nack(ErrorCode::InvalidArgument, reason, step))
        }
    }
}

/// The fields of extensions that go with a question which needs the same answer of several.
pub(super) fn fields_of(question: &Question) -> Option<Extensions> {
    let needed = question.quorum.filter(|needed| *needed > 1)?;
    Some(Map::from_iter([(QUORUM.to_owned(), json!({ "quorum": needed }))]))
}

/// What is said of an answer that was counted, and does not suffice.
pub(super) fn details_of(response: &Response) -> Option<Value> {
    match response {
        Response::Voted { votes, missing, .. } => Some(json!({ "votes": votes, "missing": missing })),
        _ => None,
    }
}
