//! Which tools are listed and offered, and that calls are checked whatever is listed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use mainstay_engine::KindResolver;
use mainstay_mcp::{Names, Settings, Shared};
use mainstay_model::{EventBody, Seq, SessionKind, SessionState, WaitReason, WarmUpReason};
use mainstay_runner::Environment;
use rmcp::model::ServerResult;
use serde_json::{Value, json};

use crate::following::hears;
use crate::refusals::import_conversation;
use crate::support::{Agent, Home, Reply, TOOLS_CHANGED};
use mainstay_test_support::scripted_kernel::release;

async fn listed(agent: &Agent) -> Vec<String> {
    let tools = agent.service.list_all_tools().await.unwrap();
    tools.into_iter().map(|tool| tool.name.into_owned()).collect()
}

/// A session in a state, and an agent that uses it.
struct Stage {
    home: Home,
    agent: Agent,
    /// Who runs what keeps it busy.
    other: Agent,
    folder: &'static str,
}

impl Stage {
    async fn in_state(state: SessionState) -> Self {
        let home = Home::new().await;
        let folder = match state {
            SessionState::WarmingUp => "held",
            SessionState::Faulted => "no-sdk",
            SessionState::Uninitialized
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_) => "work",
        };
        let (agent, other) = (home.agent_in(folder).await, home.agent_in(folder).await);
        let code = match state {
            SessionState::WarmingUp | SessionState::Faulted => None,
            SessionState::Uninitialized | SessionState::Ready => Some("1 + 1"),
            SessionState::Evaluating => Some("wait"),
            SessionState::Waiting(WaitReason::Ask) => Some("stdin.ReadLine()"),
        };
        let create = mainstay_model::CreateSession {
            kind: mainstay_model::SessionKind::fsharp(),
            working_directory: home.folder(folder),
            project: Default::default(),
            arguments: Vec::new(),
            name: Some("stage".to_owned()),
            alias: None,
        };
        let id = mainstay_model::CommandId::from_uuid(uuid::Uuid::now_v7());
        home.local().create(id, create).await.unwrap();
        if state != SessionState::WarmingUp {
            home.local().settled(home.session().await, Duration::from_secs(10)).await.unwrap();
        }
        match (state, code) {
            (SessionState::Uninitialized, _) => {
                agent.call("stop_session", json!({})).await;
            }
            // It was Ready before, and is so again once that has ended.
            (SessionState::Ready, Some(code)) => {
                other.send(code).await;
            }
            (_, Some(code)) => drop(other.begin("send_code", json!({ "code": code })).await),
            (_, None) => {}
        }
        home.reaches(state.name()).await;
        Self { home, agent, other, folder }
    }

    /// What a tool takes here.
    async fn arguments(&self, tool: &str) -> Value {
        let script = self.home.path().join("script.fsx");
        std::fs::write(&script, "1 + 1").unwrap();
        let asks = self.home.local().asks().await.unwrap();
        let ask = asks.first().map_or_else(|| "nobody".to_owned(), |ask| ask.pending.ask.ask.short());
        match tool {
            "send_code" | "check_code" | "review_code" => json!({ "code": "1 + 1" }),
            "load_script" => json!({ "path": script }),
            "get_completions" => json!({ "code": "List.m", "line": 1, "column": 7 }),
            "explore_namespace" | "explore_type" => json!({ "name": "Dog" }),
            "scaffold_test" => json!({ "name": "sum", "signature": "int -> int" }),
            "get_result" => json!({ "id": "nobody" }),
            "find_symbols" => json!({ "text": "Dog" }),
            "set_run_policy" => json!({ "category": "slow", "policy": "demand" }),
            "answer_ask" => json!({ "ask": ask, "answer": "yes" }),
            "switch_session" => json!({ "sessionId": "stage" }),
            "search_sessions" => json!({ "words": "Dog" }),
            "import_session" => json!({ "path": script }),
            "run_notebook" => json!({ "path": script }),
            "merge_session" | "cherry_pick" => {
                let source = self.home.agent_in("source").await.send("1 + 1").await.session();
                match tool {
                    "merge_session" => json!({ "from": source, "entries": "1" }),
                    _ => json!({ "from": source, "entry": 1 }),
                }
            }
            _ => json!({}),
        }
    }

    /// The answer to a call. Where that waits for the worker, the worker comes; where it waits for its turn, what runs is cancelled.
    async fn answer(&self, tool: &'static str) -> Reply {
        let session = self.home.local().resolve("stage").await.unwrap();
        let mut events = self.home.local().subscribe(session, Seq(0)).await.unwrap();
        let starts_anew = async {
            let anew = WarmUpReason::HardReset;
            while !matches!(events.next().await.unwrap().body, EventBody::WarmUpStarted { reason } if reason == anew)
            {
            }
        };
        let called = self.agent.begin(tool, self.arguments(tool).await).await;
        let mut answered = pin!(called.await_response());
        let answered = tokio::select! {
            answered = &mut answered => answered,
            () = async { tokio::select! { () = self.agent.hears_progress() => {}, () = starts_anew => {} } } => {
                release(Path::new(&self.home.folder(self.folder)));
                if self.home.local().status(session).await.unwrap().session.state() == SessionState::Evaluating {
                    self.other.call("cancel_eval", json!({})).await;
                }
                answered.await
            }
        };
        match answered.unwrap() {
            ServerResult::CallToolResult(result) => Reply::from(result),
            other => panic!("{tool}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn where_there_is_no_session_what_runs_code_is_for_the_kind_that_the_folder_is_for() {
    let mut home = Home::new().await;
    home.daemon.kind_resolver = KindResolver::new(|folder: &Path, _: &Environment| {
        if folder.ends_with("snakes") { SessionKind::new("python").unwrap() } else { SessionKind::fsharp() }
    });
    let [snakes, sharp] = [home.agent_in("snakes").await, home.agent_in("sharp").await];
    assert_eq!(listed(&snakes).await, listed(&sharp).await);
    for (agent, is_offered) in [(&snakes, false), (&sharp, true)] {
        let status = agent.call("get_status", json!({})).await;
        let offered = status.structured["offered"].as_array().unwrap();
        assert!(offered.contains(&json!("send_code")), "{status:?}");
        assert_eq!(offered.contains(&json!("run_tests")), is_offered, "{status:?}");
    }
    // What comes of that: this daemon has F# alone.
    for (tool, arguments) in [("send_code", json!({ "code": "1" })), ("create_session", json!({}))] {
        assert_eq!(snakes.call(tool, arguments).await.structured["code"], json!("kernel_unknown"), "{tool}");
    }
    let refused = snakes.call("run_tests", json!({})).await;
    assert_eq!(refused.structured["code"], json!("not_of_kind"));
    assert_eq!(
        snakes.call("create_session", json!({ "kind": "fsharp" })).await.structured["state"],
        json!("Ready")
    );
}

/// The tools that the session's status names.
async fn offered(agent: &Agent) -> Vec<String> {
    let status = agent.call("get_status", json!({})).await;
    serde_json::from_value(status.structured["offered"].clone()).unwrap()
}

/// What a tool answered agrees with whether it was offered: what was is not refused by the session, what was not is, with what was.
fn agrees(tool: &str, offered: &[String], reply: &Reply) {
    let code = reply.structured["code"].as_str().filter(|_| reply.is_error).unwrap_or_default();
    let is_refused = ["not_offered", "not_of_kind", "not_running", "ask_not_pending"].contains(&code);
    let is_offered = offered.iter().any(|name| name == tool);
    assert_eq!(is_offered, !is_refused, "{tool}: {offered:?}: {reply:?}");
    if is_refused {
        assert_eq!(reply.structured["offered"], json!(offered), "{tool}: {reply:?}");
    }
}

#[tokio::test]
async fn where_there_is_no_session_what_is_offered_creates_one_or_needs_none() {
    let all = listed(&Home::new().await.agent().await).await;
    for tool in all {
        let home = Home::new().await;
        let stage = Stage { agent: home.agent().await, other: home.agent().await, folder: "work", home };
        let offered = offered(&stage.agent).await;
        let tool: &'static str = Box::leak(tool.into_boxed_str());
        let reply = stage.agent.call(tool, stage.arguments(tool).await).await;
        // There is none to switch to, and none is searched.
        if tool != "switch_session" {
            agrees(tool, &offered, &reply);
        }
    }
}

/// Each tool in each state: whether it is listed and offered, and what a call comes to.
#[tokio::test]
async fn each_tool_is_answered_in_each_state() {
    let all = listed(&Home::new().await.agent().await).await;
    let cells = all.iter().flat_map(|tool| SessionState::ALL.map(|state| (tool.clone(), state)));
    let answers: Vec<_> = futures::stream::iter(cells)
        .map(|(tool, state)| async move {
            let stage = Stage::in_state(state).await;
            let is_listed = listed(&stage.agent).await.contains(&tool);
            let offered = offered(&stage.agent).await;
            let reply = stage.answer(Box::leak(tool.clone().into_boxed_str())).await;
            agrees(&tool, &offered, &reply);
            (tool, state, is_listed, offered, reply)
        })
        .buffered(8)
        .collect()
        .await;

    let (mut table, mut refusals, mut offers) = (String::new(), BTreeMap::new(), BTreeMap::new());
    for (tool, state, is_listed, offered, reply) in answers {
        offers.insert(state.name(), offered);
        if state == SessionState::ALL[0] {
            write!(table, "\n{tool}:").unwrap();
        }
        let code = match reply.is_error {
            true => reply.structured["code"].as_str().unwrap_or("failed"),
            false => "ok",
        };
        write!(table, " {code}{}", if is_listed { "" } else { " (not listed)" }).unwrap();
        if code == "not_offered" {
            assert!(reply.structured["sessionId"].is_string(), "{tool}: {reply:?}");
            let Value::Object(mut refusal) = reply.structured else { panic!("{tool}") };
            refusal.retain(|member, _| ["message", "remedy", "nextStep"].contains(&member.as_str()));
            let action = refusal["remedy"]["action"].to_string();
            refusals.insert((action, state.name()), Value::Object(refusal).to_string());
        }
    }
    let refusals: String = refusals.into_values().map(|refusal| refusal + "\n").collect();
    let not_offered: String = offers
        .iter()
        .map(|(state, offered)| {
            let others: Vec<_> =
                all.iter().filter(|tool| !offered.contains(tool)).map(String::as_str).collect();
            format!("not offered where it is {state}: {}\n", others.join(" "))
        })
        .collect();
    let states = SessionState::ALL.map(SessionState::name).join(" ");
    insta::assert_snapshot!("offers", format!("states: {states}{table}\n\n{not_offered}\n{refusals}"));
}

#[tokio::test]
async fn calls_take_the_names_of_sagefs_too_and_a_setting_lists_them() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let value = agent.call("send_fsharp_code", json!({ "code": "1 + 1" })).await.structured["value"].clone();
    assert_eq!(value, json!("2"));
    let names = [
        ("check_fsharp_code", "check_code"),
        ("get_fsi_status", "get_status"),
        ("get_recent_fsi_events", "get_recent_events"),
        ("reset_fsi_session", "reset_session"),
        ("hard_reset_fsi_session", "hard_reset_session"),
    ];
    for (tool, _) in names {
        let arguments = if tool == "check_fsharp_code" { json!({ "code": "1 + 1" }) } else { json!({}) };
        assert!(!agent.call(tool, arguments).await.is_error, "{tool}");
    }

    let mut of_sagefs = Home::new().await;
    let settings = Settings { names: Names::Sagefs, ..Settings::default() };
    of_sagefs.mcp = Arc::new(Shared::new(settings));
    let other = of_sagefs.agent().await;
    let (neutral, listed) = (listed(&agent).await, listed(&other).await);
    for (seed, name) in names {
        assert!(neutral.contains(&name.to_owned()) && !neutral.contains(&seed.to_owned()), "{neutral:?}");
        assert!(listed.contains(&seed.to_owned()) && !listed.contains(&name.to_owned()), "{listed:?}");
    }
    let refused = other.call("cancel_eval", json!({})).await.structured.to_string();
    assert!(refused.contains("get_fsi_status") && !refused.contains("get_status"), "{refused}");
}

#[tokio::test]
async fn the_list_is_the_same_whatever_becomes_of_sessions() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let before = listed(&agent).await;
    agent.send("1 + 1").await;
    assert_eq!(listed(&agent).await, before);
    agent.call("create_session", json!({ "workingDirectory": home.folder("no-sdk") })).await;
    assert_eq!(listed(&agent).await, before, "in a Faulted session");
    let talk = import_conversation(&home, &agent).await;
    let switched = agent.call("switch_session", json!({ "sessionId": talk })).await;
    assert_eq!(switched.structured.get("runs"), None, "{switched:?}");
    assert_eq!(listed(&agent).await, before, "in an agent's conversation");
    let offered = offered(&agent).await;
    assert!(!offered.contains(&"send_code".to_owned()), "{offered:?}");
    let refused = agent.call("cancel_eval", json!({})).await.structured;
    assert_eq!((&refused["sessionId"], &refused["offered"]), (&talk, &json!(offered)));
    assert_eq!(hears(&agent, &[]).await.get(TOOLS_CHANGED), None);
}

