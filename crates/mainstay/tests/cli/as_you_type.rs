//! Results as you type: an unsaved text of a source runs in a process beside the session's, with the tests that reach it. Nothing of it is left when it is
//! thrown away or saved.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::live_tests::{open_shop, save, source};
use crate::support::{World, kill, within};

/// How long what nothing announces may take.
const LONG: Duration = Duration::from_secs(60);

fn shop(settings: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
    open_shop(&world);
    let ready = world.run(["eval", "Shop.Cart.price 2"]);
    assert_eq!(ready.stdout, "val it: int = 20\n", "{ready:?}");
    world
}

/// The file that the tests write in.
fn cart(world: &World) -> PathBuf {
    world.work().join("Cart.fs")
}

/// The status of an answer and what it says.
fn ask(world: &World, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let authorization = format!("Authorization: Bearer {}\r\n", token.trim());
    ask_with(world, &authorization, method, path, body)
}

fn ask_with(world: &World, headers: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let port = world.run(["status", "--json"]).json()["port"].as_u64().unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")))
}

/// Sends a text of the file, and gives what came of it.
fn put(world: &World, version: u64, text: &str) -> Value {
    let (status, run) = put_of(world, "", &cart(world), version, text);
    assert_eq!((status, &run["unsaved"], &run["version"]), (200, &json!(true), &json!(version)), "{run}");
    run
}

fn put_of(world: &World, session: &str, path: &std::path::Path, version: u64, text: &str) -> (u16, Value) {
    let body = json!({ "path": path, "version": version, "text": text });
    ask(world, "PUT", &format!("{session}/buffers"), &body)
}

/// Each test that ran and how it ended.
fn ran(run: &Value) -> Vec<(&str, &str)> {
    assert_eq!(run["ending"], "ran", "{run}");
    let tests = run["tests"].as_array().unwrap();
    tests.iter().map(|test| (test["name"].as_str().unwrap(), test["outcome"].as_str().unwrap())).collect()
}

fn buffers(world: &World) -> Value {
    ask(world, "GET", "/buffers", &Value::Null).1
}

fn discard(world: &World) {
    let path = form_urlencoded(&cart(world));
    assert_eq!(ask(world, "DELETE", &format!("/buffers?path={path}"), &Value::Null).0, 200);
}

/// A path as a query has it; the tests' own have nothing that would need more.
fn form_urlencoded(path: &std::path::Path) -> String {
    path.display().to_string().replace('/', "%2F")
}

/// The process that runs the tests of unsaved texts: the daemon's only child.
fn mirror_pid(world: &World) -> i32 {
    let daemon = world.daemon_pid().unwrap();
    let threads = std::fs::read_dir(format!("/proc/{daemon}/task")).unwrap();
    let children: String = threads
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).ok())
        .collect();
    let is_worker = |pid: &&str| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("kernels/fsharp")
    };
    let workers: Vec<_> = children.split_whitespace().filter(is_worker).collect();
    assert_eq!(workers.len(), 1, "{children}");
    workers[0].parse().unwrap()
}

/// The source with another body of the function that `prices` does not reach.
fn with_other(price: &str, other: &str) -> String {
    source(price).replace("count + 1", other)
}

#[test]
fn a_text_runs_the_tests_that_reach_it_and_leaves_nothing() {
    let world = shop("");
    let seq = world.session()["lastSeq"].clone();

    let run = put(&world, 1, &source("count * 9"));
    assert_eq!(ran(&run), [("Shop.Tests.prices", "failed")], "{run}");
    assert_eq!(
        (&run["choice"]["changed"], &run["choice"]["found"], &run["choice"]["onDemand"]),
        (&json!(["Shop.Cart.price"]), &json!(3), &json!(1)),
        "{run}"
    );
    let test = &run["tests"][0];
    assert!(test["place"]["file"].as_str().unwrap().ends_with("/Tests.fs"), "{test}");
    assert!(test["failure"]["message"].as_str().unwrap().contains("18"), "{test}");
    assert_eq!(
        buffers(&world),
        json!([{ "path": cart(&world), "version": 1, "bytes": source("count * 9").len() }])
    );

    // The session knows nothing of it.
    assert_eq!(world.session()["lastSeq"], seq);
    assert_eq!(world.run(["eval", "Shop.Cart.price 2"]).stdout, "val it: int = 20\n");
    assert_eq!(world.run(["test"]).code, 0);

    let broken = put(&world, 2, &source("("));
    assert_eq!(
        (&broken["ending"], &broken["obstacles"][0]["code"], &broken["tests"]),
        (&json!("obstacles"), &json!("syntax_error"), &json!([])),
        "{broken}"
    );
    let (status, older) = put_of(&world, "", &cart(&world), 1, &source("count"));
    assert_eq!((status, &older["code"]), (409, &json!("buffer_outdated")), "{older}");
    let (_, foreign) = put_of(&world, "", &world.work().join("Other.fs"), 1, "module Other");
    assert_eq!(foreign["obstacles"][0]["code"], "unknown_source", "{foreign}");
    assert_eq!(buffers(&world).as_array().map(Vec::len), Some(1), "no text of it is kept");
    let shape = format!("{}type Item = {{ Name: string }}\n", source("count * 9"));
    assert_eq!(put(&world, 3, &shape)["obstacles"][0]["code"], "shape");
    assert_eq!(ran(&put(&world, 4, &source("10 * count"))), [("Shop.Tests.prices", "passed")]);

    put(&world, 5, &source("count * 9"));
    discard(&world);
    assert_eq!(buffers(&world), json!([]));
    let run = put(&world, 1, &with_other("count * 10", "count + 2"));
    assert_eq!(ran(&run), [("Shop.Tests.others", "failed")], "of what was thrown away nothing is left");

    let (status, refused) = ask_with(&world, "", "PUT", "/buffers", &json!({}));
    assert_eq!((status, &refused["code"]), (401, &json!("unauthorized")), "{refused}");
    let (status, refused) = put_of(&world, "", std::path::Path::new("Cart.fs"), 1, "");
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_argument")), "{refused}");
}

