//! Every call is answered in time, what it began goes on, and what came of it is found.

use std::path::Path;
use std::sync::Arc;

use mainstay_engine::Cursor;
use mainstay_mcp::{Settings, Shared};
use mainstay_model::command;
use mainstay_model::{CommandId, EventBody, EventFilter, Position, Seq, SessionCommand, SessionState};
use rmcp::RoleClient;
use rmcp::model::ServerResult;
use rmcp::service::RequestHandle;
use serde_json::{Value, json};

use crate::support::{Agent, Home, Reply};
use mainstay_test_support::scripted_kernel::release;

/// Runs code that does not end, and gives the call's id.
async fn left_running(agent: &Agent) -> Value {
    let still = agent.call("send_code", json!({ "code": "wait", "wait": 0 })).await;
    assert_eq!((still.is_error, &still.structured["running"]), (false, &json!(true)), "{still:?}");
    let id = still.structured["id"].clone();
    assert!(
        still.text.contains("still running") && still.text.contains(id.as_str().unwrap()),
        "{}",
        still.text
    );
    id
}

async fn result(agent: &Agent, id: &Value, wait: u32) -> Reply {
    agent.call("get_result", json!({ "id": id, "wait": wait })).await
}

#[tokio::test]
async fn a_call_is_answered_after_its_wait_and_its_code_goes_on() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    let still = result(&agent, &id, 0).await;
    assert_eq!(still.structured["running"], json!(true), "{still:?}");
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["running"]["id"], id, "{status:?}");
    agent.call("cancel_eval", json!({})).await;
    let ended = result(&agent, &id, 10).await;
    assert_eq!((ended.is_error, &ended.structured["output"]), (true, &json!("waiting\n")), "{ended:?}");
}

#[tokio::test]
async fn what_is_printed_so_far_is_told_with_that_it_still_runs() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    let mut events = home.local().subscribe(home.session().await, Seq(0)).await.unwrap();
    while !matches!(events.next().await.unwrap().body, EventBody::OutputProduced { .. }) {}
    let still = result(&agent, &id, 0).await;
    assert_eq!(still.structured["output"], json!("waiting\n"), "{still:?}");
    assert!(still.text.starts_with("waiting\nstill running after "), "{}", still.text);
    agent.call("cancel_eval", json!({})).await;
}

#[tokio::test]
async fn the_next_answer_says_once_that_a_call_which_was_left_has_ended() {
    let home = Home::new().await;
    let (agent, other) = (home.agent().await, home.agent().await);
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    other.call("cancel_eval", json!({})).await;
    home.reaches("Ready").await;
    assert!(!other.send("1 + 1").await.text.contains("note:"), "it is news for who left it");
    let told = agent.send("1 + 1").await.text;
    let note = format!(
        "note: send_code of before has ended meanwhile, failed: get_result {} tells it\n",
        id.as_str().unwrap()
    );
    assert!(told.starts_with(&note), "{told}");
    assert!(!agent.send("1 + 1").await.text.contains("note:"));
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["ended"][0]["id"], id, "{status:?}");
    result(&agent, &id, 0).await;
    assert_eq!(agent.call("get_status", json!({})).await.structured.get("ended"), None);
}

#[tokio::test]
async fn what_came_of_a_call_is_found_in_the_log_once_nothing_else_knows_it() {
    let mut home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    home.mcp = Arc::new(Shared::new(Settings::default()));
    let after = home.agent().await;
    let still = result(&after, &id, 0).await;
    assert_eq!(still.structured["running"], json!(true), "{still:?}");
    after.call("cancel_eval", json!({})).await;
    let ended = result(&after, &id, 10).await;
    assert_eq!((ended.is_error, &ended.structured["output"]), (true, &json!("waiting\n")), "{ended:?}");
    let unknown = result(&after, &json!("nobody"), 0).await;
    assert_eq!(unknown.structured["code"], json!("command_not_found"));
}

