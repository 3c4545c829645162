//! `mainstay arcp cancel`: stops a job of ARCP.
//!
//! ARCP lets a job be cancelled by the session that submitted it alone. Who has the daemon's token may do so by the engine's own command.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{CommandId, Error};
use mainstay_protocol::operations::{CancelSession, GetCommand};
use mainstay_protocol::view::CommandState;
use mainstay_protocol::{Conditions, Sent};
use mainstay_terminal::note;
use mainstay_terminal_client::connect::{Connection, connected};

/// Stop a job of yours, whichever session submitted it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp cancel job_4Z…\n\nExit codes: 0 the job was told to stop, 1 it is not there or has ended."
)]
pub(super) struct Cancel {
    /// The job, as `mainstay arcp submit --detach` or `job.accepted` names it
    #[arg(value_parser = |text: &str| CommandId::new(text))]
    job: CommandId,
}

impl Cancel {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let job = self.job;
        let cancel = async |connection: &Connection| {
            let found = connection.client.call(GetCommand { command: job.clone() }).await?;
            let session = match (found.state, found.session) {
                (CommandState::Waits | CommandState::Runs, Some(session)) => session,
                _ => return Err(Error::NotRunning { command: job.clone() }),
            };
            let sent = Sent { command: None, conditions: Conditions::default() };
            let cancel = CancelSession {
                session: session.to_string(),
                target: Some(job.clone()),
                grace_ms: None,
                sent,
            };
            connection.client.call(cancel).await.map(drop)
        };
        connected(home, "cli", cancel).await?;
        note("told to stop");
        Ok(ExitCode::SUCCESS)
    }
}
