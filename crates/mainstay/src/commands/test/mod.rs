//! The command `mainstay test`, which runs tests.

mod pending_changes;
mod watch_mode;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{Error, JobSpec, TestRun, TestSelection, TestTimeout};
use mainstay_protocol::operations::ListTests;
use mainstay_protocol::view::{EvalView, SessionView};
use mainstay_runner::query::{Test as Listed, Tests};
use mainstay_terminal::{Paint, Tone, note, printable};
use mainstay_terminal_client::connect::{Connection, connected};
use mainstay_terminal_client::sessions::settle;

use self::watch_mode::WatchMode;
use super::conditions::{SentArgs, milliseconds};
use super::eval::{Answer, Run, Show, Source};
use super::rebuild::build;
use super::target::Target;

/// Runs the tests that a session's code defined, and those of the assemblies it refers to.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Test {
    /// Only tests with this in their full name, in any case; with * it is the whole name
    pattern: Option<String>,

    /// Only tests of this category, or with this trait, written NAME=VALUE
    #[arg(short, long)]
    category: Option<String>,

    /// How long each test may take: 90s, 500ms, 2m [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = test_timeout)]
    timeout: Option<TestTimeout>,

    /// List the tests; none runs
    #[arg(short, long, conflicts_with = "timeout")]
    list: bool,

    /// Go on: run again what a change touches, and build a project whose sources were written
    #[arg(short, long, conflicts_with = "list")]
    watch: bool,

    #[command(flatten)]
    target: Target,

    /// Print JSON; with --watch a line for each run
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mainstay test                            # all of them
  mainstay test price --timeout 5s         # those with `price` in their names, five seconds for each
  mainstay test --category slow --json
  mainstay test --list                     # which there are
  mainstay test --watch                    # and again when something has changed

Exit codes: 0 all that ran passed (with --list: there are some; with --watch: when they last ran), 1 one failed, ran out of time or could not be run, or there was none,
2 the command line was wrong.";

fn test_timeout(text: &str) -> Result<TestTimeout, String> {
    TestTimeout::new(milliseconds(text)?).ok_or_else(|| "it is longer than can be counted".to_owned())
}

