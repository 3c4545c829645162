//! Notes of an agent, as pi tells them.

use mainstay_model::agent::ToolCall;
use mainstay_model::{Note, Timestamp};
use serde_json::{Value, json};

/// What a note tells.
pub(super) fn noted(note: &Note, at: Timestamp) -> Option<Value> {
    let event = match note {
        Note::ToolStarted { call: ToolCall { call, tool }, arguments } => json!({
            "type": "tool_execution_start", "toolCallId": call, "toolName": tool, "args": arguments,
        }),
        // Its result says so.
        Note::ToolEnded { .. } => return None,
        Note::CompactionStarted { reason } => json!({ "type": "compaction_start", "reason": reason }),
        Note::CompactionFailed { reason, message, was_cancelled } => {
            let reason = if reason.is_empty() { "manual" } else { reason };
            let mut event = json!({
                "type": "compaction_end", "reason": reason, "result": null, "aborted": was_cancelled,
                "willRetry": false,
            });
            if !was_cancelled {
                event["errorMessage"] = message.as_str().into();
            }
            event
        }
        Note::RetryStarted { attempt, attempts, delay_ms, message } => json!({
            "type": "auto_retry_start", "attempt": attempt, "maxAttempts": attempts, "delayMs": delay_ms,
            "errorMessage": message,
        }),
        Note::RetryEnded { success, attempt, message } => {
            let mut event = json!({ "type": "auto_retry_end", "success": success, "attempt": attempt });
            if let Some(message) = message {
                event["finalError"] = message.as_str().into();
            }
            event
        }
        Note::Told { level, message } => json!({
            "type": "extension_ui_request", "requestId": format!("notify-{}", at.as_millisecond()),
            "method": "notify", "message": message, "notifyType": level,
        }),
    };
    Some(event)
}

/// What a tool has given so far.
pub(super) fn tool_update(ToolCall { call, tool }: &ToolCall, arguments: &Value, output: &Value) -> Value {
    json!({
        "type": "tool_execution_update", "toolCallId": call, "toolName": tool, "args": arguments,
        "partialResult": output,
    })
}
