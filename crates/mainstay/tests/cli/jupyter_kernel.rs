//! Mainstay as a Jupyter kernel: jupyter_client, nbclient and jupyter_kernel_test run code in sessions that outlive them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support;
use crate::support::World;
use serde_json::{Value, json};

/// A home whose kernels are registered in an environment of their own.
fn registered(kinds: &[&str]) -> World {
    let world = World::with_jupyter();
    for kind in kinds {
        let prefix = world.work().join("env");
        let done = world.run(["kernel", "register", kind, "--prefix", prefix.to_str().unwrap()]);
        assert_eq!(done.code, 0, "{done:?}");
    }
    world
}

/// Python with the front ends, which find what was registered.
fn front_end(world: &World, script: &str, arguments: &[&str]) -> Command {
    let path = [world.work().join("env/share/jupyter"), support::jupyter().join("share/jupyter")];
    let mut command = Command::new(support::jupyter().join("bin/python"));
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script))
        .args(arguments)
        .env("JUPYTER_PATH", std::env::join_paths(path).unwrap())
        .env("DOTNET_ROOT", support::dotnet())
        .env("HOME", world.work())
        .current_dir(world.work());
    command
}

fn told(mut command: Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn jupyters_own_tests_pass() {
    let world = registered(&["fsharp", "python3"]);
    let output = front_end(&world, "kernel_test.py", &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nOK"), "{said}");
}

#[test]
fn a_notebook_that_is_closed_leaves_its_session_and_opened_again_gets_it_back() {
    let world = registered(&["fsharp"]);
    let run = |cells: &[&str]| {
        let arguments = [&["notebook", "mainstay-fsharp"], cells].concat();
        let mut command = front_end(&world, "drive_kernel.py", &arguments);
        command.env("JPY_SESSION_NAME", world.work().join("Prices.ipynb"));
        told(command)
    };
    let first = run(&["let price = 20", "price * 2", "printfn \"%d\" price", "price + \"\""]);
    assert_eq!(first[0], json!([]));
    assert_eq!(first[1], json!([["execute_result", { "text/plain": "40" }]]));
    assert_eq!(first[2], json!([["stdout", "20\n"]]));
    assert_eq!(first[3][0][0], "error", "{first}");
    assert_eq!(run(&["price + 1"])[0][0][1]["text/plain"], "21");
    let session = world.session();
    assert_eq!((&session["name"], &session["state"]), (&json!("Prices"), &json!("Ready")), "{session}");
    assert_eq!(world.eval("price + 2")["value"], "22", "a terminal has the same session");
    let inherited = world.eval("isNull (System.Environment.GetEnvironmentVariable \"JPY_SESSION_NAME\")");
    assert_eq!(inherited["value"], "true", "what code starts is not of this notebook");
}

#[test]
fn clients_that_name_no_notebook_have_a_session_each_which_rests_when_they_are_done() {
    let world = registered(&["python3"]);
    let run = |number: usize| {
        // None goes on before all have begun.
        let meets = "import pathlib, time\npathlib.Path(f'begun-{n}').touch()\n\
                     while len(list(pathlib.Path().glob('begun-*'))) < 3: time.sleep(0.01)";
        let cells = [format!("n = {number}"), meets.to_owned(), "n * 10".to_owned()];
        let mut command = front_end(&world, "drive_kernel.py", &["notebook", "mainstay-python3"]);
        command.args(cells).stdout(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = [1, 2, 3].map(|number| (number, run(number))).into_iter().collect();
    for (number, child) in running {
        let said: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(said[2][0][1]["text/plain"], (number * 10).to_string(), "{said}");
    }
    let sessions = world.run(["session", "list", "--json"]).json();
    let states: Vec<_> =
        sessions.as_array().unwrap().iter().map(|session| session["state"].clone()).collect();
    assert_eq!(
        states,
        [json!("Uninitialized"), json!("Uninitialized"), json!("Uninitialized")],
        "{sessions}"
    );
    // Whoever wants to share one names it.
    let named = |cell: &str| {
        let mut command = front_end(&world, "drive_kernel.py", &["notebook", "mainstay-python3", cell]);
        command.env("MAINSTAY_JUPYTER_SESSION", "shared");
        told(command)
    };
    named("n = 7");
    assert_eq!(named("n")[0][0][1]["text/plain"], "7");
    assert_eq!(world.run(["eval", "--session", "shared", "n"]).stdout, "7\n");
}

#[test]
fn a_front_end_asks_is_asked_interrupts_and_restarts() {
    let world = registered(&["python3"]);
    let steps = told(front_end(&world, "drive_kernel.py", &["live"]));
    assert_eq!(steps["first"]["expressions"]["next"]["data"]["text/plain"], "42", "{steps}");
    assert_eq!(steps["asked"]["text"], "hello Ada Name?\n");
    assert_eq!(steps["refused"]["ename"], "StdinNotImplementedError");
    assert_eq!(steps["silent"]["kinds"], json!([]));
    assert_eq!(
        steps["updated"]["kinds"],
        json!(["execute_input", "display_data", "update_display_data"]),
        "{steps}"
    );
    assert_eq!(steps["late"], json!(["late\n", true]), "what code left running prints comes too");
    assert_eq!(steps["interrupted"], json!(["error", "KeyboardInterrupt", "aborted"]));
    assert_eq!(steps["kept"]["text"], "41\n");
    assert_eq!(steps["restarted"]["text"], "False\n", "who restarts a kernel wants nothing of what was");
}

#[test]
fn what_runs_when_a_notebook_is_closed_runs_on() {
    let world = registered(&["python3"]);
    told(front_end(&world, "drive_kernel.py", &["closed"]));
    world.follow(0).wait_until(|event| event["kind"] == "evalCompleted" || event["kind"] == "evalCancelled");
    assert_eq!(world.run(["eval", "--kind", "python3", "x"]).stdout, "7\n");
}

#[test]
fn front_ends_show_the_widgets_of_a_session_and_move_them() {
    let world = registered(&["python3"]);
    let mut front_ends = front_end(&world, "drive_kernel.py", &["widgets", "mainstay-python3"]);
    front_ends.env("JPY_SESSION_NAME", "Shared.ipynb");
    let steps = told(front_ends);
    assert_eq!(steps["version"], "2", "what is said of a message comes too: {steps}");
    assert_eq!(steps["picture"], json!(["00ff07"]));
    assert_eq!(steps["printed"], "moved to 7\n");
    assert_eq!(steps["labelled"], json!(["at 7"]));
    assert_eq!(steps["seen"], "at 7", "another front end of the session sees it too");
    assert_eq!(steps["value"]["value"]["data"]["text/plain"], "7");
    assert_eq!(steps["known"], json!([true, "jupyter.widget"]));
    assert_eq!(steps["captured"], json!([true]));
    assert_eq!(steps["closed"], json!(["unknown"]));
    assert_eq!(steps["cleared"], json!(["execute_input", "clear_output", "stream"]));
    let events = world.run(["events", "--kind", "commPublished", "--json"]);
    assert!(events.stdout.lines().count() > 5, "every one is in the log: {events:?}");
}

#[test]
fn a_session_that_knows_of_no_widgets_says_so() {
    let world = registered(&["fsharp"]);
    let steps = told(front_end(&world, "drive_kernel.py", &["no-widgets", "mainstay-fsharp"]));
    assert_eq!((&steps["closed"], &steps["known"]), (&json!(["one"]), &json!({})), "{steps}");
    assert!(steps["told"].to_string().contains("[not_of_kind]"), "{steps}");
}

#[test]
fn nbclient_keeps_the_widgets_of_a_notebook_and_not_what_was_cleared() {
    let world = registered(&["python3"]);
    let cells = [
        "import ipywidgets as w\nbar = w.IntProgress(max=3)\nfor i in range(3): bar.value += 1",
        "from IPython.display import clear_output\nfor i in range(3):\n    clear_output(wait=True)\n    print(i)",
        "print(1)\nclear_output()",
    ];
    let arguments = [&["kept", "mainstay-python3"], &cells[..]].concat();
    let kept = told(front_end(&world, "drive_kernel.py", &arguments));
    assert_eq!(kept["values"]["IntProgressModel"], 3, "{kept}");
    assert_eq!(kept["outputs"], json!([[], [["stdout", "2\n"]], []]));
}

#[test]
fn a_notebook_goes_on_when_the_machine_restarts_in_the_middle_of_a_cell() {
    let world = registered(&["python3"]);
    let mut child = front_end(&world, "drive_kernel.py", &["crash"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    world.kill_everything();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let steps: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(steps["cut"][0], "error", "{steps}");
    assert_eq!(steps["after"]["text"], "41\n", "{steps}");
}

#[test]
fn what_was_registered_is_found_and_taken_back() {
    let world = registered(&["fsharp"]);
    let prefix = world.work().join("env");
    let kernels = prefix.join("share/jupyter/kernels");
    assert!(kernels.join("mainstay-fsharp/kernel.json").is_file());
    // Of what Mainstay runs itself, its own kernelspecs are none.
    let mut list = world.command();
    let listed =
        list.args(["kernel", "list"]).env("JUPYTER_PATH", prefix.join("share/jupyter")).output().unwrap();
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("mainstay-fsharp"));
    let unregister = || world.run(["kernel", "unregister", "--prefix", prefix.to_str().unwrap()]);
    assert!(unregister().stderr.contains("mainstay-fsharp is gone"));
    assert_eq!(std::fs::read_dir(&kernels).unwrap().count(), 0);
    assert!(unregister().stderr.contains("there is none"));
}

#[test]
fn a_kernel_ends_with_the_front_end_that_started_it() {
    let world = registered(&["python3"]);
    let file = world.work().join("connection.json");
    let connection = json!({
        "transport": "ipc", "ip": world.work().join("socket"), "key": "k", "signature_scheme": "hmac-sha256",
        "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5,
    });
    std::fs::write(&file, connection.to_string()).unwrap();
    let serve = format!(
        "{} kernel serve {} --kind python3 & echo $!; wait",
        env!("CARGO_BIN_EXE_mainstay"),
        file.display()
    );
    let mut front = Command::new("sh")
        .args(["-c", &serve])
        .envs(world.command().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(world.work())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(front.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kernel = support::watch(line.trim().parse().unwrap());
    let is_there =
        || world.run(["session", "list", "--json"]).json().as_array().is_some_and(|all| !all.is_empty());
    assert!(support::within(std::time::Duration::from_secs(60), is_there));
    front.kill().unwrap();
    front.wait().unwrap();
    support::wait_for_end(&kernel);
    assert_eq!(world.eval("1 + 1")["value"], "2", "the session goes on");
}
