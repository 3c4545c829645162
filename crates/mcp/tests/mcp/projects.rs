//! Sessions of a project: what a worker brought in of it, and building it.

use serde_json::{Value, json};

use crate::support::{Agent, Home, Reply};

async fn session_of(agent: &Agent, home: &Home, project: &str) -> Reply {
    let folder = home.folder("work");
    agent.call("create_session", json!({ "workingDirectory": folder, "project": project })).await
}

async fn rebuild(agent: &Agent) -> Reply {
    agent.call("hard_reset_session", json!({ "rebuild": true })).await
}

/// Without what is another in each run.
fn told(reply: &Reply) -> Value {
    let mut told = reply.structured.clone();
    told.as_object_mut().unwrap().remove("sessionId");
    told
}

#[tokio::test]
async fn a_project_is_of_the_working_directory_and_need_not_be_there() {
    let home = Home::new().await;
    let agent = home.agent().await;
    session_of(&agent, &home, "src/Shop.fsproj").await;
    let project = home.local().status(home.session().await).await.unwrap().session.project;
    assert_eq!(project, Some(format!("{}/src/Shop.fsproj", home.folder("work"))));
}

#[tokio::test]
async fn a_rebuild_tells_what_was_loaded() {
    let home = Home::new().await;
    let agent = home.agent().await;
    session_of(&agent, &home, "/code/Shop.fsproj").await;
    agent.send("let a = 3").await;
    let rebuilt = rebuild(&agent).await;
    assert!(!rebuilt.is_error, "{rebuilt:?}");
    insta::assert_snapshot!(told(&rebuilt), @r#"{"build":{"success":true},"loaded":"Shop.fsproj: 1 assembly loaded, 1 namespace or module opened; /home/init.fsx failed","problems":["another SDK is used","/code/bin/Gone.dll was not loaded: it is not there","Shop.Odd was not opened: it raised","/home/init.fsx did not run to its end: System.Exception: boom"],"state":"Ready"}"#);
    assert_eq!(agent.send("names").await.structured["value"], json!("\"\""));
}

#[tokio::test]
async fn a_hard_reset_keeps_the_definitions_where_that_is_asked() {
    let home = Home::new().await;
    let agent = home.agent().await;
    session_of(&agent, &home, "/code/Shop.fsproj").await;
    agent.send("let a = 3").await;
    for arguments in [json!({ "keep": true }), json!({ "keep": true, "rebuild": true })] {
        let reset = agent.call("hard_reset_session", arguments).await;
        assert!(!reset.is_error, "{reset:?}");
        assert_eq!(agent.send("names").await.structured["value"], json!("\"a\""));
    }
    agent.call("hard_reset_session", json!({ "keep": false })).await;
    assert_eq!(agent.send("names").await.structured["value"], json!("\"\""));
}

#[tokio::test]
async fn a_build_that_fails_is_told_with_its_diagnostics_and_leaves_the_session() {
    let home = Home::new().await;
    let agent = home.agent().await;
    session_of(&agent, &home, "/code/Broken.fsproj").await;
    agent.send("let a = 3").await;
    let rebuilt = rebuild(&agent).await;
    assert!(rebuilt.is_error, "{rebuilt:?}");
    insta::assert_snapshot!(told(&rebuilt), @r#"{"build":{"diagnostics":[{"code":"FS0039","column":1,"endColumn":5,"endLine":1,"file":"/code/Shop.fs","line":1,"message":"The value or constructor 'pric' is not defined.","severity":"error"}],"message":"1 error","output":"building\n","success":false},"state":"Ready"}"#);
    insta::assert_snapshot!(rebuilt.text.replace(&rebuilt.session(), "SESSION"), @r#"
    building
    /code/Shop.fs:1:1 error FS0039: The value or constructor 'pric' is not defined.
    the build did not succeed, the session is as it was: 1 error
    Ready [session SESSION]
    "#);
    assert_eq!(agent.send("names").await.structured["value"], json!("\"a\""));
}

#[tokio::test]
async fn a_session_without_a_project_has_nothing_to_build() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("let a = 3").await;
    assert_eq!(rebuild(&agent).await.structured["code"], json!("invalid_argument"));
    assert_eq!(agent.send("names").await.structured["value"], json!("\"a\""));
}

#[tokio::test]
async fn what_does_not_load_is_rebuilt_and_a_script_that_fails_is_mended() {
    let home = Home::new().await;
    let agent = home.agent().await;
    session_of(&agent, &home, "/code/Shop.fsproj").await;
    let problems = agent.call("diagnose", json!({})).await.structured["problems"].clone();
    let problem = |what: &str, next_step: &str| json!({ "what": what, "nextStep": next_step });
    let lost = "/code/bin/Gone.dll was not loaded: it is not there; Shop.Odd was not opened: it raised";
    let failed = "/home/init.fsx did not run to its end: System.Exception: boom";
    let expected = [
        problem("another SDK is used", "Mend it, then call hard_reset_session."),
        problem(lost, "Call hard_reset_session with rebuild."),
        problem(failed, "Mend /home/init.fsx, then call hard_reset_session."),
    ];
    assert_eq!(problems, json!(expected));
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let problems = agent.call("diagnose", json!({})).await.structured["problems"].clone();
    let later = "Once what runs has ended, call hard_reset_session with rebuild.";
    assert_eq!(problems, json!([expected[0], problem(lost, later), expected[2]]));
    agent.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
}

#[tokio::test]
async fn a_rebuild_that_is_refused_says_what_makes_it_possible() {
    let home = Home::new().await;
    let agent = home.agent_in("no-sdk").await;
    let folder = home.folder("no-sdk");
    let create = json!({ "workingDirectory": folder, "project": "/code/Shop.fsproj" });
    agent.call("create_session", create).await;
    let refused = rebuild(&agent).await.structured;
    assert_eq!(refused["code"], json!("not_offered"), "{refused}");
    assert_eq!(
        refused["nextStep"],
        json!(
            "Call hard_reset_session without rebuild, then with it: either drops its definitions. Where that faults it \
             again, build the project outside of Mainstay first."
        )
    );
    assert_eq!(refused["remedy"]["states"], json!(["Ready"]));
}

#[tokio::test]
async fn the_startup_profile_tells_what_was_brought_in_and_what_was_not() {
    let home = Home::new().await;
    let agent = home.agent().await;
    session_of(&agent, &home, "/code/Shop.fsproj").await;
    let profile = agent.call("get_startup_profile", json!({})).await;
    insta::assert_snapshot!(told(&profile), @r#"{"notes":["another SDK is used"],"project":{"foundBy":"msbuild","framework":"netcoreapp3.1","loaded":["/code/bin/Shop.dll"],"notLoaded":[{"name":"/code/bin/Gone.dll","reason":"it is not there"}],"notOpened":[{"name":"Shop.Odd","reason":"it raised"}],"opened":["Shop"],"path":"/code/Shop.fsproj","references":3},"scripts":[{"error":"System.Exception: boom","ms":3,"output":"hello\n","path":"/home/init.fsx"}]}"#);
    insta::assert_snapshot!(profile.text.replace(&profile.session(), "SESSION"), @r#"
    another SDK is used
    /code/Shop.fsproj, references by msbuild
    loaded: /code/bin/Shop.dll
    opened: Shop
    not loaded: /code/bin/Gone.dll: it is not there
    not opened: Shop.Odd: it raised
    /home/init.fsx ran 3 ms
    hello
    failed: System.Exception: boom
    [session SESSION]
    "#);
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["notes"], json!(["another SDK is used"]));
    assert!(status.text.contains("\nanother SDK is used"), "{}", status.text);
}

#[tokio::test]
async fn an_empty_startup_profile_says_what_would_fill_it() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let told = "nothing was brought in. Give create_session a project, or write ~/.mainstay/init.fsx; it comes with the next worker.\n";
    assert_eq!(agent.call("get_startup_profile", json!({})).await.text, format!("{told}no session yet"));
    let session = agent.send("1 + 1").await.session();
    assert_eq!(agent.call("get_startup_profile", json!({})).await.text, format!("{told}[session {session}]"));
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused_and_not_cut() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let tools = agent.service.list_all_tools().await.unwrap();
    for (tool, member, least, most) in [
        ("find_symbols", "limit", 1, 200),
        ("get_recent_events", "count", 1, 200),
        ("get_eval_timeline", "count", 1, 200),
        ("get_status", "wait", 0, 3600),
    ] {
        let schema = tools.iter().find(|listed| listed.name == tool).unwrap().input_schema.clone();
        assert_eq!(schema["properties"][member]["maximum"], json!(most), "{tool}");
        for (number, code) in
            [(least, Value::Null), (most, Value::Null), (most + 1, json!("invalid_argument"))]
        {
            let mut arguments = json!({ member: number });
            if tool == "find_symbols" {
                arguments["text"] = json!("Dog");
            }
            assert_eq!(agent.call(tool, arguments).await.structured["code"], code, "{tool} {number}");
        }
        if least > 0 {
            let mut arguments = json!({ member: 0, "text": "Dog" });
            if tool != "find_symbols" {
                arguments.as_object_mut().unwrap().remove("text");
            }
            assert_eq!(
                agent.call(tool, arguments).await.structured["code"],
                json!("invalid_argument"),
                "{tool}"
            );
        }
    }
}
