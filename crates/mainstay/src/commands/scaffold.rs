//! The command `mainstay scaffold`, which writes tests.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_protocol::operations::ScaffoldTest;
use mainstay_scaffold::Framework;
use mainstay_terminal_client::connect::connect_or_start;

use super::target::Target;

/// Writes property-based tests of an F# function from its type: candidates, of which those that do not hold are deleted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay scaffold List.rev > rev_tests.fsx\n  mainstay scaffold encode --inverse decode --framework fscheck-xunit\n  mainstay scaffold turn --signature 'int list -> int list'\n\nNothing runs. Exit codes: 0 they were written, 1 they could not be, 2 the command line was wrong."
)]
pub(super) struct Scaffold {
    /// The function, as code names it
    name: String,

    /// Its type [default: what the session knows of it]
    #[arg(long, value_name = "TYPE")]
    signature: Option<String>,

    /// What they are written for; `plain` needs no library
    #[arg(long, default_value = "plain", value_parser = Framework::ALL.map(Framework::name))]
    framework: String,

    /// A function that undoes it
    #[arg(long, value_name = "FUNCTION")]
    inverse: Option<String>,

    #[command(flatten)]
    target: Target,

    /// Print the tests as JSON
    #[arg(long)]
    json: bool,
}

impl Scaffold {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { name, signature, framework, inverse, target, json } = self;
        let connection = connect_or_start(home, "cli").await?;
        let client = &connection.client;
        let session = target.in_use(home, client).await?.session.to_string();
        let scaffold = ScaffoldTest { session, name, signature, framework: Some(framework), inverse };
        let scaffolded = client.call(scaffold).await?;
        if json {
            super::print_json(&scaffolded)?;
        } else {
            print!("{}", scaffolded.code);
        }
        Ok(ExitCode::SUCCESS)
    }
}
