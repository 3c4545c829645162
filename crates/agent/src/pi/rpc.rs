//! What goes over pi's standard input and output in RPC mode, one JSON object a line.
//!
//! Reading never fails for what is new: fields that are not known are passed over, and so are lines of a kind that is not known.
//! Of a piece of a message only the piece is read, not the copy of all that was said before, which comes with it. Source: pi
//! 0.73.1, `docs/rpc.md` and `modes/rpc/rpc-mode.js`.

use std::borrow::Cow;

use mainstay_model::ThinkingLevel;
use mainstay_model::agent::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What pi is told to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Command {
    Prompt {
        message: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// What to do where an extension has it work already.
        streaming_behavior: &'static str,
    },
    Steer {
        message: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    FollowUp {
        message: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    Abort,
    AbortBash,
    Bash {
        command: String,
    },
    Compact {
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_instructions: Option<String>,
    },
    SetModel {
        provider: String,
        model_id: String,
    },
    CycleModel,
    SetThinkingLevel {
        level: ThinkingLevel,
    },
    CycleThinkingLevel,
    SetAutoCompaction {
        enabled: bool,
    },
    SetAutoRetry {
        enabled: bool,
    },
    GetState,
    GetAvailableModels,
    GetCommands,
    GetSessionStats,
}

/// It hears a prompt once it is done with what it does.
pub(crate) const FOLLOW_UP: &str = "followUp";

/// A picture, as pi has it in what is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "image", rename_all = "camelCase")]
pub(crate) struct Image {
    pub(crate) data: String,
    pub(crate) mime_type: String,
}

#[derive(Serialize)]
struct Request<'a> {
    id: String,
    #[serde(flatten)]
    command: &'a Command,
}

/// The line that tells pi to do something; its reply has the same number.
pub(crate) fn request(number: u64, command: &Command) -> String {
    line(&Request { id: number.to_string(), command })
}

/// The line that ends a dialog: `answer` has what pi wants of a dialog of its kind.
pub(crate) fn dialog_answer(id: &str, answer: Map<String, Value>) -> String {
    let mut response = answer;
    response.insert("type".to_owned(), "extension_ui_response".into());
    response.insert("id".to_owned(), id.into());
    line(&response)
}

fn line(said: &impl Serialize) -> String {
    // What is written here has no keys that are not texts, and so always is JSON.
    let mut line = serde_json::to_string(said).unwrap_or_default();
    line.push('\n');
    line
}

/// A line that pi says.
#[derive(Debug)]
pub(crate) enum FromPi {
    /// The answer to a command.
    Response(Response),
    /// A run of the agent begins.
    AgentStart,
    /// It ends; a retry or a compaction may follow.
    AgentEnd { messages: Vec<Closing> },
    /// A piece of a message.
    Piece(Piece),
    /// A part of a message is the call of a tool.
    CallBegins { part: u32, call: Option<ToolCall> },
    /// A part of a message is whole.
    PartEnds { part: u32 },
    /// A whole message of the conversation.
    Message(Map<String, Value>),
    /// A tool call has started.
    ToolStart { call: ToolCall, arguments: Value },
    /// It has given so much.
    ToolUpdate { call: ToolCall, output: Value },
    /// A tool call has ended.
    ToolEnd { call: ToolCall, is_error: bool },
    /// What is said to it and it has not heard.
    Queue { steering: Vec<String>, follow_up: Vec<String> },
    /// A compaction has started.
    CompactionStart { reason: String },
    /// A compaction has ended.
    CompactionEnd(CompactionEnd),
    /// A provider failed, and is asked again.
    RetryStart(RetryStart),
    /// It was asked again, or that was given up.
    RetryEnd(RetryEnd),
    /// It thinks otherwise from now on.
    ThinkingLevel { level: ThinkingLevel },
    /// An extension of pi failed.
    ExtensionError { path: String, event: String, error: String },
    /// An extension speaks to people.
    Extension(ExtensionRequest),
    /// What this does not know, or has no use for.
    Other,
}

/// The answer to a command.
#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) command: String,
    pub(crate) success: bool,
    #[serde(default)]
    pub(crate) data: Value,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// How a message of a run ended it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Closing {
    #[serde(default)]
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) stop_reason: Option<String>,
    #[serde(default)]
    pub(crate) error_message: Option<String>,
}

/// A piece of a part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) part: u32,
    pub(crate) kind: PieceKind,
    pub(crate) text: String,
}

