//! What is wrong with a session, in one answer.

use mainstay_model::command;
use mainstay_model::{Admission, Command, CommandId, Seq, SessionCommand};
use serde_json::{Value, json};

use crate::support::{Agent, Home};

async fn problems(agent: &Agent) -> Vec<(String, String)> {
    let answer = agent.call("diagnose", json!({})).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let problem = |problem: &Value| (text(&problem["what"]), text(&problem["nextStep"]));
    answer.structured["problems"].as_array().unwrap().iter().map(problem).collect()
}

#[tokio::test]
async fn where_nothing_is_wrong_there_is_one_line() {
    let home = Home::new().await;
    let agent = home.agent().await;
    assert_eq!(agent.call("diagnose", json!({})).await.text, "nothing is wrong, no session yet");
    let session = agent.send("1 + 1").await.session();
    agent.send("oops").await;
    let answer = agent.call("diagnose", json!({})).await;
    assert_eq!(answer.text, format!("nothing is wrong, Ready [session {session}]"));
    assert_eq!(answer.structured, json!({ "sessionId": session, "state": "Ready", "problems": [] }));
}

#[tokio::test]
async fn a_kernel_that_is_missing_and_its_breaker_are_named() {
    let home = Home::new().await;
    let agent = home.agent_in("no-sdk").await;
    for _ in 0..5 {
        agent.call("create_session", json!({})).await;
    }
    let problems = problems(&agent).await;
    let (what, next_step) = &problems[0];
    assert_eq!(what, "the kernel cannot be started: there is no SDK");
    assert!(next_step.contains("mainstay kernel"), "{next_step}");
    assert!(problems[1].0.contains("there is no SDK"), "{problems:?}");
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[tokio::test]
async fn what_it_asks_and_what_waits_is_named_with_the_tool_that_helps() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "stdin.ReadLine()" })).await;
    home.reaches("Waiting").await;
    let ask = home.local().asks().await.unwrap()[0].pending.ask.ask.short();
    let asked = ("it asks: the code reads a line".to_owned(), format!("Call answer_ask with ask {ask}."));
    assert_eq!(problems(&agent).await, [asked]);
    agent.call("answer_ask", json!({ "ask": ask, "answer": "yes" })).await;
    running.await_response().await.unwrap();
    assert_eq!(problems(&agent).await, []);
}

#[tokio::test]
async fn what_waits_for_its_turn_is_counted() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let (local, session) = (home.local(), home.session().await);
    let eval = SessionCommand::Eval(command::Eval {
        code: "1 + 1".to_owned(),
        file: None,
        command_line: None,
        origin: None,
        withheld: false,
    });
    let id = CommandId::from_uuid(uuid::Uuid::now_v7());
    let command = Command { admission: Admission::Queue, ..Command::new(id, local.source(), eval) };
    let mut events = local.subscribe(session, Seq(0)).await.unwrap();
    let waiting = local.begin(session, command).await.unwrap();
    while local.status(session).await.unwrap().session.lane.is_empty() {
        events.next().await.unwrap();
    }
    let next_step = "Call get_status with wait.".to_owned();
    assert_eq!(problems(&agent).await, [("commands that wait for their turn: 1".to_owned(), next_step)]);
    agent.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
    waiting.ended().await.unwrap();
    assert_eq!(problems(&agent).await, []);
}

#[tokio::test]
async fn a_worker_that_was_lost_and_what_is_otherwise_since_is_named_until_a_reset() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("tick").await;
    agent.send("die").await;
    home.reaches("Ready").await;
    let found = problems(&agent).await;
    assert!(found[0].0.contains("the worker was lost") && found[0].0.contains("signal 9"), "{found:?}");
    assert!(found[1].0.contains("not quite what it was"), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
    agent.call("hard_reset_session", json!({})).await;
    assert_eq!(problems(&agent).await, []);
}
