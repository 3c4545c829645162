//! What was said, as pi has it. Source: pi's session format.

use mainstay_formats::exchange::pi_messages::{self, EntryText, PiEntry};
use mainstay_model::{AgentState, Event, Message, TokenUsage, TranscriptEntry};
use serde_json::{Value, json};

/// How the turn ended in which something was cut off, in the metadata of its entries.
const ENDING: &str = "ending";

/// The messages that entries come to; those of one message have the same first event.
pub(super) fn of_entries(entries: &[(TranscriptEntry, String)], state: Option<&AgentState>) -> Vec<Value> {
    let shown: Vec<EntryText<'_>> = entries.iter().map(|(placed, text)| (placed, text.as_str())).collect();
    let groups = shown.chunk_by(|(one, _), (next, _)| (one.session, one.first) == (next.session, next.first));
    groups.flat_map(|group| of_group(group, state)).collect()
}

/// What a model said before it was cut off ends as pi's own clients know it. pi itself is told otherwise: it hides what ended so from its
/// model.
fn of_group(group: &[EntryText<'_>], state: Option<&AgentState>) -> Vec<Value> {
    let ending = group.iter().find_map(|(placed, _)| placed.entry.metadata.get(ENDING));
    let stopped = ending.map(|ending| if ending == "failed" { "error" } else { "aborted" });
    let mut messages: Vec<Value> =
        pi_messages::said(group, state).into_iter().filter_map(message_of).collect();
    for message in messages.iter_mut().filter(|message| message["role"] == "assistant") {
        let Some(stopped) = stopped else { continue };
        message["stopReason"] = stopped.into();
        let blocks = message["content"].as_array_mut().into_iter().flatten();
        blocks.filter_map(Value::as_object_mut).for_each(|block| drop(block.remove(ENDING)));
    }
    messages
}

/// The messages that an event comes to: one, but where several tools have answered at once.
pub(super) fn of_event(event: &Event, message: &Message, state: Option<&AgentState>) -> Vec<Value> {
    let placed = |entry: mainstay_model::Entry| TranscriptEntry {
        session: event.session,
        number: 0,
        hash: entry.hash(),
        entry,
        at: event.at,
        first: event.seq,
        last: event.seq,
        origin: None,
    };
    let entries: Vec<(TranscriptEntry, String)> =
        message.entries().into_iter().map(|(entry, text)| (placed(entry), text)).collect();
    let mut messages = of_entries(&entries, state);
    if let (Some(usage), [message]) = (message.usage, messages.as_mut_slice())
        && message["role"] == "assistant"
    {
        count(message, usage);
    }
    messages
}

fn message_of(said: PiEntry) -> Option<Value> {
    let mut fields = said.fields;
    fields.remove("message")
}

fn count(message: &mut Value, usage: TokenUsage) {
    let TokenUsage { input, output, cache_read, cache_write, cost } = usage;
    let total = usage.tokens();
    let mut counted =
        message.get("usage").filter(|usage| usage.is_object()).cloned().unwrap_or_else(|| json!({}));
    let counts = [
        ("input", input),
        ("output", output),
        ("cacheRead", cache_read),
        ("cacheWrite", cache_write),
        ("totalTokens", total),
    ];
    for (name, count) in counts {
        counted[name] = count.into();
    }
    if !cost.is_zero() {
        counted["cost"]["total"] = json!(cost);
    }
    message["usage"] = counted;
}
