//! Notebooks and scripts in many languages, over the real kernels; what is written into them beside what Jupyter's own nbclient makes of the same.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::terminal::Terminal;
use crate::support::tool_call::call;
use crate::support::{Finished, World, jupyter};
use serde_json::{Value, json};

/// What the notebook `dialogue` asks for, in turn.
const ANSWERS: [&str; 19] = [
    "Ada",
    "36",
    "secret words",
    "pen",
    "ink",
    "é 𝄞",
    "done",
    "many",
    "2.5",
    "blue",
    "XL",
    "",
    "later",
    "five",
    "yes",
    "maybe",
    "no",
    "1 2 3 4",
    "y",
];

/// Where the notebooks are that these tests run.
fn notebooks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/notebooks")
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn python(arguments: &[&std::ffi::OsStr]) -> String {
    let output = Command::new(jupyter().join("bin/python")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether Jupyter takes a file for a notebook; it says so by failing.
fn validate(file: &Path) {
    let check = "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))";
    python(&["-W".as_ref(), "error".as_ref(), "-c".as_ref(), check.as_ref(), file.as_ref()]);
}

/// What nbclient makes of one of the notebooks, in a folder of its own.
fn by_nbclient(name: &str, answers: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{name}.ipynb"));
    std::fs::copy(notebooks().join(format!("{name}.ipynb")), &file).unwrap();
    let runs = notebooks().join("nbclient_runs.py");
    let mut arguments = vec![runs.as_os_str(), file.as_os_str()];
    arguments.extend(answers.iter().map(std::ffi::OsStr::new));
    serde_json::from_str(&python(&arguments)).unwrap()
}

/// The outputs of each code cell, as they are to be the same whoever ran it: text whole and without colours, what was printed to a stream between two other
/// outputs together.
fn outputs(notebook: &Value) -> Vec<Vec<Value>> {
    let cells = notebook["cells"].as_array().unwrap().iter();
    let outputs_of = |cell: &Value| {
        let mut told: Vec<Value> = Vec::new();
        let mut printed: Vec<(String, String)> = Vec::new();
        for output in cell["outputs"].as_array().unwrap() {
            if output["output_type"] == "stream" {
                let (name, text) = (output["name"].as_str().unwrap().to_owned(), whole(&output["text"]));
                match printed.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, before)) => before.push_str(&text),
                    None => printed.push((name, text)),
                }
                continue;
            }
            flush(&mut told, &mut printed);
            told.push(match output["output_type"].as_str().unwrap() {
                "error" => json!([output["ename"], output["evalue"], traceback(output)]),
                kind => {
                    let data = output["data"].as_object().unwrap().iter();
                    let data: serde_json::Map<_, _> = data
                        .map(|(kind, form)| match kind.ends_with("json") {
                            true => (kind.clone(), form.clone()),
                            false => (kind.clone(), whole(form).trim_end().into()),
                        })
                        .collect();
                    json!([kind, output["execution_count"], data, output["metadata"]])
                }
            });
        }
        flush(&mut told, &mut printed);
        told
    };
    cells.filter(|cell| cell["cell_type"] == "code").map(outputs_of).collect()
}

fn flush(told: &mut Vec<Value>, printed: &mut Vec<(String, String)>) {
    printed.sort();
    told.extend(printed.drain(..).rev().map(|(name, text)| json!([name, text])));
}

/// A text, or its lines.
fn whole(text: &Value) -> String {
    match text {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        text => text.as_str().unwrap().to_owned(),
    }
}

