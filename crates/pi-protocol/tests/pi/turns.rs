//! Turns: what is told of them, in order, and what passes them.

use mainstay_model::agent::{Note, ToolCall};
use mainstay_model::event::CancelEnding;
use mainstay_model::{AgentNotice, AskId, Delivery, Part, PartRole, Question, WorkEnding, YieldReason};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Home, shown};
use mainstay_test_support::scripted_agent::Given;

fn prompt(id: &str, message: &str) -> Value {
    json!({ "id": id, "type": "prompt", "sessionId": "main", "message": message })
}

#[tokio::test]
async fn a_turn_is_told_from_its_acceptance_to_its_answer() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1", "hello")).await;
    script.work().await;
    script.say(PartRole::User, "hello").await;
    script.stream("hi").await;
    let mut frames = client.until(|frame| frame["event"]["assistantMessageEvent"]["delta"] == "hi").await;
    script.message(vec![Part::text(PartRole::Assistant, "hi there")]).await;
    script.done().await;
    frames.extend(client.until_answer("p1").await);
    assert_eq!(
        frames[frames.len() - 3]["event"]["type"],
        "agent_end",
        "what happened is told before what came of it"
    );
    let (mut events, others): (Vec<Value>, Vec<Value>) =
        frames.into_iter().partition(|frame| frame["type"] == "event");
    events.iter_mut().for_each(|frame| drop(frame.as_object_mut().unwrap().remove("seq")));
    insta::assert_snapshot!("a_turn_others", shown(&others));
    insta::assert_snapshot!("a_turn_events", shown(&events));
}

#[tokio::test]
async fn tools_are_told_with_their_results() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1", "look")).await;
    script.work().await;
    script.say(PartRole::User, "look").await;
    script
        .message(vec![
            Part::text(PartRole::Thinking, "A file."),
            Part::tool_call("c1", "read", &json!({ "path": "a" })),
        ])
        .await;
    let call = || ToolCall { call: "c1".to_owned(), tool: "read".to_owned() };
    script
        .tell(AgentNotice::Noted(Note::ToolStarted { call: call(), arguments: json!({ "path": "a" }) }))
        .await;
    script.tell(AgentNotice::Noted(Note::ToolEnded { call: call(), is_error: false })).await;
    script.message(vec![Part::tool_result("c1", "text of a").with("tool", "read")]).await;
    script.say(PartRole::Assistant, "It says so.").await;
    script.done().await;
    let frames = client.until(|frame| frame["event"]["type"] == "agent_end").await;
    let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame["event"]["type"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_update",
            "message_update",
            "message_update",
            "message_update",
            "message_update",
            "message_update",
            "message_end",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_end",
            "turn_end",
            "turn_start",
            "message_start",
            "message_update",
            "message_update",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
        ]
    );
    let ends: Vec<Value> = frames
        .into_iter()
        .filter(|frame| matches!(frame["event"]["type"].as_str(), Some("tool_execution_end" | "turn_end")))
        .map(|mut frame| frame["event"].take())
        .collect();
    insta::assert_snapshot!("tools_ends", shown(&ends));
}

#[tokio::test]
async fn what_a_tool_does_is_told_behind_its_beginning_and_before_its_end() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1", "look")).await;
    script.work().await;
    let call = || ToolCall { call: "c1".to_owned(), tool: "bash".to_owned() };
    let output = |text: &str| AgentNotice::ToolOutput {
        call: call(),
        output: json!({ "content": [{ "type": "text", "text": text }] }),
    };
    script.message(vec![Part::tool_call("c1", "bash", &json!({ "command": "ls" }))]).await;
    client.until(|frame| frame["event"]["type"] == "message_end").await;
    // Live, it is ahead of what is stored.
    script.tell(output("a")).await;
    let arguments = json!({ "command": "ls" });
    script.tell(AgentNotice::Noted(Note::ToolStarted { call: call(), arguments: arguments.clone() })).await;
    let started = client.until(|frame| frame["event"]["type"] == "tool_execution_update").await;
    let kinds: Vec<&Value> = started.iter().map(|frame| &frame["event"]["type"]).collect();
    assert_eq!(kinds, ["tool_execution_start", "tool_execution_update"]);
    assert_eq!(started[1]["event"]["args"], arguments);
    assert_eq!(started[1]["event"]["partialResult"]["content"][0]["text"], "a");
    script.message(vec![Part::tool_result("c1", "a").with("tool", "bash")]).await;
    client.until(|frame| frame["event"]["type"] == "turn_end").await;
    script.tell(output("late")).await;
    script.done().await;
    let rest = client.until_answer("p1").await;
    assert!(rest.iter().all(|frame| frame["event"]["type"] != "tool_execution_update"), "{rest:?}");
}

