//! A client that is cut off anywhere in a turn, and goes on where it was.

use mainstay_model::agent::{Note, ToolCall};
use mainstay_model::event::CancelEnding;
use mainstay_model::{AgentNotice, Part, PartRole, WorkEnding};
use serde_json::{Value, json};

use crate::support::{Client, Home};
use mainstay_test_support::scripted_agent::Script;

/// The texts of messages as a simple client has them: it begins an empty one on `message_start`, and appends.
fn appended(frames: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for frame in frames {
        let event = &frame["event"];
        match event["type"].as_str() {
            Some("message_start") if event["message"]["role"] == "assistant" => texts.push(String::new()),
            Some("message_update") => {
                let delta = event["assistantMessageEvent"]["delta"].as_str().unwrap_or_default();
                texts.last_mut().expect("a message has begun").push_str(delta);
            }
            Some(_) | None => {}
        }
    }
    texts
}

/// What frames tell, but for the pieces of messages.
fn told(frames: &[Value]) -> Vec<&Value> {
    frames.iter().map(|frame| &frame["event"]).filter(|event| event["type"] != "message_update").collect()
}

fn last_seq(frames: &[Value]) -> u64 {
    frames.iter().filter_map(|frame| frame["seq"].as_u64()).next_back().unwrap_or_default()
}

fn is_end(frame: &Value) -> bool {
    frame["event"]["type"] == "agent_end"
}

/// Starts a turn of the agent.
async fn prompt(client: &mut Client, script: &mut Script) {
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    script.say(PartRole::User, "go").await;
}

/// Another client, which goes on after an event.
async fn resumed(home: &Home, after: u64) -> Client {
    let mut client = home.client().await;
    client.send(json!({ "id": "s", "type": "switch_session", "sessionId": "main", "afterSeq": after })).await;
    client
}

/// Events up to the end of the turn.
async fn until_end(client: &mut Client) -> Vec<Value> {
    let mut frames = client.until(is_end).await;
    frames.retain(|frame| frame["type"] == "event");
    frames
}

/// Cuts a client off behind each frame of a turn: with what it gets when it goes on after the last number that it saw, it has them all.
async fn misses_nothing_wherever_it_is_cut(home: &Home, frames: &[Value], answers: &[&str]) {
    for cut in 0..frames.len() {
        let (seen, _) = frames.split_at(cut);
        let missed = until_end(&mut resumed(home, last_seq(seen)).await).await;
        let all = [seen, &missed].concat();
        let has = told(&all);
        for event in told(frames) {
            assert!(has.contains(&event), "cut behind {cut}: {event} is missing");
        }
        let texts = appended(&all);
        let whole: Vec<&str> =
            texts.iter().map(String::as_str).filter(|text| answers.contains(text)).collect();
        assert_eq!(whole.last(), answers.last(), "cut behind {cut}: {texts:?}");
        let left_behind = texts.iter().filter(|text| !answers.contains(&text.as_str()));
        assert!(
            left_behind.clone().all(|text| answers.iter().any(|answer| answer.starts_with(text.as_str()))),
            "cut behind {cut}: {texts:?}"
        );
    }
}

#[tokio::test]
async fn who_is_cut_off_between_two_frames_misses_none() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    prompt(&mut client, &mut script).await;
    let call = ToolCall { call: "c1".to_owned(), tool: "read".to_owned() };
    let said = Part::text(PartRole::Assistant, "I look.");
    script.stream("I lo").await;
    script.message(vec![said, Part::tool_call("c1", "read", &json!({}))]).await;
    script.tell(AgentNotice::Noted(Note::ToolEnded { call, is_error: false })).await;
    script.message(vec![Part::tool_result("c1", "a").with("tool", "read")]).await;
    script.say(PartRole::Assistant, "It is there.").await;
    script.done().await;
    let frames = until_end(&mut client).await;
    misses_nothing_wherever_it_is_cut(&home, &frames, &["I look.{}", "It is there."]).await;
}

#[tokio::test]
async fn who_is_cut_off_in_the_end_of_an_interrupted_turn_misses_none_of_it() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    prompt(&mut client, &mut script).await;
    script.stream("I was sa").await;
    script.end(WorkEnding::Cancelled { by: CancelEnding::Yielded }).await;
    let frames = until_end(&mut client).await;
    misses_nothing_wherever_it_is_cut(&home, &frames, &["I was sa"]).await;
}

#[tokio::test]
async fn who_is_cut_off_in_the_middle_of_a_message_begins_it_anew() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    prompt(&mut client, &mut script).await;
    script.stream("one ").await;
    // It has a number, and what was said before it is stored before it.
    let note = Note::Told { level: "info".to_owned(), message: "look".to_owned() };
    script.tell(AgentNotice::Noted(note)).await;
    let mut seen = client.until(|frame| frame["event"]["method"] == "notify").await;
    script.stream("two ").await;
    seen.extend(client.until(|frame| frame["event"]["assistantMessageEvent"]["delta"] == "two ").await);
    assert_eq!(appended(&seen), ["one two "], "it was told more than the last number says");
    drop(client);
    script.stream("three").await;
    let mut client = resumed(&home, last_seq(&seen)).await;
    let mut late = home.client().await;
    late.send(json!({ "id": "l", "type": "switch_session", "sessionId": "main" })).await;
    let mut heard = late.until_answer("l").await;
    script.say(PartRole::Assistant, "one two three").await;
    script.done().await;
    let missed = until_end(&mut client).await;
    assert_eq!(appended(&[seen, missed].concat()), ["one two ", "one two three"]);
    heard.extend(until_end(&mut late).await);
    assert_eq!(appended(&heard), ["one two three"], "also who did not hear it begin has all of it");
}

#[tokio::test]
async fn a_long_turn_is_known_from_its_beginning() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    prompt(&mut client, &mut script).await;
    for number in 0..2100 {
        let note = Note::Told { level: "info".to_owned(), message: number.to_string() };
        script.tell(AgentNotice::Noted(note)).await;
    }
    let is_last = |frame: &Value| frame["event"]["message"] == "2099";
    let seq = last_seq(&client.until(is_last).await);
    let mut in_it = resumed(&home, seq).await;
    in_it.until_answer("s").await;
    script.say(PartRole::Assistant, "done").await;
    script.done().await;
    let whole = until_end(&mut client).await.pop().unwrap()["event"].take();
    assert_eq!(whole["messages"].as_array().unwrap().len(), 2);
    // Whether it still runs or has ended since.
    for mut client in [in_it, resumed(&home, seq).await] {
        assert_eq!(until_end(&mut client).await.pop().unwrap()["event"], whole);
    }
}
