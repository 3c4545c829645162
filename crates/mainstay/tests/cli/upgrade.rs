//! `mainstay upgrade` between two builds of the program, under a cell that prints: those who are attached see no more than a pause.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mainstay_test_support::browser::Browser;
use serde_json::{Value, json};

use crate::support::bridged::Bridged;
use crate::support::terminal::Terminal;
use crate::support::{OTHER_VERSION, World};

/// How long anything may take.
const LONG: Duration = Duration::from_secs(120);
/// How many numbers the cell prints before each of its gates, and behind the last.
const NUMBERS: u64 = 150;

/// A client that follows a session over HTTP, and comes again with the id of its last event.
struct Subscriber {
    events: Receiver<Value>,
}

impl Subscriber {
    fn begin(world: &World, session: &str) -> Self {
        let port = u16::try_from(world.run(["status", "--json"]).json()["port"].as_u64().unwrap()).unwrap();
        let token = std::fs::read_to_string(world.home().join("token")).unwrap().trim().to_owned();
        let session = session.to_owned();
        let (heard, events) = channel();
        std::thread::spawn(move || {
            let mut last: Option<String> = None;
            loop {
                let lines = stream(port, &token, &session, last.as_deref());
                for line in lines.into_iter().flat_map(|stream| stream.lines().map_while(Result::ok)) {
                    if let Some(id) = line.strip_prefix("id: ") {
                        last = Some(id.to_owned());
                    }
                    let Some(signals) = line.strip_prefix("data: signals ") else { continue };
                    let mut signals: Value = serde_json::from_str(signals).unwrap();
                    if heard.send(signals["event"].take()).is_err() {
                        return;
                    }
                }
                // No daemon listens for a moment.
                std::thread::yield_now();
            }
        });
        Self { events }
    }

    /// The events up to the first that fits, with it.
    fn all_until(&self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.events.recv_timeout(LONG).expect("an event that fits");
            let is_last = fits(&event);
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

/// The stream of a session's events after one; none where nobody listens.
fn stream(port: u16, token: &str, session: &str, after: Option<&str>) -> Option<impl BufRead + use<>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let after = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!(
        "GET /events?session={session}&after=0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Accept: text/event-stream\r\n{after}\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    Some(BufReader::new(stream))
}

/// Code that prints numbers, and goes on each time a file is there.
fn counts(files: [&str; 2]) -> String {
    let part = |part: u64| {
        let (first, last) = (part * NUMBERS + 1, (part + 1) * NUMBERS);
        format!("for n in {first} .. {last} do (printfn \"%d\" n; System.Threading.Thread.Sleep 5)")
    };
    let gate = |file: &str| {
        format!("while not (System.IO.File.Exists \"{file}\") do System.Threading.Thread.Sleep 5")
    };
    let [first, second] = files.map(gate);
    [part(0), first, part(1), second, part(2), "kept + 1".to_owned()].join("\n")
}

/// Has the daemon go on as another build.
fn upgrade(world: &World, program: &Path, version: &str) {
    let output = world.command_of(program).arg("upgrade").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains(&format!(" to {version}; what ran")), "{said}");
}

fn ended(running: Child) -> Value {
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}, {}: {said}", output.status))
}

#[test]
fn everyone_goes_on_where_the_daemon_is_upgraded_to_another_build_and_back() {
    let world = World::scripted();
    let (own, other) = (Path::new(env!("CARGO_BIN_EXE_mainstay")), world.other_version());
    world.eval("let kept = 41");
    let (worker, daemon, session) = (world.worker_pid(), world.daemon_pid(), world.session());
    let (id, name) = (session["session"].as_str().unwrap(), session["name"].as_str().unwrap());
    let subscriber = Subscriber::begin(&world, id);
    let mut bridge = Bridged::begin(&world);
    let terminal = Terminal::open(&world);
    terminal.wait_for_last_line("work>");
    let browser = Browser::start();
    let tab = browser.tab();
    tab.go(world.run(["web", "--print", name]).stdout.trim());
    tab.until("document.querySelector('#code')");

    let running = world.start_eval(&counts(["first", "second"]));
    let mut followed = subscriber.all_until(|event| event["kind"] == "outputProduced");
    let call = bridge.begin_call("send_fsharp_code", json!({ "code": "kept * 2" }));
    upgrade(&world, &other, OTHER_VERSION);
    std::fs::write(world.work().join("first"), "").unwrap();
    upgrade(&world, own, env!("CARGO_PKG_VERSION"));
    std::fs::write(world.work().join("second"), "").unwrap();

    let ended = ended(running);
    assert_eq!((&ended["ending"], &ended["value"]), (&"completed".into(), &"42".into()), "{ended}");
    let (is_failure, text) = bridge.called(call);
    assert!(!is_failure && text.contains("82"), "{text}");
    assert_eq!((world.worker_pid(), world.daemon_pid()), (worker, daemon));
    terminal.wait_for(&(3 * NUMBERS).to_string());
    terminal.enter("kept + 59");
    terminal.wait_for("val it: int = 100");
    tab.until(&format!("document.querySelector('#cells').innerText.includes('{}')", 3 * NUMBERS));
    tab.runs("\"from the page\"");
    let of_page =
        |event: &Value| event["kind"] == "evalCompleted" && event.to_string().contains("from the page");
    followed.extend(subscriber.all_until(of_page));

    let events = world.events();
    let text = |event: &Value| event["body"]["text"].as_str().map(str::to_owned);
    let printed: String =
        events.iter().filter(|event| event["kind"] == "outputProduced").filter_map(text).collect();
    assert_eq!(printed, (1..=3 * NUMBERS).map(|number| format!("{number}\n")).collect::<String>());
    assert_eq!(followed, events, "each event once");
    assert!(!events.iter().any(|event| event["kind"] == "evalInterrupted"), "{events:?}");
    assert_eq!(events.iter().filter(|event| event["kind"] == "warmUpCompleted").count(), 1);
}