#[tokio::test]
async fn what_a_command_does_is_told_behind_its_acceptance() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    for (id, command) in [
        ("n", json!({ "id": "n", "type": "set_session_name", "sessionId": "main", "name": "x" })),
        ("p", prompt("p", "go")),
    ] {
        client.send(command).await;
        if id == "p" {
            script.work().await;
            script.done().await;
        }
        let frames = client.until_answer(id).await;
        let kinds: Vec<&Value> = frames.iter().map(|frame| &frame["type"]).collect();
        assert_eq!(kinds[..2], ["command_accepted", "command_started"], "{frames:?}");
        assert_eq!(kinds[kinds.len() - 2..], ["command_finished", "response"]);
        assert!(kinds[2..kinds.len() - 2].iter().all(|kind| *kind == "event"), "{frames:?}");
    }
}

#[tokio::test]
async fn other_connections_hear_of_what_a_command_does_behind_its_acceptance_too() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let mut others = [home.client().await, home.client().await];
    for other in &mut others {
        let heard = json!({ "id": "h", "type": "switch_session", "sessionId": "main" });
        assert_eq!(other.ask(heard).await["success"], true);
    }
    for number in 0..30 {
        let id = format!("p{number}");
        client.send(prompt(&id, "hello")).await;
        script.work().await;
        script.say(PartRole::User, "hello").await;
        script.done().await;
        client.until_answer(&id).await;
        for other in &mut others {
            let is_end = |frame: &Value| {
                frame["type"] == "command_finished" && frame["data"]["commandId"] == id.as_str()
            };
            let mut frames = other.until(is_end).await;
            frames.retain(|frame| frame["type"] == "event" || frame["data"]["commandId"] == id.as_str());
            let kinds: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
            let first = kinds.iter().position(|kind| *kind == "event").unwrap_or(kinds.len());
            // What the command before it did may come behind the end of that.
            let own =
                frames.iter().position(|frame| frame["event"]["type"] == "agent_start").unwrap_or(first);
            let accepted = kinds.iter().position(|kind| *kind == "command_accepted");
            assert!(accepted.is_some_and(|accepted| accepted < own), "{kinds:?}");
            let accepted = kinds.iter().filter(|kind| **kind == "command_accepted").count();
            assert_eq!(accepted, 1, "{kinds:?}");
        }
    }
}

#[tokio::test]
async fn a_client_that_asks_for_it_gets_each_piece_with_all_before_it() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let heard = json!({ "id": "h", "type": "switch_session", "sessionId": "main", "cumulative": true });
    assert_eq!(client.ask(heard).await["sessionVersion"], 0);
    client.send(prompt("p1", "hello")).await;
    script.work().await;
    script.stream("one ").await;
    script.stream("two").await;
    script
        .message(vec![
            Part::text(PartRole::Assistant, "one two"),
            Part::tool_call("c1", "read", &json!({ "path": "a" })),
        ])
        .await;
    script.message(vec![Part::tool_result("c1", "a").with("tool", "read")]).await;
    script.done().await;
    let frames = client.until_answer("p1").await;
    let updates: Vec<&Value> = frames
        .iter()
        .map(|frame| &frame["event"])
        .filter(|event| event["type"] == "message_update")
        .collect();
    let mut text = String::new();
    for update in &updates {
        text.push_str(
            update["assistantMessageEvent"]["delta"]
                .as_str()
                .filter(|_| update["assistantMessageEvent"]["type"] == "text_delta")
                .unwrap_or_default(),
        );
        assert_eq!(update["message"], update["assistantMessageEvent"]["partial"]);
        assert_eq!(update["message"]["role"], "assistant");
        if update["assistantMessageEvent"]["type"] == "text_delta" {
            assert_eq!(update["message"]["content"][0]["text"], text, "{update}");
        }
    }
    let end =
        updates.iter().find(|update| update["assistantMessageEvent"]["type"] == "toolcall_end").unwrap();
    let call = json!({ "type": "toolCall", "id": "c1", "name": "read", "arguments": { "path": "a" } });
    assert_eq!(end["assistantMessageEvent"]["toolCall"], call);
    assert_eq!(end["message"]["content"][1], call);
    assert_eq!(end["message"]["usage"]["totalTokens"], 0);
}