/// What a piece is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text,
    Thinking,
    Call,
}

/// How a compaction ended.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionEnd {
    #[serde(default)]
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) result: Option<CompactionResult>,
    #[serde(default)]
    pub(crate) aborted: bool,
    #[serde(default)]
    pub(crate) will_retry: bool,
    #[serde(default)]
    pub(crate) error_message: Option<String>,
}

/// What a compaction came to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionResult {
    pub(crate) summary: String,
    pub(crate) first_kept_entry_id: String,
    #[serde(default)]
    pub(crate) tokens_before: Value,
    #[serde(default)]
    pub(crate) details: Value,
}

/// A provider failed for the moment.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryStart {
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    pub(crate) delay_ms: u64,
    #[serde(default)]
    pub(crate) error_message: String,
}

/// It was asked again, or not.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryEnd {
    pub(crate) success: bool,
    pub(crate) attempt: u32,
    #[serde(default)]
    pub(crate) final_error: Option<String>,
}

/// An extension asks people, or tells them something.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExtensionRequest {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) options: Vec<String>,
    #[serde(default)]
    pub(crate) placeholder: Option<String>,
    #[serde(default)]
    pub(crate) prefill: Option<String>,
    #[serde(default)]
    pub(crate) timeout: Option<u64>,
    #[serde(default)]
    pub(crate) notify_type: Option<String>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    assistant_message_event: UpdateEvent<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    content_index: u32,
    #[serde(default)]
    delta: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallUpdate {
    assistant_message_event: CallEvent,
}

#[derive(Deserialize)]
struct CallEvent {
    #[serde(default)]
    partial: Partial,
}

#[derive(Default, Deserialize)]
struct Partial {
    #[serde(default)]
    content: Vec<PartialBlock>,
}

