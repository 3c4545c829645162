//! How a client of dialect A has a job be trusted with more for a time. Source: draft-arcp-01, 15.6.
//!
//! The engine asks, and the lease is part of the job's grant. Here is kept only who waits for what came of it: a client that sends its request again is
//! told by what is in the log.

use std::time::Duration;

use mainstay_arcp_protocol::a::control::Nack;
use mainstay_arcp_protocol::a::permission::{PermissionDeny, PermissionRequest};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::command::Elevate;
use mainstay_model::elevation::Elevation;
use mainstay_model::grant::LeaseChange;
use mainstay_model::{
    AskEnding, Command, CommandId, Error, EventBody, LeaseId, Outcome, Response, Seq, SessionCommand,
    SessionId,
};

use super::awaited_elevation::{Awaited, PERMISSION};
use super::{A, delegation, errors, news};
use crate::session::Session;

/// How many events are read at once.
const PAGE: usize = 100;

impl Session<A> {
    /// Has people be asked whether a job of the principal may do more for a time.
    pub(super) async fn request_permission(
        &mut self,
        id: &str,
        job: Option<String>,
        request: PermissionRequest,
    ) -> Result<(), Error> {
        let asked = match self.elevation_of(request) {
            Ok(elevation) => self.elevate(id, job, elevation).await?,
            Err(nack) => Err(nack),
        };
        let asked = match asked {
            Ok((home, Outcome::Done { response: Response::Recorded { seq } })) => Ok((home, seq)),
            Ok((_, Outcome::Failed { error })) => Err(errors::of_error(&error)),
            Ok((_, Outcome::Done { .. })) => {
                let step = "Ask again with an `id` that no message of the session has had.";
                Err(errors::nack(ErrorCode::AlreadyExists, "the message asked for something else", step))
            }
            Err(nack) => Err(nack),
        };
        match asked {
            Ok((home, raised)) => self.await_elevation(id, home, raised).await,
            Err(nack) => {
                self.nack(id, nack).await;
                Ok(())
            }
        }
    }

    /// What a request wants; else why it is refused.
    fn elevation_of(&self, request: PermissionRequest) -> Result<Elevation, Nack> {
        let PermissionRequest { permission, resource, operation, reason, requested_lease_seconds, .. } =
            request;
        let Some(level) = permission.strip_prefix(PERMISSION) else {
            let reason = format!("a client asks for `{PERMISSION}` and a level; a job asks for all else");
            let step = format!("Ask for `{PERMISSION}trusted`, or let the job ask.");
            return Err(errors::nack(ErrorCode::Unimplemented, reason, &step));
        };
        let refused = |error: Error| errors::of_error(&error);
        let missing = |field: &str| {
            let step = format!("Ask again with `{field}` in the payload.");
            errors::nack(ErrorCode::InvalidArgument, format!("the {field} is missing"), &step)
        };
        let kind = operation.ok_or_else(|| missing("operation"))?;
        let seconds = requested_lease_seconds.unwrap_or(news::ASKED_FOR_SECONDS);
        let duration = Duration::from_secs(seconds).as_millis();
        Ok(Elevation {
            level: level.parse().map_err(refused)?,
            kind: delegation::kind_of(&kind).map_err(refused)?,
            pattern: resource.ok_or_else(|| missing("resource"))?,
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
            reason,
            asker: Some(self.stored.id.clone()),
        })
    }

