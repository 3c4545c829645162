//! What is written is read again by the reader of pi's session files.

use std::collections::BTreeMap;
use std::path::Path;

use mainstay_formats::exchange::{Item, read_session_file};
use mainstay_model::agent::{AgentState, Model};
use mainstay_model::message::{BLOCK, IS_ERROR, TOOL};
use mainstay_model::{
    Content, Entry, EventBody, Message, Part, PartRole, Role, Seq, SessionId, ThinkingLevel, Timestamp,
    TokenUsage, TranscriptEntry,
};
use mainstay_runner::Conversation;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(1))
}

/// A conversation of entries, each group of which came of one event.
fn conversation(groups: Vec<Vec<(Entry, String)>>) -> Conversation {
    let mut entries = Vec::new();
    for (group, seq) in groups.into_iter().zip(1_u64..) {
        for (entry, text) in group {
            let number = entries.len() as u64;
            let at = Timestamp::from_second(1_700_000_000 + seq.cast_signed()).unwrap();
            let (hash, first, last) = (entry.hash(), Seq(seq), Seq(seq));
            entries.push((
                TranscriptEntry { session: session(), number, hash, entry, at, first, last, origin: None },
                text,
            ));
        }
    }
    Conversation { entries, ..Conversation::default() }
}

fn of_messages(messages: &[Message]) -> Conversation {
    conversation(messages.iter().map(Message::entries).collect())
}

fn written(conversation: &Conversation) -> SessionFile {
    session_file(session(), Path::new("/project"), conversation).unwrap()
}

fn read(file: &SessionFile) -> Vec<EventBody> {
    let items = read_session_file(&file.text, Timestamp::now()).unwrap().imported.items;
    let body = |item| match item {
        Item::Message { event, .. } => event.body,
        other => panic!("{other:?}"),
    };
    items.into_iter().map(body).collect()
}

fn read_messages(file: &SessionFile) -> Vec<Message> {
    let message = |body| match body {
        EventBody::MessageAdded(message) => *message,
        other => panic!("{other:?}"),
    };
    read(file).into_iter().map(message).collect()
}

fn entry(role: Role, text: &str, metadata: Value) -> (Entry, String) {
    let metadata: BTreeMap<String, Value> = serde_json::from_value(metadata).unwrap();
    (Entry { role, content: Content::of(text.to_owned()).0, metadata }, text.to_owned())
}

/// What was said and answered, one after the other.
fn any_exchange() -> impl Strategy<Value = Vec<Message>> {
    let alone = |message: Message| vec![message];
    prop_oneof![
        4 => any_user().prop_map(alone),
        6 => any_assistant(),
        1 => any_shell().prop_map(alone),
        1 => any_custom().prop_map(alone),
        1 => any_summary().prop_map(alone),
    ]
}

fn of(parts: Vec<Part>) -> Message {
    Message { parts, ..Message::default() }
}

fn any_image() -> impl Strategy<Value = Value> {
    "[a-z]{0,9}".prop_map(|data| json!({ "type": "image", "data": data, "mimeType": "image/png" }))
}

fn any_user() -> impl Strategy<Value = Message> {
    let part = prop_oneof![
        3 => any::<String>().prop_map(|text| Part::text(PartRole::User, text)),
        1 => any_image().prop_map(|image| Part::block(PartRole::User, "image", &image)),
    ];
    vec(part, 1..4).prop_map(of)
}

fn any_thought() -> impl Strategy<Value = Part> {
    (any::<String>(), option::of("[a-z]{1,9}")).prop_map(|(text, signature)| {
        let thought = Part::text(PartRole::Thinking, text);
        signature.map_or(thought.clone(), |signature| thought.with("signature", signature))
    })
}

fn any_assistant() -> impl Strategy<Value = Vec<Message>> {
    let said = any::<String>().prop_map(|text| Part::text(PartRole::Assistant, text));
    let said = prop_oneof![said.boxed(), any_thought().boxed()];
    let stopped = prop_oneof![Just("stop"), Just("length"), Just("error"), Just("aborted")];
    (vec(said, 1..4), vec((any::<u32>(), any_result()), 0..3), stopped).prop_map(
        |(mut parts, calls, stopped)| {
            let mut results = Vec::new();
            for (index, (argument, result)) in calls.into_iter().enumerate() {
                let call = format!("call-{index}");
                parts.push(Part::tool_call(&call, "bash", &json!({ "command": argument })));
                results.push(of(vec![result.with("call", call)]));
            }
            let stopped = if results.is_empty() { stopped } else { "toolUse" };
            let metadata = json!({ "api": "a", "provider": "p", "model": "m", "stopReason": stopped });
            let metadata = serde_json::from_value(metadata).unwrap();
            let usage = Some(TokenUsage::default());
            [Message { parts, metadata, usage }].into_iter().chain(results).collect()
        },
    )
}

