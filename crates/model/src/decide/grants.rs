//! What follows from the grant of a job: its end, what it has spent, and what its agent's tools are about to do.

use serde_json::Value;

use super::{Draft, Effect, Identity, of, of_job};
use crate::agent::{JobSpec, Model, Note};
use crate::ask::PendingAsk;
use crate::command::Delegate;
use crate::error::Error;
use crate::event::{EventBody, Metadata, Source};
use crate::grant::{
    Amounts, AskedOperation, Decimal, Delegator, Denial, Grants, Lease, LeaseChange, LeaseTerms, Operation,
    OperationKind,
};
use crate::id::{AskId, CommandId, JobId, LeaseId, Principal, Seq};
use crate::outcome::{Outcome, Response};
use crate::permission::Permission;
use crate::session::{OPEN_DELEGATIONS, RunningJob};

/// What the tool is called with which agents run commands of a shell.
const SHELL: &str = "bash";

impl Draft<'_> {
    /// Refuses a job whose grant has ended, or has nothing left of its budget.
    ///
    /// # Errors
    /// [`Error::GrantExpired`], [`Error::GrantRevoked`], [`Error::BudgetExhausted`].
    pub(crate) fn check_life(&self, grants: Option<&Grants>) -> Result<(), Error> {
        grants.map_or(Ok(()), |grants| Ok(grants.check_life(self.now)?))
    }

    /// Refuses work that its grant does not cover: a command of a shell, or any for an agent that uses another model.
    ///
    /// # Errors
    /// [`Error::GrantDenied`], and what else the grant refuses.
    pub(super) fn check_work(&self, grants: Option<&Grants>, work: &JobSpec) -> Result<(), Error> {
        self.check_life(grants)?;
        let Some(held) = grants else { return Ok(()) };
        if matches!(work, JobSpec::Shell { .. }) {
            held.check(&Operation::new(OperationKind::TOOL_CALL, SHELL)?, self.now)?;
        }
        self.is_granted(held, self.session.agent.as_ref().and_then(|agent| agent.model.as_ref()))
    }

    /// What the grant of the running job does not allow of what is about to be recorded: the last of a budget was spent, or another model is used.
    pub(super) fn not_granted(&self, body: &EventBody) -> Option<(RunningJob, Error)> {
        let running = self.session.running().filter(|running| !running.is_answered)?;
        let granted = match body {
            EventBody::MessageAdded(message) => {
                let mut grants = running.grants.clone()?;
                grants.spend_on(&message.usage.unwrap_or_default());
                self.check_life(Some(&grants))
            }
            EventBody::AgentChanged(state) => {
                self.is_granted(running.grants.as_deref()?, state.model.as_ref())
            }
            _ => return None,
        };
        granted.err().map(|error| (running.clone(), error))
    }

    /// Tells a runner whether its job may do what it is about to do.
    pub(super) fn check_operation(&mut self, job: JobId, check: AskId, asked: &AskedOperation) {
        let running = self.running(job).filter(|running| !running.cancel_requested);
        let Some(running) = running else {
            return self.effect(Effect::Answer { ask: check, answer: Err(Error::Cancelled) });
        };
        let granted = match &running.grants {
            Some(grants) => asked.operation().and_then(|operation| grants.check(&operation, self.now)),
            None => Ok(()),
        };
        let asks = running.grants.as_ref().is_some_and(|grants| grants.asks());
        if let (Err(Denial::NotCovered { .. }), true, Ok(operation)) = (&granted, asks, asked.operation()) {
            // The answer to the question is that to the check.
            return self.job_asks(job, check, Permission::question(&AskedOperation::from(&operation)), None);
        }
        let answer = granted.map(|()| Value::Null).map_err(Error::from);
        if let Err(error) = &answer {
            let note = Note::Told { level: "warning".to_owned(), message: error.to_string() };
            self.record(of_job(Source::System, &running), EventBody::AgentNoted(note));
        }
        self.effect(Effect::Answer { ask: check, answer });
    }

    /// The lease that an answer to a question for a permission gives.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the answer gives no permission for a time, and as [`Lease::new`].
    pub(super) fn lease_of(
        &self,
        pending: &PendingAsk,
        answer: &Value,
        terms: &LeaseTerms,
    ) -> Result<Lease, Error> {
        let invalid =
            |reason: &str| Error::InvalidArgument { argument: "lease".to_owned(), reason: reason.to_owned() };
        let elevation = pending.elevation();
        let asked = Permission::operation(&pending.ask.question);
        if Permission::of(answer) != Some(Permission::Once) || asked.is_none() && elevation.is_none() {
            return Err(invalid("only the answer `once` to a permission has one"));
        }
        let running = self.session.running().filter(|running| pending.is_of_job(running.job));
        let held = running.and_then(|running| running.grants.as_deref());
        if held.is_none_or(|held| !held.has_room_for_a_lease(self.now)) {
            return Err(invalid("the job cannot hold another"));
        }
        match (elevation, asked) {
            (Some(elevation), _) => {
                let of = (&elevation.kind, elevation.pattern.as_str());
                Lease::of_elevation(elevation.level, of, terms.duration_ms, self.now, self.limits)
            }
            (None, Some(asked)) => Lease::new(asked, terms, self.now, self.limits),
            (None, None) => Err(invalid("no permission was asked for")),
        }
    }

    /// Has the running job hold a permission that the answer to an ask has given.
    pub(super) fn grant_lease(&mut self, by: Source, ask: AskId, answered: Seq, lease: Lease) {
        let change = LeaseChange::Granted { terms: Box::new(lease) };
        self.change_lease(by, Some(answered), LeaseId::from(ask), change);
    }

    /// Has the running job hold a permission for longer.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it does not hold this lease, and as [`Lease::extension`].
    pub(crate) fn extend_lease(
        &mut self,
        metadata: Metadata,
        lease: LeaseId,
        duration_ms: Option<u64>,
    ) -> Result<Response, Error> {
        // Only who has the job asks for more: whoever answers for it gives a permission anew.
        let principal = metadata.source.principal();
        let is_holder = self.session.running().is_some_and(|running| running.source.principal() == principal);
        if !is_holder {
            return Err(not_held(lease));
        }
        let expires_at = self.lease(lease)?.extension(duration_ms, self.now, self.limits)?;
        let held = self.session.running().and_then(|running| running.grants.as_ref());
        if held.and_then(|held| held.quorum()).is_some_and(|quorum| quorum > 1) {
            // One would give what several have to agree on.
            let reason = "several people gave it together; they are asked again once it has ended".to_owned();
            return Err(Error::InvalidArgument { argument: "lease".to_owned(), reason });
        }
        self.change_lease(metadata.source, None, lease, LeaseChange::Extended { expires_at })
            .ok_or_else(|| not_held(lease))
    }

    /// Takes a permission back from the running job.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it does not hold this lease.
    pub(crate) fn revoke_lease(
        &mut self,
        metadata: Metadata,
        lease: LeaseId,
        reason: &str,
    ) -> Result<Response, Error> {
        self.lease(lease)?;
        let change = LeaseChange::Revoked { reason: reason.to_owned() };
        self.change_lease(metadata.source, None, lease, change).ok_or_else(|| not_held(lease))
    }

    /// Has the running job give a task to another agent, with a part of what it may do.
    ///
    /// # Errors
    /// [`Error::NotRunning`] and [`Error::Cancelled`]; what its grant refuses, and [`Error::GrantExceeded`] where the other job would have more.
    pub(crate) fn delegate(&mut self, metadata: Metadata, asked: &Delegate) -> Result<Response, Error> {
        let Delegate { parent, child, agent, inherits } = asked;
        let principal = metadata.source.principal();
        let running = self.session.running().filter(|running| running.answers(&principal, parent)).cloned();
        let running = running.ok_or_else(|| Error::NotRunning { command: parent.clone() })?;
        if running.cancel_requested {
            return Err(Error::Cancelled);
        }
        if self.session.delegations.len() >= OPEN_DELEGATIONS {
            return Err(Error::TooManyCommands { limit: OPEN_DELEGATIONS });
        }
        let grants = match &running.grants {
            Some(held) => {
                held.check_life(self.now)?;
                // Where people are asked, who asks for this is one of them.
                if !held.asks() {
                    held.check(&Operation::new(OperationKind::AGENT_DELEGATE, agent)?, self.now)?;
                }
                held.delegated(inherits)?
            }
            None => Grants::of_kinds(inherits)?,
        };
        let grants = grants.delegated_by(Delegator { parent: parent.clone() });
        let (job, child, agent) = (running.job, child.clone(), agent.clone());
        let body = EventBody::JobDelegated { job, child, agent, grants: Some(Box::new(grants)) };
        let seq = self.record(of_job(metadata.source, &running), body);
        Ok(Response::Recorded { seq })
    }

    /// A task that a job gave to another has ended. That is counted once: the session then knows of no such task any more.
    pub(super) fn delegation_ended(&mut self, given_at: Seq, mut unspent: Amounts) {
        let known = self.session.delegations.iter().find(|delegation| delegation.given_at == given_at);
        let Some(known) = known else { return };
        let (job, child) = (known.job, known.child.clone());
        let given = |currency| known.given.get(currency).copied().unwrap_or_default();
        unspent.iter_mut().for_each(|(currency, left)| *left = (*left).min(given(currency)));
        unspent.retain(|_, left| *left > Decimal::ZERO);
        let metadata = match self.running(job) {
            Some(running) => of_job(Source::System, &running),
            None => of(Source::System),
        };
        self.record(metadata, EventBody::DelegationEnded { job, child, unspent });
    }

    /// The job that gave this command its task has come to its end: it is answered with that, and told to stop.
    pub(super) fn parent_ended(&mut self, principal: &Principal, command: &CommandId, error: Error) {
        let running = self.session.running().filter(|running| running.answers(principal, command)).cloned();
        if let Some(running) = running.filter(|running| !running.is_answered && !running.cancel_requested) {
            self.deny(&running, error);
        }
    }

    fn lease(&self, lease: LeaseId) -> Result<Lease, Error> {
        let held = self.session.running().and_then(|running| running.grants.as_deref());
        held.and_then(|held| held.leases().get(&lease)).cloned().ok_or_else(|| not_held(lease))
    }

    /// Records a change of a lease. It belongs to the job's command, whoever made it.
    fn change_lease(
        &mut self,
        by: Source,
        causation: Option<Seq>,
        lease: LeaseId,
        change: LeaseChange,
    ) -> Option<Response> {
        let running = self.session.running()?.clone();
        let of_job = of_job(by, &running);
        let metadata = Metadata { causation: causation.or(of_job.causation), ..of_job };
        let seq = self.record(metadata, EventBody::LeaseChanged { job: running.job, lease, change });
        Some(Response::Recorded { seq })
    }

    /// Answers the running command; its job is told to stop, and its end is an event and no second outcome.
    pub(super) fn deny(&mut self, running: &RunningJob, error: Error) {
        let job = running.job;
        self.record(of_job(Source::System, running), EventBody::JobDenied { job, error: error.clone() });
        self.answer(Identity::of_running(running), Outcome::Failed { error });
        if !running.cancel_requested {
            self.stop(job);
        }
    }

    /// Whether the agent may use its model. A grant that names no models leaves the choice to the agent.
    fn is_granted(&self, grants: &Grants, model: Option<&Model>) -> Result<(), Error> {
        let Some(Model { provider, id, .. }) = model else { return Ok(()) };
        if !grants.capabilities().contains_key(&OperationKind::MODEL_USE) {
            return Ok(());
        }
        let operation = Operation::new(OperationKind::MODEL_USE, &format!("{provider}/{id}"))?;
        Ok(grants.check(&operation, self.now)?)
    }
}

fn not_held(lease: LeaseId) -> Error {
    let reason = format!("no job that runs here holds {lease}");
    Error::InvalidArgument { argument: "lease".to_owned(), reason }
}