impl Test {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match (self.list, self.watch) {
            (true, _) => self.list(home).await,
            (false, true) => self.watch(home).await,
            (false, false) => self.run_tests(home).await,
        }
    }

    async fn watch(self, home: &Home) -> Result<ExitCode, Error> {
        let shape = if self.json { Shape::JsonLine } else { Shape::Text };
        let (session, selection) = self.selected(home).await?;
        let (_, session) = settled(home, &session).await?;
        WatchMode::new(home, session, selection, shape)?.run().await
    }

    async fn list(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { pattern, category, target, json, .. } = self;
        let list = async |Connection { client, .. }: &Connection| {
            let session = target.in_use(home, client).await?.session.to_string();
            client.call(ListTests { session, pattern: pattern.clone(), category: category.clone() }).await
        };
        let (_, tests) = connected(home, "cli", list).await?;
        if json {
            super::print_json(&tests)?;
        } else {
            print!("{}", tests_text(&tests, Paint::stdout()));
            tests.notes.iter().for_each(|text| note(text));
        }
        Ok(if tests.items.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    async fn run_tests(self, home: &Home) -> Result<ExitCode, Error> {
        let shape = if self.json { Shape::Json } else { Shape::Text };
        let (session, selection) = self.selected(home).await?;
        if !built(home, &session, shape).await? {
            return Ok(ExitCode::FAILURE);
        }
        let succeeded = match run_once(home, session.session.to_string(), &selection, shape).await? {
            Some(TestReport { run: Some(run), is_whole }) => is_whole && run.succeeded(),
            Some(TestReport { run: None, .. }) | None => false,
        };
        Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The session that is meant, and the tests of it.
    async fn selected(self, home: &Home) -> Result<(SessionView, TestSelection), Error> {
        let Self { pattern, category, timeout, target, .. } = self;
        let selection = TestSelection { pattern, category, timeout_ms: timeout, ..TestSelection::default() };
        let find = async |connection: &Connection| target.find_or_create(home, &connection.client).await;
        let (_, session) = connected(home, "cli", find).await?;
        TestSelection::is_known_to(&session.kind, session.capabilities())?;
        Ok((session, selection))
    }
}

/// A session once it takes commands, and the connection that told so.
async fn settled(home: &Home, session: &SessionView) -> Result<(Connection, SessionView), Error> {
    connected(home, "cli", async |connection: &Connection| settle(&connection.client, session.clone()).await)
        .await
}

/// Builds the project of a session where its sources have changed, so that no test passes for what is not there any more. Whether what
/// runs next is as new as the sources.
async fn built(home: &Home, session: &SessionView, shape: Shape) -> Result<bool, Error> {
    let (connection, session) = settled(home, session).await?;
    if session.startup.as_ref().is_none_or(|startup| startup.unbuilt.is_none()) {
        return Ok(true);
    }
    let is_text = shape == Shape::Text;
    let (view, _) = build(home, connection, &session, JobSpec::Build, SentArgs::default(), is_text).await?;
    if view.success {
        settled(home, &session).await?;
    } else if is_text {
        note("no test was run: they would have been those of an older build");
    } else {
        super::print_json(&view)?;
    }
    Ok(view.success)
}

/// How what came of tests is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Json,
    JsonLine,
}

/// What came of tests that ran.
struct TestReport {
    /// None where a test ended the worker, or the run was cancelled.
    run: Option<TestRun>,
    /// Whether the code that ran them succeeded.
    is_whole: bool,
}

/// What runs a selection of tests.
fn run_of(selection: &TestSelection, shape: Shape) -> Run {
    let source =
        Source { code: selection.code(), file: None, command_line: None, lines_before: 0, is_script: true };
    let show = match shape {
        Shape::Text => Show::Output,
        Shape::Json | Shape::JsonLine => Show::Nothing,
    };
    Run::new(source, show)
}

/// Runs tests in a session, and tells what came of them; none where nobody waited for the end.
async fn run_once(
    home: &Home,
    session: String,
    selection: &TestSelection,
    shape: Shape,
) -> Result<Option<TestReport>, Error> {
    let target = Target { session: Some(session), ..Target::default() };
    let answer = run_of(selection, shape).awaited(home, target, SentArgs::default()).await?;
    answer.map(|answer| reported(answer, shape)).transpose()
}

/// Tells what came of tests.
fn reported(answer: Answer, shape: Shape) -> Result<TestReport, Error> {
    let run = tested(&answer.eval);
    match (shape, &run) {
        (Shape::Text, _) => {}
        (Shape::Json, Some(run)) => super::print_json(run)?,
        (Shape::JsonLine, Some(run)) => super::print_json_line(run)?,
        // What there is to say is said of the eval.
        (Shape::Json, None) => super::print_json(&answer.eval)?,
        (Shape::JsonLine, None) => super::print_json_line(&answer.eval)?,
    }
    Ok(TestReport { run, is_whole: answer.eval.success })
}

fn tested(eval: &EvalView) -> Option<TestRun> {
    eval.displays.iter().find_map(|shown| TestRun::shown(&shown.display))
}

/// A test a line.
fn tests_text(tests: &Tests, paint: Paint) -> String {
    let mut text = String::new();
    for Listed { name, framework, assembly, categories, skipped, cases } in &tests.items {
        let place = assembly.as_deref().map(|assembly| format!(", {assembly}")).unwrap_or_default();
        let cases = match cases {
            Some(1) => String::new(),
            Some(count) => format!(", {count} cases"),
            None => ", cases not known yet".to_owned(),
        };
        let categories: String = categories.iter().map(|category| format!(" [{category}]")).collect();
        let skipped = skipped.as_deref().map(|reason| format!(" skipped: {reason}")).unwrap_or_default();
        let name = paint.tone(Tone::Name, &printable(name));
        let rest = format!("({framework}{place}{cases}){categories}{skipped}");
        let _ = writeln!(text, "{name} {}", paint.tone(Tone::Faint, &printable(&rest)));
    }
    let left = tests.found.saturating_sub(tests.items.len() as u64);
    if left > 0 {
        let _ = writeln!(text, "{}", paint.tone(Tone::Faint, &format!("… {left} more")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_listed_with_what_is_known_of_it() {
        let test = |name: &str, cases| Listed {
            name: name.to_owned(),
            framework: "NUnit".to_owned(),
            assembly: None,
            categories: Vec::new(),
            skipped: None,
            cases,
        };
        let items = vec![
            test("adds", Some(1)),
            Listed { categories: vec!["slow".to_owned()], ..test("doubles", Some(3)) },
            Listed {
                assembly: Some("Shop.Tests".to_owned()),
                skipped: Some("not yet".to_owned()),
                ..test("sells", None)
            },
        ];
        let tests = Tests { items, found: 5, notes: Vec::new() };
        insta::assert_snapshot!(tests_text(&tests, Paint::plain()), @"
        adds (NUnit)
        doubles (NUnit, 3 cases) [slow]
        sells (NUnit, Shop.Tests, cases not known yet) skipped: not yet
        … 2 more
        ");
    }
}
