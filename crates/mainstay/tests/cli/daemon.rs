//! The daemon's life: started, found, started twice, stopped, crashed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support;
use crate::support::{World, kill};
use serde_json::{Value, json};

fn serve(world: &World, arguments: &[&str]) -> Child {
    world
        .command()
        .arg("serve")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn it_is_started_in_the_background_found_and_stopped() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let status = world.run(["status", "--json"]).json();
    assert_eq!(status["pid"].as_i64().unwrap() as i32, world.daemon_pid().unwrap());
    assert!(world.run(["-d"]).stderr.contains("runs already"));
    assert_eq!(world.run(["stop"]).code, 0);
    let gone = world.run(["status"]);
    assert_eq!(gone.code, 1);
    insta::assert_snapshot!(gone.stderr, @"
    error: no daemon runs [daemon_not_running]
      Start it with `mainstay -d`.
    ");
}

#[test]
fn what_is_secret_is_readable_by_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.run(["-d", "--port", "0"]);
    let mode = |name: &str| std::fs::metadata(world.home().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("token"), mode("daemon.json"), mode("run/daemon.sock")), (0o600, 0o600, 0o600));
    assert_eq!((mode("store"), mode("logs"), mode("run")), (0o700, 0o700, 0o700));
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let log = std::fs::read_to_string(world.home().join("logs/daemon.log")).unwrap();
    assert!(!log.contains(token.trim()));
}

#[test]
fn a_record_of_a_daemon_that_is_gone_does_not_mislead() {
    let world = World::new();
    world.run(["-d", "--port", "0"]);
    world.kill_daemon();
    assert!(world.home().join("daemon.json").exists());
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    assert_eq!(world.run(["status"]).code, 0);
}

#[test]
fn of_two_that_start_at_once_one_serves_and_both_callers_find_it() {
    let world = World::new();
    let both = [0, 1].map(|_| {
        world
            .command()
            .args(["-d", "--port", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    });
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(world.run(["status"]).code, 0);
    let second = serve(&world, &["--port", "0"]).wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&second.stderr).contains("[store_locked]"));
}

#[test]
fn a_port_that_was_got_instead_of_the_default_is_kept() {
    // Whoever has the default port, it is not this home's daemon.
    let _taken = std::net::TcpListener::bind("127.0.0.1:37749");
    let world = World::new();
    let port = || {
        assert_eq!(world.run(["-d"]).code, 0);
        let port = u16::try_from(world.run(["status", "--json"]).json()["port"].as_u64().unwrap()).unwrap();
        assert_eq!(world.run(["stop"]).code, 0);
        port
    };
    let first = port();
    assert_ne!(first, 37749);
    assert_eq!([port(), port()], [first, first]);
    // Taken itself, it gives way, and the next one is kept.
    let taken = std::net::TcpListener::bind(("127.0.0.1", first)).unwrap();
    let second = port();
    assert_ne!(second, first);
    drop(taken);
    assert_eq!(port(), second);
}

/// The program with these arguments, which may have so many files open.
fn with_files(world: &World, files: u32, arguments: &str) -> std::process::Command {
    let program = world.command();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &format!("ulimit -n {files} && exec \"$0\" {arguments}")])
        .arg(program.get_program())
        .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(world.work());
    shell
}

#[test]
fn where_few_files_may_be_open_the_daemon_says_so_and_does_not_start() {
    let world = World::new();
    let limited = |files| with_files(&world, files, "-d").output().unwrap();
    let refused = limited(64);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("may have 64 files open at once"), "{said}");
    assert!(said.contains("needs 128 [too_few_files]\n  Allow more where it is started"), "{said}");
    assert_eq!(world.daemon_pid(), None);
    assert!(limited(128).status.success());
    assert_eq!(world.run(["status", "--json"]).json()["limits"]["http-connections"], 64);
}

