//! Asks: what running code asks, an agent sees and answers.

use std::time::Duration;

use mainstay_gateway::command::anonymous;
use mainstay_model::{Command, Question, SessionCommand};
use serde_json::json;

use crate::support::Home;

#[tokio::test]
async fn an_agent_answers_what_running_code_asks() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("1 + 1").await;
    let running = ann.begin("send_code", json!({ "code": "stdin.ReadLine()" })).await;
    home.reaches("Waiting").await;
    let status = bob.call("get_status", json!({})).await;
    assert!(status.structured["offered"].as_array().unwrap().contains(&json!("answer_ask")), "{status:?}");
    let ask = &status.structured["asks"][0];
    assert_eq!(ask["prompt"], json!("the code reads a line"));
    let refused = bob.call("answer_ask", json!({ "ask": "00000000", "answer": "Ada" })).await;
    assert_eq!(refused.structured["code"], json!("ask_not_pending"));
    let answered = bob.call("answer_ask", json!({ "ask": ask["ask"], "answer": "Ada" })).await;
    assert_eq!(answered.structured["value"], json!("\"Ada\""), "what came of it is told to who answers");
    running.await_response().await.unwrap();
    let events = ann.call("get_recent_events", json!({ "count": 3 })).await.text;
    assert!(events.contains("askEnded by mcp:tester: answered \"Ada\""), "{events}");
}

#[tokio::test]
async fn an_answer_that_does_not_suffice_is_counted_and_its_agent_is_told_so() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let client = home.local();
    let session = home.session().await;
    let question = Question { quorum: Some(2), ..Question::text("Which?") };
    let ask = Command::new(anonymous(), client.source(), SessionCommand::Ask(question));
    let asking = tokio::spawn(async move { client.submit(session, ask).await });
    let waiting = || async { agent.call("get_status", json!({})).await.structured["asks"][0]["ask"].clone() };
    let raised = async {
        loop {
            let ask = waiting().await;
            if !ask.is_null() {
                return ask;
            }
            tokio::task::yield_now().await;
        }
    };
    let ask = tokio::time::timeout(Duration::from_secs(10), raised).await.expect("the ask is raised");
    let counted = agent.call("answer_ask", json!({ "ask": ask, "answer": "red" })).await;
    assert_eq!((&counted.structured["missing"], &counted.structured["answer"]), (&json!(1), &json!("red")));
    assert!(counted.text.starts_with("counted; 1 more must answer the same"), "{}", counted.text);
    asking.abort();
}
