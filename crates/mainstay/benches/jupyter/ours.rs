//! The daemon, over HTTP: what it answers is on the disk.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::figures::{EXECUTIONS, Figures, IDLE, LINES, Server};
use crate::http::Http;

/// Measures sessions of a kind; kernelspecs are found on this path.
pub(crate) fn measured(folder: &Path, kind: &str, print: &str, kernels: &Path) -> Figures {
    let home = folder.join(format!("home-{kind}"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["serve", "--announce", "--port", "0"])
        .env("MAINSTAY_HOME", &home)
        .env("JUPYTER_PATH", kernels)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let server = Server(child);
    let announced: Value = serde_json::from_str(&line).unwrap();
    let port = announced["ready"]["port"].as_u64().unwrap().try_into().unwrap();
    let token = std::fs::read_to_string(home.join("token")).unwrap().trim().to_owned();
    let connect = || Http::to(port, &format!("Authorization: Bearer {token}"));
    let mut http = connect();
    let mut figures = Figures::default();

    let create = |http: &mut Http, name: &str| {
        let created = json!({ "kind": kind, "name": name, "workingDirectory": folder });
        let created = http.ask("POST", "/sessions", "Prefer: wait=60\r\n", &created);
        assert_eq!(created["state"], "Ready", "{created}");
    };
    // What is made ready once is none of a session's.
    create(&mut http, "first");
    let began = Instant::now();
    create(&mut http, "bench");
    figures.creation = Some(began.elapsed());

    let mut execute = |code: &str| {
        let done = http.ask("POST", "/exec?session=bench", "Prefer: wait=60\r\n", &json!({ "code": code }));
        assert_eq!(done["success"], true, "{done}");
    };
    (0..20).for_each(|_| execute("1+1"));
    for _ in 0..EXECUTIONS {
        let began = Instant::now();
        execute("1+1");
        figures.executions.push(began.elapsed());
    }

    let mut stream = connect();
    stream.send("GET", "/eval?session=bench", "", None);
    stream.skip_head();
    let code = print.to_owned();
    let mut printer = connect();
    let began = Instant::now();
    let printing = std::thread::spawn(move || {
        printer.ask("POST", "/exec?session=bench", "Prefer: wait=60\r\n", &json!({ "code": code }))
    });
    // The lines are told within texts in JSON.
    let (first, last) = ("line 1\\n", format!("line {LINES}\\n"));
    let mut first_came = None;
    loop {
        let said = stream.line();
        figures.came += said.matches("line ").count();
        if first_came.is_none() && said.contains(first) {
            first_came = Some(began.elapsed());
        }
        if said.contains(&last) {
            break;
        }
    }
    figures.lines = Some((first_came.unwrap(), began.elapsed()));
    printing.join().unwrap();

    let mut again = connect();
    let began = Instant::now();
    again.send("GET", "/eval?session=bench", "Last-Event-ID: 0\r\n", None);
    again.skip_head();
    while !again.line().contains(&last) {}
    figures.history = Some(began.elapsed());

    let one = server.resident();
    (2..IDLE).for_each(|number| create(&mut connect(), &format!("idle{number}")));
    figures.memory = Some((one, server.resident()));
    figures
}