#[derive(Deserialize)]
struct PartialBlock {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct MessageBody {
    message: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    tool_call_id: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    partial_result: Value,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueUpdate {
    #[serde(default)]
    steering: Vec<String>,
    #[serde(default)]
    follow_up: Vec<String>,
}

#[derive(Deserialize)]
struct AgentEnd {
    #[serde(default)]
    messages: Vec<Closing>,
}

#[derive(Deserialize)]
struct CompactionStart {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct ThinkingLevelChanged {
    level: ThinkingLevel,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtensionError {
    #[serde(default)]
    extension_path: String,
    #[serde(default)]
    event: String,
    #[serde(default)]
    error: String,
}

/// Reads a line.
///
/// # Errors
/// Where it is no JSON object of its kind.
pub(crate) fn read(line: &[u8]) -> Result<FromPi, serde_json::Error> {
    let head: Head<'_> = serde_json::from_slice(line)?;
    Ok(match &*head.kind {
        "response" => FromPi::Response(serde_json::from_slice(line)?),
        "message_update" => update(line)?,
        "message_end" => FromPi::Message(serde_json::from_slice::<MessageBody>(line)?.message),
        "agent_start" => FromPi::AgentStart,
        "agent_end" => FromPi::AgentEnd { messages: serde_json::from_slice::<AgentEnd>(line)?.messages },
        "tool_execution_start" => {
            let (call, execution) = execution(line)?;
            FromPi::ToolStart { call, arguments: execution.args }
        }
        "tool_execution_update" => {
            let (call, execution) = execution(line)?;
            FromPi::ToolUpdate { call, output: execution.partial_result }
        }
        "tool_execution_end" => {
            let (call, execution) = execution(line)?;
            FromPi::ToolEnd { call, is_error: execution.is_error }
        }
        "queue_update" => {
            let QueueUpdate { steering, follow_up } = serde_json::from_slice(line)?;
            FromPi::Queue { steering, follow_up }
        }
        "compaction_start" => {
            FromPi::CompactionStart { reason: serde_json::from_slice::<CompactionStart>(line)?.reason }
        }
        "compaction_end" => FromPi::CompactionEnd(serde_json::from_slice(line)?),
        "auto_retry_start" => FromPi::RetryStart(serde_json::from_slice(line)?),
        "auto_retry_end" => FromPi::RetryEnd(serde_json::from_slice(line)?),
        "thinking_level_changed" => {
            FromPi::ThinkingLevel { level: serde_json::from_slice::<ThinkingLevelChanged>(line)?.level }
        }
        "extension_error" => {
            let ExtensionError { extension_path: path, event, error } = serde_json::from_slice(line)?;
            FromPi::ExtensionError { path, event, error }
        }
        "extension_ui_request" => FromPi::Extension(serde_json::from_slice(line)?),
        _ => FromPi::Other,
    })
}

fn update(line: &[u8]) -> Result<FromPi, serde_json::Error> {
    let UpdateEvent { kind, content_index: part, delta } =
        serde_json::from_slice::<Update<'_>>(line)?.assistant_message_event;
    let piece = |kind| FromPi::Piece(Piece { part, kind, text: delta.unwrap_or_default() });
    Ok(match &*kind {
        "text_delta" => piece(PieceKind::Text),
        "thinking_delta" => piece(PieceKind::Thinking),
        "toolcall_delta" => piece(PieceKind::Call),
        // The only piece for which the copy is read: it has the call's names.
        "toolcall_start" => {
            let partial = serde_json::from_slice::<CallUpdate>(line)?.assistant_message_event.partial;
            let block = partial.content.into_iter().nth(part as usize);
            let call = block.and_then(|block| Some(ToolCall { call: block.id?, tool: block.name? }));
            FromPi::CallBegins { part, call }
        }
        "toolcall_end" => FromPi::PartEnds { part },
        _ => FromPi::Other,
    })
}

fn execution(line: &[u8]) -> Result<(ToolCall, Execution), serde_json::Error> {
    let execution: Execution = serde_json::from_slice(line)?;
    let call = ToolCall { call: execution.tool_call_id.clone(), tool: execution.tool_name.clone() };
    Ok((call, execution))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_written_as_pi_reads_them() {
        let image = Image { data: "AA==".to_owned(), mime_type: "image/png".to_owned() };
        let lines = [
            Command::Prompt { message: "hi".to_owned(), images: vec![image], streaming_behavior: FOLLOW_UP },
            Command::FollowUp { message: "a\nb".to_owned(), images: Vec::new() },
            Command::SetModel { provider: "p".to_owned(), model_id: "m".to_owned() },
            Command::Compact { custom_instructions: Some("briefly".to_owned()) },
            Command::Compact { custom_instructions: None },
            Command::SetThinkingLevel { level: ThinkingLevel::Xhigh },
            Command::GetState,
        ];
        let written: String =
            lines.iter().zip(1..).map(|(command, number)| request(number, command)).collect();
        insta::assert_snapshot!(written, @r#"
        {"id":"1","type":"prompt","message":"hi","images":[{"type":"image","data":"AA==","mimeType":"image/png"}],"streamingBehavior":"followUp"}
        {"id":"2","type":"follow_up","message":"a\nb"}
        {"id":"3","type":"set_model","provider":"p","modelId":"m"}
        {"id":"4","type":"compact","customInstructions":"briefly"}
        {"id":"5","type":"compact"}
        {"id":"6","type":"set_thinking_level","level":"xhigh"}
        {"id":"7","type":"get_state"}
        "#);
    }

    #[test]
    fn a_line_of_a_kind_that_is_not_known_is_passed_over() {
        assert!(matches!(read(br#"{"type":"novelty","x":[1]}"#), Ok(FromPi::Other)));
        let update = br#"{"type":"message_update","assistantMessageEvent":{"type":"novelty"},"message":{}}"#;
        assert!(matches!(read(update), Ok(FromPi::Other)));
    }

    #[test]
    fn the_call_of_a_tool_is_named_where_it_begins() {
        let line = br#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_start","contentIndex":1,
            "partial":{"content":[{"type":"text","text":"x"},{"type":"toolCall","id":"c","name":"bash"}]}},"message":{}}"#;
        let Ok(FromPi::CallBegins { part: 1, call: Some(call) }) = read(line) else { panic!("no call") };
        assert_eq!(call, ToolCall { call: "c".to_owned(), tool: "bash".to_owned() });
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            read(&line).ok();
        }

        #[test]
        fn no_object_of_a_known_kind_makes_the_reader_panic(
            kind in "(response|message_update|message_end|agent_end|compaction_end|extension_ui_request|tool_execution_end)",
            name in "(message|data|id|success|messages|assistantMessageEvent|result)",
            value in "(null|1|\"x\"|\\[\\]|\\{\\}|\\[1\\]|\\{\"type\":\"text_delta\"\\})",
        ) {
            read(format!(r#"{{"type":"{kind}","{name}":{value}}}"#).as_bytes()).ok();
        }
    }
}
