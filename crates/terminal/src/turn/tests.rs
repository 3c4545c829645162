//! What is told of a job, whichever way its parts come.

use super::*;
use mainstay_model::agent::{Model, ToolCall};
use mainstay_model::event::{CancelEnding, Metadata};
use mainstay_model::fingerprint::CommandFingerprint;
use mainstay_model::{CommandId, Cost, Delta, JobSpec, Position, Prompt, Seq, Source, ThinkingLevel};
use proptest::prelude::*;
use serde_json::json;

fn job() -> JobId {
    "019a0000-0000-7000-8000-000000000001".parse().unwrap()
}

fn event(body: EventBody) -> Event {
    Event {
        session: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
        seq: Seq(1),
        position: Position(1),
        at: "2026-02-13T13:30:20Z".parse().unwrap(),
        metadata: Metadata { source: Source::Worker, correlation: None, causation: None, environment: None },
        body,
    }
}

fn requested(work: JobSpec) -> Event {
    event(EventBody::JobRequested {
        job: job(),
        command: CommandId::from_uuid(job().as_uuid()),
        fingerprint: CommandFingerprint::from_stored("fixture".to_owned()),
        key: None,
        deadline: None,
        grants: None,
        work,
    })
}

fn turn() -> Event {
    requested(JobSpec::Turn { prompt: Prompt::text("hello") })
}

fn message(parts: Vec<Part>) -> Event {
    event(EventBody::MessageAdded(Box::new(Message { parts, ..Message::default() })))
}

fn said(role: PartRole, text: &str) -> Event {
    message(vec![Part::text(role, text)])
}

fn ended(ending: WorkEnding) -> Event {
    event(EventBody::JobEnded { job: job(), ending, duration_ms: 4, grace_ms: None })
}

fn done(value: Value) -> Event {
    ended(WorkEnding::Done { reason: YieldReason::EndTurn, value })
}

fn delta(message: u32, part: u32, role: PartRole, offset: usize, text: &str) -> Delta {
    let (offset, text) = (offset as u64, text.to_owned());
    Delta { job: job(), message, part, role, offset, text, tool: None }
}

fn live(message: u32, part: u32, role: PartRole, offset: usize, text: &str) -> Live {
    Live::Delta(delta(message, part, role, offset, text))
}

/// One thing that a terminal's test feeds in.
enum In {
    Event(Event),
    Live(Live),
}

