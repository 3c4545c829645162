//! What an agent and people say, in cells.

use super::*;

#[test]
fn a_turn_shows_what_was_thought_said_called_and_answered() {
    let mut story = SessionHistory::default();
    let job = story.turn("look <here>");
    story.message(vec![Part::text(PartRole::User, "look <here>")]);
    story.message(vec![
        Part::text(PartRole::Thinking, "hm"),
        Part::text(PartRole::Assistant, "I look."),
        Part::tool_call("t1", "read", &json!({ "path": "<a>" })),
    ]);
    story.message(vec![Part::tool_result("t1", "what stands in <a>")]);
    story.message(vec![Part::tool_call("t2", "bash", &json!({ "command": "ls" }))]);
    let ending = WorkEnding::Cancelled { by: CancelEnding::Yielded };
    story.add(EventBody::JobEnded { job, ending, duration_ms: 61_000, grace_ms: None });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn an_imported_conversation_shows_every_part_with_who_says_it() {
    let mut story = SessionHistory::default();
    story.message(vec![Part::text(PartRole::System, "a notice")]);
    story.message(vec![
        Part::text(PartRole::User, "look <here>"),
        Part::block(PartRole::User, "image", &json!({ "type": "image", "data": "aGk=" })),
    ]);
    let parts = vec![
        Part::text(PartRole::Thinking, "hm"),
        Part::text(PartRole::Assistant, "I look at two."),
        Part::tool_call("t1", "read", &json!({ "path": "<a>" })),
        Part::tool_call("t2", "read", &json!({ "path": "<b>" })),
    ];
    let metadata = BTreeMap::from([("model".to_owned(), json!("claude"))]);
    story.add(EventBody::MessageAdded(Box::new(Message { parts, metadata, usage: None })));
    let failed = Part::tool_result("t2", "no such file").with("isError", true);
    story.message(vec![Part::tool_result("t1", "what stands in <a>"), failed]);
    story.message(vec![Part::tool_call("t3", "bash", &json!({ "command": "ls" }))]);
    story.message(vec![Part::text(PartRole::User, "stop")]);
    story.message(vec![Part::tool_result("t3", "too late"), Part::tool_result("t4", "of something else")]);
    insta::assert_snapshot!(story.shown());
}

#[test]
fn what_is_said_is_shown_while_it_is_said() {
    let mut story = SessionHistory::default();
    let job = story.turn("go");
    let mut page = Page::default();
    story.events.iter().for_each(|event| page.take(event));
    for (part, role, offset, text, tool) in [
        (0, PartRole::Thinking, 0, "hm, ", None),
        (0, PartRole::Thinking, 2, ", yes", None),
        (0, PartRole::Thinking, 90, "what was missed", None),
        (
            1,
            PartRole::ToolCall,
            0,
            "{\"a\"",
            Some(ToolCall { call: "t1".to_owned(), tool: "read".to_owned() }),
        ),
    ] {
        page.hear(&Live::Delta(Delta { job, message: 0, part, role, offset, text: text.to_owned(), tool }));
    }
    let cells: String = page
        .cells()
        .map(|shown| cell::whole(shown, Some(&Language::named("fsharp"))).into_string())
        .collect();
    insta::assert_snapshot!(read(&cells).written());
}

#[test]
fn a_note_does_not_end_the_message_that_is_said_around_it() {
    let mut story = SessionHistory::default();
    let job = story.turn("go");
    let piece = |offset: u64, text: &str| {
        let (role, text) = (PartRole::Assistant, text.to_owned());
        Live::Delta(Delta { job, message: 0, part: 0, role, offset, text, tool: None })
    };
    let mut page = Page::default();
    story.events.iter().for_each(|event| page.take(event));
    page.hear(&piece(0, "one "));
    let retry = Note::RetryStarted { attempt: 1, attempts: 3, delay_ms: 5, message: "busy".to_owned() };
    story.add(EventBody::AgentNoted(retry));
    page.take(&story.events[1]);
    page.hear(&piece(4, "two"));
    let shown =
        |page: &Page| page.cells().map(|shown| cell::whole(shown, None).into_string()).collect::<String>();
    assert!(shown(&page).contains("one two"), "{}", shown(&page));
    story.message(vec![Part::text(PartRole::Assistant, "one two three")]);
    page.take(&story.events[2]);
    let parts: Vec<bool> =
        ["one two three", "busy"].map(|text| shown(&page).matches(text).count() == 1).into();
    assert_eq!(parts, [true, true], "{}", shown(&page));
}
