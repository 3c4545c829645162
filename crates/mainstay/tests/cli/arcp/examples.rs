//! The examples of ARCP, run as their users run them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::world;
use crate::support::{World, python};

fn command(world: &World, script: &str) -> Command {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/arcp/");
    let mut command = Command::new(python());
    command
        .arg(format!("{folder}{script}"))
        .current_dir(world.work())
        .env("MAINSTAY_HOME", world.home())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    command
}

/// An example that runs.
struct Example {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Example {
    fn begin(world: &World, script: &str, arguments: &[&str]) -> Self {
        let mut child = command(world, script).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// What it prints from here on, and whether it succeeds.
    fn rest(mut self) -> (String, bool) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().success())
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn the_examples_open_a_session_run_code_and_answer_it() {
    let world = world();
    let ran = |script: &str, arguments: &[&str]| Example::begin(&world, script, arguments).rest();
    let (told, ok) = ran("session.py", &[]);
    assert!(
        ok && told.starts_with("mainstay serves this session with artifacts") && told.ends_with("pong 7\n")
    );
    assert_eq!(ran("invoke.py", &[]), ("step 0\nstep 1\nstep 2\n= 42\n".to_owned(), true));
    assert_eq!(ran("invoke.py", &["python3", "1 / 0"]), (String::new(), false));
    assert_eq!(
        ran("invoke.py", &["python3", "shared + 1"]),
        ("= 42\n".to_owned(), true),
        "it is the live session"
    );
    let told = "your name? Ada\njob.completed 'hello Ada'\n";
    assert_eq!(ran("human_input.py", &["Ada"]), (told.to_owned(), true));
}

#[test]
fn an_agent_does_what_the_example_allows_and_nothing_else() {
    let world = World::new();
    assert_eq!(world.run(["prompt", "--kind", "agent", "say Hello."]).code, 0);
    let task = "do fs.write /work/a\ndo fs.read /work/a";
    let (told, ok) = Example::begin(&world, "permissions.py", &["agent", task, "fs.read"]).rest();
    assert!(ok, "{told}");
    insta::assert_snapshot!(told, @"
    fs.write /work/a is not allowed
    fs.read /work/a is allowed
    job.completed fs.read /work/a is done
    ");
}

#[test]
fn the_examples_observe_and_answer_what_comes_by_another_protocol() {
    let world = world();
    let mut observer = Example::begin(&world, "observe.py", &["2"]);
    let mut relay = Example::begin(&world, "relay.py", &[]);
    assert_eq!((observer.line().as_str(), relay.line().as_str()), ("observing\n", "relaying\n"));
    assert_eq!(world.run(["eval", "--kind", "python3", "print('hello')"]).stdout, "hello\n");
    // Whoever runs it says nothing: the end of its input would be an answer too.
    let asks = world.start_eval_with(&["--kind", "python3"], "input('your name? ')");
    let told = "your name? Ada\nno answer is needed any more: answered\n";
    assert_eq!(relay.rest(), (told.to_owned(), true));
    let asked = asks.wait_with_output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    let told = "job.started \nstream.chunk hello\njob.completed \njob.started \njob.completed \n";
    assert_eq!(observer.rest(), (told.to_owned(), true));
}

#[test]
fn a_client_that_reads_slowly_is_told_why_it_is_refused() {
    let world = world();
    let elsewhere = world.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::copy(world.home().join("daemon.json"), elsewhere.join("daemon.json")).unwrap();
    std::fs::write(elsewhere.join("token"), "wrong").unwrap();
    let refused = command(&world, "session.py").env("MAINSTAY_HOME", elsewhere).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.starts_with("UNAUTHENTICATED: "), "{said}");
}