#[tokio::test]
async fn who_may_only_see_a_session_is_offered_what_looks_at_it() {
    let home = Home::new().await;
    let session = home.agent().await.call("create_session", json!({ "name": "shared" })).await.session();
    let ada = home.agent_who_sees("ada", "shared").await;
    assert!(offered(&ada).await.contains(&"send_code".to_owned()), "in a session of her own");
    let switched = ada.call("switch_session", json!({ "sessionId": session })).await;
    assert!(!switched.is_error, "{switched:?}");
    let reduced = [
        "get_result",
        "get_output",
        "get_live_test_status",
        "get_status",
        "diagnose",
        "get_recent_events",
        "get_eval_timeline",
        "get_startup_profile",
        "create_session",
        "list_sessions",
        "switch_session",
        "fork_session",
        "search_sessions",
        "export_session",
    ];
    assert_eq!(offered(&ada).await, reduced);
    let refused = ada.send("1 + 1").await;
    assert_eq!(refused.structured["code"], json!("not_permitted"));
}

#[tokio::test]
async fn who_may_have_no_files_read_is_not_listed_what_reads_them() {
    let home = Home::new().await;
    let ada = home.agent_of("ada").await;
    let listed = listed(&ada).await;
    assert!(listed.contains(&"send_code".to_owned()) && !listed.contains(&"import_session".to_owned()));
    let refused = ada.call("import_session", json!({ "path": "/etc/hostname" })).await;
    assert_eq!(refused.structured["code"], json!("not_permitted"));
}
