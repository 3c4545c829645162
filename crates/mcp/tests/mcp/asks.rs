//! Asks: what running code asks, an agent sees and answers.

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
