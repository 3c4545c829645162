//! Permissions that hold for a time. Source: draft-arcp-01, 15.4 and 15.5.
//!
//! A lease is part of the grant of the job that holds it, in the engine. Its name on the wire has the engine's session that runs the job, so
//! nothing is kept here to find it.

use std::time::Duration;

use mainstay_arcp_protocol::a::control::{Ack, Nack};
use mainstay_arcp_protocol::a::permission::{LeaseRefresh, LeaseRevoked, PermissionGrant};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_engine::CommandStatus;

use mainstay_model::command::{ExtendLease, RevokeLease};
use mainstay_model::elevation::{Elevation, TrustLevel};
use mainstay_model::grant::{AskedOperation, LeaseTerms};
use mainstay_model::permission::Permission;
use mainstay_model::{
    Command, CommandId, Error, LeaseId, Outcome, PendingAsk, SessionCommand, SessionId, Timestamp,
    TrustRefusal,
};

use super::awaited_elevation::PERMISSION;
use super::{A, errors, ids, quorum};
use crate::job_id::{Submission, job_id};
use crate::session::Session;

/// For how long an answer gives a permission, and for what; none where it allows the operation once.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is about something else than what was asked.
pub(super) fn terms_of(
    grant: PermissionGrant,
    pending: &PendingAsk,
    now: Timestamp,
) -> Result<Option<LeaseTerms>, Error> {
    let PermissionGrant { permission, resource, operation, lease_seconds, expires_at } = grant;
    let elevation = pending.elevation();
    let asked = Permission::operation(&pending.ask.question);
    let (wanted, kind, target) = match (&elevation, &asked) {
        (Some(Elevation { level, kind, pattern, .. }), _) => {
            (format!("{}{level}", PERMISSION), kind, pattern)
        }
        (None, Some(AskedOperation { kind, target, .. })) => (kind.to_string(), kind, target),
        (None, None) => return Ok(None),
    };
    let named = [("permission", permission, wanted.as_str()), ("operation", operation, kind.as_str())];
    for (argument, named, wanted) in named {
        if named.is_some_and(|named| named != wanted) {
            let reason = format!("`{wanted}` was asked for");
            return Err(Error::InvalidArgument { argument: argument.to_owned(), reason });
        }
    }
    let pattern = resource.filter(|resource| resource != target);
    if let (None, Some(asked), Some(pattern)) = (&elevation, &asked, &pattern) {
        asked.covered_by(pattern)?;
    }
    if let (Some(elevation), Some(pattern)) = (&elevation, &pattern) {
        let given = LeaseTerms { duration_ms: elevation.duration_ms, pattern: Some(pattern.clone()) };
        elevation.terms(Some(given))?;
    }
    let until_then = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
    let durations = [lease_seconds.map(Duration::from_secs), expires_at.map(until_then)];
    let Some(duration) = durations.into_iter().flatten().min() else { return Ok(None) };
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Ok(Some(LeaseTerms { duration_ms, pattern }))
}

impl Session<A> {
    /// Has a job of the session hold a permission for longer, which only its holder asks for, or takes one back, which whoever may answer for
    /// the principal may do.
    pub(super) async fn change_lease(&mut self, id: &str, message: Message) -> Result<(), Error> {
        let (lease_id, is_for_holder) = match &message {
            Message::LeaseRefresh(refresh) => (&refresh.lease_id, true),
            Message::LeaseRevoked(revoked) => (&revoked.lease_id, false),
            _ => return Ok(()),
        };
        let Some((home, lease)) = ids::lease_of(lease_id) else {
            self.nack(id, no_lease("no lease of this runtime has this id")).await;
            return Ok(());
        };
        let command = self.command_of(id)?;
        let changed = match self.outcome_of(&command).await {
            Some(outcome) => outcome,
            None => match self.holder_of(home, lease).await? {
                Some((_, Some(_))) if is_for_holder => {
                    Err(Error::TrustRefused { refusal: TrustRefusal::Extension })
                }
                Some((job, _)) if is_for_holder && !self.is_own(&job) => {
                    let reason = "only the session that submitted the job asks for more time";
                    let step = "Refresh it through that session, or ask for the permission anew.";
                    self.nack(id, errors::nack(ErrorCode::PermissionDenied, reason, step)).await;
                    return Ok(());
                }
                Some(_) => {
                    let command = Command::new(command, self.client.source(), change_of(message, lease));
                    self.client.submit(home, command).await.map(|answered| answered.outcome)
                }
                None => {
                    self.nack(id, no_lease("no job that runs holds this lease")).await;
                    return Ok(());
                }
            },
        };
        self.settle(id, changed).await
    }

    /// The command of the job that runs in a session of the engine and holds this lease, and the level to which that raises it.
    async fn holder_of(
        &self,
        home: SessionId,
        lease: LeaseId,
    ) -> Result<Option<(CommandId, Option<TrustLevel>)>, Error> {
        let session = self.client.seen_session(home).await?;
        let running = session.as_ref().and_then(|session| session.running());
        Ok(running.and_then(|running| {
            let held = running.grants.as_ref()?.leases().get(&lease)?;
            Some((running.command.clone(), held.level()))
        }))
    }

    /// The command that a message is: the same one, however often the message comes.
    pub(super) fn command_of(&self, message: &str) -> Result<CommandId, Error> {
        job_id(self.client.principal(), Submission::Message { session: &self.stored.id, message })
    }

    /// What came of a command that was carried out before.
    pub(super) async fn outcome_of(&self, command: &CommandId) -> Option<Result<Outcome, Error>> {
        match self.client.command(command).await {
            Ok(CommandStatus::Ended(stored)) => Some(Ok(stored.outcome)),
            _ => None,
        }
    }

    /// Answers a message by what came of its command.
    pub(super) async fn settle(&self, id: &str, outcome: Result<Outcome, Error>) -> Result<(), Error> {
        match outcome {
            Ok(Outcome::Done { response }) => {
                let details = quorum::details_of(&response);
                self.answer(id, Message::Ack(Ack { details })).await;
            }
            Err(Error::DaemonStopping) => return Err(Error::DaemonStopping),
            Ok(Outcome::Failed { error }) | Err(error) => self.nack(id, errors::of_error(&error)).await,
        }
        Ok(())
    }
}

fn no_lease(reason: &str) -> Nack {
    let step = "Name a `lease_id` of `lease.granted` whose job runs and whose time is not over.";
    errors::nack(ErrorCode::NotFound, reason, step)
}

/// The command that changes a lease as a message says.
fn change_of(message: Message, lease: LeaseId) -> SessionCommand {
    match message {
        Message::LeaseRevoked(LeaseRevoked { reason, .. }) => {
            SessionCommand::RevokeLease(RevokeLease { lease, reason })
        }
        Message::LeaseRefresh(LeaseRefresh { requested_lease_seconds: Some(seconds), .. }) => {
            let duration_ms = Some(seconds.saturating_mul(1_000));
            SessionCommand::ExtendLease(ExtendLease { lease, duration_ms })
        }
        _ => SessionCommand::ExtendLease(ExtendLease { lease, duration_ms: None }),
    }
}