#[tokio::test]
async fn steering_and_following_up_pass_a_turn() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1", "hello")).await;
    script.work().await;
    for (id, kind, hears) in [("s1", "steer", Delivery::Steer), ("f1", "follow_up", Delivery::FollowUp)] {
        let answer =
            client.ask(json!({ "id": id, "type": kind, "sessionId": "main", "message": "and" })).await;
        assert_eq!(answer["success"], true, "{answer}");
        let Given::Steered(queued) = script.next().await else { panic!("it is told at once") };
        assert_eq!(queued.hears, hears);
    }
    let streaming = json!({ "id": "p2", "type": "prompt", "sessionId": "main", "message": "more", "streamingBehavior": "followUp" });
    assert_eq!(client.ask(streaming).await["success"], true);
    assert!(matches!(script.next().await, Given::Steered(_)));
    let queue = vec![(Delivery::Steer, "and".to_owned()), (Delivery::FollowUp, "more".to_owned())];
    script.tell(AgentNotice::Queue(queue)).await;
    let frames = client.until(|frame| frame["event"]["type"] == "queue_update").await;
    assert_eq!(
        frames.last().unwrap()["event"],
        json!({ "type": "queue_update", "steering": ["and"], "followUp": ["more"] })
    );
    script.done().await;
    assert_eq!(client.until_answer("p1").await.pop().unwrap()["success"], true);
}

#[tokio::test]
async fn a_dialog_is_told_and_answered_while_its_turn_waits() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    // Upstream refused answers to sessions with a dot in their id.
    let session = "team.main";
    client.session(session).await;
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": session, "message": "go" })).await;
    script.work().await;
    let dialogs = [
        (json!({ "type": "boolean" }), json!({ "method": "confirm", "confirmed": true }), Ok(json!(true))),
        (json!({ "enum": ["a", "b"] }), json!({ "method": "select", "value": "b" }), Ok(json!("b"))),
        (json!({ "type": "string" }), json!({ "method": "cancelled" }), Err(())),
        (json!({ "type": "boolean" }), json!({ "method": "cancelled" }), Ok(json!(false))),
    ];
    for (number, (schema, response, expected)) in dialogs.into_iter().enumerate() {
        let ask = AskId::from_uuid(Uuid::from_u128(number as u128 + 1));
        script.ask(ask, Question { schema, ..Question::text("Sure?\nReally.") }).await;
        let told =
            client.until(|frame| frame["event"]["type"] == "extension_ui_request").await.pop().unwrap();
        let request = told["event"]["requestId"].clone();
        assert_eq!(told["event"]["title"], "Sure?");
        let id = format!("a{number}");
        let answer = client
            .ask(json!({ "id": id, "type": "extension_ui_response", "sessionId": session, "requestId": request, "response": response }))
            .await;
        assert_eq!((&answer["success"], &answer["sessionVersion"]), (&json!(true), &json!(0)), "{answer}");
        let Given::Answered(answered, value) = script.next().await else { panic!("it hears the answer") };
        assert_eq!((answered, value.map_err(drop)), (ask, expected));
    }
    let late = json!({ "id": "late", "type": "extension_ui_response", "sessionId": session,
        "requestId": Uuid::from_u128(1).to_string(), "response": { "method": "confirm", "confirmed": true } });
    let late = client.ask(late).await;
    assert_eq!(late["error"], "No pending UI request with id 00000000-0000-0000-0000-000000000001");
    script.done().await;
    assert_eq!(client.until_answer("p1").await.pop().unwrap()["success"], true);
}

#[tokio::test]
async fn an_abort_passes_its_turn_and_ends_it() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1", "hello")).await;
    script.work().await;
    client.send(json!({ "id": "a1", "type": "abort", "sessionId": "main" })).await;
    assert!(matches!(script.next().await, Given::Interrupted));
    assert_eq!(client.until_answer("a1").await.pop().unwrap()["success"], true);
    script.end(WorkEnding::Cancelled { by: CancelEnding::Yielded }).await;
    assert_eq!(client.until_answer("p1").await.pop().unwrap()["success"], true);
    let idle = client.ask(json!({ "id": "a2", "type": "abort", "sessionId": "main" })).await;
    assert_eq!(idle["success"], true, "there is nothing to abort: {idle}");
}