impl From<Event> for In {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

impl From<Live> for In {
    fn from(live: Live) -> Self {
        Self::Live(live)
    }
}

fn all_told(teller: &mut TurnRenderer, ins: Vec<In>) -> Vec<RenderItem> {
    let mut told = Vec::new();
    for (seq, one) in (1..).zip(ins) {
        told.extend(match one {
            In::Event(event) => teller.event(&Event { seq: Seq(seq), ..event }),
            In::Live(live) => teller.live(&live),
        });
    }
    told
}

/// What stands there in the end, what is passing left out: `~` before thoughts, `|` before lines.
fn stands(told: &[RenderItem]) -> String {
    let mut text = String::new();
    let mut is_thought = false;
    for told in told {
        let is_begun = !text.is_empty() && !text.ends_with('\n');
        let (mark, words) = match told {
            RenderItem::Answer(words) | RenderItem::Output(words) => (false, words.as_str()),
            RenderItem::Thinking(words) => (true, words.as_str()),
            RenderItem::Break if is_begun => {
                text.push('\n');
                continue;
            }
            RenderItem::Line(tone, words) => {
                text.push_str(if is_begun { "\n" } else { "" });
                text.push_str(&format!("| {tone:?}: {words}\n"));
                continue;
            }
            RenderItem::Tool(outcome) => {
                text.push_str(if is_begun { "\n" } else { "" });
                text.push_str(&format!("| {:?}: {}\n", outcome.tone, outcome.line()));
                continue;
            }
            RenderItem::Break | RenderItem::Passing(_) => continue,
        };
        if is_begun && mark != is_thought {
            text.push('\n');
        }
        if mark && (text.is_empty() || text.ends_with('\n')) {
            text.push_str("~ ");
        }
        is_thought = mark;
        text.push_str(words);
    }
    text
}

fn story(ins: Vec<In>) -> String {
    stands(&all_told(&mut TurnRenderer::default(), ins))
}

use PartRole::{Assistant, Thinking, User};

#[test]
fn what_is_heard_at_once_is_not_told_again_by_the_events() {
    let streamed = EventBody::MessageStreamed(delta(1, 0, Assistant, 0, "one two"));
    let told = story(vec![
        turn().into(),
        said(User, "hello").into(),
        live(1, 0, Assistant, 0, "one").into(),
        live(1, 0, Assistant, 3, " two").into(),
        event(streamed).into(),
        live(1, 0, Assistant, 7, " three").into(),
        said(Assistant, "one two three four").into(),
        done(Value::Null).into(),
    ]);
    assert_eq!(told, "one two three four\n");
}

#[test]
fn what_was_missed_comes_with_the_event_that_has_it() {
    let streamed = EventBody::MessageStreamed(delta(1, 0, Assistant, 0, "one two thr"));
    let told = story(vec![
        turn().into(),
        said(User, "hello").into(),
        live(1, 0, Assistant, 0, "one").into(),
        live(1, 0, Assistant, 7, " thr").into(),
        event(streamed).into(),
        live(1, 0, Assistant, 11, "ee").into(),
        said(Assistant, "one two three").into(),
    ]);
    assert_eq!(told, "one two three\n");
}

#[test]
fn what_is_heard_before_what_it_follows_waits_for_it() {
    let told = story(vec![
        live(1, 0, Assistant, 0, "first").into(),
        turn().into(),
        live(2, 0, Assistant, 0, "second").into(),
        said(User, "hello").into(),
        said(Assistant, "first of all").into(),
    ]);
    assert_eq!(told, "first of all\nsecond");
}

#[test]
fn thoughts_and_words_stand_apart() {
    let parts =
        vec![Part::text(Thinking, "Hm, well."), Part::text(Assistant, "Yes."), Part::text(Assistant, "No.")];
    let told = story(vec![
        turn().into(),
        said(User, "hello").into(),
        live(1, 0, Thinking, 0, "Hm").into(),
        live(1, 1, Assistant, 0, "Yes").into(),
        message(parts).into(),
    ]);
    insta::assert_snapshot!(told, @"
    ~ Hm
    Yes
    ~ , well.
    .
    No.
    ");
}

#[test]
fn a_part_that_a_whole_message_leaves_out_does_not_hide_another() {
    let told = story(vec![
        turn().into(),
        said(User, "hello").into(),
        live(1, 0, Thinking, 0, "hm").into(),
        live(1, 1, Assistant, 0, "Yes, ").into(),
        said(Assistant, "Yes, indeed.").into(),
    ]);
    assert_eq!(told, "~ hm\nYes, indeed.\n");
}

#[test]
fn each_tool_is_a_line_with_what_came_of_it() {
    let calls = vec![
        Part::text(Assistant, "I look."),
        Part::tool_call("c1", "bash", &json!({ "command": "ls" })),
        Part::tool_call("c2", "edit", &json!({ "path": "a.txt", "text": "one\ntwo" })),
        Part::tool_call("c3", "bash", &json!({ "command": "for f in *\ndo\n  cat $f\ndone" })),
    ];
    let failed = Part::tool_result("c2", "no such file").with("isError", true);
    let usage = Some(TokenUsage { input: 1200, output: 30, ..TokenUsage::default() });
    let asked = Message { parts: calls, usage, ..Message::default() };
    let told = story(vec![
        turn().into(),
        said(User, "hello").into(),
        event(EventBody::MessageAdded(Box::new(asked))).into(),
        message(vec![Part::tool_result("c1", "a.txt\nb.txt\n")]).into(),
        message(vec![failed]).into(),
        ended(WorkEnding::Cancelled { by: CancelEnding::Yielded }).into(),
    ]);
    insta::assert_snapshot!(told, @r#"
    I look.
    | Faint: ✓ bash ls: a.txt … (2 lines)
    | Error: ✗ edit a.txt: no such file
    | Warning: … bash for f in * …: no result
    | Warning: cancelled
    "#);
}

#[test]
fn what_a_tool_gives_meanwhile_passes() {
    let call = ToolCall { call: "c1".to_owned(), tool: "bash".to_owned() };
    let output = json!({ "content": [{ "type": "text", "text": "one\ntwo\n\n" }] });
    let started = Note::ToolStarted { call: call.clone(), arguments: json!({ "command": "ls" }) };
    let told = all_told(
        &mut TurnRenderer::default(),
        vec![
            turn().into(),
            message(vec![Part::tool_call("c1", "bash", &json!({ "command": "ls" }))]).into(),
            event(EventBody::AgentNoted(started)).into(),
            Live::ToolOutput { call, output }.into(),
        ],
    );
    let passing = |text: &str| RenderItem::Passing(text.to_owned());
    assert_eq!(told, [RenderItem::Break, passing("bash ls …"), passing("bash ls: two")]);
}

#[test]
fn a_turn_ends_with_what_it_took_and_how_full_the_context_is() {
    let model = Model {
        provider: "anthropic".to_owned(),
        id: "claude".to_owned(),
        name: None,
        context_window: Some(200_000),
        about: Value::Null,
    };
    let state = AgentState {
        model: Some(model),
        thinking: ThinkingLevel::High,
        auto_compaction: true,
        context_tokens: Some(50_000),
    };
    let before = TokenUsage { input: 1000, cost: Cost::of_dollars(0.5), ..TokenUsage::default() };
    let mut teller = TurnRenderer::new(Some(state), before);
    let usage = Some(TokenUsage {
        input: 12,
        output: 3,
        cache_read: 40,
        cache_write: 0,
        cost: Cost::of_dollars(0.0125),
    });
    let answer = Message { parts: vec![Part::text(Assistant, "hi")], usage, ..Message::default() };
    let ins = vec![
        turn().into(),
        said(User, "hello").into(),
        event(EventBody::MessageAdded(Box::new(answer))).into(),
        done(Value::Null).into(),
    ];
    insta::assert_snapshot!(stands(&all_told(&mut teller, ins)), @"
    hi
    | Faint: claude high • 12 tokens in, 3 out; cache: 40 read, 0 written; $0.013 • session: 1055 tokens, $0.512 • context 25 %
    ");
}

#[test]
fn what_happens_meanwhile_is_told_as_it_is_meant() {
    let noted = |note| event(EventBody::AgentNoted(note));
    let retry = Note::RetryStarted { attempt: 1, attempts: 3, delay_ms: 2000, message: "529".to_owned() };
    let told = story(vec![
        turn().into(),
        said(User, "hello").into(),
        said(User, "shorter").into(),
        noted(retry).into(),
        noted(Note::Told { level: "error".to_owned(), message: "oh".to_owned() }).into(),
        ended(WorkEnding::failed("529 overloaded")).into(),
    ]);
    insta::assert_snapshot!(told, @"
    | Faint: › shorter
    | Warning: 529; tries again in 2000 ms (1 of 3)
    | Error: error: oh
    | Error: failed: 529 overloaded
    ");
}

#[test]
fn a_line_of_a_shell_gives_what_it_printed() {
    let shell = JobSpec::Shell { line: "ls".to_owned(), is_private: false };
    let told =
        story(vec![requested(shell).into(), done(json!({ "output": "a.txt\nb.txt", "exitCode": 2 })).into()]);
    insta::assert_snapshot!(told, @"
    a.txt
    b.txt
    | Warning: exit code 2
    ");
}

#[test]
fn what_others_do_is_none_of_it() {
    let mut other = delta(0, 0, Assistant, 0, "not ours");
    other.job = "019a0000-0000-7000-8000-000000000009".parse().unwrap();
    assert_eq!(story(vec![turn().into(), Live::Delta(other).into()]), "");
}

proptest! {
    /// However many pieces are missed, and whatever comes of them in chunks, the whole is told once.
    #[test]
    fn a_message_is_told_once_whatever_is_missed(
        pieces in proptest::collection::vec((".{1,5}", any::<bool>(), any::<bool>()), 0..20),
    ) {
        let whole: String = pieces.iter().map(|(text, _, _)| text.as_str()).collect();
        let mut ins: Vec<In> = vec![turn().into()];
        let (mut offset, mut chunk_from) = (0, 0);
        for (text, is_heard, ends_chunk) in &pieces {
            if *is_heard {
                ins.push(live(0, 0, Assistant, offset, text).into());
            }
            offset += text.len();
            if *ends_chunk {
                let chunk = delta(0, 0, Assistant, chunk_from, &whole[chunk_from..offset]);
                ins.push(event(EventBody::MessageStreamed(chunk)).into());
                chunk_from = offset;
            }
        }
        ins.push(said(Assistant, &whole).into());
        let told = all_told(&mut TurnRenderer::default(), ins);
        let answers = told.iter().filter_map(|told| match told {
            RenderItem::Answer(text) => Some(text.as_str()),
            RenderItem::Output(_) | RenderItem::Tool(_) | RenderItem::Thinking(_) | RenderItem::Break | RenderItem::Line(..) | RenderItem::Passing(_) => None,
        });
        prop_assert_eq!(answers.collect::<String>(), whole);
    }
}
