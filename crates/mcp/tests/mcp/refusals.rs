//! What does not work, and what an agent is told then.

use mainstay_model::Limits;
use rmcp::model::{ErrorCode, ServerResult};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::support::{Agent, Home, Reply};

#[tokio::test]
async fn what_cannot_be_done_while_code_runs_is_refused_with_what_is_offered() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("1 + 1").await;
    let running = ann.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let mut refused = bob.call("reset_session", json!({})).await;
    assert!(refused.is_error);
    assert!(refused.text.contains("\noffered: all tools but answer_ask, reset_session"), "{refused:?}");
    let offered = refused.structured.as_object_mut().unwrap().remove("offered").unwrap();
    for (tool, is_offered) in [("cancel_eval", true), ("send_code", true), ("reset_session", false)] {
        assert_eq!(offered.as_array().unwrap().contains(&json!(tool)), is_offered, "{tool}");
    }
    assert_eq!(
        refused.structured,
        json!({
            "sessionId": home.session().await.short(),
            "code": "not_offered",
            "message": "cannot reset: the session is Evaluating",
            "remedy": {
                "action": "reset",
                "states": ["Ready", "Faulted"],
                "how": "Wait for the running job to end, or cancel it.",
            },
            "nextStep": "Call get_status with wait until the code has ended, or cancel_eval.",
        })
    );
    let status = bob.call("get_status", json!({})).await;
    assert_eq!(status.structured["running"]["by"], json!("mcp:tester"));
    bob.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
}

#[tokio::test]
async fn code_sent_while_other_code_runs_waits_for_its_turn() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("1 + 1").await;
    let running = ann.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let second = bob.begin("send_code", json!({ "code": "1 + 1" })).await;
    bob.hears_progress().await;
    assert_eq!(bob.progress()[0].1, "other code runs; this waits for its turn");
    ann.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
    let ServerResult::CallToolResult(result) = second.await_response().await.unwrap() else { panic!() };
    let reply = Reply::from(result);
    assert_eq!((reply.is_error, &reply.structured["value"]), (false, &json!("2")), "{reply:?}");
}

#[tokio::test]
async fn a_session_that_cannot_start_says_why() {
    let home = Home::new().await;
    let agent = home.agent_in("no-sdk").await;
    let created = agent.call("create_session", json!({})).await;
    assert!(created.is_error);
    assert_eq!(created.structured["state"], json!("Faulted"));
    assert!(created.structured["fault"].as_str().unwrap().contains("there is no SDK"), "{created:?}");
    let refused = agent.send("1 + 1").await;
    assert!(refused.is_error);
    assert!(refused.structured["message"].as_str().unwrap().contains("there is no SDK"), "{refused:?}");
    let next_step =
        "Call stop_session, then send_code: that keeps its definitions. reset_session drops them.";
    assert_eq!(refused.structured["nextStep"], json!(next_step));
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_an_answer() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for tool in ["send_code", "check_code"] {
        let refused = agent.call(tool, json!({ "sessionId": "nobody", "code": "1 + 1" })).await;
        assert!(refused.is_error);
        assert_eq!(refused.structured["code"], json!("session_not_found"));
        assert_eq!(refused.structured["nextStep"], json!("Take an id from list_sessions."));
    }
}

#[tokio::test]
async fn what_the_engine_will_not_create_is_an_answer() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for (arguments, code) in [
        (json!({ "workingDirectory": "relative" }), "invalid_argument"),
        (json!({ "name": "" }), "invalid_argument"),
        (json!({ "kind": "cobol" }), "kernel_unknown"),
        (json!({ "kind": "python3" }), "kernel_unknown"),
        (json!({ "kind": "no kind" }), "invalid_argument"),
    ] {
        let refused = agent.call("create_session", arguments).await;
        assert_eq!((refused.is_error, &refused.structured["code"]), (true, &json!(code)));
        let says_what_to_install = refused.text.contains("mainstay kernel install python");
        assert_eq!(says_what_to_install, code == "kernel_unknown", "{}", refused.text);
    }
}

#[tokio::test]
async fn a_name_is_taken_once_in_a_folder() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let named = |name: &str| json!({ "name": name });
    agent.call("create_session", named("one")).await;
    let refused = agent.call("create_session", named("one")).await;
    assert_eq!((refused.is_error, &refused.structured["code"]), (true, &json!("session_exists")));
    assert!(refused.structured["nextStep"].as_str().unwrap().contains("another name"), "{refused:?}");
    let elsewhere = json!({ "name": "one", "workingDirectory": home.folder("other") });
    assert!(!agent.call("create_session", elsewhere).await.is_error);
    assert!(agent.call("fork_session", json!({ "name": "one" })).await.text.contains("one"));
}

#[tokio::test]
async fn what_a_client_adds_for_its_own_sake_is_passed_over() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let ran = agent.call("send_code", json!({ "code": "1 + 1", "wait_for_previous": false })).await;
    assert_eq!(ran.structured["value"], json!("2"), "{ran:?}");
}

