//! `mainstay run-app` and `stop-app`: an ASP.NET Core project runs in its session, serves requests while evals share its state and saves change
//! what it answers, is started again where its worker is lost, and its pages reload in a real browser.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::support::{self, Finished, World, kill};
use mainstay_test_support::browser::Browser;

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk.Web">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Cart.fs" /><Compile Include="Program.fs" /></ItemGroup>
</Project>"#;

const PROGRAM: &str = r#"module Shop.Program
open System
open Microsoft.AspNetCore.Builder
open Microsoft.AspNetCore.Http
let other () = printfn "the other one"
[<EntryPoint>]
let main args =
    let app = WebApplication.CreateBuilder(args).Build()
    app.MapGet("/", Func<string>(fun () ->
        Cart.visits <- Cart.visits + 1
        Cart.greeting ())) |> ignore
    app.MapGet("/page", Func<IResult>(fun () ->
        Results.Content("<html><body><h1>" + Cart.greeting () + "</h1></body></html>", "text/html"))) |> ignore
    app.MapGet("/coded", Func<HttpContext, IResult>(fun context ->
        context.Response.Headers.["Content-Encoding"] <- "of-mine"
        Results.Content("<html></html>", "text/html"))) |> ignore
    app.MapGet("/exit", Action(fun () -> exit 3)) |> ignore
    app.MapGet("/folder", Func<string>(fun () -> app.Environment.ApplicationName + " in " + app.Environment.ContentRootPath)) |> ignore
    app.Run()
    7
"#;

/// The source with what the application answers.
fn cart(greeting: &str) -> String {
    format!("module Shop.Cart\nlet mutable visits = 0\nlet greeting () = \"{greeting}\"\n")
}

/// A session of the project, where the SDK under test has ASP.NET Core.
fn site(settings: &str) -> Option<World> {
    if !support::dotnet().join("shared/Microsoft.AspNetCore.App").is_dir() {
        eprintln!("the SDK under test has no ASP.NET Core: nothing is tested");
        return None;
    }
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    std::fs::write(world.work().join("Program.fs"), PROGRAM).unwrap();
    save(&world, "first");
    for arguments in [&["session", "new", "--project", "Shop.fsproj"][..], &["session", "rebuild"]] {
        let done = world.run(arguments);
        assert_eq!(done.code, 0, "{done:?}");
    }
    Some(world)
}

/// Saves as editors do: another file takes the place of the former.
fn save(world: &World, greeting: &str) {
    std::fs::write(world.work().join("new"), cart(greeting)).unwrap();
    std::fs::rename(world.work().join("new"), world.work().join("Cart.fs")).unwrap();
}

/// A port that nobody listens on, and that no connection of another test is given while an application is started again: these are from 32768 on.
fn free_port() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    (first..32_768).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// The answer to a request, head and body; none where nobody answers. The port of a process that ends may take a connection until it is gone.
fn get(port: u16, path: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n{headers}\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| !answer.is_empty())
}

