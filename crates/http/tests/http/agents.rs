//! What agents are given to do over HTTP.

use mainstay_model::agent::{Setting, ThinkingLevel};
use mainstay_model::{JobSpec, Prompt};
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Home, answer};

#[tokio::test]
async fn an_agent_is_given_turns_settings_compactions_and_lines_of_a_shell() {
    let (home, mut script) = Home::with_agents().await;
    let create = json!({ "workingDirectory": home.folder(), "kind": "pi", "name": "talk" });
    assert_eq!(answer(home.post("/sessions", &create)).await.0, StatusCode::CREATED);
    let model = Setting::Model { provider: "p".to_owned(), id: "m".to_owned() };
    for (path, body, wanted) in [
        ("prompt", json!({ "text": "hi" }), JobSpec::Turn { prompt: Prompt::text("hi") }),
        ("settings", json!({ "setting": "model", "provider": "p", "id": "m" }), JobSpec::Setting(model)),
        (
            "settings",
            json!({ "setting": "thinking", "level": "high" }),
            JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::High }),
        ),
        ("compact", json!({}), JobSpec::Compaction { instructions: None }),
        (
            "shell",
            json!({ "line": "ls", "isPrivate": true }),
            JobSpec::Shell { line: "ls".to_owned(), is_private: true },
        ),
    ] {
        let request = home.post(&format!("/sessions/talk/{path}"), &body);
        let answered = tokio::spawn(answer(request));
        assert_eq!(script.work().await, wanted);
        script.done().await;
        let (status, work) = answered.await.unwrap();
        assert_eq!((status, &work["success"]), (StatusCode::OK, &json!(true)), "{path}: {work}");
    }
}

#[tokio::test]
async fn what_is_no_setting_and_no_agents_session_is_refused() {
    let home = Home::new().await;
    home.session("demo").await;
    for (path, body, status, code) in [
        ("/settings", json!({}), StatusCode::BAD_REQUEST, "bad_request"),
        (
            "/settings",
            json!({ "setting": "thinking", "level": "hardly" }),
            StatusCode::BAD_REQUEST,
            "bad_request",
        ),
        (
            "/sessions/demo/settings",
            json!({ "setting": "nextThinking" }),
            StatusCode::CONFLICT,
            "not_of_kind",
        ),
        ("/sessions/demo/compact", json!({}), StatusCode::CONFLICT, "not_of_kind"),
        ("/sessions/demo/shell", json!({ "line": "ls" }), StatusCode::CONFLICT, "not_of_kind"),
    ] {
        let (answered, problem) = answer(home.post(path, &body)).await;
        assert_eq!((answered, &problem["code"]), (status, &json!(code)), "{path} {body}: {problem}");
    }
}
