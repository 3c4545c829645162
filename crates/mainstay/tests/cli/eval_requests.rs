//! What `mainstay eval` asks the daemon, seen by a socket between them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::support::World;
use serde_json::Value;

/// The methods that clients have asked for, in order.
type Methods = Arc<Mutex<Vec<String>>>;

/// Puts a socket in the place of the daemon's, which passes everything on and notes the methods.
fn note_methods(world: &World) -> Methods {
    let record = std::fs::read(world.home().join("daemon.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let socket = PathBuf::from(record["socket"].as_str().unwrap());
    let daemon = socket.with_extension("daemon");
    std::fs::rename(&socket, &daemon).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let methods = Methods::default();
    let noted = Arc::clone(&methods);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (daemon, noted) = (daemon.clone(), Arc::clone(&noted));
            std::thread::spawn(move || pass_on(client.unwrap(), &daemon, &noted));
        }
    });
    methods
}

/// Passes on what a client and the daemon say to each other.
fn pass_on(client: UnixStream, daemon: &Path, methods: &Methods) {
    let mut to_daemon = UnixStream::connect(daemon).unwrap();
    let (mut from_daemon, mut to_client) = (to_daemon.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from_daemon, &mut to_client));
    for line in BufReader::new(client).lines() {
        // A client that has its answer goes.
        let Ok(line) = line else { break };
        let request: Value = serde_json::from_str(&line).unwrap();
        methods.lock().unwrap().push(request["method"].as_str().unwrap().to_owned());
        writeln!(to_daemon, "{line}").unwrap();
    }
    to_daemon.shutdown(std::net::Shutdown::Write).ok();
}

#[test]
fn an_eval_makes_four_requests_however_often_it_is_repeated() {
    let world = World::scripted();
    assert_eq!(world.eval("1")["success"], true);
    let methods = note_methods(&world);
    for _ in 0..2 {
        assert_eq!(world.eval("1")["success"], true);
        let asked = std::mem::take(&mut *methods.lock().unwrap());
        assert_eq!(asked, ["client/attach", "session/open", "session/subscribe", "session/eval"]);
    }
}
