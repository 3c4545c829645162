//! Sessions of many languages, each as durable as any: killed, cancelled, forked, side by side.

use crate::support;
use crate::support::tool_call::call;
use crate::support::{World, kill};
use serde_json::{Value, json};

/// The same things said in the languages of the kernels.
struct Tongue {
    kind: &'static str,
    /// Binds `x` to a number.
    define: fn(usize) -> String,
    /// Code that prints the value.
    show: &'static str,
    /// Says `begun` and never ends.
    run_on: &'static str,
}

const PYTHON: Tongue = Tongue {
    kind: "python3",
    define: |number| format!("x = {number}"),
    show: "print(x)",
    run_on: "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)",
};
const XEUS_PYTHON: Tongue = Tongue { kind: "xpython", ..PYTHON };
const BASH: Tongue = Tongue {
    kind: "bash",
    define: |number| format!("x={number}"),
    show: "echo $x",
    run_on: "echo begun; sleep 1000",
};
const DENO: Tongue = Tongue {
    kind: "deno",
    define: |number| format!("let x = {number}"),
    show: "console.log(x)",
    run_on: "console.log('begun'); while (true) { }",
};
const FSHARP: Tongue = Tongue {
    kind: "fsharp",
    define: |number| format!("let x = {number}"),
    show: "printfn \"%d\" x",
    run_on: "printfn \"begun\"; System.Threading.Thread.Sleep -1",
};

/// A home with kernels of several languages, and one of them to speak to.
struct Spoken<'a> {
    world: World,
    tongue: &'a Tongue,
}

impl<'a> Spoken<'a> {
    fn to(tongue: &'a Tongue) -> Self {
        let spoken = Self { world: World::with_jupyter(), tongue };
        let defined = spoken.eval(&(tongue.define)(41));
        assert_eq!(defined["success"], true, "{defined}");
        spoken
    }

    fn eval(&self, code: &str) -> Value {
        self.world.run_with_input(["eval", "--json", "--kind", self.tongue.kind, "-"], code.as_bytes()).json()
    }

    fn shown(&self) -> String {
        self.eval(self.tongue.show)["stdout"].as_str().unwrap().trim_end().to_owned()
    }

    /// Begins what never ends, and waits until it says so.
    fn run_on(&self) -> std::process::Child {
        let since = self.world.session()["lastSeq"].as_u64().unwrap();
        let mut events = self.world.follow(since);
        let running = self.world.start_eval(self.tongue.run_on);
        events.wait_until(|event| {
            event["kind"] == "outputProduced" && event["body"]["text"].to_string().contains("begun")
        });
        running
    }
}

fn is_brought_back_when_its_worker_is_killed(tongue: &Tongue) {
    let spoken = Spoken::to(tongue);
    let since = spoken.world.session()["lastSeq"].as_u64().unwrap();
    kill(spoken.world.worker_pid());
    spoken.world.follow(since).wait_for("warmUpCompleted");
    assert_eq!(spoken.shown(), "41");
}

fn is_brought_back_when_the_machine_restarts_in_the_middle_of_a_cell(tongue: &Tongue) {
    let spoken = Spoken::to(tongue);
    let mut running = spoken.run_on();
    spoken.world.kill_everything();
    running.wait().unwrap();
    assert_eq!(spoken.shown(), "41");
    let events = spoken.world.events();
    assert!(events.iter().any(|event| event["kind"] == "evalInterrupted"), "{events:?}");
}