#[tokio::test]
async fn cancelling_is_named_only_where_it_is_not_refused() {
    let home = Home::new().await;
    let agent = home.agent_in("held").await;
    let id = left_running(&agent).await;
    while agent.call("get_status", json!({})).await.structured["state"] != json!("WarmingUp") {}
    let still = result(&agent, &id, 0).await.text;
    assert!(still.contains("get_result") && !still.contains("cancel_eval"), "{still}");
    release(Path::new(&home.folder("held")));
    while agent.call("get_status", json!({})).await.structured["state"] != json!("Evaluating") {}
    let still = result(&agent, &id, 0).await.text;
    assert!(still.contains("or cancel_eval to stop it"), "{still}");
    agent.call("cancel_eval", json!({})).await;
}

#[tokio::test]
async fn what_was_made_and_what_was_done_is_told_by_its_id_once_nothing_else_knows_it() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let held = home.folder("held");
    let still = agent.call("create_session", json!({ "workingDirectory": held, "wait": 0 })).await;
    release(Path::new(&held));
    let id = &still.structured["id"];
    // It is kept until it was told; then the log has it.
    let [told, again] = [result(&agent, id, 10).await, result(&agent, id, 10).await];
    assert_eq!(told.session(), again.session());
    assert_eq!((&again.structured["kind"], again.is_error), (&json!("fsharp"), false), "{again:?}");
}

#[tokio::test]
async fn who_waits_for_code_of_others_hears_what_it_asks() {
    let home = Home::new().await;
    let (agent, other) = (home.agent().await, home.agent().await);
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    agent.call("cancel_eval", json!({})).await;
    result(&agent, &id, 10).await;
    // Of a client that is none of MCP's.
    let session = home.session().await;
    let local = home.local();
    let body = SessionCommand::Eval(command::Eval {
        code: "stdin.ReadLine()".to_owned(),
        file: None,
        command_line: None,
        origin: None,
        withheld: false,
    });
    let command = mainstay_model::Command::new(CommandId::new("theirs").unwrap(), local.source(), body);
    let begun = local.begin(session, command).await.unwrap();
    home.reaches("Waiting").await;
    let asked = result(&other, &json!("theirs"), 30).await;
    let ask = asked.structured["asks"][0]["ask"].clone();
    assert!(asked.text.contains("the code reads a line"), "{asked:?}");
    let answered = other.call("answer_ask", json!({ "ask": ask, "answer": "Ada" })).await;
    assert_eq!(answered.structured["value"], json!("\"Ada\""), "{answered:?}");
    begun.ended().await.unwrap();
}

#[tokio::test]
async fn under_the_end_of_the_daemon_what_has_not_begun_is_told_from_what_is_kept() {
    let home = Home::new().await;
    let agent = home.agent_in("held").await;
    let local = home.local();
    let mut news = local.follow(Cursor::Log { after: Position::ZERO }, EventFilter::default()).await.unwrap();
    let begins = agent.begin("send_code", json!({ "code": "1 + 1" })).await;
    while !matches!(news.next().await.unwrap().body, EventBody::WarmUpStarted { .. }) {}
    let other = home.agent_in("other").await;
    other.call("send_code", json!({ "code": "wait", "wait": 0 })).await;
    while !matches!(news.next().await.unwrap().body, EventBody::EvalRequested { .. }) {}
    let waits = other.begin("send_code", json!({ "code": "1 + 1" })).await;
    while other.progress().iter().all(|(_, said)| said != "other code runs; this waits for its turn") {
        tokio::task::yield_now().await;
    }
    let answer = async |called: RequestHandle<RoleClient>| match called.await_response().await.unwrap() {
        ServerResult::CallToolResult(result) => Reply::from(result),
        other => panic!("{other:?}"),
    };
    let (begins, waits, ()) = tokio::join!(answer(begins), answer(waits), home.daemon.shut_down());
    for (reply, words) in [
        (begins, "Nothing of it has run: send it again"),
        (waits, "It is kept, and carried out once the session is used again"),
    ] {
        assert_eq!(reply.structured["code"], json!("daemon_stopping"), "{reply:?}");
        assert!(reply.text.contains(words), "{}", reply.text);
    }
}

