//! What other programs' session files come to. `claude-code.jsonl` was written by Claude Code 1.0.128 and `pi.jsonl` by pi
//! 0.73.1, both against a scripted model; `claude-code-branches.jsonl` is made to the format that newer versions write.

use std::collections::HashMap;

use mainstay_formats::exchange::{
    Format, ImportFormat, Item, SessionFile, placed, read, read_session_file, session_file_text,
};
use mainstay_formats::notebook::ScriptLanguage;
use mainstay_model::transcribe::{Transcribed, Transcriber};
use mainstay_model::transcript::context;
use mainstay_model::{
    Error, Event, Metadata, Position, Role, Seq, Session, SessionKind, Source, Timestamp, TranscriptEntry,
};
use proptest::prelude::*;

use crate::support::{creation, session_id};

const CLAUDE_CODE: &str = include_str!("../samples/claude-code.jsonl");
const BRANCHES: &str = include_str!("../samples/claude-code-branches.jsonl");
const PI: &str = include_str!("../samples/pi.jsonl");

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn imported(text: &str) -> SessionFile {
    read_session_file(text, now()).unwrap()
}

fn events(file: &SessionFile) -> Vec<Event> {
    let metadata = Metadata { source: Source::System, correlation: None, causation: None, environment: None };
    let event = |(seq, placing): (u64, mainstay_formats::exchange::PlacedEvent)| Event {
        session: session_id(),
        seq: Seq(seq),
        position: Position(seq),
        at: placing.at,
        metadata: metadata.clone(),
        body: placing.body,
    };
    (3..).zip(placed(file.imported.items.clone(), session_id(), Seq(3))).map(event).collect()
}

fn entries(file: &SessionFile) -> Vec<TranscriptEntry> {
    let mut transcriber = Transcriber::default();
    let transcribed =
        events(file).into_iter().flat_map(|event| transcriber.push(&SessionKind::agent(), &event));
    let place = |(number, Transcribed { entry, at, first, last, origin, .. })| {
        let hash = entry.hash();
        TranscriptEntry { session: session_id(), number, hash, entry, at, first, last, origin }
    };
    (0..).zip(transcribed.collect::<Vec<_>>()).map(place).collect()
}

/// All that a file comes to.
fn told(text: &str) -> String {
    let file = imported(text);
    let header = serde_json::to_string(&file.imported.header).unwrap();
    let mut told = format!("{:?} {header}\nleft out {:?}\n", file.format, file.left_out);
    for TranscriptEntry { number, entry, at, first, .. } in entries(&file) {
        let metadata = serde_json::to_string(&entry.metadata).unwrap();
        let text = entry.content.beginning();
        told.push_str(&format!(
            "{number} #{first} {at} {:?} {metadata}\n    {}\n",
            entry.role,
            text.trim_end()
        ));
    }
    let shown: Vec<u64> = context(&entries(&file)).iter().map(|placed| placed.number).collect();
    let mut session = Session::begin(&creation()).unwrap();
    events(&file).iter().for_each(|event| session.evolve(event));
    told + &format!("an agent is shown {shown:?}\n{}\n", session.usage)
}

#[test]
fn a_file_of_claude_code_is_read() {
    insta::assert_snapshot!(told(CLAUDE_CODE));
}

#[test]
fn branches_sidechains_and_calls_that_were_made_together_are_told_apart() {
    insta::assert_snapshot!(told(BRANCHES));
}

#[test]
fn a_file_of_pi_is_read() {
    insta::assert_snapshot!(told(PI));
}

#[test]
fn what_was_read_is_written_and_read_again_byte_for_byte() {
    for text in [CLAUDE_CODE, BRANCHES, PI] {
        let SessionFile { imported, .. } = imported(text);
        let written = Format::Jsonl.write(&imported.header, &imported.items).unwrap();
        let again = read_session_file(&written, now()).unwrap();
        assert_eq!(again.format, ImportFormat::Mainstay);
        assert_eq!((&again.imported.header, &again.imported.items), (&imported.header, &imported.items));
        assert_eq!(Format::Jsonl.write(&again.imported.header, &again.imported.items).unwrap(), written);
    }
}

#[test]
fn people_read_it_as_markdown_and_as_a_notebook() {
    let SessionFile { imported, .. } = imported(BRANCHES);
    insta::assert_snapshot!(Format::Markdown.write(&imported.header, &imported.items).unwrap());
    let notebook = Format::Ipynb.write(&imported.header, &imported.items).unwrap();
    let notebook: serde_json::Value = serde_json::from_str(&notebook).unwrap();
    let cells: Vec<_> = notebook["cells"].as_array().unwrap().iter().map(|cell| &cell["cell_type"]).collect();
    assert!(cells.iter().all(|kind| *kind == "markdown") && cells.len() == imported.items.len());
    let script = Format::Script(ScriptLanguage::FSharp).write(&imported.header, &imported.items);
    assert!(matches!(script, Err(Error::InvalidArgument { .. })), "{script:?}");
}

