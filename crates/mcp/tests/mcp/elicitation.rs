//! What running code asks is put to the client that called for it, where that one asks people.

use std::sync::Arc;
use std::time::Duration;

use mainstay_model::Limits;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ElicitResult, ElicitationAction};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Agent, Forms, Home, Listener, Reply, accept};

/// Code that reads a line.
const READ: &str = "stdin.ReadLine()";

impl Home {
    async fn agent_with(&self, forms: &Arc<Forms>) -> Agent {
        let (stream, _) = self.stream(Some(self.folder("work")));
        let listener = Listener { forms: Some(Arc::clone(forms)), ..Listener::default() };
        Agent { service: listener.serve(stream).await.unwrap() }
    }

    async fn newest_agent_with(&self, forms: &Arc<Forms>) -> Agent {
        let (stream, _) = self.stream(Some(self.folder("work")));
        Agent::newest_over(stream, Listener { forms: Some(Arc::clone(forms)), ..Listener::default() }).await
    }
}

fn call_of(code: &str) -> CallToolRequestParams {
    let Value::Object(arguments) = json!({ "code": code }) else { panic!() };
    CallToolRequestParams::new("send_code").with_arguments(arguments)
}

fn reply(response: CallToolResponse) -> Reply {
    match response {
        CallToolResponse::Complete(result) => Reply::from(result),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_person_answers_in_a_form_what_code_asks() {
    let home = Home::new().await;
    let forms = Forms::answered([accept(json!({ "answer": "Ada" }))]);
    let agent = home.agent_with(&forms).await;
    let value = agent.send(READ).await.structured["value"].clone();
    assert_eq!(value, json!("\"Ada\""));
    let shown = json!([{
        "mode": "form", "message": "the code reads a line",
        "requestedSchema": {
            "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"],
        },
    }]);
    assert_eq!(json!(*forms.shown.borrow()), shown);
}

#[tokio::test]
async fn who_declines_answers_with_the_end_of_input() {
    for action in [ElicitationAction::Decline, ElicitationAction::Cancel] {
        // Here a person is as fast as a program.
        let home = Home::with(Limits { mcp_decline_ms: 0, ..Limits::default() }).await;
        let agent = home.agent_with(&Forms::answered([ElicitResult::new(action)])).await;
        assert_eq!(agent.send(READ).await.structured["value"], json!("<null>"));
    }
}

#[tokio::test]
async fn what_is_no_answer_is_asked_again_with_the_reason() {
    let home = Home::new().await;
    let answers = [json!({ "answer": 0 }), json!({}), json!({ "answer": 3 })];
    let forms = Forms::answered(answers.map(accept));
    let agent = home.agent_with(&forms).await;
    assert_eq!(agent.send("number").await.structured["value"], json!("3"));
    let messages: Vec<_> = forms.shown.borrow().iter().map(|form| form["message"].clone()).collect();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1], json!("how many? (0 is less than the minimum of 1)"));
}

#[tokio::test]
async fn a_form_is_taken_back_once_someone_else_has_answered() {
    let home = Home::new().await;
    let forms = Forms::answered([]);
    let (ann, bob) = (home.agent_with(&forms).await, home.agent().await);
    ann.send("1 + 1").await;
    let running = ann.begin("send_code", json!({ "code": READ })).await;
    let mut shown = forms.shown.subscribe();
    timeout(Duration::from_secs(10), shown.wait_for(|shown| !shown.is_empty())).await.unwrap().unwrap();
    let ask = home.local().asks().await.unwrap()[0].pending.ask.ask.short();
    bob.call("answer_ask", json!({ "ask": ask, "answer": "Bob" })).await;
    running.await_response().await.unwrap();
    let mut taken_back = forms.taken_back.subscribe();
    timeout(Duration::from_secs(10), taken_back.wait_for(|count| *count == 1)).await.unwrap().unwrap();
}