#[tokio::test]
async fn arguments_not_of_their_form_are_an_answer_that_says_what_to_correct() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let mut told = String::new();
    for (tool, arguments) in [
        ("send_code", json!({})),
        ("send_code", json!({ "code": null })),
        ("send_code", json!({ "code": 1 })),
        // Taken for nothing, it would run the code in another session than meant.
        ("send_code", json!({ "code": "1 + 1", "session_id": "mine" })),
        ("get_completions", json!({ "code": "", "line": -1, "column": 1 })),
        ("get_status", json!({ "wait": 5_000_000_000_u64 })),
        ("list_sessions", json!({ "everywhere": true })),
        ("list_sessions", json!({ "al": true })),
        ("get_recent_events", json!({ "limit": 3 })),
        ("send_code", json!({ "code": "1 + 1", "session": "mine", "wait_for_previous": true })),
        ("create_session", json!({ "noProject": "yes" })),
    ] {
        let refused = agent.call(tool, arguments).await;
        let code = refused.structured["code"].as_str();
        assert_eq!((refused.is_error, code), (true, Some("invalid_argument")), "{tool}: {refused:?}");
        told.push_str(&refused.text);
        told.push('\n');
    }
    insta::assert_snapshot!(told);
}

/// A call with an argument that is not there is answered by every tool and reaches no session.
#[tokio::test]
async fn every_tool_answers_arguments_that_it_does_not_have() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let tools = agent.service.list_all_tools().await.unwrap();
    assert!(tools.len() > 30);
    for tool in tools {
        let name: &'static str = Box::leak(tool.name.into_owned().into_boxed_str());
        let refused = agent.call(name, json!({ "no such argument": 1 })).await;
        assert_eq!((refused.is_error, &refused.structured["code"]), (true, &json!("invalid_argument")));
        assert!(refused.text.contains("no such argument is not valid"), "{refused:?}");
    }
    assert!(home.local().sessions(Default::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_of_the_protocol() {
    let agent = Home::new().await.agent().await;
    match agent.try_call("format_disk", json!({})).await {
        Err(ServiceError::McpError(error)) => assert_eq!(error.code, ErrorCode::INVALID_PARAMS),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn code_is_completed_at_its_end_and_nowhere_behind_it() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let at_end = agent.call("get_completions", json!({ "code": "let a = 1\nList.m" })).await;
    let named =
        agent.call("get_completions", json!({ "code": "let a = 1\nList.m", "line": 2, "column": 7 })).await;
    assert!(!at_end.is_error, "{at_end:?}");
    assert_eq!(at_end.structured, named.structured);
    for (place, argument) in [
        (json!({ "line": 3, "column": 1 }), "line"),
        (json!({ "line": 0, "column": 1 }), "line"),
        (json!({ "line": 1, "column": 8 }), "column"),
        (json!({ "line": 1, "column": 0 }), "column"),
        (json!({ "line": 1, "offset": 1 }), "offset"),
        (json!({ "offset": 7 }), "offset"),
    ] {
        let mut arguments = place.clone();
        arguments["code"] = json!("List.m");
        let refused = agent.call("get_completions", arguments).await;
        let code = refused.structured["code"].as_str();
        assert_eq!((refused.is_error, code), (true, Some("invalid_argument")), "{place}: {refused:?}");
        assert!(refused.text.contains(&format!("{argument} is not valid")), "{refused:?}");
    }
}

#[tokio::test]
async fn one_who_has_too_many_calls_under_way_can_still_cancel() {
    let home = Home::with(Limits { connection_requests: 1, ..Limits::default() }).await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let refused = agent.try_call("get_status", json!({})).await.unwrap_err().to_string();
    assert!(refused.contains("1 calls of this connection are under way already"), "{refused}");
    assert_eq!(agent.call("cancel_eval", json!({})).await.structured["ending"], json!("yielded"));
    running.await_response().await.unwrap();
    assert!(!agent.send("1 + 1").await.is_error);
}

/// An agent's conversation that is read from a file.
pub(crate) async fn import_conversation(home: &Home, agent: &Agent) -> Value {
    let file = home.path().join("talk.jsonl");
    let lines = [
        json!({ "type": "session", "version": 3, "id": "6f1c4a0e-2b7d-4b3f-9a55-1d2e3f405060", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": home.path() }),
        json!({ "type": "message", "id": "a1", "parentId": null, "timestamp": "2026-01-02T03:04:06.000Z", "message": { "role": "user", "content": "hello" } }),
    ];
    std::fs::write(&file, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let talk = agent.call("import_session", json!({ "path": file })).await;
    assert!(!talk.is_error, "{talk:?}");
    talk.structured["sessionId"].clone()
}

#[tokio::test]
async fn code_goes_to_no_agents_conversation_and_starts_none() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("let x = 3").await;
    let talk = import_conversation(&home, &agent).await;
    for tool in ["send_code", "check_code"] {
        let refused = agent.call(tool, json!({ "sessionId": talk, "code": "1 + 1" })).await;
        assert_eq!(refused.structured["code"], json!("not_of_kind"), "{refused:?}");
    }
    let status = agent.call("get_status", json!({ "sessionId": talk })).await;
    assert_eq!(status.structured["state"], json!("Uninitialized"));
    assert_eq!((&status.structured["turns"], status.structured.get("evals")), (&json!(0), None));
    let names = agent.send("names").await.structured["value"].clone();
    assert_eq!(names, json!("\"x\""), "what was used is used on");
}