/// The body of the answer to a request.
fn body(port: u16, path: &str) -> String {
    let answer = get(port, path, "").unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn run_app(world: &World, port: u16) -> Finished {
    world.run(["run-app", "--json", "--", "--urls", &format!("http://127.0.0.1:{port}")])
}

fn started(world: &World, port: u16) -> Value {
    let done = run_app(world, port);
    assert_eq!(done.code, 0, "{done:?}");
    done.json()
}

fn last_seq(world: &World) -> u64 {
    world.session()["lastSeq"].as_u64().unwrap()
}

#[test]
fn an_application_serves_shares_its_state_changes_with_saves_and_stops() {
    let Some(world) = site("[fsharp]\nwatch = \"swap\"\n") else { return };
    let port = free_port();
    let run = started(&world, port);
    let address = format!("http://127.0.0.1:{port}");
    assert_eq!(
        (&run["application"]["name"], &run["application"]["addresses"], &run["unchanged"]),
        (&json!("Shop"), &json!([address]), &json!(false)),
        "{run}"
    );
    assert_eq!(body(port, "/"), "first");
    let folder = world.work().canonicalize().unwrap();
    assert_eq!(body(port, "/folder"), format!("Shop in {}", folder.display()));
    assert_eq!(world.eval("Cart.visits")["value"], "1", "code sees its state");
    assert_eq!(world.eval("Cart.visits <- 10")["success"], true);

    // It is seen, and a second start changes nothing.
    let shown = world.run(["session", "show"]).stdout;
    assert!(shown.contains(&format!("Shop runs: {address}")), "{shown}");
    let status = world.run(["status"]).stdout;
    assert!(status.contains(&format!("Shop runs: {address}")), "{status}");
    let again = started(&world, port);
    assert_eq!(again["unchanged"], true, "{again}");
    assert_eq!(again["application"]["since"], run["application"]["since"]);

    // What it prints is output of the job that started it.
    let events = world.events();
    let start = events.iter().find(|event| event["kind"] == "applicationStarted").unwrap();
    let job = &start["body"]["job"];
    let logs = |event: &Value| event["body"]["text"].as_str().is_some_and(|text| text.contains("GET"));
    let logged = events.iter().find(|event| event["kind"] == "outputProduced" && logs(event)).unwrap();
    assert_eq!(&logged["body"]["job"], job, "{logged}");

    // A save, while it serves.
    let pid = world.worker_pid();
    let mut follower = world.follow(last_seq(&world));
    save(&world, "second");
    follower.wait_for("sourcesSwapped");
    assert_eq!((body(port, "/"), world.worker_pid()), ("second".to_owned(), pid));
    assert_eq!(world.eval("Cart.visits")["value"], "11");

    // A daemon that is lost changes nothing.
    world.replace_daemon();
    assert_eq!((body(port, "/"), world.worker_pid()), ("second".to_owned(), pid));
    assert_eq!(world.session()["application"]["runs"], true);

    let stopped = world.run(["stop-app"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "the port is free");
    assert_eq!(world.session()["application"], Value::Null);
    assert_eq!(world.run(["stop-app"]).code, 0, "there is nothing to stop");
    started(&world, port);
    assert_eq!(body(port, "/"), "second");
}

#[test]
fn a_worker_that_is_lost_built_anew_or_reset_starts_the_application_again() {
    let Some(world) = site("") else { return };
    let port = free_port();
    started(&world, port);
    let first = world.worker_pid();

    let mut follower = world.follow(last_seq(&world));
    kill(first);
    follower.wait_for("workerExited");
    let again = follower.wait_for("applicationStarted");
    follower.wait_for("warmUpCompleted");
    let second = world.worker_pid();
    assert_ne!(first, second);
    assert_eq!(again["body"]["pid"], second, "{again}");
    assert_eq!(body(port, "/"), "first");
    assert_eq!(world.session()["application"]["runs"], true);

    save(&world, "built");
    let built = world.run(["session", "rebuild", "--keep"]);
    assert_eq!(built.code, 0, "{built:?}");
    assert_eq!(body(port, "/"), "built");

    // A reset keeps the process, and what runs in it.
    let pid = world.worker_pid();
    assert_eq!(world.run(["session", "reset"]).code, 0);
    assert_eq!((body(port, "/"), world.worker_pid()), ("built".to_owned(), pid));
    assert_eq!(world.run(["session", "reset", "--hard"]).code, 0);
    assert_eq!(body(port, "/"), "built");
    assert_ne!(world.worker_pid(), pid);

    // A daemon and all that it had.
    world.kill_everything();
    assert_eq!(world.eval("Cart.greeting ()")["value"], "\"built\"");
    assert_eq!(body(port, "/"), "built");

    // A daemon that is stopped in order.
    assert_eq!(world.run(["stop"]).code, 0);
    assert_eq!(get(port, "/", ""), None);
    assert_eq!(world.eval("1")["success"], true);
    assert_eq!(body(port, "/"), "built");

    // Whoever stops the session stops its application.
    assert_eq!(world.run(["session", "stop"]).code, 0);
    assert_eq!(get(port, "/", ""), None);
    assert_eq!(world.eval("1")["success"], true);
    assert_eq!((get(port, "/", ""), &world.session()["application"]), (None, &Value::Null));
}

#[test]
fn what_cannot_run_is_told_with_a_reason() {
    let Some(world) = site("") else { return };
    let unknown = world.run(["run-app", "--entry", "Shop.Nowhere.main"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("no function of Shop is called `Shop.Nowhere.main`"), "{unknown:?}");
    assert!(unknown.stderr.contains("[<EntryPoint>]"), "it says what to do: {unknown:?}");

    // A port that somebody has.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let failed = run_app(&world, port);
    assert_eq!((failed.code, &failed.json()["application"]), (1, &Value::Null), "{failed:?}");
    assert!(failed.json()["error"].as_str().unwrap().contains("address already in use"), "{failed:?}");
    drop(taken);
    started(&world, port);

    // One that ends its process is not started again: it would end the next one too.
    let mut follower = world.follow(last_seq(&world));
    get(port, "/exit", "");
    let exited = follower.wait_for("workerExited");
    assert!(exited["body"]["reason"].as_str().unwrap().contains("its application"), "{exited}");
    let ended = follower.wait_for("applicationEnded");
    assert_eq!(ended["body"]["message"], "its code ended the worker", "{ended}");
    follower.wait_for("warmUpCompleted");
    assert_eq!(world.session()["application"], Value::Null);
    assert_eq!(get(port, "/", ""), None);

    // Another function, which comes to its end.
    let other = world.run(["run-app", "--entry", "Program.other", "--json"]);
    assert_eq!((other.code, &other.json()["application"]), (0, &Value::Null), "{other:?}");

    let world = World::new();
    let none = world.run(["run-app", "--no-project"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("there is no application to run"), "{none:?}");
}

#[test]
fn a_page_reloads_when_its_code_has_changed() {
    let Some(world) = site("[fsharp]\nwatch = \"swap\"\n") else { return };
    let port = free_port();
    started(&world, port);
    assert!(
        !get(port, "/page", "").unwrap().contains("<script"),
        "who is no browser gets what the handler gives"
    );
    let of_browser = |path, more| get(port, path, &format!("Accept: text/html,*/*\r\n{more}")).unwrap();
    assert!(!of_browser("/", "").contains("<script"), "what is no HTML stays");
    assert!(!of_browser("/coded", "").contains("<script"), "what is coded stays");
    assert!(!of_browser("/page", "Sec-Fetch-Dest: empty\r\n").contains("<script"), "a part of a page stays");
    assert!(of_browser("/page", "Sec-Fetch-Dest: document\r\n").contains("<script src=\"/_mainstay/"));

    let (browser, address) = (Browser::start(), format!("http://127.0.0.1:{port}/page"));
    let tab = browser.tab();
    tab.go(&address);
    tab.until("document.querySelector('h1').innerText === 'first'");
    let page = tab.value("document.documentElement.outerHTML").to_string();
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    assert!(!page.contains(token.trim()), "no token of Mainstay is in the page");

    // A save, which is put into the worker that runs.
    save(&world, "second");
    tab.until("document.querySelector('h1').innerText === 'second'");
    // A worker that is lost.
    tab.value("document.querySelector('h1').innerText = 'of the lost one'");
    kill(world.worker_pid());
    tab.until("document.querySelector('h1').innerText === 'second'");
    // And again with the next.
    save(&world, "third");
    tab.until("document.querySelector('h1').innerText === 'third'");
    // A page that is open does not keep the application from stopping.
    assert_eq!(world.run(["stop-app", "--timeout", "5s"]).code, 0);
}

#[test]
fn pages_stay_as_they_are_where_that_is_wanted() {
    let Some(world) = site("[fsharp]\nbrowser-reload = false\n") else { return };
    let port = free_port();
    started(&world, port);
    assert!(!get(port, "/page", "Accept: text/html\r\n").unwrap().contains("<script"));
}
