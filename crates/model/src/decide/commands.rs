//! What follows from a client's command.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::{Draft, Effect, Identity, of, of_command};
use crate::affordance::{Action, Availability, availability};
use crate::agent::Work;
use crate::ask::AskEnding;
use crate::command::{Command, SessionCommand};
use crate::error::Error;
use crate::event::{Deadline, EventBody, Metadata, Source, WarmUpReason};
use crate::fingerprint::CommandFingerprint;
use crate::id::{AskId, CommandId, JobId, Seq};
use crate::label::check_room;
use crate::message::Compaction;
use crate::outcome::{Outcome, Response};
use crate::session::Session;
use crate::state::SessionState;
use crate::transcript::total;

impl Draft<'_> {
    pub(super) fn command(
        &mut self,
        command: Command,
        fingerprint: CommandFingerprint,
        deadline: Option<Deadline>,
        fresh: Uuid,
    ) -> Result<(), Error> {
        let state = self.session.state();
        let action = command.body.action();
        if !action.is_of(&self.session.kind) {
            return Err(Error::NotOfKind { action, kind: self.session.kind.clone() });
        }
        if availability(state, action) == Availability::Refused && !self.takes_back_an_ask(&command) {
            return Err(self.session.refusal(action));
        }
        let metadata = of_command(command.source.clone(), &command.id);
        let identity = Identity::of(&command, fingerprint);
        if let Some(expected) = command.if_version
            && expected != self.session.version
        {
            let error = Error::VersionMismatch { expected, actual: self.session.version };
            self.turn_down(identity, error);
            return Ok(());
        }
        let response = match command.body {
            SessionCommand::Eval { code, file, command_line, origin, withheld } => {
                let language = self.session.language();
                if let Some(line) = &command_line {
                    line.check_taken(&self.session.kind, language.as_ref())?;
                }
                let Identity { command, key, fingerprint, .. } = identity;
                let job = JobId::from_uuid(fresh);
                let (run, given) = ((code.clone(), file.clone()), command_line.clone());
                self.effect(Effect::Run { job, code: run.0, file: run.1, command_line: given });
                let (code, file, command_line) =
                    if withheld { (String::new(), None, None) } else { (code, file, command_line) };
                let requested = EventBody::EvalRequested {
                    job,
                    command,
                    fingerprint,
                    key,
                    deadline,
                    code,
                    file,
                    command_line,
                    origin,
                    withheld,
                };
                self.record(metadata, requested);
                return Ok(());
            }
            SessionCommand::Work(work) => {
                if matches!(work, Work::Build | Work::Rebuild) {
                    self.check_project()?;
                }
                self.request(metadata, identity, JobId::from_uuid(fresh), deadline, work);
                return Ok(());
            }
            SessionCommand::Steer(queued) => {
                let seq = self.record(metadata, EventBody::PromptQueued(queued.clone()));
                self.effect(Effect::Steer { queued });
                Response::Recorded { seq }
            }
            SessionCommand::Ask(question) => {
                return self.raise(metadata, AskId::from_uuid(fresh), identity, question, deadline);
            }
            SessionCommand::Answer { ask, value } => self.take_answer(metadata, ask, value)?,
            SessionCommand::Decline { ask } => self.decline(metadata, ask)?,
            SessionCommand::Cancel { target } => self.cancel(metadata, target)?,
            SessionCommand::Reset => {
                self.record(metadata.clone(), EventBody::SessionReset);
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::Reset });
                self.effect(Effect::ResetWorker);
                Response::Recorded { seq }
            }
            SessionCommand::HardReset => {
                self.end_running_by_kill();
                self.record(metadata.clone(), EventBody::SessionHardReset);
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::HardReset });
                self.effect(Effect::KillWorker);
                self.effect(Effect::StartWorker { after: Duration::ZERO });
                Response::Recorded { seq }
            }
            SessionCommand::Refresh { all } => {
                let reason = WarmUpReason::Refreshed;
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason });
                if all {
                    self.effect(Effect::KillWorker);
                    self.effect(Effect::StartWorker { after: Duration::ZERO });
                } else {
                    self.effect(Effect::Reload);
                }
                Response::Recorded { seq }
            }
            SessionCommand::Start => {
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::Started });
                self.effect(Effect::StartWorker { after: Duration::ZERO });
                Response::Recorded { seq }
            }
            SessionCommand::Stop => {
                self.end_running_by_kill();
                let seq = match state {
                    SessionState::Uninitialized => self.session.last_seq,
                    SessionState::WarmingUp
                    | SessionState::Ready
                    | SessionState::Evaluating
                    | SessionState::Waiting(_)
                    | SessionState::Faulted => self.record(metadata, EventBody::SessionStopped),
                };
                self.effect(Effect::KillWorker);
                Response::Recorded { seq }
            }
            SessionCommand::Merge { planned, .. } if planned != self.session.version => {
                // Nothing is accepted: it is found out anew what the merge comes to.
                return Err(Error::VersionMismatch { expected: planned, actual: self.session.version });
            }
            SessionCommand::Merge { point, .. } => {
                let (at, entries) = (point.at, total(&point.brought));
                let asked = point.wanted.filter(|wanted| *wanted != at);
                let mut seq = self.record(metadata.clone(), EventBody::EntriesMerged(point));
                if state != SessionState::Uninitialized {
                    seq = self.begin_with_transcript(metadata);
                }
                Response::Merged { seq, entries, at, asked }
            }
            SessionCommand::Delete => {
                self.end_all(&metadata);
                Response::Recorded { seq: self.record(metadata, EventBody::SessionDeleted) }
            }
            SessionCommand::Unload { alias } => {
                if !self.session.is_loaded_as(alias.as_deref()) {
                    let reference = alias.unwrap_or_else(|| self.session.id.to_string());
                    return Err(Error::SessionNotFound { reference });
                }
                let alias = self.session.alias.clone();
                self.end_all(&metadata);
                Response::Recorded { seq: self.record(metadata, EventBody::SessionUnloaded { alias }) }
            }
            SessionCommand::Load { alias } => {
                let Session { id, alias: known, unloaded_at, .. } = self.session;
                if unloaded_at.is_none() {
                    let reference = known.clone().unwrap_or_else(|| id.to_string());
                    return Err(Error::SessionExists { reference });
                }
                Response::Recorded { seq: self.record(metadata, EventBody::SessionLoaded { alias }) }
            }
            SessionCommand::Rename { name } => {
                let seq = self.record(metadata, EventBody::SessionRenamed { name });
                Response::Recorded { seq }
            }
            SessionCommand::Compact { covers, asked, summary } => {
                let entries = total(&covers);
                let compaction = Compaction { covers, summary, metadata: BTreeMap::new() };
                let seq = self.record(metadata.clone(), EventBody::TranscriptCompacted(Box::new(compaction)));
                self.show_summary(metadata);
                Response::Compacted { seq, entries, asked }
            }
            SessionCommand::Label { entry, label, .. } => {
                if label.is_some() {
                    check_room(&self.session.labels, entry, self.limits)?;
                }
                Response::Recorded { seq: self.record(metadata, EventBody::EntryLabeled { entry, label }) }
            }
        };
        self.leave_lane_silently(&identity);
        self.answer(identity, Outcome::Done { response });
        Ok(())
    }

    /// Ends what runs and what is asked, and the worker with it.
    fn end_all(&mut self, metadata: &Metadata) {
        self.end_running_by_kill();
        self.end_client_asks();
        if self.session.state() != SessionState::Uninitialized {
            self.record(metadata.clone(), EventBody::SessionStopped);
        }
        self.effect(Effect::KillWorker);
    }

    /// An agent that runs was given all that the summary stands for, and begins anew with it. One that works does so when its job has
    /// ended.
    fn show_summary(&mut self, metadata: Metadata) {
        if !self.session.kind.is_agent() {
            return;
        }
        match self.session.state() {
            SessionState::Ready => drop(self.begin_with_transcript(metadata)),
            SessionState::WarmingUp => {
                self.effect(Effect::KillWorker);
                self.effect(Effect::StartWorker { after: Duration::ZERO });
            }
            SessionState::Uninitialized
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => {}
        }
    }

    /// Has a new worker begin with the transcript as it is now.
    pub(super) fn begin_with_transcript(&mut self, metadata: Metadata) -> Seq {
        let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::Merged });
        self.effect(Effect::KillWorker);
        self.effect(Effect::StartWorker { after: Duration::ZERO });
        seq
    }

    /// A cancel of an ask needs no job that runs.
    fn takes_back_an_ask(&self, command: &Command) -> bool {
        let SessionCommand::Cancel { target: Some(target) } = &command.body else { return false };
        self.session.ask_of(&command.source.principal(), target).is_some()
    }

    /// Answers a command that is accepted and does not begin.
    pub(super) fn turn_down(&mut self, identity: Identity, error: Error) {
        if self.session.waits(&identity.principal, &identity.command) {
            let (principal, command) = (identity.principal.clone(), identity.command.clone());
            self.record(
                of(Source::System),
                EventBody::CommandLeft { principal, command, error: Some(error.clone()) },
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
            self.record(of(Source::System), EventBody::CommandLeft { principal, command, error: None });
        }
    }

    fn cancel(&mut self, metadata: Metadata, target: Option<CommandId>) -> Result<Response, Error> {
        if let Some(target) = &target
            && let Some(pending) = self.session.ask_of(&metadata.source.principal(), target).cloned()
        {
            self.end_ask(metadata, &pending, AskEnding::Cancelled);
            return Ok(Response::Withdrawn { command: target.clone() });
        }
        let Some(running) = self.session.running() else {
            return Err(self.session.refusal(Action::Cancel));
        };
        if let Some(command) = target
            && !running.answers(&metadata.source.principal(), &command)
        {
            return Err(Error::NotRunning { command });
        }
        let job = running.job;
        if !running.cancel_requested {
            self.record(metadata, EventBody::CancelRequested { job });
            self.stop(job);
        }
        Ok(Response::Cancelling { job })
    }
}