#[tokio::test]
async fn nothing_is_said_of_progress_once_a_call_is_answered() {
    let home = Home::new().await;
    let (agent, other) = (home.agent().await, home.agent().await);
    agent.send("1 + 1").await;
    left_running(&agent).await;
    let heard = agent.progress().len();
    home.reaches("Evaluating").await;
    other.call("cancel_eval", json!({})).await;
    agent.send("1 + 1").await;
    assert!(agent.progress()[heard..].iter().all(|(_, said)| said != "waiting\n"), "{:?}", agent.progress());
}

#[tokio::test]
async fn a_session_that_takes_long_to_get_ready_is_waited_for_too() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let held = home.folder("held");
    let create = json!({ "workingDirectory": held, "wait": 0 });
    let still = agent.call("create_session", create).await;
    assert_eq!(still.structured["running"], json!(true), "{still:?}");
    release(Path::new(&held));
    let ready = result(&agent, &still.structured["id"], 10).await;
    assert_eq!(ready.structured["state"], json!(SessionState::Ready.name()), "{ready:?}");
}

#[tokio::test]
async fn what_a_client_gives_up_at_its_limit_goes_on_and_what_its_user_cancels_does_not() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let given_up = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    given_up.cancel(Some("McpError: MCP error -32001: Request timed out".to_owned())).await.unwrap();
    let mut told = agent.call("get_status", json!({})).await;
    let status = told.structured.clone();
    assert_eq!(status["state"], json!("Evaluating"), "{status:?}");
    let id = status["running"]["id"].clone();
    // That it was given up is known once its cancellation is; the next answer says so.
    let note = format!(
        "note: send_code of before, which was given up, still runs: get_result {} waits for it\n",
        id.as_str().unwrap()
    );
    while !told.text.starts_with(&note) {
        told = agent.call("get_status", json!({})).await;
    }
    assert!(!agent.call("get_status", json!({})).await.text.contains("given up"), "once");
    agent.call("cancel_eval", json!({})).await;
    assert_eq!(result(&agent, &id, 10).await.structured["output"], json!("waiting\n"));
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_is_cancelled_by_its_id_and_what_runs_goes_on() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = left_running(&agent).await;
    home.reaches("Evaluating").await;
    let waiting =
        agent.call("send_code", json!({ "code": "let b = 3", "wait": 0 })).await.structured["id"].clone();
    let local = home.local();
    let id = CommandId::new(waiting.as_str().unwrap()).unwrap();
    while !matches!(local.command(&id).await, Ok(mainstay_engine::CommandStatus::Waits { .. })) {
        tokio::task::yield_now().await;
    }
    let withdrawn = agent.call("cancel_eval", json!({ "id": waiting })).await;
    assert_eq!(withdrawn.structured["ending"], json!("withdrawn"), "{withdrawn:?}");
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["running"]["id"], running, "{status:?}");
    assert_eq!(
        agent.call("cancel_eval", json!({ "id": running })).await.structured["ending"],
        json!("yielded")
    );
    let gone = agent.call("cancel_eval", json!({ "id": running })).await;
    assert_eq!(gone.structured["code"], json!("not_running"), "{gone:?}");
}

#[tokio::test]
async fn what_was_created_for_want_of_a_session_is_told_with_its_kind() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let first = agent.send("1 + 1").await.text;
    assert!(
        first.ends_with("\na new fsharp session was created for this; create_session takes another kind"),
        "{first}"
    );
    assert!(!agent.send("1 + 1").await.text.contains("create_session"));
}

#[tokio::test]
async fn what_is_no_number_of_seconds_is_refused() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for wait in [json!(-1), json!("long"), json!(100_000)] {
        let refused = agent.call("send_code", json!({ "code": "1 + 1", "wait": wait })).await;
        assert_eq!(refused.structured["code"], json!("invalid_argument"), "{wait}");
    }
}