    /// Has the session ask that has the job; what came of that is the same, however often the message comes.
    async fn elevate(
        &self,
        id: &str,
        job: Option<String>,
        elevation: Elevation,
    ) -> Result<Result<(SessionId, Outcome), Nack>, Error> {
        let Some(job) = job else {
            let reason = "the job_id of the envelope names the job that is to be trusted";
            let step = "Ask again with the `job_id` of the job in the envelope.";
            return Ok(Err(errors::nack(ErrorCode::InvalidArgument, reason, step)));
        };
        let Ok(target) = CommandId::new(job) else { return Ok(Err(errors::no_such_job())) };
        let Some((home, has_ended)) = self.place_of(&target).await? else {
            return Ok(Err(errors::no_such_job()));
        };
        let command = self.command_of(id)?;
        let outcome = match self.outcome_of(&command).await {
            Some(outcome) => outcome,
            None if has_ended => {
                return Ok(Err(errors::job_has_ended()));
            }
            None => {
                let body = SessionCommand::Elevate(Elevate { target, elevation });
                let command = Command::new(command, self.client.source(), body);
                self.client.submit(home, command).await.map(|answered| answered.outcome)
            }
        };
        match outcome {
            Ok(outcome) => Ok(Ok((home, outcome))),
            Err(Error::DaemonStopping) => Err(Error::DaemonStopping),
            Err(error) => Ok(Err(errors::of_error(&error))),
        }
    }

    /// Answers the request once somebody has decided.
    async fn await_elevation(&mut self, id: &str, home: SessionId, raised: Seq) -> Result<(), Error> {
        let event = self.client.events(home, Seq(raised.0.saturating_sub(1)), 1).await?.pop();
        let Some(EventBody::AskRaised(asked)) = event.map(|event| event.body) else {
            self.nack(id, lost()).await;
            return Ok(());
        };
        if self.dialect.elevations.iter().all(|awaited| awaited.message != id) {
            let awaited = Awaited { message: id.to_owned(), home, ask: asked.ask, raised };
            self.dialect.elevations.push(awaited);
        }
        Ok(())
    }

    /// Answers the requests on which somebody has decided.
    pub(super) async fn answer_elevations(&mut self) -> Result<(), Error> {
        for awaited in std::mem::take(&mut self.dialect.elevations) {
            let home = self.client.seen_session(awaited.home).await?;
            let waits = home.is_some_and(|home| home.ask(awaited.ask).is_some());
            if waits {
                self.dialect.elevations.push(awaited);
            } else {
                let message = self.decision_on(&awaited).await?;
                self.answer(&awaited.message, message).await;
            }
        }
        Ok(())
    }

    /// What is said of a request on which somebody has decided, by the log.
    async fn decision_on(&self, awaited: &Awaited) -> Result<Message, Error> {
        let Awaited { home, ask, raised, .. } = awaited;
        let lease = LeaseId::from(*ask);
        let mut after = *raised;
        loop {
            let page = match self.client.events(*home, after, PAGE).await {
                Err(Error::SessionNotFound { .. }) => return Ok(Message::Nack(lost())),
                page => page?,
            };
            let Some(last) = page.last() else { return Ok(Message::Nack(lost())) };
            after = last.seq;
            for event in page {
                match event.body {
                    EventBody::AskEnded { ask: ended, ending, .. }
                        if ended == *ask && !news::gives_elevation(&ending) =>
                    {
                        let reason = Some(denied_since(&ending).to_owned());
                        return Ok(Message::PermissionDeny(PermissionDeny { reason }));
                    }
                    // It comes right behind the answer.
                    EventBody::LeaseChanged {
                        lease: given, change: LeaseChange::Granted { terms }, ..
                    } if given == lease => {
                        return Ok(Message::LeaseGranted(news::lease_granted(*home, lease, &terms)));
                    }
                    _ => {}
                }
            }
        }
    }
}

const fn denied_since(ending: &AskEnding) -> &'static str {
    match ending {
        AskEnding::Answered { .. } | AskEnding::Withheld => "it was not allowed",
        AskEnding::Defaulted { .. } | AskEnding::TimedOut { .. } => "nobody answered in time",
        AskEnding::Cancelled => "the question was taken back, or the job has ended",
    }
}

fn lost() -> Nack {
    let step = "Ask again in a new message.";
    errors::nack(ErrorCode::DataLoss, "what came of it is no longer in the log", step)
}
