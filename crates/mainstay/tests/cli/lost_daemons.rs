//! What is under way while daemons are killed, begin anew or come back to an older store: it goes on, and is told once.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::bridged::Bridged;
use crate::support::terminal::Terminal;
use crate::support::{World, kill, wait_for_end, watch, within};

/// Told apart from everything else in a home.
const SECRET: &str = "hunter-27c0de";
/// What is no secret is there: the search would find it.
const CONTROL: &str = "control-27c0de";

/// Code that says that it has begun, waits for the file `go`, and then does this.
fn gated(then: &str) -> String {
    format!(
        "printfn \"begun\"; while not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5; {then}"
    )
}

fn go(world: &World) {
    std::fs::write(world.work().join("go"), "").unwrap();
}

/// Starts an eval, and waits until it has printed.
fn begin(world: &World, code: &str) -> Child {
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let running = world.start_eval(code);
    world.follow(since).wait_for("outputProduced");
    running
}

fn ended(running: Child) -> Value {
    let output = running.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn count(world: &World, kind: &str) -> usize {
    world.events().iter().filter(|event| event["kind"] == kind).count()
}

/// What the session's code printed.
fn printed(world: &World) -> String {
    let events = world.events();
    let outputs = events.iter().filter(|event| event["kind"] == "outputProduced");
    outputs.filter_map(|event| event["body"]["text"].as_str()).collect()
}

fn settings(world: &World, text: &str) {
    std::fs::write(world.home().join("config.toml"), text).unwrap();
}

/// The first ask that waits.
fn the_ask(world: &World) -> String {
    let asks = world.run(["ask", "list", "--json"]).json();
    asks[0]["ask"].as_str().unwrap_or_else(|| panic!("{asks}")).to_owned()
}

fn shim_watch(world: &World) -> std::os::fd::OwnedFd {
    watch(*world.shim_pids().first().expect("a shim lives"))
}

#[test]
fn an_ask_that_waits_over_the_death_of_daemons_is_answered_at_the_next() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let running = world.start_eval("let name = Mainstay.ask \"Name?\"; name");
    world.follow(0).wait_for("askRaised");
    for _ in 0..2 {
        world.replace_daemon();
        the_ask(&world);
    }
    let answered = world.run(["ask", "answer", &the_ask(&world), "Ada"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    assert_eq!(ended(running)["value"], "\"Ada\"");
    assert_eq!((world.worker_pid(), count(&world, "askRaised")), (worker, 1));
}

#[test]
fn code_that_an_earlier_daemon_started_is_cancelled() {
    let world = World::scripted();
    // However slow the machine, the code has the time to yield.
    settings(&world, "[limits]\ncancel-grace-ms = 60000\n");
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let running = begin(&world, &gated("0"));
    world.replace_daemon();
    assert_eq!(world.run(["cancel"]).code, 0);
    assert_eq!(ended(running)["ending"], "cancelled");
    assert_eq!(world.eval("kept + 1")["value"], "42");
    assert_eq!(world.worker_pid(), worker);
}

fn assert_nowhere(world: &World, when: &str) {
    assert_eq!(world.files_with(SECRET), [""; 0].map(PathBuf::from), "{when}");
    assert_ne!(world.files_with(CONTROL), [""; 0].map(PathBuf::from), "{when}");
}

/// Code that asks for a secret, waits for the file `go` and prints the secret; the daemon is killed in between. Gives the client.
fn knows_a_secret(world: &World) -> Child {
    world.eval(&format!("let control = \"{CONTROL}\""));
    let before = world.session()["lastSeq"].as_u64().unwrap();
    let running = world.start_eval(&format!(
        "let key = Mainstay.password \"Key?\"; {}",
        gated("printfn \"it is %s\" key; key")
    ));
    let mut events = world.follow(before);
    events.wait_for("askRaised");
    let answered = world.run_with_input(["ask", "answer", &the_ask(world)], format!("{SECRET}\n").as_bytes());
    assert_eq!(answered.code, 0, "{answered:?}");
    events.wait_for("outputProduced");
    running
}

#[test]
fn a_secret_that_code_prints_after_the_death_of_its_daemon_stands_nowhere() {
    let world = World::scripted();
    let running = knows_a_secret(&world);
    let worker = world.worker_pid();
    world.kill_daemon();
    assert_nowhere(&world, "after the daemon was killed");
    go(&world);
    let ended = ended(running);
    assert_eq!((&ended["ending"], &ended["value"]), (&"completed".into(), &"\"***\"".into()), "{ended}");
    assert_eq!(printed(&world), "begun\nit is ***\n");
    assert_eq!(world.eval("key.Length")["value"], SECRET.len().to_string(), "the code has it");
    assert_eq!(world.worker_pid(), worker);
    assert_nowhere(&world, "under the next daemon");
    world.kill_daemon();
    assert_eq!(world.run(["stop"]).code, 0);
    assert_nowhere(&world, "in the end");
}

#[test]
fn a_secret_that_code_prints_without_a_daemon_stands_in_nothing_that_its_shim_leaves() {
    let world = World::scripted();
    settings(&world, "[daemon]\norphan-ms = 1\nshim-buffer-bytes = 1\n");
    let mut running = knows_a_secret(&world);
    let shim = shim_watch(&world);
    // Nobody starts the next daemon.
    running.kill().unwrap();
    running.wait().unwrap();
    world.kill_daemon();
    go(&world);
    wait_for_end(&shim);
    assert_nowhere(&world, "after the shim has ended");
    assert_eq!(printed(&world), "begun\nit is ***\n");
    assert_eq!(count(&world, "evalCompleted"), 2);
    assert_nowhere(&world, "under the next daemon");
}

#[test]
fn withheld_code_goes_on_over_the_death_of_its_daemon_and_stands_nowhere() {
    let world = World::scripted();
    world.eval(&format!("let control = \"{CONTROL}\""));
    let worker = world.worker_pid();
    let gate = world.work().join("gate");
    rustix::fs::mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let code = format!("printfn \"{SECRET}\"; let read = System.IO.File.ReadAllText \"gate\"; \"{SECRET}\"");
    let running = world.start_eval_with(&["--withheld", "--id", "once"], &code);
    // Nothing that it prints is told; it runs once it has opened its end.
    let gate = std::fs::File::options().write(true).open(gate).unwrap();
    world.replace_daemon();
    assert_nowhere(&world, "after the daemon was killed");
    drop(gate);
    assert_eq!(ended(running)["ending"], "completed");
    let again = world.run(["eval", "--withheld", "--id", "once", "--json", &code]).json();
    assert_eq!((&again["ending"], &again["replayed"]), (&"completed".into(), &true.into()), "{again}");
    assert_eq!(world.worker_pid(), worker);
    assert_nowhere(&world, "under the next daemon");
    world.kill_daemon();
    assert_eq!(world.run(["stop"]).code, 0);
    assert_nowhere(&world, "in the end");
}

/// How many lines the flood has.
const LINES: usize = 20_000;

fn floods_over_kills(settled: &str) {
    let world = World::scripted();
    settings(&world, settled);
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let running = world.start_eval(&format!("for n in 1 .. {LINES} do printfn \"%d\" n"));
    for line in [1, LINES / 4, LINES / 2] {
        let has_come = |event: &Value| {
            let last = event["body"]["text"].as_str().and_then(|text| text.lines().last()?.parse().ok());
            event["kind"] == "outputProduced" && last.is_some_and(|last: usize| last >= line)
        };
        world.follow(0).wait_until(has_come);
        world.kill_daemon();
    }
    assert_eq!(ended(running)["ending"], "completed");
    let lines: Vec<usize> = printed(&world).lines().map(|line| line.parse().unwrap()).collect();
    let jump = lines.iter().zip(1..).find(|(line, number)| **line != *number);
    assert_eq!((jump, lines.len()), (None, LINES));
    assert_eq!(world.worker_pid(), worker);
}

#[test]
fn a_flood_over_several_kills_is_complete_and_in_order() {
    floods_over_kills("");
}

#[test]
fn who_waits_for_an_eval_goes_on_though_each_daemon_is_lost_as_soon_as_it_is_there() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let running = begin(&world, &gated("kept + 1"));
    let mut lost = None;
    for _ in 0..9 {
        // Not a moment is left to it: it is lost before, or just after, it is reached.
        let until = Instant::now() + Duration::from_secs(20);
        while world.daemon_pid().is_none_or(|pid| Some(pid) == lost) {
            assert!(Instant::now() < until, "no daemon comes after {lost:?}");
            std::hint::spin_loop();
        }
        lost = world.daemon_pid();
        world.kill_daemon();
    }
    go(&world);
    let answer = ended(running);
    assert_eq!((&answer["ending"], &answer["value"]), (&"completed".into(), &"42".into()), "{answer}");
}

#[test]
fn a_flood_that_a_shim_keeps_in_a_small_file_is_complete_and_in_order() {
    floods_over_kills("[daemon]\nshim-buffer-bytes = 100\nshim-file-bytes = 4096\n");
}

/// A session whose shim has no room on its disk for this file, and code that floods in it without a daemon.
fn floods_on_a_full_disk(settled: &str, file: &str) -> World {
    let world = World::scripted();
    settings(&world, settled);
    world.eval("let kept = 41");
    let folder = world.home().join("shims").join(world.session()["session"].as_str().unwrap());
    std::os::unix::fs::symlink("/dev/full", folder.join(file)).unwrap();
    let mut running = begin(&world, &gated(&format!("for n in 1 .. {LINES} do printfn \"%d\" n")));
    // Nobody starts the next daemon.
    running.kill().unwrap();
    running.wait().unwrap();
    world.kill_daemon();
    go(&world);
    let log = folder.join("log");
    let has_said = |text: &str| std::fs::read_to_string(&log).is_ok_and(|said| said.contains(text));
    assert!(within(Duration::from_secs(60), || has_said("No space left on device")));
    world
}

#[test]
fn code_waits_where_its_shim_has_no_room_on_the_disk_and_nothing_is_lost() {
    let world = floods_on_a_full_disk("[daemon]\nshim-buffer-bytes = 1000\n", "overflow");
    let worker = world.worker_pid();
    let mut events = world.follow(0);
    for _ in ["kept", "the flood"] {
        events.wait_for("evalCompleted");
    }
    let numbers: String = (1..=LINES).map(|number| format!("{number}\n")).collect();
    assert_eq!(printed(&world), format!("begun\n{numbers}"));
    assert_eq!(world.eval("kept + 1")["value"], "42");
    assert_eq!((world.worker_pid(), count(&world, "warmUpCompleted")), (worker, 1));
}

#[test]
fn a_job_whose_shim_cannot_leave_what_it_said_is_interrupted_and_the_session_is_replayed() {
    let world = floods_on_a_full_disk("[daemon]\norphan-ms = 1\n", "left.notices");
    assert_eq!(world.eval("kept + 1")["value"], "42");
    assert_eq!((count(&world, "evalInterrupted"), count(&world, "warmUpCompleted")), (1, 2));
    assert_eq!(world.shim_pids().len(), 1);
}

#[test]
fn a_replay_that_prints_more_than_a_shim_keeps_comes_to_its_end() {
    let world = World::scripted();
    let limits = "[daemon]\nshim-buffer-bytes = 1000\nshim-file-bytes = 4096\n";
    std::fs::write(world.home().join("config.toml"), limits).unwrap();
    let code = "let kept = 41; for line in 1 .. 2000 do printfn \"line %d\" line";
    let since = world.eval(code)["seq"].as_u64().unwrap();
    kill(world.worker_pid());
    world.follow(since).wait_for("warmUpCompleted");
    assert_eq!(world.eval("kept + 1")["value"], "42");
}

/// A folder with a project whose build waits for the file `go` once the file `slow` is there, and says so by the file `reached`.
fn slow_to_build() -> World {
    let world = World::new();
    let project = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Money.fs" /></ItemGroup>
  <Target Name="Wait" BeforeTargets="CoreCompile" Condition="Exists('slow')">
    <Exec Command="touch reached; while [ ! -e go ]; do sleep 0.02; done" />
  </Target>
</Project>"#;
    std::fs::write(world.work().join("Shop.fsproj"), project).unwrap();
    std::fs::write(world.work().join("Money.fs"), "module Money\nlet price = 250\n").unwrap();
    world
}

#[test]
fn a_build_of_a_project_goes_on_over_the_death_of_its_daemon() {
    let world = slow_to_build();
    let made = world.run(["session", "new", "--project", "Shop.fsproj"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.eval("Money.price")["value"], "250");
    std::fs::write(world.work().join("slow"), "").unwrap();
    std::fs::write(world.work().join("Money.fs"), "module Money\nlet price = 300\n").unwrap();
    let mut command = world.command();
    command.args(["session", "rebuild"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let building = command.spawn().unwrap();
    let reached = world.work().join("reached");
    assert!(within(Duration::from_secs(120), || reached.exists()));
    world.replace_daemon();
    assert_eq!(world.session()["state"], "Evaluating");
    go(&world);
    let built = building.wait_with_output().unwrap();
    assert_eq!(built.status.code(), Some(0), "{built:?}");
    assert_eq!(world.eval("Money.price")["value"], "300");
    assert_eq!(count(&world, "jobRequested"), 1, "it was built once");
    let events = world.events();
    assert!(
        !events.iter().any(|event| event["kind"].as_str().unwrap().ends_with("Interrupted")),
        "{events:?}"
    );
}

/// Has the daemon begin anew under a cell, with everyone attached who can be.
fn begins_anew_by(command: &str) {
    let world = World::scripted();
    world.eval("let kept = 41");
    let (worker, daemon) = (world.worker_pid(), world.daemon_pid());
    let mut bridge = Bridged::begin(&world);
    let (is_failure, text) = bridge.eval("kept");
    assert!(!is_failure, "{text}");
    let terminal = Terminal::open(&world);
    terminal.wait_for_last_line("work>");
    let before = world.session()["lastSeq"].as_u64().unwrap();
    let mut events = world.follow(before);
    let call = bridge.begin_call("send_fsharp_code", json!({ "code": gated("kept * 2") }));
    events.wait_for("outputProduced");
    terminal.wait_for("begun");
    let waiting = world.start_eval("kept + 2");
    let last = events.wait_for("commandQueued")["seq"].as_u64().unwrap();

    let begun_anew = world.run([command]);
    assert_eq!(begun_anew.code, 0, "{begun_anew:?}");
    assert_eq!(world.daemon_pid(), daemon, "it is the same process");
    assert_eq!(world.worker_pid(), worker);
    go(&world);
    let (is_failure, text) = bridge.called(call);
    assert!(!is_failure && text.contains("begun") && text.contains("82"), "{text}");
    assert_eq!(ended(waiting)["value"], "43");
    // Who follows on has the rest of the same cell, and what comes after it.
    let mut events = world.follow(last);
    events.wait_for("evalCompleted");
    events.wait_until(|event| event["kind"] == "evalRequested" && event["body"]["code"] == "kept + 2");
    terminal.wait_for("82");
    terminal.enter("kept + 59");
    terminal.wait_for("val it: int = 100");
    assert_eq!(printed(&world), "begun\n");
    assert_eq!(count(&world, "evalInterrupted"), 0);
    assert_eq!(count(&world, "warmUpCompleted"), 1);
}

#[test]
fn everyone_goes_on_where_the_daemon_restarts_under_a_cell() {
    begins_anew_by("restart");
}

#[test]
fn everyone_goes_on_where_the_daemon_is_upgraded_under_a_cell() {
    begins_anew_by("upgrade");
}

#[test]
fn nobody_else_gets_the_port_of_a_daemon_that_begins_anew_and_who_comes_meanwhile_waits() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let port = || world.run(["status", "--json"]).json()["port"].as_u64().unwrap();
    let before = port();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(before).unwrap()));
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let others = std::thread::spawn(move || {
        while !over.load(Ordering::SeqCst) {
            assert!(TcpListener::bind(address).is_err(), "the port was free");
        }
    });
    let over = Arc::clone(&is_over);
    let comers = std::thread::spawn(move || {
        while !over.load(Ordering::SeqCst) {
            TcpStream::connect(address).expect("nobody listened");
            // More at once than may wait are turned away.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    for command in ["restart", "upgrade"] {
        let begun_anew = world.run([command]);
        assert_eq!(begun_anew.code, 0, "{begun_anew:?}");
    }
    is_over.store(true, Ordering::SeqCst);
    others.join().unwrap();
    comers.join().unwrap();
    assert_eq!(port(), before);
}

#[test]
fn of_two_daemons_that_start_at_once_one_adopts() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let running = begin(&world, &gated("kept + 1"));
    world.kill_daemon();
    let start = || {
        let mut command = world.command();
        command.args(["-d", "--port", "0"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for mut starting in [start(), start()] {
        assert!(starting.wait().unwrap().success());
    }
    go(&world);
    assert_eq!(ended(running)["value"], "42");
    assert_eq!(world.worker_pid(), worker);
    assert_eq!((world.shim_pids().len(), printed(&world)), (1, "begun\n".to_owned()));
    assert_eq!(count(&world, "evalCompleted"), 2);
}

fn suspend(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
}

#[test]
fn a_shim_that_is_suspended_while_the_daemon_is_lost_is_continued_and_keeps_its_job() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let running = begin(&world, &gated("kept + 1"));
    suspend(world.shim_pids()[0]);
    let status = world.run(["status"]).stdout;
    assert!(status.contains("its shim is suspended and does not answer"), "{status}");
    world.kill_daemon();
    go(&world);
    assert_eq!(ended(running)["value"], "42");
    assert_eq!((world.worker_pid(), printed(&world)), (worker, "begun\n".to_owned()));
}

#[test]
fn a_shim_that_is_suspended_is_gone_after_a_stop_and_its_worker_with_it() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let (worker, shim) = (watch(world.worker_pid()), shim_watch(&world));
    suspend(world.shim_pids()[0]);
    world.kill_daemon();
    assert_eq!(world.run(["stop"]).code, 0);
    wait_for_end(&shim);
    wait_for_end(&worker);
    assert_eq!(world.eval("kept + 1")["value"], "42", "it was replayed");
}

#[test]
fn a_store_that_was_restored_under_a_shim_ends_it_and_replays_the_session() {
    let world = World::scripted();
    world.eval("let kept = 20");
    assert_eq!(world.run(["backup", "monday"]).code, 0);
    world.eval("let kept = 0");
    let (worker, shim) = (watch(world.worker_pid()), shim_watch(&world));
    world.kill_daemon();
    let restored = world.run(["restore", "monday", "--yes"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert_eq!(world.eval("kept + 1")["value"], "21");
    wait_for_end(&shim);
    wait_for_end(&worker);
    assert_eq!(world.shim_pids().len(), 1);
}
