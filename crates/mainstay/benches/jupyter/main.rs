//! The daemon beside jupyter_server and beside the bare kernel, on the same machine with the same kernels: a session created, an execution
//! there and back, the lines that code prints, memory, and coming back. `cargo xtask bench` runs it with the release build.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

mod direct;
mod figures;
mod http;
mod ours;
mod theirs;

use std::path::{Path, PathBuf};
use std::process::Command;

use direct::Direct;
use figures::{EXECUTIONS, Executions, IDLE, LINES, Lines, ms};
use ours::Daemon;
use theirs::JupyterServer;

/// ipykernel hands each line over by itself, and waits until it is sent.
const FLUSHED: &str = "for i in range(1, 5001): print('line', i, flush=True)";
/// xeus-python publishes all that is written at once.
const WRITTEN: &str = "import sys\nfor i in range(1, 5001): sys.stdout.write(f'line {i}\\n')";
const FSHARP: &str = "for i in 1 .. 5000 do printfn \"line %d\" i";

/// A folder with the kernelspec of the xeus-python of an environment: jupyter_server takes the `python` there for its own.
fn xeus_python(environment: &Path, folder: &Path) -> PathBuf {
    const SPEC: &str = "kernels/xpython/kernel.json";
    let written = std::fs::read(environment.join("share/jupyter").join(SPEC)).unwrap();
    let mut spec: serde_json::Value = serde_json::from_slice(&written).unwrap();
    spec["argv"][0] = environment.join("bin/python").display().to_string().into();
    let place = folder.join("specs").join(SPEC);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(&place, spec.to_string()).unwrap();
    folder.join("specs")
}

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let target = Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).unwrap();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(target).unwrap();
    let folder = folder.path();
    let named = |name: &str| std::env::var(name).ok();
    let (Some(python), Some(kernels)) = (named("MAINSTAY_TEST_PYTHON"), named("MAINSTAY_TEST_JUPYTER"))
    else {
        println!(
            "MAINSTAY_TEST_PYTHON names no Python with jupyter_server, or MAINSTAY_TEST_JUPYTER no kernels"
        );
        return;
    };
    // The same ipykernel for all: that of the Python with jupyter_server.
    let own = Path::new(&python).ancestors().nth(2).unwrap();
    let places = [own.join("share/jupyter"), xeus_python(Path::new(&kernels), folder)];
    let kernelspecs = std::env::join_paths(places).unwrap();

    let mut ipykernel = Command::new(&python);
    ipykernel.args(["-m", "ipykernel_launcher", "-f"]);
    let mut direct = Direct::start(folder, ipykernel);
    let mut daemon = Daemon::start(folder, &kernelspecs);
    let mut server = JupyterServer::start(folder, &python, &kernelspecs);
    // What is made ready once is none of a session's.
    daemon.create("python3", "first");
    drop(server.kernel("python3"));

    println!("| | session created | `1+1` there and back, median | p99 |");
    println!("|---|---|---|---|");
    // Each road has a kernel of its own: one that has just run something is quicker.
    let (bench, ours_created) = daemon.create("python3", "bench");
    let (bench_over_http, _) = daemon.create("python3", "over HTTP");
    let (mut kernel, theirs_created) = server.kernel("python3");
    let fsharp = named("DOTNET_ROOT").map(|_| {
        daemon.create("fsharp", "built");
        daemon.create("fsharp", "fsharp")
    });
    // By turns, so that what else the machine does is the same for all.
    let mut of = [const { Executions::new() }; 5];
    for round in 0..20 + EXECUTIONS {
        let is_counted = round >= 20;
        of[0].time(is_counted, || direct.execute("1+1"));
        of[1].time(is_counted, || daemon.execute(&bench, "1+1"));
        of[2].time(is_counted, || daemon.execute_over_http(&bench_over_http, "1+1"));
        of[3].time(is_counted, || kernel.execute("1+1"));
        if let Some((session, _)) = &fsharp {
            of[4].time(is_counted, || daemon.execute(session, "1+1"));
        }
    }
    let [bare, ours, over_http, theirs, ours_in_fsharp] = &of;
    bare.print("ipykernel itself, over ZeroMQ", Some(direct.created));
    ours.print("Mainstay, ipykernel, over its socket", Some(ours_created));
    over_http.print("Mainstay, ipykernel, over HTTP", None);
    theirs.print("jupyter_server, ipykernel, over its WebSocket", Some(theirs_created));
    if let Some((_, created)) = &fsharp {
        ours_in_fsharp.print("Mainstay, F#, over its socket", Some(*created));
    }
    println!(
        "\nMainstay adds {:.2} ms to the bare kernel over its socket, {:.2} ms over HTTP, which is {:.2} of jupyter_server's round trip",
        ms(ours.median()) - ms(bare.median()),
        ms(over_http.median()) - ms(bare.median()),
        ms(over_http.median()) / ms(theirs.median()),
    );

    println!(
        "\n| {LINES} lines | first at the client | all | lines a second | came |\n|---|---|---|---|---|"
    );
    direct.print(FLUSHED).print("ipykernel itself, each line flushed");
    daemon.print(&bench, FLUSHED).print("Mainstay, ipykernel");
    kernel.print(FLUSHED).print("jupyter_server, ipykernel");
    let ours = daemon.create("xpython", "xpython").0;
    let ours = daemon.print(&ours, WRITTEN);
    ours.print("Mainstay, xeus-python");
    let theirs = server.kernel("xpython").0.print(WRITTEN);
    theirs.print("jupyter_server, xeus-python");
    if let Some((session, _)) = &fsharp {
        daemon.print(session, FSHARP).print("Mainstay, F#");
    }
    println!("\nWith xeus-python: {:.1} times the lines a second", Lines::rate(&ours) / Lines::rate(&theirs));

    idle_sessions(&mut daemon, &mut server, &bench);
}

/// What both hold in memory with few sessions and with many idle ones.
fn idle_sessions(daemon: &mut Daemon, server: &mut JupyterServer, bench: &str) {
    println!(
        "\n| the server without its kernels | resident | of its own | history again |\n|---|---|---|---|"
    );
    let history = format!("{:.0} ms", ms(daemon.history(bench)));
    let (few, their_few) = (daemon.memory(), server.memory());
    few.print("Mainstay", &history);
    their_few.print("jupyter_server", "it has none");
    for number in 0..IDLE {
        daemon.create("python3", &format!("idle{number}"));
    }
    let many = daemon.memory();
    many.print(&format!("Mainstay with {IDLE} idle sessions more"), "");
    let _idle: Vec<_> = (0..IDLE).map(|_| server.kernel("python3")).collect();
    let their_many = server.memory();
    their_many.print(&format!("jupyter_server with {IDLE} idle sessions more"), "");
    println!();
    few.print_beside(&their_few, "Mainstay has");
    many.print_beside(&their_many, "with many sessions");
}
