//! `mainstay cancel`

use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::{CancelSession, Subscribe};
use mainstay_model::event::CancelEnding;
use mainstay_model::{Error, Event, EventBody, JobId};

use super::target::Target;
use crate::connect::{Connection, connect};
use crate::home::Home;
use crate::terminal;

/// Stops the code that runs in a session, and waits until it has stopped.
#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    target: Target,
}

impl Cancel {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let mut connection = connect(home, "cli").await?;
        let before = self.target.find(&connection.client).await?;
        let session = before.session.to_string();
        connection.client.call(Subscribe { session: session.clone(), after: before.last_seq }).await?;
        let job = connection.client.call(CancelSession { session }).await?.job;
        let ending = loop {
            let event = next(&mut connection).await?;
            if let Some(ending) = ending_of(&event.body, job) {
                break ending;
            }
        };
        if ending == Ending::Killed {
            wait_until_rebuilt(&mut connection).await?;
        }
        terminal::note(ending.words());
        Ok(ExitCode::SUCCESS)
    }
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
    let (job, ending) = match body {
        EventBody::EvalCancelled { job, ending: CancelEnding::Yielded } => (job, Ending::Yielded),
        EventBody::EvalCancelled { job, ending: CancelEnding::Killed } => (job, Ending::Killed),
        EventBody::EvalCompleted { job, .. }
        | EventBody::EvalFailed { job, .. }
        | EventBody::EvalInterrupted { job } => (job, Ending::ByItself),
        EventBody::SessionCreated { .. }
        | EventBody::SessionRenamed { .. }
        | EventBody::WarmUpStarted { .. }
        | EventBody::WarmUpCompleted { .. }
        | EventBody::SessionFaulted { .. }
        | EventBody::SessionReset
        | EventBody::SessionHardReset
        | EventBody::SessionStopped
        | EventBody::WorkerExited { .. }
        | EventBody::EvalRequested { .. }
        | EventBody::OutputProduced { .. }
        | EventBody::OutputCut { .. }
        | EventBody::CancelRequested { .. } => return None,
    };
    (*job == running).then_some(ending)
}