#[test]
fn the_pi_protocol_has_a_port_of_its_own_where_one_is_asked_for() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0", "--pi-port", "0"]).code, 0);
    let status = world.run(["status", "--json"]).json();
    let port = u16::try_from(status["piPort"].as_u64().unwrap()).unwrap();
    let shown = world.run(["status"]).stdout;
    assert!(shown.contains(&format!("pi protocol on 127.0.0.1:{port}\n")), "{shown}");
    assert!(opens_socket(&world, port).contains(" 101 "));

    // What is configured holds too, and a port that is taken is an error.
    world.run(["stop"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let settings = format!("[daemon]\nport = 0\npi-port = {port}\n");
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
    assert!(world.run(["-d"]).stderr.contains("[port_taken]"));
    drop(taken);
    assert_eq!(world.run(["-d"]).code, 0);
    assert!(opens_socket(&world, port).contains(" 101 "));
}

/// How a port answers who wants a WebSocket at its root.
fn opens_socket(world: &World, port: u16) -> String {
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        token.trim()
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_port_that_was_asked_for_and_is_taken_is_an_error() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = serve(&world, &["--port", &port]).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8_lossy(&refused.stderr).replace(&port, "PORT");
    assert!(said.contains("port PORT is taken [port_taken]"), "{said}");
    assert!(world.run(["-d", "--port", &port]).stderr.contains("[port_taken]"));
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let world = World::new();
    world.run(["-d", "--port", "0"]);
    world.run(["stop"]);
    let database = rusqlite::Connection::open(world.home().join("store/mainstay.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert!(world.run(["-d", "--port", "0"]).stderr.contains("[store_newer]"));
}

#[test]
fn a_supervised_daemon_comes_back_after_a_crash_and_not_after_a_stop() {
    let world = World::new();
    let mut supervisor = serve(&world, &["--port", "0", "--supervised", "--announce"]);
    let mut announcement = String::new();
    let mut lines = std::io::BufReader::new(supervisor.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut announcement).unwrap();
    let first = world.daemon_pid().unwrap();
    kill(first);
    announcement.clear();
    std::io::BufRead::read_line(&mut lines, &mut announcement).unwrap();
    assert!(announcement.contains("ready"), "{announcement}");
    assert_ne!(world.daemon_pid().unwrap(), first);
    assert_eq!(world.run(["stop"]).code, 0);
    assert!(supervisor.wait().unwrap().success());
    let log = std::fs::read_to_string(world.home().join("logs/supervisor.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn a_supervisor_does_not_give_up_where_another_daemon_was_quicker() {
    let world = World::new();
    let mut supervisor = serve(&world, &["--port", "0", "--supervised", "--announce"]);
    let mut lines = std::io::BufReader::new(supervisor.stdout.take().unwrap());
    let mut announcement = String::new();
    std::io::BufRead::read_line(&mut lines, &mut announcement).unwrap();
    world.kill_daemon();
    // As another daemon does that a client has started in the second before the supervisor's own.
    let store = std::fs::File::open(world.home().join("store/store.lock")).unwrap();
    rustix::fs::flock(&store, rustix::fs::FlockOperation::LockExclusive).unwrap();
    announcement.clear();
    std::io::BufRead::read_line(&mut lines, &mut announcement).unwrap();
    assert!(announcement.contains("store_locked"), "{announcement}");
    drop(store);
    announcement.clear();
    std::io::BufRead::read_line(&mut lines, &mut announcement).unwrap();
    assert!(announcement.contains("ready"), "{announcement}");
    assert_eq!(world.run(["stop"]).code, 0);
    assert!(supervisor.wait().unwrap().success());
}

#[test]
fn a_supervisor_that_waits_to_start_the_next_daemon_is_stopped_at_once() {
    let world = World::new();
    let mut supervisor = serve(&world, &["--port", "0", "--supervised", "--announce"]);
    let mut lines = std::io::BufReader::new(supervisor.stdout.take().unwrap());
    let log = || std::fs::read_to_string(world.home().join("logs/supervisor.log")).unwrap();
    for crashes in 1..=3 {
        std::io::BufRead::read_line(&mut lines, &mut String::new()).unwrap();
        world.kill_daemon();
        assert!(support::within(Duration::from_secs(10), || log().lines().count() == crashes));
    }
    let stopped = world.run(["stop"]);
    assert_eq!(stopped.code, 0);
    let pid = supervisor.id().to_string();
    insta::assert_snapshot!(stopped.stderr.replace(&pid, "PID"), @"the supervisor (pid PID) has stopped; no daemon ran");
    assert!(supervisor.try_wait().unwrap().unwrap().success());
    assert!(world.run(["stop"]).stderr.contains("[daemon_not_running]"));
    assert_eq!(std::fs::read(world.home().join("supervisor.lock")).unwrap(), b"");
}

#[test]
fn a_process_that_only_has_the_id_of_a_supervisor_is_not_told_to_stop() {
    let world = World::new();
    let mut stranger = Ended(std::process::Command::new("cat").stdin(Stdio::piped()).spawn().unwrap());
    let file = world.home().join("supervisor.lock");
    std::fs::write(&file, stranger.0.id().to_string()).unwrap();
    let file = std::fs::File::open(file).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let refused = world.run(["stop"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("[store_locked]"), "{refused:?}");
    drop(file);
    assert!(world.run(["stop"]).stderr.contains("[daemon_not_running]"));
    assert!(stranger.0.try_wait().unwrap().is_none());
}

#[test]
fn a_supervisor_waits_for_those_who_only_ask_for_one() {
    let world = World::new();
    let file = std::fs::File::create(world.home().join("supervisor.lock")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared).unwrap();
    let mut supervisor = serve(&world, &["--port", "0", "--supervised", "--announce"]);
    assert!(support::within(Duration::from_secs(10), || world.home().join("logs/supervisor.log").exists()));
    drop(file);
    let mut announced = String::new();
    let mut lines = std::io::BufReader::new(supervisor.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut announced).unwrap();
    assert!(announced.contains("ready"), "{announced}");
    assert_eq!(world.run(["stop"]).code, 0);
    assert!(supervisor.wait().unwrap().success());
}

#[test]
fn a_home_has_one_supervisor() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--supervised", "--port", "0"]).code, 0);
    let second = serve(&world, &["--port", "0", "--supervised"]).wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&second.stderr).contains("[store_locked]"));
}

#[test]
fn a_daemon_that_runs_unsupervised_is_not_taken_for_a_supervised_one() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let serving = serve(&world, &["--port", "0", "--supervised"]).wait_with_output().unwrap();
    assert_eq!(serving.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&serving.stderr).contains("[store_locked]"));
    let pid = world.daemon_pid().unwrap().to_string();
    let refused = world.run(["-d", "--supervised"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr.replace(&pid, "PID"), @"
    error: the daemon runs already (pid PID), and is not supervised [store_locked]
      Stop it first with `mainstay stop`, then start it with `mainstay -d --supervised`.
    ");
    assert_eq!(world.run(["stop"]).code, 0);
    assert_eq!(world.run(["-d", "--supervised", "--port", "0"]).code, 0);
    assert!(world.run(["-d", "--supervised"]).stderr.contains("runs already"));
}

#[test]
fn a_supervised_daemon_comes_back_though_nobody_reads_what_it_announces() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--supervised", "--port", "0"]).code, 0);
    let first = world.daemon_pid().unwrap();
    world.kill_daemon();
    let serves_again = || world.run(["status"]).code == 0;
    assert!(support::within(Duration::from_secs(30), serves_again));
    assert_ne!(world.daemon_pid().unwrap(), first);
}

#[test]
fn a_daemon_that_is_just_stopping_is_waited_for() {
    let world = World::new();
    world.run(["-d", "--port", "0"]);
    world.run(["stop"]);
    let store = std::fs::File::open(world.home().join("store/store.lock")).unwrap();
    rustix::fs::flock(&store, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let log = world.home().join("logs/daemon.log");
    let starting = world.command().args(["-d", "--port", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    let was_refused = || std::fs::read_to_string(&log).unwrap().contains("another daemon has the store open");
    assert!(support::within(Duration::from_secs(10), was_refused));
    drop(store);
    let started = starting.wait_with_output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    assert_eq!(world.run(["status"]).code, 0);
}

#[test]
fn a_client_beyond_the_limit_is_told_so() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\nconnections = 1\n").unwrap();
    world.run(["-d", "--port", "0"]);
    let held = std::os::unix::net::UnixStream::connect(world.home().join("run/daemon.sock")).unwrap();
    let refused = world.run(["status"]);
    assert!(refused.stderr.contains("1 clients are connected already [too_many_connections]"), "{refused:?}");
    drop(held);
    assert!(support::within(Duration::from_secs(10), || world.run(["status"]).code == 0));
}

#[test]
fn a_token_that_others_could_read_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let token = world.home().join("token");
    std::fs::write(&token, "secret").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&token).unwrap(), "secret");
}

#[test]
fn a_log_that_is_full_gives_way_while_the_daemon_runs() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[daemon]\nlog-bytes = 150\n").unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let size = |name: &str| std::fs::metadata(world.home().join("logs").join(name)).unwrap().len();
    assert!(size("daemon.log") <= 150 && size("daemon.log.1") <= 150);
}

