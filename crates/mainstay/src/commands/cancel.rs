//! `mainstay cancel`

use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::{CancelSession, Subscribe};
use mainstay_model::{Error, Event, EventBody, JobId};

use super::target::Target;
use crate::connect::connect;
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
        connection.client.call(CancelSession { session }).await?;
        let mut ended: Option<String> = None;
        while let Some(event) = connection.events.recv().await {
            if let Some(how) = before.running.and_then(|job| end_of(&event, job)) {
                ended = Some(how);
            }
            let is_ready_again = matches!(event.body, EventBody::WarmUpCompleted { .. } | EventBody::SessionFaulted { .. });
            match &ended {
                Some(how) if how == "yielded" || how == "ended" || is_ready_again => break,
                Some(_) | None => {}
            }
        }
        match ended.as_deref() {
            Some("killed") => terminal::note("cancelled; the worker had to be killed and the session was rebuilt"),
            Some("ended") => terminal::note("the code ended by itself before it could be cancelled"),
            Some(_) => terminal::note("cancelled"),
            None => return Err(Error::DaemonNotRunning),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// How the job ended, where this event ends it.
fn end_of(event: &Event, running: JobId) -> Option<String> {
    let kind = serde_json::to_value(&event.body).ok()?;
    let of: JobId = serde_json::from_value(kind.get("body")?.get("job")?.clone()).ok()?;
    if of != running {
        return None;
    }
    match &event.body {
        EventBody::EvalCancelled { ending, .. } => Some(match ending {
            mainstay_model::event::CancelEnding::Yielded => "yielded".to_owned(),
            mainstay_model::event::CancelEnding::Killed => "killed".to_owned(),
        }),
        EventBody::EvalCompleted { .. } | EventBody::EvalFailed { .. } | EventBody::EvalInterrupted { .. } => {
            Some("ended".to_owned())
        }
        _ => None,
    }
}