fn traceback(output: &Value) -> Vec<String> {
    let lines: Vec<&str> =
        output["traceback"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let plain = String::from_utf8(strip_ansi(lines.join("\n").as_bytes())).unwrap();
    plain.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn strip_ansi(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != 0x1b {
            plain.push(*first);
            continue;
        }
        let end = rest.iter().position(u8::is_ascii_alphabetic).map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
    }
    plain
}

/// What the outputs of each cell are, in a line.
fn shapes(notebook: &Value) -> String {
    let shape = |output: &Value| match output["output_type"].as_str().unwrap() {
        "stream" => output["name"].as_str().unwrap().to_owned(),
        "error" => format!("error[{}]", output["ename"].as_str().unwrap()),
        kind => {
            let forms: Vec<&str> = output["data"].as_object().unwrap().keys().map(String::as_str).collect();
            format!("{kind}[{}]", forms.join(", "))
        }
    };
    let cells = notebook["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code");
    let lines = cells.map(|cell| {
        let outputs: Vec<String> = cell["outputs"].as_array().unwrap().iter().map(shape).collect();
        format!("{} {}", cell["execution_count"], outputs.join(" ")).trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// Puts one of the notebooks into the working folder.
fn placed(world: &World, name: &str) -> PathBuf {
    let file = world.work().join(format!("{name}.ipynb"));
    std::fs::copy(notebooks().join(format!("{name}.ipynb")), &file).unwrap();
    file
}

/// Compares what was written into a notebook with what nbclient makes of it, cell by cell.
fn assert_as_jupyter_has_it(file: &Path, expected: &Value) {
    validate(file);
    let written = read(file);
    let sources = written["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code");
    let (own, theirs) = (outputs(&written), outputs(expected));
    assert_eq!(own.len(), theirs.len());
    for ((cell, own), theirs) in sources.zip(own).zip(theirs) {
        assert_eq!(own, theirs, "{}", whole(&cell["source"]));
    }
    for (own, theirs) in
        written["cells"].as_array().unwrap().iter().zip(expected["cells"].as_array().unwrap())
    {
        assert_eq!([&own["execution_count"], &own["id"]], [&theirs["execution_count"], &theirs["id"]]);
    }
}

fn succeeded(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

#[test]
fn an_analysis_comes_to_what_jupyter_makes_of_it() {
    let world = World::with_jupyter();
    let file = placed(&world, "analysis");
    succeeded(world.run(["run", "analysis.ipynb", "--write"]));
    assert_eq!(world.session()["kind"], "python3");
    assert_as_jupyter_has_it(&file, &by_nbclient("analysis", &[]));
    insta::assert_snapshot!(shapes(&read(&file)));
    // All of it ran, errors that are allowed too.
    let again = succeeded(world.run(["run", "analysis.ipynb"]));
    assert_eq!(again.stdout, "");
}

#[test]
fn all_that_can_be_shown_stands_where_jupyter_has_it() {
    let world = World::with_jupyter();
    let file = placed(&world, "plots");
    succeeded(world.run(["run", "plots.ipynb", "--write"]));
    assert_as_jupyter_has_it(&file, &by_nbclient("plots", &[]));
    insta::assert_snapshot!(shapes(&read(&file)));
}

#[test]
fn a_notebook_that_asks_is_answered_by_whoever_is_there() {
    let world = World::with_jupyter();
    let file = placed(&world, "dialogue");
    // The session that is here runs it.
    succeeded(world.run(["session", "new", "--kind", "python"]));
    let mut events = world.follow(0);
    let running = world
        .command()
        .args(["run", "dialogue.ipynb", "--write"])
        // A pipe that stays silent: an empty input would be the end of it.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for answer in ANSWERS {
        let asked = events.wait_for("askRaised");
        succeeded(world.run(["ask", "answer", asked["body"]["ask"].as_str().unwrap(), answer]));
    }
    let ran = running.wait_with_output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_as_jupyter_has_it(&file, &by_nbclient("dialogue", &ANSWERS));
    insta::assert_snapshot!(shapes(&read(&file)));
    assert_eq!(world.run(["session", "list", "--json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn what_a_cell_asks_is_asked_at_the_terminal() {
    let world = World::with_jupyter();
    std::fs::write(world.work().join("ask.py"), "# %%\nname = input('Name? ')\n# %%\nname.upper()\n")
        .unwrap();
    let mut run = world.command();
    run.args(["run", "ask.py"]);
    let terminal = Terminal::run(&run);
    terminal.wait_for("Name?");
    terminal.enter("Ada");
    terminal.wait_for("'ADA'");
}

/// How often a cell was run, by how its code begins.
fn times(world: &World, code: &str) -> usize {
    let is_its = |event: &&Value| {
        event["kind"] == "evalRequested" && event["body"]["code"].as_str().unwrap().starts_with(code)
    };
    world.events().iter().filter(is_its).count()
}

#[test]
fn a_python_notebook_goes_on_after_its_daemon_was_killed_in_the_middle_of_a_cell() {
    let world = World::with_jupyter();
    let wait =
        "import os, time\nprint('waits', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)";
    let sources = [
        "prices = [3, 1, 2]",
        "with open('ran', 'a') as ran: ran.write('once ')",
        "best = min(prices)\nbest",
        wait,
        "sorted(prices) + [best]",
    ];
    let cells: Vec<Value> = sources
        .iter()
        .zip(1..)
        .map(|(source, number)| json!({ "cell_type": "code", "id": format!("c{number}"), "metadata": {}, "source": source, "outputs": [], "execution_count": null }))
        .collect();
    let kernel = json!({ "name": "python3", "display_name": "Python 3", "language": "python" });
    let notebook =
        json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": { "kernelspec": kernel }, "cells": cells });
    let file = world.work().join("a.ipynb");
    std::fs::write(&file, notebook.to_string()).unwrap();
    succeeded(world.run(["session", "new", "--kind", "python3"]));
    let mut events = world.follow(0);
    let running = world
        .command()
        .args(["run", "a.ipynb"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    events.wait_until(|event| {
        event["kind"] == "outputProduced" && event["body"]["text"].as_str().unwrap().contains("waits")
    });
    world.kill_everything();
    let cut_off = running.wait_with_output().unwrap();
    assert_eq!(cut_off.status.code(), Some(1), "{cut_off:?}");

    std::fs::write(world.work().join("go"), "").unwrap();
    let gone_on = succeeded(world.run(["run", "a.ipynb", "--write"]));
    assert_eq!(gone_on.stdout, "waits\n[1, 2, 3, 1]\n");
    let ran = sources.map(|source| times(&world, source));
    assert_eq!(ran, [1, 1, 1, 2, 1]);
    validate(&file);
    insta::assert_snapshot!(shapes(&read(&file)), @"
    1
    2
    3 execute_result[text/plain]
    4 stdout
    5 execute_result[text/plain]
    ");
}

#[test]
fn scripts_and_notebooks_run_in_sessions_of_their_languages() {
    let world = World::with_jupyter();
    let bash = json!({ "nbformat": 4, "nbformat_minor": 5,
        "metadata": { "kernelspec": { "name": "bash", "display_name": "Bash", "language": "bash" } },
        "cells": [{ "cell_type": "code", "id": "a", "metadata": {}, "source": "x=41\n", "outputs": [], "execution_count": null },
            { "cell_type": "code", "id": "b", "metadata": {}, "source": ["\n", "echo $((x + 1))"], "outputs": [], "execution_count": null }] });
    for (name, text) in [
        ("a.py", "#!/usr/bin/env python3\nx = 41\n# %% next\nx + 1\n# %% [markdown]\n# text\n"),
        ("a.ts", "const x: number = 41\n// %%\nx + 1\n"),
        ("a.sh", "x=41\n# %%\necho $((x + 1))\n"),
        ("a.fsx", "let x = 41\n// %%\nx + 1\n"),
        ("a.ipynb", &bash.to_string()),
    ] {
        std::fs::write(world.work().join(name), text).unwrap();
    }
    let printed = |name: &str| succeeded(world.run(["run", name])).stdout;
    let shown: Vec<String> = ["a.py", "a.ts", "a.sh", "a.fsx", "a.ipynb"].map(printed).to_vec();
    assert_eq!(shown, ["42\n", "42\n", "42\n", "val x: int = 41\nval it: int = 42\n", "42\n"]);
    let sessions = world.run(["session", "list", "--json"]).json();
    let mut kinds: Vec<&str> =
        sessions.as_array().unwrap().iter().map(|session| session["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["bash", "fsharp", "python", "typescript"], "both Bash files ran in one session");
    let other = world.run(["run", "a.py", "--kind", "xpython"]);
    assert_eq!((other.code, other.stdout.as_str()), (0, "42\n"), "{other:?}");
}

#[test]
fn what_no_session_here_can_run_is_refused_with_what_to_do() {
    let world = World::with_jupyter();
    let cobol = json!({ "nbformat": 4, "nbformat_minor": 5, "cells": [],
        "metadata": { "kernelspec": { "name": "cobol-85", "display_name": "COBOL", "language": "COBOL" } } });
    std::fs::write(world.work().join("a.ipynb"), cobol.to_string()).unwrap();
    std::fs::write(world.work().join("a.py"), "1").unwrap();
    succeeded(world.run(["session", "new", "--kind", "bash", "--name", "shell"]));
    let refused = [
        world.run(["run", "a.ipynb"]),
        world.run(["run", "a.py", "--session", "shell"]),
        world.run(["export", "shell", "--format", "py"]),
    ];
    let told: String = refused.into_iter().map(|refused| refused.stderr).collect();
    insta::assert_snapshot!(told, @"
    error: there is no kernel for sessions of kind `cobol-85` [kernel_unknown]
      See `mainstay kernel list` for the kinds there are; `mainstay kernel install python` installs Python, other languages come with the Jupyter kernels of your environment.
    error: session is not valid: it is of kind `bash`, and `a.py` is for `python`; name one of that kind, or create one [invalid_argument]
      Correct it and try again.
    error: format is not valid: `py` is for sessions of `python`, and this one is of `bash`; there are sh, ipynb and markdown [invalid_argument]
      Correct it and try again.
    ");
}

#[test]
fn a_session_of_any_language_becomes_files_of_it() {
    let world = World::with_jupyter();
    for (kind, cells) in [
        ("python3", ["prices = [3, 1]", "max(prices)", "missing"]),
        ("bash", ["x=41", "echo $x", "false"]),
        ("deno", ["const x: number = 41", "x + 1", "throw new Error('no')"]),
    ] {
        succeeded(world.run(["session", "new", "--kind", kind, "--name", kind]));
        for code in cells {
            world.run(["eval", "--session", kind, code]);
        }
        let file = format!("{kind}.ipynb");
        succeeded(world.run(["export", kind, "--output", &file]));
        validate(&world.work().join(&file));
    }
    let named = |file: &str| read(&world.work().join(file))["metadata"].to_string();
    insta::assert_snapshot!(["python3.ipynb", "bash.ipynb", "deno.ipynb"].map(named).join("\n"), @r#"
    {"kernelspec":{"display_name":"Python 3 (ipykernel)","language":"python","name":"python3"},"language_info":{"name":"python"}}
    {"kernelspec":{"display_name":"Bash","language":"bash","name":"bash"},"language_info":{"name":"bash"}}
    {"kernelspec":{"display_name":"Deno","language":"typescript","name":"deno"},"language_info":{"name":"typescript"}}
    "#);
    let markdown = |kind: &str| succeeded(world.run(["export", kind, "--format", "markdown"])).stdout;
    for (kind, fence) in [("python3", "```python\n"), ("bash", "```bash\n"), ("deno", "```typescript\n")] {
        assert!(markdown(kind).contains(fence), "{kind}");
    }
    let script = |kind: &str, format: &str| succeeded(world.run(["export", kind, "--format", format])).stdout;
    insta::assert_snapshot!(script("python3", "py") + &script("bash", "sh") + &script("deno", "ts"), @"
    # %%
    prices = [3, 1]

    # %%
    max(prices)

    # %%
    # did not run to its end: NameError
    # missing
    # %%
    x=41

    # %%
    echo $x

    # %%
    # did not run to its end: Error
    # false
    // %%
    const x: number = 41

    // %%
    x + 1

    // %%
    // did not run to its end: Error
    // throw new Error('no')
    ");
    // A script runs again, as does what was exported whole.
    succeeded(world.run(["export", "python3", "--output", "out.py"]));
    let again = succeeded(world.run(["run", "out.py", "--session", "python3"]));
    assert_eq!(again.stdout, "3\n");
    for (kind, code, shown) in
        [("python3", "prices", "[3, 1]\n"), ("bash", "echo $x", "41\n"), ("deno", "x", "41\n")]
    {
        let (file, name) = (format!("{kind}.jsonl"), format!("{kind}-again"));
        succeeded(world.run(["export", kind, "--output", &file]));
        succeeded(world.run(["import", &file, "--name", &name]));
        let evaluated = succeeded(world.run(["eval", "--session", &name, code]));
        assert_eq!(evaluated.stdout, shown);
    }
}

/// Says something to the daemon over HTTP, and gives what it answers.
fn say(world: &World, port: u64, path: &str, body: &Value) -> String {
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let (token, body) = (token.trim(), body.to_string());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn agents_and_programs_run_notebooks_of_any_language() {
    let world = World::with_jupyter();
    let file = world.work().join("steps.py");
    std::fs::write(&file, "x = 41\n# %%\nx + 1\n").unwrap();
    let by_agent = call(&world, "run_notebook", &json!({ "path": file }));
    assert_eq!(by_agent["cells"][1]["eval"]["value"], "42", "{by_agent}");
    let session = world.session();
    assert_eq!(session["kind"], "python", "it is created for it");
    succeeded(world.run(["eval", "--kind", "bash", "true"]));
    let again = call(&world, "run_notebook", &json!({ "path": file }));
    assert_eq!(
        again["sessionId"], by_agent["sessionId"],
        "one of another language has been active since: {again}"
    );

    let port = world.run(["status", "--json"]).json()["port"].as_u64().unwrap();
    let run = json!({ "path": file });
    let by_program =
        say(&world, port, &format!("/sessions/{}/notebooks", session["session"].as_str().unwrap()), &run);
    assert!(by_program.contains(r#""ranBefore":true"#), "{by_program}");

    succeeded(world.run(["session", "new", "--kind", "bash", "--name", "shell"]));
    let refused = say(&world, port, "/sessions/shell/notebooks", &run);
    assert!(
        refused.contains(r#""code":"invalid_argument""#) && refused.contains("is for `python`"),
        "{refused}"
    );
    let refused = call(&world, "run_notebook", &json!({ "path": file, "sessionId": "shell" }));
    assert_eq!(refused["code"], "invalid_argument", "{refused}");
}
