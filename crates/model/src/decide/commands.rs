//! What follows from a client's command.

use std::time::Duration;

use uuid::Uuid;

use super::{Draft, Effect, Identity, of, of_command};
use crate::affordance::{Availability, availability};
use crate::command;
use crate::command::{Accepted, Command, Decided, SessionCommand};
use crate::error::Error;
use crate::event::{Deadline, EventBody, Metadata, Source, WarmUpReason};
use crate::fingerprint::CommandFingerprint;
use crate::id::Seq;
use crate::outcome::Outcome;
use crate::state::SessionState;

impl Draft<'_> {
    pub(super) fn command(
        &mut self,
        command: Command,
        fingerprint: CommandFingerprint,
        deadline: Option<Deadline>,
        fresh: Uuid,
    ) -> Result<(), Error> {
        let (state, action) = (self.session.state(), command.body.action());
        if !action.is_of(self.session.capabilities()) {
            return Err(Error::NotOfKind { action, kind: self.session.kind.clone() });
        }
        if availability(state, action) == Availability::Refused && !self.takes_back_an_ask(&command) {
            return Err(self.session.refusal(action));
        }
        let waited =
            self.session.lane.iter().find(|waiting| {
                waiting.command == command.id && waiting.principal == command.source.principal()
            });
        let causation = waited.map(|waiting| waiting.queued);
        let metadata = Metadata { causation, ..of_command(command.source.clone(), &command.id) };
        let identity = Identity::of(&command, fingerprint);
        if let Some(expected) = command.if_version
            && expected != self.session.version
        {
            let error = Error::VersionMismatch { expected, actual: self.session.version };
            self.turn_down(identity, error);
            return Ok(());
        }
        let grants = command.grants.clone();
        let accepted = Accepted { metadata, identity: identity.clone(), deadline, grants, fresh };
        let response = match command.body.request().decide(self, accepted)? {
            Decided::Done(response) => response,
            Decided::GoesOn => return Ok(()),
        };
        self.leave_lane_silently(&identity);
        self.answer(identity, Outcome::Done { response });
        Ok(())
    }

    /// Ends what runs and what is asked, and the worker with it.
    pub(crate) fn end_all(&mut self, metadata: &Metadata) {
        self.end_running_by_kill();
        self.end_client_asks();
        if self.session.state() != SessionState::Uninitialized {
            self.record(metadata.clone(), EventBody::SessionStopped);
        }
        self.effect(Effect::KillWorker);
    }

    /// An agent that runs was given all that the summary stands for, and begins anew with it. One that works does so when its job has
    /// ended.
    pub(crate) fn show_summary(&mut self, metadata: Metadata) {
        if !self.session.is_agent() {
            return;
        }
        match self.session.state() {
            SessionState::Ready => drop(self.begin_with_transcript(metadata)),
            SessionState::WarmingUp => self.replace_worker(),
            SessionState::Uninitialized
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => {}
        }
    }

    /// Has a new worker begin with the transcript as it is now.
    pub(crate) fn begin_with_transcript(&mut self, metadata: Metadata) -> Seq {
        let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::Merged });
        self.replace_worker();
        seq
    }

    /// Kills the worker and starts another at once.
    pub(crate) fn replace_worker(&mut self) {
        self.effect(Effect::KillWorker);
        self.effect(Effect::StartWorker { after: Duration::ZERO });
    }

    /// A cancel of an ask needs no job that runs.
    fn takes_back_an_ask(&self, command: &Command) -> bool {
        let SessionCommand::Cancel(command::Cancel { target: Some(target), .. }) = &command.body else {
            return false;
        };
        self.session.ask_of(&command.source.principal(), target).is_some()
    }

    /// Answers a command that is accepted and does not begin.
    pub(super) fn turn_down(&mut self, identity: Identity, error: Error) {
        if self.session.waits(&identity.principal, &identity.command) {
            let (principal, command) = (identity.principal.clone(), identity.command.clone());
            self.record(
                of(Source::System),
                EventBody::CommandDequeued { principal, command, error: Some(error.clone()) },
            );
        }
        self.answer(identity, Outcome::Failed { error });
    }

    /// A command that waited and changes nothing leaves the lane all the same.
    fn leave_lane_silently(&mut self, identity: &Identity) {
        let tells = self
            .decision
            .events
            .iter()
            .any(|(metadata, _)| metadata.correlation.as_ref() == Some(&identity.command));
        if !tells && self.session.waits(&identity.principal, &identity.command) {
            let (principal, command) = (identity.principal.clone(), identity.command.clone());
            self.record(of(Source::System), EventBody::CommandDequeued { principal, command, error: None });
        }
    }
}
