//! The command `mainstay coverage`, which tells the lines that tests reach.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_protocol::operations::GetCoverage;
use mainstay_terminal::{Paint, ProgressLine, note};
use mainstay_terminal_client::connect::{Connection, connected};
use mainstay_terminal_client::coverage::{CoverageSubject, coverage_notes, coverage_text};

use super::target::Target;

/// Shows which lines of a session's project tests reach, and how these ended when they last ran. Nothing runs in the session for it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Coverage {
    /// A file, or a function, value or member as Module.name; a function with its tests, what calls it and what it calls
    #[arg(value_name = "FILE|FUNCTION")]
    subject: Option<String>,

    #[command(flatten)]
    target: Target,

    /// Run the tests one at a time, in a process beside the session's, and tell the lines that ran instead of those that may
    #[arg(long)]
    measure: bool,

    /// Print the coverage as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mainstay coverage                        # the files, with how many of their lines passing tests reach
  mainstay coverage Cart.fs                # its lines
  mainstay coverage Cart.price             # a function: its tests, its callers and what it calls
  mainstay coverage --measure              # of the lines that the tests run
  mainstay coverage --json

Without --measure the tests that reach a line are read from the calls in the project's code, as far as nothing was measured.
Exit codes: 0 there are such lines, 1 there are none, 2 the command line was wrong.";

impl Coverage {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { subject, target, measure, json } = self;
        let folder = std::env::current_dir().unwrap_or_default();
        let subject = subject.map(|text| CoverageSubject::read(&text, &folder));
        let ask = async |Connection { client, .. }: &Connection| {
            let session = target.in_use(home, client).await?.session.to_string();
            let (file, name) = CoverageSubject::parts(subject.as_ref());
            client.call(GetCoverage { session, file, name, measure }).await
        };
        let progress = ProgressLine::default();
        if measure {
            progress.show("running the tests one at a time, in a process beside the session's");
        }
        let answered = connected(home, "cli", ask).await;
        progress.clear();
        let (_, coverage) = answered?;
        if json {
            super::print_json(&coverage)?;
        } else {
            print!("{}", coverage_text(&coverage, subject.as_ref(), &folder, Paint::stdout()));
            coverage_notes(&coverage).iter().for_each(|text| note(text));
        }
        Ok(if is_empty(&coverage) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn is_empty(coverage: &mainstay_model::Coverage) -> bool {
    coverage.lines.total == 0
}