#[test]
fn a_summary_of_what_is_not_before_it_is_refused() {
    let SessionFile { imported, .. } = imported(PI);
    let write = |items: &[Item]| Format::Jsonl.write(&imported.header, items).unwrap();
    let at = imported
        .items
        .iter()
        .position(|item| write(std::slice::from_ref(item)).contains("transcriptCompacted"));
    let moved = [&imported.items[at.unwrap()..], &imported.items[..at.unwrap()]].concat();
    let Err(Error::ImportInvalid { line: 2, reason }) = read(&write(&moved)) else { panic!("it was read") };
    assert_eq!(reason, "its summary is not of what is before it");
}

#[test]
fn a_damage_in_the_middle_is_named_by_its_line() {
    for (text, number) in [(CLAUDE_CODE, 4), (PI, 5)] {
        let mut lines: Vec<&str> = text.lines().collect();
        lines[number - 1] = &lines[number - 1][..20];
        let Err(Error::ImportInvalid { line, .. }) = read_session_file(&lines.join("\n"), now()) else {
            panic!("it was read")
        };
        assert_eq!(line, number as u64);
    }
    let newer = PI.replacen("\"version\":3", "\"version\":4", 1);
    let Err(Error::ImportInvalid { line: 1, reason }) = read_session_file(&newer, now()) else {
        panic!("read")
    };
    assert_eq!(reason, "it has version 4, and this program knows 3");
    for nothing in ["", "\n", "{}", "[1]", "{\"type\":\"user\",\"sessionId\":\"s\"}", "no JSON"] {
        assert!(matches!(read_session_file(nothing, now()), Err(Error::ImportInvalid { .. })), "{nothing}");
    }
}

#[test]
fn a_last_line_that_was_cut_inside_a_character_is_left_out() {
    let mut bytes = PI.as_bytes().to_vec();
    bytes.extend("{\"type\":\"message\",\"text\":\"é".as_bytes());
    bytes.pop();
    let file = imported(&session_file_text(bytes.clone()).unwrap());
    assert_eq!(file.left_out.get("torn last line"), Some(&1));
    assert_eq!(file.entries(), imported(PI).entries());
    bytes.extend(b"\n{}");
    let line = PI.lines().count() as u64 + 1;
    let error = Error::ImportInvalid { line, reason: "it is no UTF-8".to_owned() };
    assert_eq!(session_file_text(bytes), Err(error));
}

/// Each entry in few words, and which of them an agent is shown.
fn outline(text: &str) -> (String, Vec<String>, Vec<u64>) {
    let file = imported(text);
    let entries = entries(&file);
    let told = |placed: &TranscriptEntry| {
        format!("{}: {}", placed.entry.role.name(), placed.entry.content.beginning())
    };
    let shown = context(&entries).iter().map(|placed| placed.number).collect();
    (file.imported.header.name.clone(), entries.iter().map(told).collect(), shown)
}

