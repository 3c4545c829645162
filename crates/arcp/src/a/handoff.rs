//! How a client of dialect A hands a job over to another session of its principal. Source: draft-arcp-01, 14.

use mainstay_arcp_protocol::Dialect;
use mainstay_arcp_protocol::a::ErrorCode;
use mainstay_arcp_protocol::a::control::Nack;
use mainstay_arcp_protocol::a::execution::AgentHandoff;
use mainstay_arcp_protocol::a::session::Identity;
use mainstay_model::command::HandOver;
use mainstay_model::{Command, CommandId, Error, Outcome, SessionCommand, SessionId, Timestamp};

use super::handshake::RUNTIME;
use super::{A, capabilities, errors};
use crate::session::Session;
use crate::stored_session::StoredSession;

impl Session<A> {
    /// Hands a job of this session over to the session that is the target. Once that is answered, this one is told no more of the job.
    pub(super) async fn hand_off(
        &mut self,
        id: &str,
        job: Option<String>,
        handoff: AgentHandoff,
    ) -> Result<(), Error> {
        let command = self.command_of(id)?;
        let refused = match self.outcome_of(&command).await {
            Some(outcome) => Ok(outcome),
            None => match self.handed_off(job.clone(), &handoff).await? {
                Ok((home, target)) => {
                    let (from, to) = (self.stored.id.clone(), handoff.target.clone());
                    let body = SessionCommand::HandOver(HandOver { target, from, to });
                    let command = Command::new(command.clone(), self.client.source(), body);
                    Ok(self.client.submit(home, command).await.map(|answered| answered.outcome))
                }
                Err(nack) => Err(nack),
            },
        };
        let refused = match (refused, job.map(CommandId::new)) {
            (Ok(Ok(Outcome::Done { response })), Some(Ok(job))) => {
                match self.taken_back(&command, job, &handoff.target).await? {
                    Some(nack) => Err(nack),
                    None => Ok(Ok(Outcome::Done { response })),
                }
            }
            (refused, _) => refused,
        };
        self.reach_the_end().await?;
        match refused {
            Ok(outcome) => self.settle(id, outcome).await,
            Err(nack) => {
                self.nack(id, nack).await;
                Ok(())
            }
        }
    }

    /// Takes a job back that was handed over to a session that was closed at the same moment, since nobody would hold it; says why, where it did. A
    /// session that learns of the job while it closes stays open instead.
    async fn taken_back(
        &mut self,
        handover: &CommandId,
        job: CommandId,
        target: &str,
    ) -> Result<Option<Nack>, Error> {
        let command = handover.part(1)?;
        if let Some(Ok(Outcome::Done { .. })) = self.outcome_of(&command).await {
            return Ok(Some(gone()));
        }
        let (Err(nack), Some((home, false))) = (self.may_go_on(target).await?, self.place_of(&job).await?)
        else {
            return Ok(None);
        };
        let (from, to) = (target.to_owned(), self.stored.id.clone());
        let body = SessionCommand::HandOver(HandOver { target: job, from, to });
        let command = Command::new(command, self.client.source(), body);
        match self.client.submit(home, command).await.map(|answered| answered.outcome) {
            Ok(Outcome::Done { .. }) => Ok(Some(nack)),
            Err(Error::DaemonStopping) => Err(Error::DaemonStopping),
            // What has ended meanwhile needs nobody who holds it.
            Ok(Outcome::Failed { .. }) | Err(_) => Ok(None),
        }
    }

    /// The job that is handed over, and the session of the engine that has it; else why it stays.
    async fn handed_off(
        &mut self,
        job: Option<String>,
        AgentHandoff { target, runtime, .. }: &AgentHandoff,
    ) -> Result<Result<(SessionId, CommandId), Nack>, Error> {
        if let Err(nack) = self.is_this(runtime) {
            return Ok(Err(nack));
        }
        let Some(Ok(job)) = job.map(CommandId::new) else {
            let reason = "only a job is handed over: name it in the `job_id` of the envelope";
            let step = "Send it again with the `job_id` that `job.accepted` has.";
            return Ok(Err(errors::nack(ErrorCode::InvalidArgument, reason, step)));
        };
        if let Err(nack) = self.may_go_on(target).await? {
            return Ok(Err(nack));
        }
        // What it holds is what the log says now.
        self.reach_the_end().await?;
        let known = self.fold.job(&job).map(|known| (known.home, known.is_own, known.state));
        Ok(match known {
            Some((_, true, state)) if state.is_terminal() => Err(errors::job_has_ended()),
            Some((home, true, _)) => Ok((home, job)),
            None if self.place_of(&job).await?.is_none() => Err(errors::no_such_job()),
            Some(_) | None => {
                let reason = "the job is not this session's; only the session that holds it hands it over";
                let step = "Have the session that holds the job hand it over.";
                Err(errors::nack(ErrorCode::PermissionDenied, reason, step))
            }
        })
    }

    /// Whether the runtime that is to go on with a job is this one; else in which field it is another.
    fn is_this(&self, Identity { kind, fingerprint, .. }: &Identity) -> Result<(), Nack> {
        let reason = match fingerprint.as_deref() {
            _ if kind != RUNTIME => format!("`runtime.kind`: `{kind}` is another runtime"),
            None => "`runtime.fingerprint` is missing".to_owned(),
            Some(named) if named != &*self.daemon.fingerprint => {
                format!("`runtime.fingerprint`: `{named}` is another runtime")
            }
            Some(_) => return Ok(()),
        };
        let step = "Name the `kind` and the `fingerprint` that `session.accepted` has in `runtime`, once you have verified them.";
        Err(errors::nack(ErrorCode::FailedPrecondition, reason, step))
    }

    /// Whether a session can hold a job in the place of this one; else why not.
    async fn may_go_on(&self, target: &str) -> Result<Result<(), Nack>, Error> {
        let found = StoredSession::find(&self.client, target, Timestamp::now()).await?;
        let Some(found) = found.filter(|found| !found.is_closed) else {
            return Ok(Err(gone()));
        };
        let takes_jobs = found.features.iter().any(|feature| feature == capabilities::HANDOFF);
        Ok(match found.dialect == Dialect::A && takes_jobs && target != self.stored.id {
            true => Ok(()),
            false => {
                let reason = "`target`: it is this session, or one that has not agreed on `agent_handoff`";
                let step = "Open the other session with the capability `agent_handoff`.";
                Err(errors::nack(ErrorCode::FailedPrecondition, reason, step))
            }
        })
    }
}

/// The refusal of a session that cannot hold a job any more, or never could.
fn gone() -> Nack {
    let reason = "`target`: this principal has no such session that is open or can be resumed";
    let step = "Name the `session_id` that `session.accepted` gave the other session of this principal.";
    errors::nack(ErrorCode::NotFound, reason, step)
}