#[tokio::test]
async fn while_a_person_has_the_form_the_model_is_not_offered_to_answer() {
    let home = Home::new().await;
    let forms = Forms::answered([]);
    let ann = home.agent_with(&forms).await;
    ann.send("1 + 1").await;
    let still = ann.call("send_code", json!({ "code": READ, "wait": 0 })).await;
    let mut shown = forms.shown.subscribe();
    timeout(Duration::from_secs(10), shown.wait_for(|shown| !shown.is_empty())).await.unwrap().unwrap();
    let waits = ann.call("get_result", json!({ "id": still.structured["id"], "wait": 0 })).await;
    assert_eq!(waits.structured.get("asks"), None, "{waits:?}");
    assert_eq!(waits.structured["forms"][0]["prompt"], json!("the code reads a line"), "{waits:?}");
    assert!(
        waits.text.contains("has a form for it on the screen") && !waits.text.contains("answer_ask"),
        "{waits:?}"
    );
    ann.call("cancel_eval", json!({})).await;
}

#[tokio::test]
async fn only_who_called_is_asked() {
    let home = Home::new().await;
    let forms = Forms::answered([accept(json!({ "answer": "Ada" }))]);
    let (asked, other) = (home.agent_with(&forms).await, home.agent().await);
    asked.send("1 + 1").await;
    let running = other.begin("send_code", json!({ "code": READ })).await;
    home.reaches("Waiting").await;
    let ask = home.local().asks().await.unwrap()[0].pending.ask.ask.short();
    other.call("answer_ask", json!({ "ask": ask, "answer": "Bob" })).await;
    running.await_response().await.unwrap();
    assert!(forms.shown.borrow().is_empty());
}

#[tokio::test]
async fn the_newest_protocol_repeats_its_call_with_the_answers() {
    let home = Home::new().await;
    let answers = [json!({ "answer": 0 }), json!({ "answer": 3 })];
    let forms = Forms::answered(answers.map(accept));
    let agent = home.newest_agent_with(&forms).await;
    let result = agent.service.call_tool(call_of("number")).await.unwrap();
    assert_eq!(Reply::from(result).structured["value"], json!("3"));
    let messages: Vec<_> = forms.shown.borrow().iter().map(|form| form["message"].clone()).collect();
    assert_eq!(messages, [json!("how many?"), json!("how many? (0 is less than the minimum of 1)")]);
    let session = home.session().await;
    assert_eq!(home.local().status(session).await.unwrap().session.evals, 1, "it ran once");
}

#[tokio::test]
async fn a_notebook_goes_on_behind_the_cell_that_asked() {
    let home = Home::new().await;
    let file = home.path().join("steps.fsx");
    std::fs::write(&file, "let x = 3\n// %%\nnumber\n// %%\n1 + 1\n// %%\nnumber\n").unwrap();
    for (ran, again) in [(4, false), (8, true)] {
        let forms = Forms::answered([0, 3, 4].map(|number| accept(json!({ "answer": number }))));
        let agent = home.newest_agent_with(&forms).await;
        let Value::Object(arguments) = json!({ "path": file, "again": again }) else { panic!() };
        let call = CallToolRequestParams::new("run_notebook").with_arguments(arguments);
        let reply = Reply::from(agent.service.call_tool(call).await.unwrap());
        let cells = reply.structured["cells"].as_array().unwrap();
        let values: Vec<_> = cells.iter().map(|cell| cell["eval"]["value"].clone()).collect();
        assert_eq!(values, [json!(null), json!("3"), json!("2"), json!("4")], "{reply:?}");
        assert_eq!(forms.shown.borrow().len(), 3);
        let session = home.session().await;
        assert_eq!(home.local().status(session).await.unwrap().session.evals, ran);
    }
}

#[tokio::test]
async fn what_others_answer_meanwhile_is_the_answer_to_a_repeated_call() {
    let home = Home::new().await;
    let agent = home.newest_agent_with(&Forms::answered([])).await;
    let CallToolResponse::InputRequired(required) =
        agent.service.call_tool_once(call_of(READ)).await.unwrap()
    else {
        panic!()
    };
    let asked = required.input_requests.unwrap();
    let ask = home.local().asks().await.unwrap()[0].pending.ask.ask;
    assert_eq!(asked.keys().collect::<Vec<_>>(), [&ask.to_string()]);
    home.agent().await.call("answer_ask", json!({ "ask": ask.short(), "answer": "Bob" })).await;
    let late = [(ask.to_string(), json!({ "action": "accept", "content": { "answer": "Ada" } }))];
    let repeated = call_of(READ)
        .with_request_state(required.request_state.unwrap())
        .with_input_responses(late.into_iter().collect());
    let answered = reply(agent.service.call_tool_once(repeated).await.unwrap());
    assert_eq!(answered.structured["value"], json!("\"Bob\""));
}