#[test]
fn a_save_throws_the_text_away_and_later_texts_stand_on_it() {
    let world = shop("");
    put(&world, 1, &source("count * 9"));
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    save(&world, &source("count * 9"));
    follower.wait_for("sourcesSwapped");
    assert!(within(LONG, || buffers(&world) == json!([])), "a save throws the text away");
    assert_eq!(world.run(["eval", "Shop.Cart.price 2"]).stdout, "val it: int = 18\n");
    let run = put(&world, 2, &with_other("count * 9", "count + 2"));
    assert_eq!(ran(&run), [("Shop.Tests.others", "failed")], "what was saved is no news");

    // Another process has what was saved since the build, too.
    kill(mirror_pid(&world));
    let run = put(&world, 3, &with_other("count * 9", "count + 1"));
    assert_eq!(ran(&run), [], "it is as it is saved");
    let run = put(&world, 4, &with_other("count * 10", "count + 1"));
    assert_eq!(ran(&run), [("Shop.Tests.prices", "passed")], "{run}");
    assert_eq!(world.run(["eval", "Shop.Cart.price 2"]).stdout, "val it: int = 18\n");
}

#[test]
fn a_newer_text_ends_what_is_under_way_and_a_hanging_test_ends_its_process() {
    let world = shop("[tests]\nbuffer-test-ms = 3000\nbuffer-ms = 60000\n");
    let session = world.worker_pid();
    put(&world, 1, &source("count * 10"));
    let first = mirror_pid(&world);

    let run = put(&world, 2, &source("(while true do ()); count"));
    assert_eq!(ran(&run), [("Shop.Tests.prices", "timedOut")], "{run}");
    assert!(run["notes"][0].as_str().unwrap().contains("process"), "{run}");
    assert_eq!(ran(&put(&world, 3, &source("10 * count"))), [("Shop.Tests.prices", "passed")]);
    let second = mirror_pid(&world);
    assert_ne!(first, second);

    let begun = world.work().join("begun");
    let slow = format!(
        "System.IO.File.WriteAllText(\"{}\", \"\"); System.Threading.Thread.Sleep 1000; 20",
        begun.display()
    );
    std::thread::scope(|scope| {
        let older = scope.spawn(|| put(&world, 4, &source(&slow)));
        assert!(within(LONG, || begun.exists()), "the older one runs");
        assert_eq!(ran(&put(&world, 5, &source("count * 9"))), [("Shop.Tests.prices", "failed")]);
        let older = older.join().unwrap();
        assert_eq!(older["ending"], "overtaken", "{older}");
    });
    assert_eq!(mirror_pid(&world), second, "what yields costs no process");

    kill(second);
    assert_eq!(ran(&put(&world, 6, &source("10 * count"))), [("Shop.Tests.prices", "passed")]);
    assert_eq!(world.worker_pid(), session);
    assert_eq!(world.run(["eval", "Shop.Cart.price 2"]).stdout, "val it: int = 20\n");

    // It ends with the session's process.
    let mirror = crate::support::watch(mirror_pid(&world));
    assert_eq!(world.run(["session", "stop"]).code, 0);
    crate::support::wait_for_end(&mirror);
    let (status, refused) = put_of(&world, "", &cart(&world), 7, &source("count"));
    assert_eq!((status, &refused["code"]), (409, &json!("not_offered")), "{refused}");
}

#[test]
fn sessions_have_texts_of_their_own_and_the_least_used_process_ends() {
    let world = shop("[tests]\nmirrors = 1\n");
    let first = world.session()["session"].as_str().unwrap().to_owned();
    put(&world, 1, &source("count * 9"));
    let mirror = crate::support::watch(mirror_pid(&world));
    let made = world.run(["session", "new", "--project", "Shop.fsproj", "--name", "second"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.run(["eval", "--session", "second", "Shop.Cart.price 2"]).code, 0);
    let (_, run) =
        put_of(&world, "/sessions/second", &cart(&world), 1, &with_other("count * 10", "count + 2"));
    assert_eq!(ran(&run), [("Shop.Tests.others", "failed")]);
    crate::support::wait_for_end(&mirror);
    let listed = ask(&world, "GET", &format!("/sessions/{first}/buffers"), &Value::Null).1;
    assert_eq!(listed, json!([]), "the texts go with their process");
}
