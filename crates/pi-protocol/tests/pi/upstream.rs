//! What pi-server got wrong, each as it is right. Source: protocols/pi.md, "What upstream gets wrong".

use mainstay_model::agent::{AgentState, Model};
use mainstay_model::{AgentNotice, Limits, PartRole, WorkerExit};
use serde_json::{Value, json};

use crate::support::{Home, quick};
use mainstay_test_support::scripted_agent::Given;

fn prompt(id: &str) -> Value {
    json!({ "id": id, "type": "prompt", "sessionId": "main", "message": "go" })
}

#[tokio::test]
async fn failure_1_a_turn_blocks_no_abort_and_no_read() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1")).await;
    script.work().await;
    let state = client.ask(json!({ "id": "g1", "type": "get_state", "sessionId": "main" })).await;
    assert_eq!(state["data"]["isStreaming"], true);
    assert_eq!(
        client.ask(json!({ "id": "a1", "type": "abort", "sessionId": "main" })).await["success"],
        true
    );
    assert!(matches!(script.next().await, Given::Interrupted));
}

#[tokio::test]
async fn failure_3_and_6_a_restart_loses_nothing_and_a_client_hears_what_it_missed() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1")).await;
    script.work().await;
    script.say(PartRole::User, "go").await;
    script.stream("I was sa").await;
    let heard = client.until(|frame| frame["event"]["assistantMessageEvent"]["delta"] == "I was sa").await;
    let seq = heard.iter().filter_map(|frame| frame["seq"].as_u64()).max().unwrap();
    drop(client);
    let home = home.restart().await;
    let mut client = home.client().await;
    let again = client.ask(prompt("p1")).await;
    assert_eq!((&again["replayed"], &again["success"]), (&json!(true), &json!(false)), "{again}");
    assert!(again["error"].as_str().unwrap().starts_with("cut off"), "{again}");
    let messages = client.ask(json!({ "id": "g1", "type": "get_messages", "sessionId": "main" })).await;
    assert_eq!(messages["data"]["messages"][1]["content"][0]["text"], "I was sa");
    client.send(json!({ "id": "s1", "type": "switch_session", "sessionId": "main", "afterSeq": seq })).await;
    let missed = client
        .until(|frame| frame["event"]["type"] == "agent_end" || frame["seq"].as_u64() > Some(seq))
        .await;
    assert!(!missed.is_empty());
}

#[tokio::test]
async fn failure_7_an_error_of_the_model_is_a_failure() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1")).await;
    script.work().await;
    script.end(mainstay_model::WorkEnding::failed("500 no")).await;
    let answer = client.until_answer("p1").await.pop().unwrap();
    assert_eq!((&answer["success"], &answer["error"]), (&json!(false), &json!("500 no")));
}

#[tokio::test]
async fn failure_7_turns_that_fail_open_the_breaker_of_their_provider() {
    let (home, mut script) = Home::with(Limits { breaker_failures: 2, ..quick() }).await;
    let mut client = home.client().await;
    client.session("main").await;
    let model = Model {
        provider: "local".to_owned(),
        id: "m".to_owned(),
        name: None,
        context_window: None,
        about: Value::Null,
    };
    for id in ["p1", "p2"] {
        let health = client.ask(json!({ "id": format!("h-{id}"), "type": "health_check" })).await;
        assert_eq!(health["data"]["healthy"], true, "{health}");
        client.send(prompt(id)).await;
        script.work().await;
        let state = AgentState { model: Some(model.clone()), ..AgentState::default() };
        script.tell(AgentNotice::State(state)).await;
        script.end(mainstay_model::WorkEnding::failed("529 overloaded")).await;
        assert_eq!(client.until_answer(id).await.pop().unwrap()["error"], "529 overloaded");
    }
    let refused = client.ask(prompt("p3")).await;
    let error = refused["error"].as_str().unwrap();
    assert!(error.starts_with("turns with the provider `local` fail: 529 overloaded"), "{refused}");
    let metrics = client.ask(json!({ "id": "m1", "type": "get_metrics" })).await;
    let breakers = &metrics["data"]["circuitBreakers"];
    assert_eq!((&breakers[0]["provider"], &breakers[0]["state"]["state"]), (&json!("local"), &json!("open")));
    let health = client.ask(json!({ "id": "h1", "type": "health_check" })).await["data"].clone();
    assert_eq!((&health["healthy"], &health["hasOpenCircuit"]), (&json!(false), &json!(true)));
    assert_eq!(health["issues"], json!(["turns with the provider local fail"]));
}

#[tokio::test]
async fn failure_8_a_crash_of_one_agent_is_its_own() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.session("other").await;
    client.send(prompt("p1")).await;
    script.work().await;
    script.exit(WorkerExit::Signal(9)).await;
    let answer = client.until_answer("p1").await.pop().unwrap();
    assert_eq!(answer["success"], false, "{answer}");
    let state = client.ask(json!({ "id": "g1", "type": "get_state", "sessionId": "other" })).await;
    assert_eq!(state["success"], true);
}
