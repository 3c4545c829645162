//! The command `mainstay cancel`, which stops what runs.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::event::CancelEnding;
use mainstay_model::{CommandId, Error, Event, EventBody, JobEnd, JobId};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CancelSession, Follow};
use mainstay_protocol::view::SessionView;
use mainstay_terminal as terminal;
use mainstay_terminal_client::connect::{Connection, connect_or_adopt};
use mainstay_terminal_client::daemon_fate::connect_to_next;
use mainstay_terminal_client::link::is_loss;

use super::conditions::SentArgs;
use super::target::{KIND_SOUGHT, NO_PROJECT_SOUGHT, PROJECT_SOUGHT, Target};

/// Stops the code that runs in a session, and waits until it has stopped.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay cancel\n  mainstay cancel --command 019a2b3c-…   # that eval only, also while it waits for its turn"
)]
#[command(mut_arg("kind", |kind| kind.help(KIND_SOUGHT)), mut_arg("project", |project| project.help(PROJECT_SOUGHT)), mut_arg("no_project", |none| none.help(NO_PROJECT_SOUGHT)))]
pub(super) struct Cancel {
    #[command(flatten)]
    target: Target,

    /// Only this command of yours, which may also still wait for its turn
    #[arg(short, long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    command: Option<CommandId>,

    #[command(flatten)]
    sent: SentArgs,
}

impl Cancel {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let mut connection = connect_or_adopt(home, "cli").await?;
        let session = self.target.find(&connection.client).await?;
        let (command, conditions) = self.sent.named();
        let cancel = CancelSession {
            session: session.session.to_string(),
            target: self.command,
            grace_ms: None,
            sent: Sent { command: Some(command), conditions },
        };
        let words = loop {
            match cancelled(&mut connection, &session, cancel.clone()).await {
                // The next daemon goes on with it, and is asked under the same id.
                Err(error) if is_loss(&error) => {
                    connection = connect_to_next(home, "cli", &connection).await?;
                }
                cancelled => break cancelled?,
            }
        };
        terminal::note(words);
        Ok(ExitCode::SUCCESS)
    }
}

/// Cancels, and waits until that has ended in a session which was found like this. Says how.
async fn cancelled(
    connection: &mut Connection,
    before: &SessionView,
    cancel: CancelSession,
) -> Result<&'static str, Error> {
    connection.client.call(Follow::session(cancel.session.clone(), before.last_seq)).await?;
    let Some(job) = connection.client.call(cancel).await?.job else {
        return Ok("cancelled before anything came of it");
    };
    let ending = loop {
        let event = next(connection).await?;
        if let Some(ending) = ending_of(&event.body, job) {
            break ending;
        }
    };
    if ending == Ending::Killed {
        wait_until_rebuilt(connection).await?;
    }
    Ok(ending.words())
}

/// A worker that was killed is replaced: waits until the session takes code again, or will not by itself.
async fn wait_until_rebuilt(connection: &mut Connection) -> Result<(), Error> {
    loop {
        if matches!(
            next(connection).await?.body,
            EventBody::WarmUpCompleted { .. } | EventBody::SessionFaulted { .. } | EventBody::SessionStopped
        ) {
            return Ok(());
        }
    }
}

async fn next(connection: &mut Connection) -> Result<Event, Error> {
    connection.events.recv().await.ok_or_else(|| connection.client.lost())
}

/// How the job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Yielded,
    Killed,
    ByItself,
}

impl Ending {
    const fn words(self) -> &'static str {
        match self {
            Self::Yielded => "cancelled",
            Self::Killed => "cancelled; the worker had to be killed and the session was rebuilt",
            Self::ByItself => "the code ended by itself before it could be cancelled",
        }
    }
}

/// How `running` ended, where this event ends it.
fn ending_of(body: &EventBody, running: JobId) -> Option<Ending> {
    let (job, end) = body.job_end()?;
    let ending = match end {
        JobEnd::Cancelled(CancelEnding::Yielded) => Ending::Yielded,
        JobEnd::Cancelled(CancelEnding::Killed) => Ending::Killed,
        JobEnd::Completed | JobEnd::Failed | JobEnd::Interrupted => Ending::ByItself,
    };
    (job == running).then_some(ending)
}