#[test]
fn labels_of_pi_come_along() {
    let entry = |id: &str, parent: &str, rest: &str| {
        format!("{{\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2025-01-01T00:00:00Z\",{rest}}}\n")
    };
    let text = [
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2025-01-01T00:00:00Z\",\"cwd\":\"/work\"}\n".to_owned(),
        entry("a", "null", r#""type":"message","message":{"role":"user","content":"A question"}"#),
        entry(
            "b",
            "\"a\"",
            r#""type":"message","message":{"role":"assistant","content":[{"type":"text","text":"So."}]}"#,
        ),
        entry("c", "\"b\"", r#""type":"label","targetId":"a","label":"begin\nning""#),
        entry("d", "\"c\"", r#""type":"label","targetId":"b","label":"taken off""#),
        entry("e", "\"d\"", r#""type":"label","targetId":"b""#),
        entry("f", "\"e\"", r#""type":"label","targetId":"c","label":"of a label""#),
        entry("g", "\"f\"", r#""type":"message","message":{"role":"user","content":"More"}"#),
    ]
    .concat();
    let file = imported(&text);
    let labels = file.imported.items.iter().filter_map(|item| match item {
        Item::Label { entry, label, .. } => Some((*entry, label.as_str())),
        _ => None,
    });
    assert_eq!(labels.collect::<Vec<_>>(), [(0, "beginning")]);
    assert_eq!(file.left_out.get("labels of what did not come along"), Some(&1));
    let written = Format::Jsonl.write(&file.imported.header, &file.imported.items).unwrap();
    assert_eq!(read(&written).unwrap().items, file.imported.items);
}

#[test]
fn no_model_is_told_of_hidden_thoughts_or_errors_of_the_program() {
    let line = |uuid: &str, parent: &str, rest: &str| {
        format!("{{\"sessionId\":\"s\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},{rest}}}\n")
    };
    let text = [
        line("a", "null", r#""type":"user","message":{"role":"user","content":"A question"}"#),
        line("b", "\"a\"", r#""type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"redacted_thinking","data":"SECRET"},{"type":"text","text":"So."}]}"#),
        line("c", "\"b\"", r#""type":"assistant","isApiErrorMessage":true,"message":{"id":"m2","model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":"API Error: 529"}]}"#),
    ]
    .concat();
    let entries = entries(&imported(&text));
    let shown: Vec<_> = entries.iter().map(|placed| (placed, placed.entry.content.beginning())).collect();
    let groups = shown.chunk_by(|(one, _), (next, _)| one.first == next.first);
    let said: Vec<_> =
        groups.flat_map(|group| mainstay_formats::exchange::pi_messages::said(group, None)).collect();
    assert!(
        said.iter().all(|said| !serde_json::to_string(&said.fields).unwrap().contains("SECRET")),
        "{said:?}"
    );
    let stopped: Vec<_> = said.iter().map(|said| said.fields["message"]["stopReason"].clone()).collect();
    assert_eq!(stopped, [serde_json::json!(null), "stop".into(), "error".into()]);
}

#[test]
fn files_of_older_versions_are_read() {
    let (name, told, shown) = outline(concat!(
        r#"{"type":"summary","summary":"Of another conversation","leafUuid":"elsewhere"}"#,
        "\n",
        r#"{"type":"user","sessionId":"s","uuid":"a","parentUuid":null,"message":{"role":"user","content":"<command-name>/x</command-name>"}}"#,
        "\n",
        r#"{"type":"user","sessionId":"s","uuid":"b","parentUuid":"a","message":{"role":"user","content":"A question"}}"#,
        "\n",
        r#"{"type":"user","sessionId":"s","uuid":"c","parentUuid":null,"isCompactSummary":true,"message":{"role":"user","content":"In short."}}"#,
        "\n",
        r#"{"type":"user","sessionId":"s","uuid":"d","parentUuid":"c","message":{"role":"user","content":"Go on."}}"#,
        "\n",
    ));
    assert_eq!((name.as_str(), shown), ("A question", vec![2, 3]));
    assert_eq!(told[1..], ["user: A question", "summary: In short.", "user: Go on."]);
    let (name, told, shown) = outline(concat!(
        r#"{"type":"session","id":"s","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/code"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2024-12-03T14:00:01.000Z","message":{"role":"user","content":"One"}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2024-12-03T14:00:02.000Z","message":{"role":"user","content":"Two"}}"#,
        "\n",
        r#"{"type":"compaction","timestamp":"2024-12-03T14:00:03.000Z","summary":"In short.","firstKeptEntryIndex":2}"#,
        "\n",
    ));
    assert_eq!((name.as_str(), shown), ("One", vec![2, 1]));
    assert_eq!(told, ["user: One", "user: Two", "summary: In short."]);
}

#[test]
fn nothing_is_later_than_now() {
    let early = "2020-01-01T00:00:00Z".parse().unwrap();
    let file = read_session_file(CLAUDE_CODE, early).unwrap();
    assert!(events(&file).iter().all(|event| event.at <= early));
}

#[test]
fn results_follow_their_calls() {
    for text in [CLAUDE_CODE, BRANCHES, PI] {
        let mut calls: HashMap<String, usize> = HashMap::new();
        for (index, placed) in entries(&imported(text)).iter().enumerate() {
            let call = placed.entry.bond().call.map(str::to_owned);
            match (placed.entry.role, call) {
                (Role::ToolCall, Some(call)) => assert_eq!(calls.insert(call, index), None),
                (Role::ToolResult, Some(call)) => assert!(calls.remove(&call).is_some(), "{call}"),
                (_, _) => {}
            }
        }
        assert!(calls.is_empty(), "{calls:?}");
    }
}

proptest! {
    /// However a file is damaged: it is read or refused, and what is read is what is written of it.
    #[test]
    fn any_damage_is_read_or_refused(which in 0..3_usize, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut: bool) {
        let mut bytes = [CLAUDE_CODE, BRANCHES, PI][which].as_bytes().to_vec();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let Ok(text) = session_file_text(bytes) else { return Ok(()) };
        if let Ok(file) = read_session_file(&text, now()) {
            let written = Format::Jsonl.write(&file.imported.header, &file.imported.items).unwrap();
            prop_assert_eq!(read(&written).map(|read| read.items), Ok(file.imported.items.clone()));
            let is_said = |item: &Item| matches!(item, Item::Message { .. } | Item::Label { .. });
            prop_assert!(file.imported.items.iter().all(is_said));
        }
    }
}
