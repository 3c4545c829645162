//! Tasks: what takes long is asked after by its command's id.

use std::time::Duration;

use mainstay_model::command::Elevate;
use mainstay_model::elevation::{Elevation, TrustLevel};
use mainstay_model::grant::{Grants, OperationKind};
use mainstay_model::{
    Access, Admission, Command, CommandId, CreateSession, JobSpec, Limits, Principal, ProjectChoice, Prompt,
    Rights, SessionCommand, SessionKind,
};
use rmcp::ServiceExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientRequest, GetTaskParams, Request,
    ServerResult, TaskPayload, UpdateTaskParams,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

use crate::support::{Agent, Home, Listener};

impl Home {
    /// Everything is a task there.
    async fn of_tasks() -> Self {
        Self::with(Limits { task_after_ms: 1, ..Limits::default() }).await
    }

    async fn tasks_agent(&self) -> Agent {
        let (stream, _) = self.stream(Some(self.folder("work")));
        Agent::newest_over(stream, Listener { knows_tasks: true, ..Listener::default() }).await
    }
}

impl Agent {
    /// The id of the task that a call becomes.
    async fn task(&self, tool: &'static str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!() };
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        match self.service.call_tool_once(call).await.unwrap() {
            CallToolResponse::Task(created) => created.task.task_id,
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&self, request: ClientRequest) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options();
        self.service.send_cancellable_request(request, options).await.unwrap().await_response().await
    }

    async fn look(&self, task: &str) -> Result<TaskPayload, ServiceError> {
        let request = ClientRequest::GetTaskRequest(Request::new(GetTaskParams::new(task)));
        match self.ask(request).await? {
            ServerResult::GetTaskResult(result) => {
                assert_eq!(result.task.task.task_id, task);
                Ok(result.task.payload)
            }
            other => panic!("{other:?}"),
        }
    }