#[tokio::test]
async fn a_state_that_was_tampered_with_or_is_of_another_is_refused() {
    let home = Home::new().await;
    let agent = home.newest_agent_with(&Forms::answered([])).await;
    let CallToolResponse::InputRequired(required) =
        agent.service.call_tool_once(call_of(READ)).await.unwrap()
    else {
        panic!()
    };
    let state = required.request_state.unwrap();
    let refused = async |agent: &Agent, state: &str| match agent
        .service
        .call_tool_once(call_of(READ).with_request_state(state))
        .await
    {
        Err(ServiceError::McpError(error)) => error.code.0,
        other => panic!("{other:?}"),
    };
    let (head, tail) = state.split_at(state.len() / 2);
    let flipped = if tail.starts_with('A') { 'B' } else { 'A' };
    assert_eq!(refused(&agent, &format!("{head}{flipped}{}", &tail[1..])).await, -32602);
    assert_eq!(refused(&agent, "made up").await, -32602);
    let ada = home.newest_agent_of("ada").await;
    assert_eq!(refused(&ada, &state).await, -32602);
}

/// Its model is told what the code asks, and answers it itself.
async fn is_answered_by_the_model(agent: &Agent) {
    let asked = agent.send(READ).await;
    let ask = asked.structured["asks"][0]["ask"].clone();
    assert_eq!((asked.is_error, &asked.structured["running"]), (false, &json!(true)), "{asked:?}");
    for words in ["the code reads a line", "answer_ask", "cancel_eval", ask.as_str().unwrap()] {
        assert!(asked.text.contains(words), "{words}: {}", asked.text);
    }
    let answered = agent.call("answer_ask", json!({ "ask": ask, "answer": "Ada" })).await;
    assert_eq!(answered.structured["value"], json!("\"Ada\""), "{answered:?}");
}

#[tokio::test]
async fn where_no_forms_are_shown_the_model_is_asked() {
    is_answered_by_the_model(&Home::new().await.agent().await).await;
}

#[tokio::test]
async fn where_forms_are_declined_faster_than_by_a_person_the_model_is_asked() {
    let home = Home::with(Limits { mcp_decline_ms: 60_000, ..Limits::default() }).await;
    for action in [ElicitationAction::Decline, ElicitationAction::Cancel] {
        let forms = Forms::answered([ElicitResult::new(action)]);
        let agent = home.agent_with(&forms).await;
        is_answered_by_the_model(&agent).await;
        is_answered_by_the_model(&agent).await;
        assert_eq!(forms.shown.borrow().len(), 1, "it is not asked by a form again");
    }
}

#[tokio::test]
async fn the_newest_protocol_declines_faster_than_a_person_too() {
    let home = Home::with(Limits { mcp_decline_ms: 60_000, ..Limits::default() }).await;
    let agent =
        home.newest_agent_with(&Forms::answered([ElicitResult::new(ElicitationAction::Cancel)])).await;
    let asked = Reply::from(agent.service.call_tool(call_of(READ)).await.unwrap());
    assert_eq!(asked.structured["asks"][0]["prompt"], json!("the code reads a line"), "{asked:?}");
    agent.call("answer_ask", json!({ "ask": asked.structured["asks"][0]["ask"], "answer": "Ada" })).await;
    is_answered_by_the_model(&agent).await;
}

#[tokio::test]
async fn no_model_is_asked_for_a_secret_or_may_answer_one() {
    let home = Home::new().await;
    let agent = home.agent_with(&Forms::answered([])).await;
    let asked = agent.send("secret").await;
    assert_eq!(asked.structured.get("asks"), None, "{asked:?}");
    assert!(asked.text.contains("only a person may answer: the password?"), "{}", asked.text);
    let ask = asked.structured["secrets"][0]["ask"].clone();
    let refused = agent.call("answer_ask", json!({ "ask": ask, "answer": "hunter2" })).await;
    assert_eq!(refused.structured["code"], json!("answer_invalid"));
    let status = agent.call("get_status", json!({})).await;
    assert!(status.text.contains("only a person"), "{}", status.text);
    agent.call("cancel_eval", json!({})).await;
}
