//! Which session a call is about.

use serde_json::json;

use crate::support::{Agent, Home};

#[tokio::test]
async fn a_connection_stays_with_the_session_it_used_last() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent_in("a").await, home.agent_in("b").await);
    ann.send("let a = 3").await;
    bob.send("let b = 3").await;
    assert_eq!(ann.send("names").await.structured["value"], json!("\"a\""));
    assert_eq!(bob.send("names").await.structured["value"], json!("\"b\""));
}

#[tokio::test]
async fn code_goes_to_the_session_that_was_switched_to() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let first = agent.call("create_session", json!({ "name": "first" })).await.session();
    agent.send("let a = 3").await;
    let second = agent.call("create_session", json!({ "name": "second" })).await.session();
    agent.send("let b = 3").await;
    let switched = agent.call("switch_session", json!({ "sessionId": "first" })).await;
    let runs = "send_code runs fsharp now";
    let told =
        json!({ "sessionId": first, "name": "first", "kind": "fsharp", "state": "Ready", "runs": runs });
    assert_eq!(switched.structured, told);
    assert_eq!(agent.send("names").await.structured["value"], json!("\"a\""));
    for tool in ["get_status", "check_code", "get_eval_timeline"] {
        let arguments = if tool == "check_code" { json!({ "code": "1 + 1" }) } else { json!({}) };
        assert_eq!(agent.call(tool, arguments).await.session(), first, "{tool}");
    }
    agent.call("switch_session", json!({ "sessionId": second })).await;
    assert_eq!(agent.send("names").await.structured["value"], json!("\"b\""));
    let refused = agent.call("switch_session", json!({ "sessionId": "nobody" })).await;
    assert_eq!(refused.structured["code"], json!("session_not_found"));
    assert_eq!(agent.send("1 + 1").await.session(), second);
}

#[tokio::test]
async fn agents_at_work_in_one_folder_share_a_session() {
    let home = Home::new().await;
    let ann = home.agent().await;
    ann.send("let a = 3").await;
    let bob = home.agent().await;
    assert_eq!(bob.send("names").await.structured["value"], json!("\"a\""));
}

#[tokio::test]
async fn an_agent_of_unknown_folder_takes_the_most_recently_active_session() {
    let home = Home::new().await;
    home.agent_in("a").await.send("let a = 3").await;
    home.agent_in("b").await.send("let b = 3").await;
    let (stream, _) = home.stream(None);
    let eve = Agent::over(stream).await;
    assert_eq!(eve.send("names").await.structured["value"], json!("\"b\""));
}

#[tokio::test]
async fn a_session_answers_to_its_id_the_end_of_it_and_its_name() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.call("create_session", json!({ "name": "mine" })).await;
    let id = home.session().await;
    agent.call("create_session", json!({ "name": "other" })).await;
    for reference in [id.to_string(), id.short(), "mine".to_owned()] {
        let reply = agent.call("send_code", json!({ "sessionId": reference, "code": "1 + 1" })).await;
        assert_eq!(reply.session(), id.short());
    }
    // To run code in a session is to use it; to look at one is not.
    agent.call("get_status", json!({ "sessionId": "other" })).await;
    assert_eq!(agent.send("1 + 1").await.session(), id.short());
}

#[tokio::test]
async fn two_first_calls_at_once_share_one_new_session() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let check = json!({ "code": "1 + 1" });
    let (one, two) = tokio::join!(agent.call("check_code", check.clone()), agent.call("check_code", check));
    assert_eq!(one.session(), two.session());
    assert_eq!(home.session().await.short(), one.session());
}

#[tokio::test]
async fn a_look_at_nothing_creates_nothing() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for tool in ["get_status", "get_recent_events", "cancel_eval", "reset_session", "stop_session"] {
        agent.call(tool, json!({})).await;
    }
    let listed = agent.call("list_sessions", json!({})).await;
    assert_eq!(listed.structured, json!({ "sessions": [] }));
}

#[tokio::test]
async fn the_sessions_of_the_folder_are_listed_unless_all_are_asked_for() {
    let home = Home::new().await;
    let (here, there) = (home.agent().await, home.agent_in("there").await);
    let (own, other) = (here.send("1 + 1").await.session(), there.send("1 + 1").await.session());
    let ids = |listed: &serde_json::Value| -> Vec<String> {
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    let listed = here.call("list_sessions", json!({})).await;
    assert_eq!((ids(&listed.structured), &listed.structured["elsewhere"]), (vec![own.clone()], &json!(1)));
    assert!(listed.text.ends_with("sessions: 1; 1 more in other folders (list them with `all`: true)"));
    let all = here.call("list_sessions", json!({ "all": true })).await;
    assert_eq!((ids(&all.structured), all.structured.get("elsewhere")), (vec![other, own], None));
}

#[tokio::test]
async fn a_stopped_session_comes_back_with_its_definitions() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("let a = 3").await;
    assert_eq!(agent.call("stop_session", json!({})).await.structured["state"], json!("Uninitialized"));
    assert_eq!(agent.send("names").await.structured["value"], json!("\"a\""));
}

#[tokio::test]
async fn a_reset_drops_the_definitions() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for tool in ["reset_session", "hard_reset_session"] {
        agent.send("let a = 3").await;
        assert_eq!(agent.call(tool, json!({})).await.structured["state"], json!("Ready"));
        assert_eq!(agent.send("names").await.structured["value"], json!("\"\""), "{tool}");
    }
}