fn any_result() -> impl Strategy<Value = Part> {
    let text = any::<String>().prop_map(|text| Part::tool_result("", text));
    let blocks = any_image().prop_map(|image| {
        let blocks = json!([{ "type": "text", "text": "seen" }, image]);
        Part::tool_result("", blocks.to_string()).with(BLOCK, "content")
    });
    (prop_oneof![text.boxed(), blocks.boxed()], any::<bool>(), option::of(any::<u8>())).prop_map(
        |(result, is_error, details)| {
            let result = result.with(TOOL, "bash");
            let result = if is_error { result.with(IS_ERROR, true) } else { result };
            details.map_or(result.clone(), |details| result.with("details", details))
        },
    )
}

fn any_shell() -> impl Strategy<Value = Message> {
    ("[a-z ]{1,9}", any::<String>(), any::<u8>()).prop_map(|(command, output, code)| {
        let part = Part::text(PartRole::User, format!("$ {command}\n{output}"));
        let part = part.with("subtype", "bashExecution").with("command", command).with("exitCode", code);
        of(vec![part.with("cancelled", false).with("truncated", false)])
    })
}

fn any_custom() -> impl Strategy<Value = Message> {
    (any::<String>(), any::<bool>()).prop_map(|(text, display)| {
        let part = Part::text(PartRole::User, text).with("subtype", "custom").with("customType", "x");
        of(vec![part.with("display", display)])
    })
}

fn any_summary() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just("branch_summary"), Just("branchSummary"), Just("compactionSummary")];
    (any::<String>(), kind)
        .prop_map(|(text, kind)| of(vec![Part::text(PartRole::System, text).with("subtype", kind)]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read_again(exchanges in vec(any_exchange(), 1..8)) {
        let messages = exchanges.concat();
        let file = written(&of_messages(&messages));
        prop_assert_eq!(read_messages(&file), messages);
    }

    #[test]
    fn what_is_kept_is_counted_in_entries_of_ours(exchanges in vec(any_exchange(), 1..8), at: prop::sample::Index) {
        let messages = exchanges.concat();
        let file = written(&of_messages(&messages));
        let first = at.index(messages.len());
        let behind: usize = messages[first..].iter().map(|message| message.parts.len()).sum();
        let id = entry_id(first);
        prop_assert_eq!(kept(&file.entry_counts, &file.text, &id), Some(behind as u64));
    }

    #[test]
    fn whatever_is_merged_into_a_conversation_a_call_has_its_result_right_behind(
        entries in vec((0..Role::ALL.len(), 0..3_u8, any::<bool>()), 1..24),
    ) {
        let mut groups: Vec<Vec<(Entry, String)>> = Vec::new();
        for (role, call, goes_on) in entries {
            let role = Role::ALL[role];
            let made = entry(role, "text", json!({ "call": format!("c{call}"), "tool": "bash" }));
            match groups.last_mut().filter(|_| goes_on) {
                Some(group) => group.push(made),
                None => groups.push(vec![made]),
            }
        }
        let file = written(&conversation(groups));
        let mut open: Vec<String> = Vec::new();
        for line in file.text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let message = &line["message"];
            if message["role"] == "toolResult" {
                let call = message["toolCallId"].as_str().unwrap();
                let index = open.iter().position(|open| open == call);
                prop_assert!(index.is_some(), "a result without a call in {}", file.text);
                open.remove(index.unwrap_or_default());
                continue;
            }
            prop_assert!(open.is_empty(), "a call without its result in {}", file.text);
            let blocks = message["content"].as_array().cloned().unwrap_or_default();
            let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
            open.extend(calls.map(|block| block["id"].as_str().unwrap().to_owned()));
        }
        prop_assert!(open.is_empty(), "a call without its result in {}", file.text);
    }
}

