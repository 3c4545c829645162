//! Agents over JSON-RPC: they are prompted, heard, steered and asked, and each command has its one outcome.

use std::sync::Arc;

use mainstay_model::agent::{Model, ToolCall};
use mainstay_model::{
    Admission, AgentNotice, AgentState, CommandId, Delivery, Error, EventBody, JobKind, JobSpec, Live,
    Message, Part, PartRole, Prompt, Seq, Setting, ThinkingLevel, TokenUsage, WorkEnding,
};
use mainstay_protocol::operations::{AskAgent, CancelSession, DoWork, Follow, GetSession, SteerSession};
use mainstay_protocol::view::agent::WorkView;
use mainstay_protocol::{Conditions, Sent};
use mainstay_runner::AgentQuestion;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::Home;
use mainstay_test_support::scripted_agent::{Given, Script};

fn work(home: &Home, command: &str, work: JobSpec) -> DoWork {
    let sent = Sent::named(CommandId::new(command).unwrap());
    DoWork { session: home.talk.clone(), work, admission: Admission::Queue, sent }
}

fn turn(text: &str) -> JobSpec {
    JobSpec::Turn { prompt: Prompt::text(text) }
}

fn give(home: &Home, work: DoWork) -> JoinHandle<Result<WorkView, Error>> {
    let client = Arc::clone(&home.client);
    tokio::spawn(async move { client.call(work).await })
}

async fn answer(script: &mut Script, text: &str) {
    script.work().await;
    script.say(PartRole::User, "hello").await;
    script.say(PartRole::Assistant, text).await;
    script.done().await;
}

/// Waits for an event of this kind.
async fn until(home: &mut Home, is_it: impl Fn(&EventBody) -> bool) {
    while !is_it(&home.events.recv().await.unwrap().body) {}
}

#[tokio::test]
async fn a_turn_is_answered_with_what_was_said_last_and_sent_again_with_the_same() {
    let (home, mut script) = Home::new().await;
    let running = give(&home, work(&home, "one", turn("hello")));
    script.work().await;
    script.say(PartRole::User, "hello").await;
    let usage = Some(TokenUsage { input: 7, output: 2, ..TokenUsage::default() });
    let parts = vec![
        Part::text(PartRole::Thinking, "hm"),
        Part::text(PartRole::Assistant, "I look."),
        Part::tool_call("c1", "read", &json!({})),
    ];
    script.tell(AgentNotice::Message(Message { parts, usage, ..Message::default() })).await;
    script.message(vec![Part::tool_result("c1", "a file")]).await;
    let parts = vec![Part::text(PartRole::Assistant, "It is a file.")];
    script.tell(AgentNotice::Message(Message { parts, usage, ..Message::default() })).await;
    script.done().await;
    let view = running.await.unwrap().unwrap();
    assert_eq!((view.success, view.ending.as_str(), view.text.as_str()), (true, "done", "It is a file."));
    assert_eq!((view.usage.input, view.usage.output, view.version.0), (14, 4, 1));
    let again = home.client.call(work(&home, "one", turn("hello"))).await.unwrap();
    assert_eq!(again, WorkView { replayed: true, ..view });
    let other = home.client.call(work(&home, "one", turn("something else"))).await;
    assert!(matches!(other, Err(Error::CommandConflict { .. })), "{other:?}");
}

#[tokio::test]
async fn a_turn_that_fails_says_why_and_one_that_takes_too_long_is_cancelled() {
    let (home, mut script) = Home::new().await;
    let running = give(&home, work(&home, "one", turn("hello")));
    script.work().await;
    script.end(WorkEnding::failed("529 overloaded")).await;
    let view = running.await.unwrap().unwrap();
    assert_eq!((view.success, view.ending.as_str()), (false, "failed"));
    assert_eq!(view.error.as_deref(), Some("529 overloaded"));

    let late = work(&home, "late", turn("hello"));
    let conditions = Conditions { timeout_ms: Some(50), ..Conditions::default() };
    let running = give(&home, DoWork { sent: Sent { conditions, ..late.sent.clone() }, ..late });
    script.work().await;
    let refused = running.await.unwrap().unwrap_err();
    assert!(matches!(refused, Error::TimedOut { .. }), "{refused:?}");
    assert!(matches!(script.next().await, Given::Interrupted));
}

