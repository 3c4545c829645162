//! The log that a client wants, and no more of it.

#![expect(deprecated, reason = "clients of every protocol that is spoken may ask for a log")]

use std::time::Duration;

use mainstay_model::command;
use mainstay_model::{Command, CommandId, SessionCommand};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, LoggingLevel, ProtocolVersion, RequestMetaObject,
    ServerResult, SetLevelRequestParams,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::{Agent, Home, Listener};

/// Waits until so much was logged: level and kind of each.
async fn logged(agent: &Agent, count: usize) -> Vec<(String, String)> {
    let mut logged = agent.service.service().logged.subscribe();
    let logged = timeout(Duration::from_secs(10), logged.wait_for(|logged| logged.len() >= count));
    let logged = logged.await.expect("words of the log").unwrap().clone();
    let line = |(level, data): (LoggingLevel, Value)| {
        let level = serde_json::to_value(level).unwrap();
        (level.as_str().unwrap().to_owned(), data["kind"].as_str().unwrap().to_owned())
    };
    logged.into_iter().map(line).collect()
}

fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(level, kind)| ((*level).to_owned(), (*kind).to_owned())).collect()
}

/// Someone else runs code in the one session there is.
async fn other_runs(home: &Home, code: &str) {
    let other = home.local();
    let eval = SessionCommand::Eval(command::Eval {
        code: code.to_owned(),
        file: None,
        command_line: None,
        origin: None,
        withheld: false,
    });
    let command = Command::new(CommandId::from_uuid(Uuid::now_v7()), other.source(), eval);
    other.submit(home.session().await, command).await.unwrap();
}

#[tokio::test]
async fn a_level_keeps_lower_ones_out() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let mut listeners = Vec::new();
    for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Warning, LoggingLevel::Error] {
        let listener = home.agent().await;
        // The last one counts.
        for level in [LoggingLevel::Emergency, level] {
            listener.service.set_level(SetLevelRequestParams::new(level)).await.unwrap();
        }
        listeners.push(listener);
    }
    // What a client runs itself is no news to it.
    agent.send("1 + 1").await;
    other_runs(&home, "die").await;
    home.reaches("Ready").await;
    agent.call("create_session", json!({ "workingDirectory": home.folder("no-sdk") })).await;

    let all = [
        (0, "debug", "evalRequested"),
        (2, "warning", "workerExited"),
        (1, "info", "warmUpStarted"),
        (1, "info", "warmUpCompleted"),
        (1, "info", "warmUpStarted"),
        (3, "error", "sessionFaulted"),
    ];
    for (least, listener) in listeners.iter().enumerate() {
        let wanted = all.into_iter().filter(|(rank, _, _)| *rank >= least);
        let wanted = lines(&wanted.map(|(_, level, kind)| (level, kind)).collect::<Vec<_>>());
        assert_eq!(logged(listener, wanted.len()).await, wanted);
    }
}

#[tokio::test]
async fn who_asks_for_no_log_hears_none() {
    let home = Home::new().await;
    let (agent, other) = (home.agent().await, home.agent().await);
    other.service.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await.unwrap();
    agent.send("1 + 1").await;
    logged(&other, 2).await;
    assert_eq!(logged(&agent, 0).await, []);
}

#[tokio::test]
async fn a_request_of_the_newest_protocol_has_the_log_of_its_time() {
    let home = Home::new().await;
    let (stream, _served) = home.stream(Some(home.folder("work")));
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let agent = Agent { service: Listener::default().serve_with_lifecycle(stream, lifecycle).await.unwrap() };
    each_request_has_the_log_of_its_time(&home, &agent).await;
}

/// Of an agent that speaks the newest protocol.
pub(crate) async fn each_request_has_the_log_of_its_time(home: &Home, agent: &Agent) {
    let create = |level: LoggingLevel, folder: String| {
        let Value::Object(arguments) = json!({ "workingDirectory": folder }) else { panic!() };
        let call =
            CallToolRequest::new(CallToolRequestParams::new("create_session").with_arguments(arguments));
        let mut meta = RequestMetaObject::default();
        meta.set_log_level(level);
        let options = PeerRequestOptions::no_options().with_meta(meta);
        agent.service.send_cancellable_request(ClientRequest::CallToolRequest(call), options)
    };
    for (level, folder) in [(LoggingLevel::Info, "work"), (LoggingLevel::Error, "no-sdk")] {
        let answer = create(level, home.folder(folder)).await.unwrap().await_response().await.unwrap();
        assert!(matches!(answer, ServerResult::CallToolResult(_)), "{answer:?}");
    }
    // Nobody asked for the log of this one.
    agent.call("hard_reset_session", json!({})).await;
    let expected =
        lines(&[("info", "warmUpStarted"), ("info", "warmUpCompleted"), ("error", "sessionFaulted")]);
    assert_eq!(logged(agent, 3).await, expected);
}