#[test]
fn a_conversation_is_written_as_pi_has_it() {
    let about = json!({ "name": "m", "api": "openai-completions" });
    let model =
        Model { provider: "p".to_owned(), id: "m".to_owned(), name: None, context_window: None, about };
    let state = AgentState {
        model: Some(model),
        thinking: ThinkingLevel::Low,
        auto_compaction: true,
        context_tokens: Some(99),
    };
    let entries = conversation(vec![
        vec![entry(Role::Summary, "They greeted.", json!({ "tokensBefore": 5, "covers": [] }))],
        vec![
            entry(Role::Input, "let x = \"```\"", json!({ "language": "fsharp" })),
            entry(Role::Output, "val x: string\n", json!({})),
        ],
        vec![entry(Role::User, "go on", json!({}))],
        vec![
            entry(Role::Thinking, "hm", json!({ "signature": "s" })),
            entry(Role::ToolCall, "{\"path\":\"a\"}", json!({ "call": "c1", "tool": "read" })),
        ],
        vec![entry(Role::User, "stop", json!({}))],
        vec![entry(Role::ToolResult, "late", json!({ "call": "c1", "tool": "read" }))],
        vec![entry(Role::Assistant, "I stop.", json!({}))],
        vec![entry(Role::System, "be kind", json!({}))],
    ])
    .entries;
    let conversation = Conversation { entries, state: Some(state), name: "a session".to_owned() };
    insta::assert_snapshot!(written(&conversation).text, @r#"
    {"cwd":"/project","id":"00000000-0000-0000-0000-000000000001","timestamp":"2023-11-14T22:13:21Z","type":"session","version":3}
    {"firstKeptEntryId":"00000001","id":"00000000","parentId":null,"summary":"They greeted.","timestamp":"2023-11-14T22:13:21Z","tokensBefore":5,"type":"compaction"}
    {"id":"00000001","message":{"content":[{"text":"````fsharp\nlet x = \"```\"\n````\n\nOutput:\n```\nval x: string\n```","type":"text"}],"role":"user","timestamp":1700000002000},"parentId":"00000000","timestamp":"2023-11-14T22:13:22Z","type":"message"}
    {"id":"00000002","message":{"content":[{"text":"go on","type":"text"}],"role":"user","timestamp":1700000003000},"parentId":"00000001","timestamp":"2023-11-14T22:13:23Z","type":"message"}
    {"id":"00000003","message":{"api":"openai-completions","content":[{"thinking":"hm","thinkingSignature":"s","type":"thinking"},{"arguments":{"path":"a"},"id":"c1","name":"read","type":"toolCall"}],"model":"m","provider":"p","role":"assistant","stopReason":"toolUse","timestamp":1700000004000,"usage":{"cacheRead":0,"cacheWrite":0,"cost":{"cacheRead":0,"cacheWrite":0,"input":0,"output":0,"total":0},"input":0,"output":0,"totalTokens":0}},"parentId":"00000002","timestamp":"2023-11-14T22:13:24Z","type":"message"}
    {"id":"00000004","message":{"content":[{"text":"interrupted","type":"text"}],"isError":true,"role":"toolResult","timestamp":1700000005000,"toolCallId":"c1","toolName":"read"},"parentId":"00000003","timestamp":"2023-11-14T22:13:25Z","type":"message"}
    {"id":"00000005","message":{"content":[{"text":"stop","type":"text"}],"role":"user","timestamp":1700000005000},"parentId":"00000004","timestamp":"2023-11-14T22:13:25Z","type":"message"}
    {"id":"00000006","message":{"content":[{"text":"A result of the tool read:","type":"text"},{"text":"late","type":"text"}],"role":"user","timestamp":1700000006000},"parentId":"00000005","timestamp":"2023-11-14T22:13:26Z","type":"message"}
    {"id":"00000007","message":{"api":"openai-completions","content":[{"text":"I stop.","type":"text"}],"model":"m","provider":"p","role":"assistant","stopReason":"stop","timestamp":1700000007000,"usage":{"cacheRead":0,"cacheWrite":0,"cost":{"cacheRead":0,"cacheWrite":0,"input":0,"output":0,"total":0},"input":0,"output":0,"totalTokens":99}},"parentId":"00000006","timestamp":"2023-11-14T22:13:27Z","type":"message"}
    {"content":"be kind","customType":"system","display":true,"id":"00000008","parentId":"00000007","timestamp":"2023-11-14T22:13:28Z","type":"custom_message"}
    {"id":"00000009","parentId":"00000008","thinkingLevel":"low","timestamp":"2023-11-14T22:13:28Z","type":"thinking_level_change"}
    {"id":"0000000a","modelId":"m","parentId":"00000009","provider":"p","timestamp":"2023-11-14T22:13:28Z","type":"model_change"}
    {"id":"0000000b","name":"a session","parentId":"0000000a","timestamp":"2023-11-14T22:13:28Z","type":"session_info"}
    "#);
}

#[test]
fn what_an_agent_was_not_told_yet_has_no_file() {
    assert_eq!(session_file(session(), Path::new("/"), &Conversation::default()), None);
}

#[test]
fn what_pi_wrote_behind_ours_is_counted_as_it_is_read() {
    let file =
        written(&of_messages(&[of(vec![Part::text(PartRole::User, "a"), Part::text(PartRole::User, "b")])]));
    let text = file.text
        + r#"{"type":"model_change","id":"x1"}
{"type":"message","id":"x2","message":{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"u"}]}}
{"type":"custom_message","id":"x3","customType":"c","content":"said","display":true}
{"type":"message","id":"x4","message":{"role":"bashExecution","command":"ls","output":""}}
cut of"#;
    let kept = |id: &str| kept(&file.entry_counts, &text, id);
    assert_eq!(
        [kept("00000000"), kept("x1"), kept("x2"), kept("x3"), kept("x4"), kept("x5")],
        [Some(6), Some(4), Some(4), Some(2), Some(1), None]
    );
}