#[tokio::test]
async fn what_fails_says_so_in_the_agents_words_and_is_answered_so_again() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let model =
        json!({ "id": "m1", "type": "set_model", "sessionId": "main", "provider": "a", "modelId": "b" });
    client.send(model.clone()).await;
    script.work().await;
    script.end(WorkEnding::failed("Model not found: a/b")).await;
    let first = client.until_answer("m1").await.pop().unwrap();
    assert_eq!((&first["success"], &first["error"]), (&json!(false), &json!("Model not found: a/b")));
    let again = client.ask(model).await;
    assert_eq!((&again["error"], &again["replayed"]), (&first["error"], &json!(true)));
    client.send(json!({ "id": "b1", "type": "bash", "sessionId": "main", "command": "ls" })).await;
    script.work().await;
    let value = json!({ "exitCode": 0, "output": "a\n", "cancelled": false, "truncated": false });
    script.end(WorkEnding::Done { reason: YieldReason::EndTurn, value }).await;
    let ran = client.until_answer("b1").await.pop().unwrap();
    assert_eq!(ran["data"], json!({ "exitCode": 0, "output": "a\n", "cancelled": false }));
}

#[tokio::test]
async fn what_a_model_had_said_when_it_was_cut_off_ends_alike_wherever_it_is_read() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let endings = [
        (WorkEnding::Cancelled { by: CancelEnding::Yielded }, "aborted"),
        (WorkEnding::Interrupted, "aborted"),
        (WorkEnding::failed("overloaded"), "error"),
    ];
    for (number, (ending, stopped)) in endings.into_iter().enumerate() {
        client.send(prompt(&format!("p{number}"), "hello")).await;
        script.work().await;
        script.say(PartRole::User, "hello").await;
        script.stream("I was sa").await;
        script.end(ending).await;
        let told = client.until(|frame| frame["event"]["type"] == "agent_end").await.pop().unwrap();
        let told = &told["event"]["messages"][1];
        let read = json!({ "id": format!("r{number}"), "type": "get_messages", "sessionId": "main" });
        let read = client.ask(read).await;
        let read = read["data"]["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(read["content"], json!([{ "type": "text", "text": "I was sa" }]));
        for message in [told, read] {
            assert_eq!((&message["stopReason"], &message["content"]), (&json!(stopped), &read["content"]));
        }
    }
}

#[tokio::test]
async fn an_abort_that_comes_before_its_turn_has_begun_takes_it_back() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    // The session is idle: the prompt waits for its agent.
    let held = script.hold_starts().await;
    client.send(prompt("p1", "hello")).await;
    client.send(json!({ "id": "a1", "type": "abort", "sessionId": "main" })).await;
    let mut answers = client.until(|frame| frame["type"] == "response").await;
    answers.extend(client.until(|frame| frame["type"] == "response").await);
    let answer = |id: &str| answers.iter().find(|frame| frame["id"] == id).unwrap();
    assert_eq!(answer("a1")["success"], true);
    assert_eq!(answer("p1")["success"], false, "{answers:?}");
    drop(held);
    // The next one is carried out.
    client.send(prompt("p2", "again")).await;
    let work = script.work().await;
    assert_eq!(serde_json::to_value(&work).unwrap()["prompt"]["text"], "again");
    script.done().await;
    assert_eq!(client.until_answer("p2").await.pop().unwrap()["success"], true);
}

#[tokio::test]
async fn a_prompt_that_was_heard_by_a_turn_is_that_when_it_is_sent_again() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(prompt("p1", "hello")).await;
    script.work().await;
    let more = json!({ "id": "p2", "type": "prompt", "sessionId": "main", "message": "more", "streamingBehavior": "steer" });
    assert_eq!(client.ask(more.clone()).await["success"], true);
    assert!(matches!(script.next().await, Given::Steered(_)));
    script.done().await;
    client.until_answer("p1").await;
    let again = client.ask(more).await;
    assert_eq!((&again["success"], &again["replayed"]), (&json!(true), &json!(true)), "{again}");
    let first = json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "hello", "streamingBehavior": "steer" });
    assert!(client.ask(first).await["error"].as_str().unwrap().starts_with("Conflicting id 'p1'"));
}