fn goes_on_when_the_daemon_is_killed_in_the_middle_of_a_cell(tongue: &Tongue) {
    let spoken = Spoken::to(tongue);
    let running = spoken.run_on();
    let worker = spoken.world.worker_pid();
    spoken.world.replace_daemon();
    assert_eq!(spoken.world.worker_pid(), worker);
    assert_eq!(spoken.world.session()["state"], "Evaluating");
    assert_eq!(spoken.world.run(["cancel"]).code, 0);
    let ended: Value = serde_json::from_slice(&running.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(ended["ending"], "cancelled", "{ended}");
    assert_eq!(spoken.shown(), "41");
}

fn keeps_what_it_has_when_code_is_cancelled(tongue: &Tongue) {
    let spoken = Spoken::to(tongue);
    let running = spoken.run_on();
    assert_eq!(spoken.world.run(["cancel"]).code, 0);
    let ended: Value = serde_json::from_slice(&running.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(ended["ending"], "cancelled", "{ended}");
    assert_eq!(spoken.shown(), "41");
}

fn is_forked_with_its_values(tongue: &Tongue) {
    let spoken = Spoken::to(tongue);
    let fork = spoken.world.run(["session", "fork", "--name", "apart"]);
    assert_eq!(fork.code, 0, "{fork:?}");
    let in_fork = |code: &str| spoken.world.run(["eval", "--session", "apart", "--json", code]).json();
    assert_eq!(in_fork(tongue.show)["stdout"].as_str().unwrap().trim_end(), "41");
    let other = match tongue.kind {
        "deno" => "x = 1".to_owned(),
        _ => (tongue.define)(1),
    };
    assert_eq!(in_fork(&other)["success"], true);
    let own = spoken.world.run(["session", "list", "--json"]).json();
    let first = own.as_array().unwrap().iter().find(|session| session["name"] != "apart").unwrap();
    let shown = spoken
        .world
        .run(["eval", "--session", first["session"].as_str().unwrap(), "--json", tongue.show])
        .json();
    assert_eq!(shown["stdout"].as_str().unwrap().trim_end(), "41", "what a fork does is its own");
}

macro_rules! of_kernels {
    ($($name:ident: $tongue:expr),* $(,)?) => {
        $(mod $name {
            #[test]
            fn is_brought_back_when_its_worker_is_killed() {
                super::is_brought_back_when_its_worker_is_killed(&$tongue);
            }

            #[test]
            fn is_brought_back_when_the_machine_restarts_in_the_middle_of_a_cell() {
                super::is_brought_back_when_the_machine_restarts_in_the_middle_of_a_cell(&$tongue);
            }

            #[test]
            fn goes_on_when_the_daemon_is_killed_in_the_middle_of_a_cell() {
                super::goes_on_when_the_daemon_is_killed_in_the_middle_of_a_cell(&$tongue);
            }

            #[test]
            fn keeps_what_it_has_when_code_is_cancelled() {
                super::keeps_what_it_has_when_code_is_cancelled(&$tongue);
            }

            #[test]
            fn is_forked_with_its_values() {
                super::is_forked_with_its_values(&$tongue);
            }
        })*
    };
}

of_kernels! {
    ipykernel: super::PYTHON,
    xeus_python: super::XEUS_PYTHON,
    bash: super::BASH,
    deno: super::DENO,
    fsharp: super::FSHARP,
}

#[test]
fn ten_sessions_of_four_kinds_are_apart() {
    let world = World::with_jupyter();
    let all: Vec<(usize, &Tongue)> =
        [&PYTHON, &XEUS_PYTHON, &BASH, &FSHARP].into_iter().cycle().take(10).enumerate().collect();
    let name = |number: usize| format!("s{number}");
    for (number, tongue) in &all {
        let created = world.run(["session", "new", "--kind", tongue.kind, "--name", &name(*number)]);
        assert_eq!(created.code, 0, "{created:?}");
    }
    std::thread::scope(|scope| {
        for (number, tongue) in &all {
            let world = &world;
            scope.spawn(move || {
                let session = name(*number);
                for code in [(tongue.define)(*number), tongue.show.to_owned()] {
                    let ran = world.run(["eval", "--session", &session, "--json", &code]);
                    assert_eq!(ran.code, 0, "{ran:?}");
                }
                let shown = world.run(["eval", "--session", &session, "--json", tongue.show]).json();
                assert_eq!(shown["stdout"].as_str().unwrap().trim_end(), number.to_string());
            });
        }
    });
}

#[test]
fn the_kind_of_a_folder_is_the_language_of_its_project() {
    let world = World::with_jupyter();
    std::fs::write(world.work().join("pyproject.toml"), "").unwrap();
    let value = world.eval("[n * n for n in range(4)]");
    assert_eq!(value["value"], "[0, 1, 4, 9]");
    assert_eq!(world.session()["kind"], "python");
}

#[test]
fn what_code_asks_is_asked_and_what_is_wrong_is_said() {
    let world = World::with_jupyter();
    assert_eq!(world.run(["session", "new", "--kind", "python"]).code, 0);
    let mut events = world.follow(0);
    let asks = world.start_eval("input('Name? ').upper()");
    let asked = events.wait_for("askRaised");
    assert_eq!(asked["body"]["prompt"], "Name? ", "{asked}");
    assert_eq!(world.run(["ask", "answer", asked["body"]["ask"].as_str().unwrap(), "Ada"]).code, 0);
    let ended: Value = serde_json::from_slice(&asks.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(ended["value"], "'ADA'");
    let refused = world.run(["eval", "--kind", "python", "x = = 1"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("SyntaxError"), "{refused:?}");
    let unknown = world.run(["eval", "--kind", "cobol", "1"]);
    insta::assert_snapshot!(unknown.stderr, @"
    error: there is no kernel for sessions of kind `cobol` [kernel_unknown]
      See `mainstay kernel list` for the kinds there are; `mainstay kernel install python` installs Python, other languages come with the Jupyter kernels of your environment.
    ");
}

#[test]
fn what_processes_and_c_code_print_is_heard_once() {
    let code = "import os, subprocess\nsubprocess.run(['echo', 'a process'])\nos.system('echo a shell')\n\
                os.write(1, b'a call\\n')\nos.write(2, b'an error\\n')\nprint('print')\n\
                import time; time.sleep(0.2)";
    for tongue in [&PYTHON, &XEUS_PYTHON] {
        let ended = Spoken::to(tongue).eval(code);
        let (stdout, stderr) = (ended["stdout"].as_str().unwrap(), ended["stderr"].as_str().unwrap());
        for said in ["a process", "a shell", "a call", "print"] {
            assert_eq!(stdout.matches(said).count(), 1, "{}: {said}: {ended}", tongue.kind);
        }
        assert_eq!(stderr.matches("an error").count(), 1, "{ended}");
    }
}

#[test]
fn code_that_is_cancelled_deep_in_its_libraries_yields() {
    let spoken = Spoken::to(&PYTHON);
    for code in [
        "import pandas, time\nprint('begun', flush=True)\npandas.Series([1, 2]).apply(lambda x: time.sleep(60))",
        "import subprocess\nprint('begun', flush=True)\nsubprocess.run(['sleep', '60'])",
        "import asyncio\nprint('begun', flush=True)\nawait asyncio.sleep(60)",
    ] {
        let since = spoken.world.session()["lastSeq"].as_u64().unwrap();
        let mut events = spoken.world.follow(since);
        let running = spoken.world.start_eval(code);
        events.wait_for("outputProduced");
        assert_eq!(spoken.world.run(["cancel"]).code, 0);
        let ended = events.wait_for("evalCancelled");
        assert_eq!(ended["body"]["ending"], "yielded", "{code}: {ended}");
        running.wait_with_output().unwrap();
    }
}

#[test]
fn a_language_and_its_kernel_are_one_kind() {
    let spoken = Spoken::to(&PYTHON);
    assert_eq!(spoken.world.run(["eval", "--kind", "python", "x"]).stdout, "41\n");
    assert_eq!(spoken.world.run(["session", "list", "--json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn what_a_kernel_says_of_its_language_counts_whatever_it_is_called() {
    let world = World::with_jupyter();
    let own = world.work().join(".venv/share/jupyter/kernels/research");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(world.work().join(".venv/pyvenv.cfg"), "").unwrap();
    let python = support::jupyter().join("bin/python");
    let spec = json!({
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Research",
        "language": "snake",
    });
    std::fs::write(own.join("kernel.json"), spec.to_string()).unwrap();
    assert_eq!(world.run(["eval", "--kind", "research", "x = 41\nx + 1"]).stdout, "42\n");
    assert_eq!(world.session()["language"], "python");

    let script = world.work().join("steps.py");
    std::fs::write(&script, "x + 2\n").unwrap();
    let ran = call(&world, "run_notebook", &json!({ "path": script }));
    assert_eq!(ran["cells"][0]["eval"]["value"], "43", "a file of Python is for it: {ran}");
    let exported = call(&world, "export_session", &json!({ "format": "py" }));
    assert!(exported["text"].as_str().unwrap().contains("x = 41"), "{exported}");

    let script = world.run(["export", "--format", "py"]);
    assert!(script.stdout.contains("x = 41"), "its kernelspec says otherwise: {script:?}");
    std::fs::remove_dir_all(&own).unwrap();
    let script = world.run(["export", "--format", "py"]);
    assert!(script.stdout.contains("x = 41"), "also where nothing else knows the kind: {script:?}");
}

#[test]
fn it_is_said_once_where_the_projects_own_python_has_no_kernel() {
    let world = World::with_jupyter();
    let environment = world.work().join(".venv");
    std::fs::create_dir(&environment).unwrap();
    std::fs::write(environment.join("pyvenv.cfg"), "").unwrap();
    let first = world.run(["eval", "--kind", "python", "1 + 1"]);
    assert_eq!((first.code, first.stdout.as_str()), (0, "2\n"));
    let told = format!("{0} has no Jupyter kernel, so that of ", environment.display());
    assert!(first.stderr.contains(&told) && first.stderr.contains("-m pip install ipykernel"), "{first:?}");
    assert_eq!(world.run(["eval", "--kind", "python", "1 + 1"]).stderr, "");
}

#[test]
fn a_folder_with_python_files_alone_is_for_python() {
    for file in ["main.py", "lab.ipynb"] {
        let world = World::with_jupyter();
        std::fs::write(world.work().join(file), "").unwrap();
        let created = call(&world, "create_session", &json!({}));
        assert_eq!(created["kind"], "python", "{created}");
        assert_eq!(world.eval("[n * n for n in range(4)]")["value"], "[0, 1, 4, 9]");
        std::fs::write(world.work().join("Library.fs"), "").unwrap();
        let created = call(&world, "create_session", &json!({}));
        assert_eq!(created["kind"], "fsharp", "{created}");
    }
}

#[test]
fn what_a_kernel_cannot_tell_is_refused_or_said_and_never_looks_well() {
    let world = World::with_jupyter();
    for (kind, code) in [("bash", "x=1"), ("deno", "let x = 1")] {
        assert_eq!(call(&world, "create_session", &json!({ "kind": kind, "name": kind }))["state"], "Ready");
        let session = json!({ "sessionId": kind });
        let with_code = json!({ "sessionId": kind, "code": code });
        assert_eq!(call(&world, "send_code", &with_code)["success"], true);
        let values = call(&world, "get_values", &session);
        assert_eq!((&values["code"], values.get("offered")), (&json!("not_of_kind"), None), "{values}");
        assert!(values["nextStep"].as_str().unwrap().contains("send_code"), "{values}");
        let checked = call(&world, "check_code", &with_code);
        match kind {
            "bash" => assert_eq!(checked["code"], "not_of_kind", "{checked}"),
            _ => {
                let unchecked = checked["unchecked"].as_str().unwrap_or_default();
                assert!(unchecked.starts_with("nothing was checked"), "{checked}");
            }
        }
    }
    let refused = call(&world, "create_session", &json!({ "kind": "cobol" }));
    let next_step = refused["nextStep"].as_str().unwrap();
    assert!(
        next_step.contains("fsharp") && next_step.contains("bash") && next_step.contains("(python)"),
        "{refused}"
    );
}

#[test]
fn an_agent_works_in_the_language_of_its_folder_and_in_the_session_that_is_there() {
    let world = World::with_jupyter();
    std::fs::write(world.work().join("pyproject.toml"), "").unwrap();
    let offered = &call(&world, "get_status", &json!({}))["offered"];
    assert!(offered.as_array().unwrap().contains(&json!("send_code")), "{offered}");
    let sent = |code: &str| call(&world, "send_code", &json!({ "code": code }))["value"].clone();
    assert_eq!(sent("x = [41]\nx"), "[41]");
    assert_eq!(world.session()["kind"], "python");
    assert_eq!(world.run(["eval", "x[0] += 1"]).code, 0, "a person works in the same session");
    assert_eq!(sent("x"), "[42]");
    let refused = call(&world, "run_tests", &json!({}));
    assert_eq!(refused["code"], "not_of_kind", "{refused}");
    let created = call(&world, "create_session", &json!({ "kind": "bash" }));
    assert_eq!(created["state"], "Ready", "{created}");
    assert_eq!(world.run(["session", "list", "--json"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn python_code_ends_with_its_own_exit_code() {
    let spoken = Spoken::to(&PYTHON);
    let script = |code: &str| {
        let file = spoken.world.work().join("script.py");
        std::fs::write(&file, code).unwrap();
        spoken.world.run(["run", "script.py"]).code
    };
    for (code, expected) in [("0", 0), ("2", 2), ("", 0), ("'no such file'", 1)] {
        assert_eq!(script(&format!("import sys\nprint('main')\nsys.exit({code})")), expected, "{code}");
    }
    let eval = |code: &str| spoken.world.run(["eval", "--kind", "python3", code]).code;
    assert_eq!((eval("exit(4)"), eval("exit()")), (4, 0));
    assert_eq!(spoken.shown(), "41", "what was there is there");
}

#[test]
fn python_comes_with_one_command() {
    let world = World::new();
    let alone = |arguments: &[&str]| {
        let output = world.command().env("HOME", world.work()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    alone(&["kernel", "install", "python", "--with", "tabulate", "--yes"]);
    assert!(alone(&["kernel", "list"]).contains("python"));
    let code = "import tabulate\nprint(tabulate.tabulate([[1, 2]], headers=['a', 'b'], tablefmt='plain'))";
    assert_eq!(alone(&["eval", "--kind", "python", code]), "  a    b\n  1    2\n");
    // What is there already is not fetched again.
    alone(&["kernel", "install", "python", "--yes"]);
}

#[test]
fn the_doctor_starts_a_kernel_and_asks_it_what_it_is() {
    let world = World::with_jupyter();
    let report = world.run(["kernel", "doctor", "python", "--json"]).json();
    assert!(report["answer"]["runtime"].as_str().unwrap().starts_with("python 3"), "{report}");
    assert_eq!(report["problems"], serde_json::json!([]));
    let unknown = world.run(["kernel", "doctor", "cobol"]);
    assert_eq!(unknown.code, 1);
    insta::assert_snapshot!(unknown.stdout, @"
    missing: there is no kernel for sessions of kind `cobol`
      See `mainstay kernel list` for the kinds there are; `mainstay kernel install python` installs Python, other languages come with the Jupyter kernels of your environment.
    ");
}
