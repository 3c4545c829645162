//! The messages that the bridge writes itself: notifications, refusals and failures.

use mainstay_mcp::command_id;
use mainstay_model::Error;
use mainstay_terminal_client::connect::MOST_LOSSES;
use serde_json::{Value, json};

use super::{Kind, Request, To};
use crate::commands::mcp::bridge::message::{Members, line, object, put};

/// JSON-RPC's codes of errors.
pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
const INTERNAL_ERROR: i64 = -32603;

/// The answer to `initialize`, which says that the tools may become others: a daemon's never do, but one of another version has its own.
pub(super) fn with_other_tools(mut members: Members) -> String {
    let mut result = object(&members, "result").unwrap_or_default();
    let mut capabilities = object(&result, "capabilities").unwrap_or_default();
    let mut tools = object(&capabilities, "tools").unwrap_or_default();
    put(&mut tools, "listChanged", &true);
    put(&mut capabilities, "tools", &tools);
    put(&mut result, "capabilities", &capabilities);
    put(&mut members, "result", &result);
    line(&members)
}

pub(super) fn notification(what: &str, params: Value) -> To {
    let method = format!("notifications/{what}");
    To::Client(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
}

/// Answers a request with an error: a call as a tool would, since the model reads that.
pub(super) fn refusal(request: &Request, error: &Error) -> To {
    let mut words = format!("{}: {error}. {}", error.code(), mainstay_terminal::next_step(error));
    if request.deaths >= MOST_LOSSES {
        words.push_str(&format!(
            "\n{} daemons ended while they had this request, one after the other: it may be what they end of.",
            request.deaths
        ));
    }
    let Kind::Call { command } = &request.kind else {
        let data = json!({ "code": error.code().to_string() });
        return To::Client(failure(&request.id, INTERNAL_ERROR, &words, Some(data)));
    };
    if request.losses > 0 {
        let id = command_id(*command);
        words.push_str(&format!(
            "\nA daemon had this call, and what became of it is not known. Do not send it again: once a daemon answers, get_result with the id {id} \
             tells. Where it is not found, ask once more in a moment: only then it has not run."
        ));
    }
    let mut result = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    if request.is_of_newest() {
        result["resultType"] = json!("complete");
    }
    To::Client(json!({ "jsonrpc": "2.0", "id": request.id, "result": result }).to_string())
}

pub(super) fn failure(id: &Value, code: i64, message: &str, data: Option<Value>) -> String {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}