#[tokio::test]
async fn who_listens_hears_what_is_said_before_events_say_it() {
    let (home, mut script) = Home::new().await;
    let mut live = home.client.listen(home.talk.clone()).await.unwrap();
    let running = give(&home, work(&home, "one", turn("hello")));
    script.work().await;
    script.stream("hi ").await;
    script.stream("there").await;
    let mut heard = String::new();
    while heard != "hi there" {
        let Live::Delta(delta) = live.recv().await.unwrap() else { panic!("no tool runs") };
        assert_eq!(delta.offset, heard.len() as u64);
        heard.push_str(&delta.text);
    }
    let call = ToolCall { call: "c1".to_owned(), tool: "bash".to_owned() };
    script.tell(AgentNotice::ToolOutput { call: call.clone(), output: json!({ "text": "a.txt" }) }).await;
    assert_eq!(live.recv().await, Some(Live::ToolOutput { call, output: json!({ "text": "a.txt" }) }));
    script.say(PartRole::Assistant, "hi there").await;
    script.done().await;
    assert_eq!(running.await.unwrap().unwrap().text, "hi there");
}

#[tokio::test]
async fn who_works_is_seen_steered_and_aborted_by_another() {
    let (mut home, mut script) = Home::new().await;
    home.client.call(Follow::session(home.talk.clone(), Seq::ZERO)).await.unwrap();
    let other = home.other().await;
    let running = give(&home, work(&home, "one", turn("hello")));
    script.work().await;
    let sent = Sent::default();
    let prompt = Prompt::text("shorter");
    let steered = other
        .call(SteerSession { session: home.talk.clone(), prompt, hears: Delivery::Steer, sent: sent.clone() })
        .await
        .unwrap();
    let agent = steered.agent.unwrap();
    assert_eq!((agent.works, agent.queue[0].text.as_str()), (Some(JobKind::Turn), "shorter"));
    assert!(matches!(script.next().await, Given::Steered(_)));
    until(&mut home, |body| matches!(body, EventBody::PromptQueued(_))).await;
    other
        .call(CancelSession { session: home.talk.clone(), target: None, grace_ms: None, sent })
        .await
        .unwrap();
    assert!(matches!(script.next().await, Given::Interrupted));
    script.end(WorkEnding::Cancelled { by: mainstay_model::event::CancelEnding::Yielded }).await;
    assert_eq!(running.await.unwrap().unwrap().ending, "cancelled");
}

#[tokio::test]
async fn a_setting_is_work_like_others_and_the_agent_says_how_it_goes_on() {
    let (home, mut script) = Home::new().await;
    let level = ThinkingLevel::High;
    let running = give(&home, work(&home, "one", JobSpec::Setting(Setting::Thinking { level })));
    assert_eq!(script.work().await, JobSpec::Setting(Setting::Thinking { level }));
    let model = Model {
        provider: "anthropic".to_owned(),
        id: "claude".to_owned(),
        name: None,
        context_window: None,
        about: json!(null),
    };
    let state = AgentState { model: Some(model), thinking: level, ..AgentState::default() };
    script.tell(AgentNotice::State(state.clone())).await;
    script.done().await;
    assert!(running.await.unwrap().unwrap().success);
    let view = home.client.call(GetSession { session: home.talk.clone() }).await.unwrap();
    assert_eq!(view.agent.unwrap().state, Some(state));
}

#[tokio::test]
async fn an_agent_that_is_there_is_asked_about_itself() {
    let (home, mut script) = Home::new().await;
    let ask = || AskAgent { session: home.talk.clone(), question: AgentQuestion::Models };
    assert!(matches!(home.client.call(ask()).await, Err(Error::NotOffered { .. })), "it is idle");
    let running = give(&home, work(&home, "one", turn("hello")));
    answer(&mut script, "hi").await;
    running.await.unwrap().unwrap();
    assert_eq!(home.client.call(ask()).await, Ok(json!({ "asked": "models" })));
}

/// What other programs send is written by hand.
#[test]
fn work_is_written_flat() {
    let wire = json!({
        "session": "talk",
        "work": "shell",
        "line": "ls",
        "isPrivate": true,
        "command": "c-1",
        "timeoutMs": 5,
    });
    let read: DoWork = serde_json::from_value(wire).unwrap();
    assert_eq!(read.work, JobSpec::Shell { line: "ls".to_owned(), is_private: true });
    assert_eq!((read.admission, read.sent.conditions.timeout_ms), (Admission::Queue, Some(5)));
    let setting = json!({ "session": "talk", "work": "setting", "setting": "thinking", "level": "low" });
    let read: DoWork = serde_json::from_value(setting).unwrap();
    assert_eq!(read.work, JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::Low }));
}
