//! How asks are raised, answered and ended.

use super::{Draft, Effect, Identity, of, of_job};
use crate::affordance::Action;
use crate::agent::JobKind;
use crate::ask::{Ask, AskEnding, PendingAsk, Question, Raiser};
use crate::command::Answer;
use crate::elevation::Elevation;
use crate::error::Error;
use crate::event::{Deadline, EventBody, Metadata, Source};
use crate::grant::Grants;
use crate::id::{AskId, Channel, CommandId, JobId, Seq};
use crate::outcome::{Outcome, Response};
use crate::permission::Permission;
use crate::vote::Vote;

impl Draft<'_> {
    /// A client asks. The command has its outcome when the ask ends.
    pub(crate) fn raise(
        &mut self,
        metadata: Metadata,
        ask: AskId,
        raiser: Identity,
        question: Question,
        deadline: Option<Deadline>,
    ) -> Result<(), Error> {
        self.check_room()?;
        if question.is_secret() {
            // The answer would be its outcome.
            let reason =
                "an answer to a command is stored, and `writeOnly` says that it must not be".to_owned();
            return Err(Error::InvalidArgument { argument: "schema".to_owned(), reason });
        }
        let Identity { command, key, fingerprint, .. } = raiser;
        let raiser = Raiser::Command { command, fingerprint, key };
        self.record(metadata, EventBody::AskRaised(Box::new(Ask { ask, raiser, question, deadline })));
        Ok(())
    }

    /// A running job asks. One that cannot be asked is answered with the reason at once.
    pub(super) fn job_asks(&mut self, job: JobId, ask: AskId, question: Question, timeout_ms: Option<u64>) {
        let Some(running) = self.running(job) else {
            return self.effect(Effect::Answer { ask, answer: Err(Error::Cancelled) });
        };
        let wanted = running.grants.as_deref().and_then(Grants::quorum);
        let question = Question { quorum: question.quorum.max(wanted), ..question };
        if running.withheld {
            // Its question, and the answer, would be stored.
            let error = Error::Withheld { what: "ask".to_owned() };
            return self.effect(Effect::Answer { ask, answer: Err(error) });
        }
        if let Err(error) = self.admissible(ask, running.cancel_requested, &question) {
            return self.effect(Effect::Answer { ask, answer: Err(error) });
        }
        let deadline = Deadline::after(self.now, timeout_ms.unwrap_or(self.limits.ask_ms));
        let raised = Ask { ask, raiser: Raiser::Job { job }, question, deadline: Some(deadline) };
        self.record(of_job(Source::Worker, &running), EventBody::AskRaised(Box::new(raised)));
    }

    /// Has the running turn of an agent pause: people are asked, and the agent gets their answer as that of its own ask. Nobody's silence lets it
    /// go on, so there is no deadline.
    ///
    /// # Errors
    /// [`Error::NotRunning`] where the target does not run, [`Error::NotOffered`] where nothing does, [`Error::InvalidArgument`] where that is no turn; [`Error::Cancelled`] where it is to stop,
    /// and [`Error::TooManyAsks`].
    pub(crate) fn pause(
        &mut self,
        metadata: Metadata,
        ask: AskId,
        target: Option<&CommandId>,
        question: Question,
    ) -> Result<Response, Error> {
        let running = self.session.running().cloned();
        if let Some(command) = target
            && !running.as_ref().is_some_and(|running| running.answers(&metadata.source.principal(), command))
        {
            return Err(Error::NotRunning { command: command.clone() });
        }
        let running = running.ok_or_else(|| self.session.refusal(Action::Pause))?;
        if running.kind != JobKind::Turn {
            let reason =
                "what runs is no turn of an agent, and does not pause; cancelling stops it".to_owned();
            return Err(Error::InvalidArgument { argument: "session".to_owned(), reason });
        }
        self.admissible(ask, running.cancel_requested, &question)?;
        let job = running.job;
        let raised = Ask { ask, raiser: Raiser::Job { job }, question, deadline: None };
        let seq = self.record(of_job(metadata.source, &running), EventBody::AskRaised(Box::new(raised)));
        self.effect(Effect::Pause { job, ask });
        Ok(Response::Recorded { seq })
    }

    /// Asks whether the running job may do more than its grant for a time.
    ///
    /// # Errors
    /// [`Error::NotRunning`] where the target does not run, [`Error::NotElevated`] where nothing bounds it, it asks nobody, or it can hold no
    /// lease; what its grant refuses, [`Error::TrustRefused`] and [`Error::InvalidArgument`] for another level; and as [`Draft::pause`].
    pub(crate) fn elevate(
        &mut self,
        metadata: Metadata,
        ask: AskId,
        target: &CommandId,
        elevation: &Elevation,
    ) -> Result<Response, Error> {
        elevation.level.check_reachable()?;
        let principal = metadata.source.principal();
        let running = self.session.running().filter(|running| running.answers(&principal, target)).cloned();
        let running = running.ok_or_else(|| Error::NotRunning { command: target.clone() })?;
        let refused = |reason: &str| Err(Error::NotElevated { reason: reason.to_owned() });
        if running.kind != JobKind::Turn {
            return refused("only an agent asks before it does something, in its turn");
        }
        let Some(held) = running.grants.as_deref() else {
            return refused("no grant bounds it");
        };
        held.check_life(self.now)?;
        if self.limits.lease_longest_ms == 0 {
            return refused("`lease-longest-ms` is 0, so nothing is given for a time");
        }
        if !held.has_room_for_a_lease(self.now) {
            return refused("it holds as many leases as it can");
        }
        let question = elevation.clone().within(self.limits).question(&principal, held.quorum());
        self.admissible(ask, running.cancel_requested, &question)?;
        let deadline = Some(Deadline::after(self.now, self.limits.ask_ms));
        let raised = Ask { ask, raiser: Raiser::Job { job: running.job }, question, deadline };
        let seq = self.record(of_job(metadata.source, &running), EventBody::AskRaised(Box::new(raised)));
        Ok(Response::Recorded { seq })
    }

    fn admissible(&self, ask: AskId, is_cancelled: bool, question: &Question) -> Result<(), Error> {
        if is_cancelled {
            return Err(Error::Cancelled);
        }
        if self.session.ask(ask).is_some() {
            let reason = "another ask that waits has this id".to_owned();
            return Err(Error::InvalidArgument { argument: "ask".to_owned(), reason });
        }
        question.validate(self.limits)?;
        self.check_room()
    }

    fn check_room(&self) -> Result<(), Error> {
        let limit = self.limits.asks;
        if self.session.asks.len() < limit { Ok(()) } else { Err(Error::TooManyAsks { limit }) }
    }

    /// A client answers. The first valid answer ends the ask, or the last of those that must be the same; a later one finds none.
    pub(crate) fn take_answer(&mut self, metadata: Metadata, answer: Answer) -> Result<Response, Error> {
        let Answer { ask, value, mut channel, mut lease } = answer;
        let Some(pending) = self.session.ask(ask).cloned() else {
            return Err(Error::AskNotPending { reference: ask.to_string() });
        };
        let question = &pending.ask.question;
        question.check_size(&value, self.limits)?;
        question.check(&value).map_err(|reason| Error::AnswerInvalid { reason })?;
        if let Some(elevation) = pending.elevation()
            && Permission::of(&value) == Some(Permission::Once)
        {
            lease = Some(elevation.terms(lease)?);
        }
        let mut given = lease.as_ref().map(|terms| self.lease_of(&pending, &value, terms)).transpose()?;
        let missing = pending.missing_with(&metadata.source.principal(), &value);
        if question.needed_answers() > 1 {
            let vote = Vote { source: metadata.source.clone(), value: value.clone(), channel, lease };
            if missing > 0 {
                return Ok(self.vote(metadata, &pending, vote, missing));
            }
            // What one of them alone allows is not allowed.
            let common = pending.common_lease(&vote);
            given = common.map(|terms| self.lease_of(&pending, &value, &terms)).transpose()?;
            channel = vote.channel;
        }
        if question.is_secret() {
            let seq = self.record_end(metadata, &pending, AskEnding::Withheld, channel);
            self.effect(Effect::Answer { ask, answer: Ok(value) });
            return Ok(Response::Recorded { seq });
        }
        let source = metadata.source.clone();
        let seq = self.end_ask_by(metadata, &pending, AskEnding::Answered { value }, channel);
        if let Some(lease) = given {
            self.grant_lease(source, ask, seq, lease);
        }
        Ok(Response::Recorded { seq })
    }

    /// A client has answered, and more must answer the same.
    fn vote(&mut self, metadata: Metadata, pending: &PendingAsk, vote: Vote, missing: u32) -> Response {
        let Vote { value, channel, lease, .. } = vote;
        let ask = pending.ask.ask;
        let metadata = Metadata { causation: Some(pending.raised), ..metadata };
        let seq = self.record(metadata, EventBody::AskVoted { ask, value, missing, channel, lease });
        let votes = pending.ask.question.needed_answers() - missing;
        Response::Voted { ask, seq, votes, missing }
    }

    /// A client says that no answer comes.
    pub(crate) fn decline(&mut self, metadata: Metadata, ask: AskId) -> Result<Response, Error> {
        let Some(pending) = self.session.ask(ask).cloned() else {
            return Err(Error::AskNotPending { reference: ask.to_string() });
        };
        if pending.ask.question.is_guidance() {
            let reason = "an agent that pauses is not left without one; an empty answer lets it go on, and cancelling ends its turn";
            return Err(Error::AnswerInvalid { reason: reason.to_owned() });
        }
        let seq = self.end_ask(metadata, &pending, AskEnding::Cancelled);
        Ok(Response::Recorded { seq })
    }

    /// Nobody has answered in time: the default is taken, where there is one.
    pub(super) fn ask_overdue(&mut self, ask: AskId) {
        let Some(pending) = self.session.ask(ask).cloned() else { return };
        let Some(Deadline { limit_ms, .. }) = pending.ask.deadline else { return };
        let ending = match &pending.ask.question.default {
            Some(default) => AskEnding::Defaulted { value: default.clone() },
            None => AskEnding::TimedOut { limit_ms },
        };
        self.end_ask(of(Source::System), &pending, ending);
    }

    /// A job that is told to stop waits for no answers any more.
    pub(super) fn cancel_asks(&mut self, job: JobId) {
        for pending in self.asks_of(job) {
            self.end_ask(of(Source::System), &pending, AskEnding::Cancelled);
        }
    }

    /// A job that has ended leaves no asks behind.
    pub(super) fn drop_asks(&mut self, job: JobId) {
        for pending in self.asks_of(job) {
            self.record_end(of(Source::System), &pending, AskEnding::Cancelled, None);
        }
    }

    /// Nobody can answer in a session that is deleted.
    pub(super) fn end_client_asks(&mut self) {
        for pending in self.session.asks.clone() {
            match pending.ask.raiser {
                Raiser::Command { .. } => {
                    self.end_ask(of(Source::System), &pending, AskEnding::Cancelled);
                }
                Raiser::Job { .. } => {}
            }
        }
    }

    /// Those of its asks that have not ended in this very decision.
    fn asks_of(&self, job: JobId) -> Vec<PendingAsk> {
        let has_ended = |pending: &PendingAsk| {
            let ends =
                |body: &EventBody| matches!(body, EventBody::AskEnded { ask, .. } if *ask == pending.ask.ask);
            self.decision.events.iter().any(|(_, body)| ends(body))
        };
        let of_job = |pending: &&PendingAsk| pending.is_of_job(job) && !has_ended(pending);
        self.session.asks.iter().filter(of_job).cloned().collect()
    }

    /// Ends an ask, and tells who raised it.
    pub(crate) fn end_ask(&mut self, metadata: Metadata, pending: &PendingAsk, ending: AskEnding) -> Seq {
        self.end_ask_by(metadata, pending, ending, None)
    }

    /// The same, where a person answered by this way.
    fn end_ask_by(
        &mut self,
        metadata: Metadata,
        pending: &PendingAsk,
        ending: AskEnding,
        channel: Option<Channel>,
    ) -> Seq {
        let (ask, by, answer) = (pending.ask.ask, metadata.source.clone(), ending.answer());
        let seq = self.record_end(metadata, pending, ending, channel);
        match pending.identity() {
            // The job has not asked this itself.
            None if pending.elevation().is_some() => {}
            None => self.effect(Effect::Answer { ask, answer }),
            Some(raiser) => {
                let outcome = match answer {
                    Ok(value) => Outcome::Done { response: Response::Answered { ask, value, by } },
                    Err(error) => Outcome::Failed { error },
                };
                self.answer(raiser, outcome);
            }
        }
        seq
    }

    fn record_end(
        &mut self,
        metadata: Metadata,
        pending: &PendingAsk,
        ending: AskEnding,
        channel: Option<Channel>,
    ) -> Seq {
        let raiser = match &pending.ask.raiser {
            Raiser::Job { .. } => self.session.running().map(|running| running.command.clone()),
            Raiser::Command { command, .. } => Some(command.clone()),
        };
        let correlation = metadata.correlation.or(raiser);
        let metadata = Metadata { correlation, causation: Some(pending.raised), ..metadata };
        self.record(metadata, EventBody::AskEnded { ask: pending.ask.ask, ending, channel })
    }
}
