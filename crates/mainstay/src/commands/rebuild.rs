//! `mainstay session rebuild`: builds a session's project, and begins afresh with what was built.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{Error, JobSpec};
use mainstay_protocol::operations::GetSession;
use mainstay_protocol::view::SessionView;
use mainstay_protocol::view::agent::WorkView;
use mainstay_terminal::Paint;
use mainstay_terminal_client::connect::{Connection, connected};
use mainstay_terminal_client::session_text::startup_text;
use mainstay_terminal_client::sessions::settle;

use super::arguments::named;
use super::command_wait::CommandWait;
use super::conditions::SentArgs;
use super::questions::Asker;
use super::runner_job::RunnerJob;

/// Builds a session's project and begins afresh with what was built.
///
/// While it is built the session is as it was, and where the build fails it stays so. Where it succeeds a new worker has the project as it is
/// now, and the definitions are dropped, or run again with `--keep`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session rebuild\n  mainstay session rebuild --keep lab\n\nCtrl-C ends the build.\nExit codes: 0 the session is ready again, 1 the build failed or was cancelled, 2 the command line was wrong."
)]
pub(super) struct Rebuild {
    /// The session [default: the most recently active one of this folder]
    session: Option<String>,

    /// Run the definitions again with what was built, instead of dropping them
    #[arg(long)]
    keep: bool,

    /// Print one line of JSON when it has ended
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sent: SentArgs,
}

/// Builds the project of a session, and waits for the end. What happens meanwhile is shown where `is_shown` says so. Gives what came of it,
/// and the connection over which it came.
///
/// # Errors
/// What stands in the way of the command; a build that fails is none.
pub(super) async fn build(
    home: &Home,
    connection: Connection,
    session: &SessionView,
    work: JobSpec,
    sent: SentArgs,
    is_shown: bool,
) -> Result<(WorkView, Client), Error> {
    let done = RunnerJob::new(work, session, is_shown);
    let mut build = CommandWait::new(done, session, sent.named(), Asker::Build)?;
    let (view, client) = build.answer(home, connection).await?;
    build.shown.finish(&view);
    Ok((view, client))
}

impl Rebuild {
    pub(super) async fn run(self, home: &Home, connection: Connection) -> Result<ExitCode, Error> {
        let Self { session, keep, json, sent } = self;
        let session = named(&connection.client, session).await?;
        let work = if keep { JobSpec::Build } else { JobSpec::Rebuild };
        let (view, _) = build(home, connection, &session, work, sent, !json).await?;
        if json {
            super::print_json_line(&view)?;
        }
        if !view.success {
            return Ok(ExitCode::FAILURE);
        }
        let reference = session.session.to_string();
        let settled = async |Connection { client, .. }: &Connection| {
            settle(client, client.call(GetSession { session: reference.clone() }).await?).await
        };
        let (_, session) = connected(home, "cli", settled).await?;
        if !json {
            print!("{}", startup_text(&session, Paint::stdout()));
        }
        Ok(ExitCode::SUCCESS)
    }
}
