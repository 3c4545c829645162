//! The project of a folder is that of the sessions that are opened there, whoever opens them.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::tool_call::call;
use crate::support::{Finished, World, kill};
use serde_json::{Value, json};

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Money.fs" /></ItemGroup>
</Project>"#;
const MONEY: &str =
    "module Shop.Money\nlet euros (cents: int) = sprintf \"%d.%02d\" (cents / 100) (cents % 100)\n";

/// A working folder with these project files, and a source that they share.
fn folder(projects: &[&str], source: &str) -> World {
    let world = World::new();
    projects.iter().for_each(|name| std::fs::write(world.work().join(name), PROJECT).unwrap());
    std::fs::write(world.work().join("Money.fs"), source).unwrap();
    world
}

fn eval(world: &World, arguments: &[&str]) -> Finished {
    world.run(["eval"].iter().chain(arguments))
}

#[test]
fn the_first_eval_in_a_folder_builds_its_project_says_so_and_has_it() {
    let world = folder(&["Shop.fsproj"], MONEY);
    let first = eval(&world, &["Money.euros 250"]);
    assert!(first.stdout.contains("\"2.50\""), "{first:?}");
    assert!(first.stderr.contains("building the project, which was not built yet"), "{first:?}");
    assert!(first.stderr.contains("Shop.fsproj: 1 assembly loaded"), "{first:?}");
    // What is built once is not built for the next session.
    let next = world.run(["session", "new", "--project", ".", "--name", "next", "--json"]);
    assert!(!next.stderr.contains("building"), "{next:?}");
    assert!(next.json()["project"].as_str().unwrap().ends_with("/Shop.fsproj"), "{next:?}");
    let bare = eval(&world, &["--no-project", "--json", "Shop.Money.euros 250"]).json();
    assert_eq!(bare["success"], false, "{bare}");
}

#[test]
fn a_project_that_does_not_build_leaves_a_session_that_says_why_and_how_to_go_on() {
    let world = folder(&["Shop.fsproj"], &MONEY.replace("cents / 100", "cent / 100"));
    let first = eval(&world, &["1 + 1"]);
    assert!(first.stdout.contains("val it: int = 2"), "{first:?}");
    for said in [
        "Shop.fsproj does not build: the build has 1 error",
        "Money.fs:2:45: error FS0039",
        "`session rebuild`",
    ] {
        assert!(first.stderr.contains(said), "{said}: {first:?}");
    }
    // Another worker does not build again what cannot have become better.
    kill(world.worker_pid());
    eval(&world, &["1 + 1"]);
    let faults = world.session()["startup"]["faults"].to_string();
    assert!(faults.contains("does not build"), "{faults}");
    std::fs::write(world.work().join("Money.fs"), MONEY).unwrap();
    assert_eq!(world.run(["session", "rebuild"]).code, 0);
    assert!(eval(&world, &["Money.euros 250"]).stdout.contains("\"2.50\""));
}

#[test]
fn of_several_projects_none_is_taken_and_they_are_named() {
    let world = folder(&["A.fsproj", "B.fsproj"], MONEY);
    let first = eval(&world, &["1 + 1"]);
    assert!(first.stdout.contains("val it: int = 2"), "{first:?}");
    let said = "its folder has several projects (A.fsproj, B.fsproj) and none was named";
    assert!(first.stderr.contains(said), "{first:?}");
    let refused = world.run(["session", "new", "--project", "."]);
    assert!(refused.stderr.contains("[project_ambiguous]"), "{refused:?}");
}

#[test]
fn an_agent_and_a_client_of_http_get_the_folders_project_too_unless_they_want_none() {
    let world = folder(&["Shop.fsproj"], MONEY);
    let created = call(&world, "create_session", &json!({ "workingDirectory": world.work() }));
    let notes = created["notes"].to_string();
    assert!(notes.contains("Shop.fsproj: 1 assembly loaded"), "{created}");
    let bare =
        call(&world, "create_session", &json!({ "workingDirectory": world.work(), "noProject": true }));
    assert_eq!(bare["notes"], json!(null), "{bare}");
    assert_eq!(
        posted(&world, &json!({ "workingDirectory": world.work() }))["project"],
        json!(world.work().join("Shop.fsproj"))
    );
    let bare = posted(&world, &json!({ "workingDirectory": world.work(), "noProject": true }));
    assert_eq!(bare["project"], json!(null), "{bare}");
}

/// Creates a session over HTTP, and gives it as it is once it is ready.
fn posted(world: &World, body: &Value) -> Value {
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let port = world.run(["status", "--json"]).json()["port"].as_u64().unwrap();
    let (token, body) = (token.trim(), body.to_string());
    let request = format!(
        "POST /sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nPrefer: wait=60\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 201 "), "{answer}");
    // It comes in chunks: a line is the length of the next.
    let json = body.lines().find(|line| line.starts_with('{')).unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_project_is_loaded_on_sdk_3_1_which_has_no_msbuild_that_runs_and_nothing_is_said_of_that() {
    let Some(root) = std::env::var_os("MAINSTAY_TEST_DOTNET_3_1") else {
        return eprintln!("MAINSTAY_TEST_DOTNET_3_1 names no SDK: nothing is tested");
    };
    let world = folder(&[], MONEY);
    let project = PROJECT.replace("net10.0", "netcoreapp3.1");
    std::fs::write(world.work().join("Shop.fsproj"), project).unwrap();
    let output = world.command().env("DOTNET_ROOT", root).args(["eval", "Money.euros 250"]).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(stdout.contains("\"2.50\""), "{stdout}{stderr}");
    assert!(stderr.contains("Shop.fsproj: 1 assembly loaded, 1 namespace or module opened"), "{stderr}");
    assert!(!stderr.contains("libssl") && !stderr.contains("was not loaded"), "{stderr}");
}