/// A process that is ended on drop, also by a test that fails.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

#[test]
fn a_token_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("only root can give a file away: not tested");
    }
    let world = World::new();
    let token = world.home().join("token");
    std::fs::write(&token, "secret").unwrap();
    std::os::unix::fs::chown(&token, Some(NOBODY), None).unwrap();
    let refused = world.run(["-d", "--port", "0"]);
    assert_eq!(refused.code, 1);
    let said = refused.stderr.replace(token.to_str().unwrap(), "TOKEN");
    insta::assert_snapshot!(said, @"
    error: the daemon did not start: `TOKEN` cannot be used: it belongs to another user [daemon_failed]
      See the log in the `logs` folder of Mainstay's home.
    ");
}

#[test]
fn a_home_is_closed_to_others_and_refused_where_they_could_write_to_it_or_it_is_theirs() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let set = |mode| std::fs::set_permissions(world.home(), std::fs::Permissions::from_mode(mode)).unwrap();
    let said = || world.run(["status"]).stderr.replace(world.home().to_str().unwrap(), "HOME");
    for mode in [0o775, 0o757, 0o777] {
        set(mode);
        insta::allow_duplicates! {
            insta::assert_snapshot!(said(), @"
            error: MAINSTAY_HOME is not valid: `HOME` can be written to by others; see what is in it, then close it with `chmod 700` [invalid_argument]
              Correct it and try again.
            ");
        }
        let written = std::fs::read_dir(world.home()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(written.filter(|name| name != "kernels" && name != "logs").count(), 0);
    }
    set(0o755);
    assert!(said().contains("[daemon_not_running]"));
    assert_eq!(std::fs::metadata(world.home()).unwrap().permissions().mode() & 0o777, 0o700);
    if !rustix::process::geteuid().is_root() {
        return eprintln!("only root can give a folder away: the rest is not tested");
    }
    std::os::unix::fs::chown(world.home(), Some(NOBODY), None).unwrap();
    insta::assert_snapshot!(said(), @"
    error: MAINSTAY_HOME is not valid: `HOME` belongs to another user [invalid_argument]
      Correct it and try again.
    ");
}

#[test]
fn a_daemon_of_another_user_is_not_shown_the_token() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return eprintln!("only root can become another user: not tested");
    }
    let (world, theirs) = (World::new(), World::new());
    for folder in [theirs.home(), theirs.work()] {
        std::os::unix::fs::chown(folder, Some(NOBODY), None).unwrap();
    }
    let root = theirs.home().parent().unwrap().to_owned();
    std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut serving = theirs.command();
    serving.args(["serve", "--port", "0", "--announce"]).uid(NOBODY).stdin(Stdio::null());
    let mut daemon = match serving.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() {
        Ok(daemon) => Ended(daemon),
        Err(error) => return eprintln!("another user cannot run the program here ({error}): not tested"),
    };
    let mut announced = String::new();
    let mut lines = std::io::BufReader::new(daemon.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut announced).unwrap();
    assert!(announced.contains("ready"), "{announced}");
    assert_eq!(theirs.run(["status"]).code, 1, "it is another user's, and we are root");
    for file in ["daemon.json", "token"] {
        std::fs::copy(theirs.home().join(file), world.home().join(file)).unwrap();
    }
    assert!(world.run(["status"]).stderr.contains("[daemon_not_running]"));
}