    /// What the task is once it is over.
    async fn outcome(&self, home: &Home, task: &str) -> TaskPayload {
        home.reaches("Ready").await;
        let look = async {
            loop {
                let payload = self.look(task).await.unwrap();
                if payload.status().is_terminal() {
                    return payload;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), look).await.unwrap()
    }
}

fn structured(payload: &TaskPayload) -> Value {
    match payload {
        TaskPayload::Completed { result } => result["structuredContent"].clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_takes_long_goes_on_as_a_task_and_can_be_stopped() {
    let home = Home::of_tasks().await;
    let agent = home.tasks_agent().await;
    let task = agent.task("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    assert_eq!(agent.look(&task).await.unwrap(), TaskPayload::Working);
    agent.ask(ClientRequest::CancelTaskRequest(Request::new(CancelTaskParams::new(&task)))).await.unwrap();
    assert_eq!(agent.outcome(&home, &task).await, TaskPayload::Cancelled);
}

#[tokio::test]
async fn what_a_task_asks_is_answered_and_its_end_is_the_answer_of_the_call() {
    let home = Home::of_tasks().await;
    let agent = home.tasks_agent().await;
    let task = agent.task("send_code", json!({ "code": "stdin.ReadLine()" })).await;
    home.reaches("Waiting").await;
    let TaskPayload::InputRequired { input_requests } = agent.look(&task).await.unwrap() else { panic!() };
    let answer = json!({ "action": "accept", "content": { "answer": "Ada" } });
    let responses = input_requests.into_keys().map(|ask| (ask, answer.clone())).collect();
    let update = UpdateTaskParams::new(&task, responses);
    agent.ask(ClientRequest::UpdateTaskRequest(Request::new(update))).await.unwrap();
    let answered = structured(&agent.outcome(&home, &task).await);
    assert_eq!((&answered["success"], &answered["value"]), (&json!(true), &json!("\"Ada\"")));
    assert!(answered["sessionId"].is_string());
}

#[tokio::test]
async fn what_is_no_answer_to_a_task_is_refused_with_the_reason() {
    let home = Home::of_tasks().await;
    let agent = home.tasks_agent().await;
    let task = agent.task("send_code", json!({ "code": "number" })).await;
    home.reaches("Waiting").await;
    let TaskPayload::InputRequired { input_requests } = agent.look(&task).await.unwrap() else { panic!() };
    let (ask, _) = input_requests.into_iter().next().unwrap();
    let update = async |number: u32| {
        let answer = json!({ "action": "accept", "content": { "answer": number } });
        let update = UpdateTaskParams::new(&task, [(ask.clone(), answer)].into_iter().collect());
        agent.ask(ClientRequest::UpdateTaskRequest(Request::new(update))).await
    };
    match update(0).await {
        Err(ServiceError::McpError(error)) => {
            assert_eq!(error.code.0, -32602, "{error:?}");
            assert!(error.message.contains("0 is less than the minimum of 1"), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    update(3).await.unwrap();
    assert_eq!(structured(&agent.outcome(&home, &task).await)["value"], json!("3"));
}

#[tokio::test]
async fn a_notebook_is_no_task_and_runs_to_its_last_cell() {
    let home = Home::of_tasks().await;
    let (agent, other) = (home.tasks_agent().await, home.agent().await);
    other.send("1 + 1").await;
    let file = home.path().join("steps.fsx");
    std::fs::write(&file, "stdin.ReadLine()\n// %%\n1 + 1\n").unwrap();
    let running = agent.begin("run_notebook", json!({ "path": file })).await;
    home.reaches("Waiting").await;
    let ask = home.local().asks().await.unwrap()[0].pending.ask.ask.short();
    other.call("answer_ask", json!({ "ask": ask, "answer": "Bob" })).await;
    // Its client shows no forms.
    let ServerResult::CallToolResult(still) = running.await_response().await.unwrap() else { panic!() };
    let id = still.structured_content.unwrap()["id"].clone();
    let result = agent.call("get_result", json!({ "id": id })).await;
    let cells = result.structured["cells"].clone();
    let values: Vec<_> = cells.as_array().unwrap().iter().map(|cell| &cell["eval"]["value"]).collect();
    assert_eq!(values, [&json!("\"Bob\""), &json!("2")]);
}

#[tokio::test]
async fn a_task_that_others_end_is_cancelled_too() {
    let home = Home::of_tasks().await;
    let agent = home.tasks_agent().await;
    let task = agent.task("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    home.agent().await.call("hard_reset_session", json!({})).await;
    assert_eq!(agent.outcome(&home, &task).await, TaskPayload::Cancelled);
}

#[tokio::test]
async fn what_ends_in_time_and_who_knows_no_tasks_is_answered_at_once() {
    let home = Home::new().await;
    assert_eq!(home.tasks_agent().await.send("1 + 1").await.structured["value"], json!("2"));
    let home = Home::of_tasks().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    agent.call("cancel_eval", json!({})).await;
    assert!(matches!(running.await_response().await.unwrap(), ServerResult::CallToolResult(_)));
}

/// Their answers do not say of what type they are, and some say all the same that they know tasks.
#[tokio::test]
async fn who_speaks_an_older_version_is_given_no_task() {
    let home = Home::of_tasks().await;
    let (stream, _) = home.stream(Some(home.folder("work")));
    let listener = Listener { knows_tasks: true, ..Listener::default() };
    let agent = Agent { service: listener.serve(stream).await.unwrap() };
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    agent.hears_progress().await;
    home.agent().await.call("cancel_eval", json!({})).await;
    let answered = running.await_response().await.unwrap();
    assert!(matches!(answered, ServerResult::CallToolResult(_)), "{answered:?}");
}

#[tokio::test]
async fn a_task_of_nobody_or_of_another_is_unknown() {
    let home = Home::of_tasks().await;
    let (agent, ada) = (home.tasks_agent().await, home.newest_agent_of("ada").await);
    let task = agent.task("send_code", json!({ "code": "wait" })).await;
    for (agent, task) in [(&agent, "nobody"), (&ada, task.as_str())] {
        match agent.look(task).await {
            Err(ServiceError::McpError(error)) => assert_eq!(error.code.0, -32602, "{error:?}"),
            other => panic!("{other:?}"),
        }
    }
    agent.call("cancel_eval", json!({})).await;
}

#[tokio::test]
async fn whether_a_job_is_trusted_more_is_asked_of_nobody_who_may_not_say_it() {
    for rights in [Rights::All, Rights::Some { see: Vec::new(), drive: Vec::new() }] {
        let (home, mut script) = Home::of_agents().await;
        let access = Access { principal: Principal::new("ada").unwrap(), rights: rights.clone() };
        let client = home.daemon.engine.attach(access.clone(), "test");
        let create = CreateSession {
            kind: SessionKind::pi(),
            working_directory: home.folder("work"),
            project: ProjectChoice::default(),
            arguments: Vec::new(),
            name: None,
            alias: None,
        };
        client.create(mainstay_gateway::command::anonymous(), create).await.unwrap();
        let session = home.session().await;
        let turn = CommandId::new("turn").unwrap();
        let work = SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text("go") });
        let command = Command::new(turn.clone(), client.source(), work);
        let grants = Some(Box::new(Grants::default().asking()));
        let command = Command { admission: Admission::Queue, grants, ..command };
        let _begun = client.begin(session, command).await.unwrap();
        script.work().await;
        let elevation = Elevation {
            level: TrustLevel::Trusted,
            kind: OperationKind::FS_WRITE,
            pattern: "/work/**".to_owned(),
            duration_ms: 1_000,
            reason: None,
            asker: None,
        };
        let elevate = SessionCommand::Elevate(Elevate { target: turn, elevation });
        let id = CommandId::new("elevate").unwrap();
        client.submit(session, Command::new(id, client.source(), elevate)).await.unwrap();
        let agent = home.newest_agent_with_access(access).await;
        assert_eq!(agent.look("turn").await.unwrap(), TaskPayload::Working, "no form has its schema");
        let still = agent.call("get_result", json!({ "id": "turn", "wait": 0 })).await.structured;
        assert_eq!(still.get("asks").is_some(), rights == Rights::All, "{still}");
        let diagnosed = agent.call("diagnose", json!({ "sessionId": session.to_string() })).await.structured;
        let problems = diagnosed["problems"].as_array().map_or(0, Vec::len);
        assert_eq!(problems > 0, rights == Rights::All, "{diagnosed}");
    }
}