#[test]
fn a_full_table_of_files_is_waited_out() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let world = World::new();
    let mut limited = with_files(&world, 128, "serve --port 0");
    let mut daemon = Ended(limited.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(daemon.0.stderr.take().unwrap());
    let mut wait_for = |text: &str| {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
        }
    };
    wait_for("serves on 127.0.0.1");
    let connect = || UnixStream::connect(world.home().join("run/daemon.sock")).unwrap();
    let first = connect();
    let others: Vec<UnixStream> = (0..128).map(|_| connect()).collect();
    wait_for("a connection cannot be accepted");
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let attach = json!({"jsonrpc": "2.0", "id": 1, "method": "client/attach", "params": {"token": token.trim(), "name": "test"}});
    writeln!(&first, "{attach}").unwrap();
    let mut answer = String::new();
    BufReader::new(&first).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"result\""), "who was there before is served: {answer}");
    drop(others);
    assert_eq!(world.run(["status"]).code, 0);
}

#[test]
fn a_change_sent_again_under_its_id_is_answered_and_not_made_again() {
    use std::io::{BufRead, BufReader, Write};
    let world = World::scripted();
    world.run(["session", "new", "--name", "first"]);
    let stream = std::os::unix::net::UnixStream::connect(world.home().join("run/daemon.sock")).unwrap();
    let mut lines = BufReader::new(&stream).lines();
    let mut ask = |method: &str, params: Value| {
        writeln!(&stream, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .unwrap();
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()
    };
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    ask("client/attach", json!({"token": token.trim(), "name": "test"}));
    let session = world.session()["session"].clone();
    let rename =
        |name: &str, id: &str| json!({"session": session, "name": name, "command": id, "ifVersion": 0});
    assert_eq!(ask("session/rename", rename("second", "a"))["result"]["name"], "second");
    assert_eq!(
        ask("session/rename", json!({"session": session, "name": "third"}))["result"]["name"],
        "third"
    );
    assert_eq!(
        ask("session/rename", rename("second", "a"))["result"]["name"],
        "third",
        "it is not made again"
    );
    let late = ask("session/rename", rename("second", "b"));
    assert_eq!(late["error"]["data"]["error"]["error"], "version_mismatch");
}

#[test]
fn of_one_connection_256_requests_are_under_way_and_the_next_is_refused() {
    use std::io::{BufRead, BufReader, Write};
    let world = World::scripted();
    world.eval("1");
    let session = world.session()["session"].clone();
    world.run(["session", "stop"]);
    let stream = std::os::unix::net::UnixStream::connect(world.home().join("run/daemon.sock")).unwrap();
    let mut lines = BufReader::new(&stream).lines();
    let ask = |id: u64, method: &str, params: Value| {
        writeln!(&stream, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
    };
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    ask(0, "client/attach", json!({"token": token.trim(), "name": "test"}));
    lines.next().unwrap().unwrap();
    for id in 1..=256 {
        // It waits until someone uses the session.
        ask(id, "session/settle", json!({"session": session, "timeoutMs": 120_000}));
    }
    ask(257, "daemon/status", json!({}));
    let answer = |line: std::io::Result<String>| serde_json::from_str::<Value>(&line.unwrap()).unwrap();
    let refused = answer(lines.next().unwrap());
    assert_eq!(
        (&refused["id"], &refused["error"]["data"]["error"]["error"]),
        (&json!(257), &json!("too_many_requests"))
    );
    assert_eq!(world.eval("1")["success"], true, "others are served");
    let answered: Vec<u64> = lines.take(256).map(|line| answer(line)["id"].as_u64().unwrap()).collect();
    assert!((1..=256).all(|id| answered.contains(&id)), "{answered:?}");
}

#[test]
fn what_a_killed_daemon_left_of_its_sockets_is_cleared_away() {
    let world = World::new();
    world.run(["-d", "--port", "0"]);
    world.kill_daemon();
    let left = world.home().join("run/left.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    assert!(!left.exists());
}

#[test]
fn a_home_with_a_long_path_is_served_all_the_same() {
    let world = World::new();
    let home = world.home().join("long".repeat(40));
    let run = |arguments: &[&str]| {
        world.command().env("MAINSTAY_HOME", &home).args(arguments).output().unwrap().status.success()
    };
    assert!(run(&["-d", "--port", "0"]));
    assert!(run(&["status"]));
    let record: Value = serde_json::from_slice(&std::fs::read(home.join("daemon.json")).unwrap()).unwrap();
    let sockets = Path::new(record["socket"].as_str().unwrap()).parent().unwrap().to_owned();
    assert!(!sockets.starts_with(&home) && sockets.exists());
    assert!(run(&["stop"]));
    assert!(!sockets.exists(), "nothing is left outside the home");
}

#[test]
fn events_that_cannot_be_read_end_with_the_reason() {
    let world = World::scripted();
    world.eval("1");
    let database = rusqlite::Connection::open(world.home().join("store/mainstay.db")).unwrap();
    database.execute_batch("ALTER TABLE event RENAME TO hidden").unwrap();
    let ended = world.run(["events", "--follow"]);
    database.execute_batch("ALTER TABLE hidden RENAME TO event").unwrap();
    assert!(ended.stderr.contains("[store_failed]"), "{ended:?}");
}

#[test]
fn a_setting_that_is_not_understood_is_named() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\ncode-byte = 1\n").unwrap();
    let refused = world.run(["-d"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("code-byte"), "{}", refused.stderr);
}

#[test]
fn a_daemon_of_another_version_is_named() {
    use std::io::{BufRead, BufReader, Write};
    let world = World::new();
    let socket = world.home().join("daemon.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let other = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        BufReader::new(&stream).read_line(&mut String::new()).unwrap();
        let attached = r#"{"jsonrpc":"2.0","id":1,"result":{"version":"9.9.9","pid":1,"principal":"local"}}"#;
        writeln!(&stream, "{attached}").unwrap();
    });
    std::fs::write(world.home().join("token"), "secret").unwrap();
    let record = format!(
        r#"{{"pid":1,"port":1,"version":"9.9.9","startedAt":"2026-01-01T00:00:00Z","socket":"{}"}}"#,
        socket.display()
    );
    std::fs::write(world.home().join("daemon.json"), record).unwrap();
    let refused = world.run(["eval", "1"]);
    other.join().unwrap();
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("[daemon_version_mismatch]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("9.9.9"), "{}", refused.stderr);
    std::fs::remove_file(world.home().join("daemon.json")).unwrap();
}

#[test]
fn a_client_without_the_token_gets_nothing() {
    use std::io::{BufRead, BufReader, Read, Write};
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let stream = std::os::unix::net::UnixStream::connect(world.home().join("run/daemon.sock")).unwrap();
    writeln!(&stream, r#"{{"jsonrpc":"2.0","id":1,"method":"session/list","params":{{}}}}"#).unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    assert!(answer.contains("unauthorized"), "{answer}");

    let port = world.run(["status", "--json"]).json()["port"].as_u64().unwrap();
    let status = |headers: &str, path: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port as u16)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    assert_eq!(status(&host, "/health"), 200);
    assert_eq!(status(&host, "/mcp"), 401);
    assert_eq!(status(&format!("{host}Authorization: Bearer wrong\r\n"), "/mcp"), 401);
    assert_eq!(status(&format!("Host: rebound.example:{port}\r\n"), "/health"), 403);
    assert_eq!(status(&format!("{host}Origin: http://evil.example\r\n"), "/health"), 403);
}
