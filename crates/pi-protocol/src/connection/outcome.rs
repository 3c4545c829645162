//! What comes of a command: it is held, handed over, waited for, and answered once its outcome is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_engine::{ClientSubscription, CommandStatus, Reading, Refusal};
use mainstay_model::{CommandFingerprint, CommandId, Error, Outcome, Seq, Timestamp};
use tokio::sync::watch;

use super::Connection;
use crate::command::{Body, PiCommand};
use crate::errors::{ErrorContext, is_outcome, said};
use crate::frames::{self, Phase, Response};
use crate::handlers::{CommandResult, Failed, SubmittedCommand, has_begun};
use crate::running_command::{ReportedStage, RunningCommand};
use crate::shared::HeldCommand;

impl Connection {
    /// Reads, and answers. One that is sent twice at once is answered twice the same.
    pub(super) async fn read(&self, command: &PiCommand, id: &CommandId, reading: Option<Reading>) {
        if reading.is_none() && !command.is_subscription() {
            self.peer.client.ended(id).await;
            if let Some(answer) = self.answered_before(command).await {
                return self.answer_at_once(command, &answer).await;
            }
        }
        let done = self.call(command, id).read().await;
        let ended = match &done {
            Ok(_) => Ok(()),
            Err(failed) => Err(self.reason(command, failed)),
        };
        self.finish(command, id, done).await;
        if let Some(reading) = reading {
            reading.end(ended);
        }
    }

    pub(super) fn reason(&self, command: &PiCommand, failed: &Failed) -> String {
        match failed {
            Failed::Refused(error) | Failed::Error { error, .. } => said(error, &ErrorContext::of(command)),
            Failed::Said { message, .. } => message.clone(),
        }
    }

    /// Whether a command cannot be handed over yet: its session is on its way, by what it depends on, or what it depends on is held itself. A
    /// session that is loaded again passes its own lane.
    pub(super) async fn must_be_held(&self, command: &PiCommand, id: &CommandId) -> bool {
        let principal = self.peer.client.principal();
        let is_held = |dependency: &CommandId| self.daemon.pi.end_of_hold(principal, dependency).is_some();
        let passes_lane = matches!(command.body, Body::LoadSession { .. });
        command.depends_on.iter().any(is_held)
            || !command.depends_on.is_empty()
                && (passes_lane || self.call(command, id).session_is_missing().await)
    }

    /// Hands a command over once what it depends on has succeeded.
    pub(super) async fn hold(
        &self,
        command: &PiCommand,
        id: &CommandId,
        held: HeldCommand,
        told: Option<watch::Receiver<Seq>>,
    ) {
        for dependency in &command.depends_on {
            let end = self.daemon.pi.end_of_hold(self.peer.client.principal(), dependency);
            // Nothing is sent: it ends with the hold.
            if let Some(mut end) = end {
                end.changed().await.ok();
            }
        }
        let call = self.call(command, id);
        let handed_over = match call.wait_for_dependencies().await {
            Ok(()) => call.hand_over().await,
            Err(failed) => Err(failed),
        };
        // What was handed over is known to the engine, and what was not once its refusal is stored.
        let held = handed_over.is_err().then_some(held);
        self.carry_on(command, id, handed_over, told).await;
        drop(held);
    }

    /// Waits for what comes of a command that was handed over, or was not.
    pub(super) async fn carry_on(
        &self,
        command: &PiCommand,
        id: &CommandId,
        handed_over: std::result::Result<SubmittedCommand, Failed>,
        told: Option<watch::Receiver<Seq>>,
    ) {
        match handed_over {
            Ok(handed_over) => self.wait(command, id, handed_over, told).await,
            Err(failed) => self.finish(command, id, Err(failed)).await,
        }
    }

    /// Waits for what comes of a command, and tells how far it is.
    pub(super) async fn wait(
        &self,
        command: &PiCommand,
        id: &CommandId,
        handed_over: SubmittedCommand,
        told: Option<watch::Receiver<Seq>>,
    ) {
        let SubmittedCommand { mut followed, mut ended, completed } = handed_over;
        let done = loop {
            tokio::select! {
                biased;
                done = &mut ended => break done,
                event = next(&mut followed) => match event {
                    Some(begun) => self.reach(id, if begun { ReportedStage::Started } else { ReportedStage::Accepted }).await,
                    None => followed = None,
                },
            }
        };
        // First what happened, then what came of it; unless nothing is told any more.
        if let (Some(mut told), Some(end)) = (told, completed.get()) {
            told.wait_for(|told| told >= end).await.ok();
        }
        self.finish(command, id, done).await;
    }

    /// Tells that a command is through, and what came of it: in this order.
    pub(super) async fn finish(
        &self,
        command: &PiCommand,
        id: &CommandId,
        done: std::result::Result<CommandResult, Failed>,
    ) {
        let given = command.id.as_ref().map(|id| id.as_str().to_owned());
        let done = self.kept(command, id, done).await;
        let failure = |error: String| Response::failure(given.clone(), command.kind.as_str(), error);
        let is_stored = match &done {
            Ok(ended) => !command.body.is_read() && !ended.is_nothing,
            Err(Failed::Error { .. }) => !command.body.is_read(),
            Err(Failed::Said { is_stored, .. }) => *is_stored,
            Err(Failed::Refused(_)) => false,
        };
        let (answer, was_accepted, told) = match done {
            Ok(CommandResult { data, version, is_replay, told, .. }) => {
                let answer = Response {
                    session_version: version,
                    replayed: is_replay,
                    ..Response::success(given.clone(), &command.kind, data)
                };
                (answer, !is_replay, told)
            }
            Err(Failed::Refused(error)) => {
                self.daemon.pi.rates.refused(&error);
                let error = self.in_upstreams_words(error).await;
                (failure(said(&error, &ErrorContext::of(command))), is_outcome(&error), None)
            }
            Err(Failed::Error { error, is_replay }) => {
                let error = self.in_upstreams_words(error).await;
                let timed_out = matches!(error, Error::TimedOut { .. });
                let said = said(&error, &ErrorContext::of(command));
                let answer = Response { replayed: is_replay, timed_out, ..failure(said) };
                (answer, !is_replay, None)
            }
            Err(Failed::Said { message, is_replay, .. }) => {
                (Response { replayed: is_replay, ..failure(message) }, !is_replay, None)
            }
        };
        if told.is_none() && command.body.changes_directory() {
            self.daemon.pi.directory.forget(self.peer.client.principal(), id);
        }
        if was_accepted {
            self.daemon.pi.rates.accepted(Timestamp::now());
            match self.command_under_way(id) {
                Some(_) => self.reach(id, ReportedStage::Started).await,
                None => {
                    self.tell_phase(Phase::Accepted, command, id, None).await;
                    self.tell_phase(Phase::Started, command, id, None).await;
                }
            }
            let kept = (!is_stored || command.body.moves_name()).then_some(&answer);
            if !command.is_subscription() {
                self.daemon.pi.seen().keep(self.peer.client.principal(), command, kept);
            }
        }
        if self.lock_under_way().remove(id).is_some() {
            self.daemon.pi.under_way().remove(&(self.peer.client.principal().clone(), id.clone()));
        }
        self.tell_phase(Phase::Finished, command, id, Some(&answer)).await;
        self.answer(&answer).await;
        if let Some(told) = told {
            self.tell_all(&told).await;
        }
    }

    /// A command begins its way, which is told as far as it comes.
    pub(super) fn set_out(&self, command: &Arc<PiCommand>, id: &CommandId) {
        let under_way = Arc::new(RunningCommand {
            command: Arc::clone(command),
            id: id.clone(),
            number: self.number,
            so_far: tokio::sync::Mutex::new(ReportedStage::Nothing),
            others: Mutex::new(ReportedStage::Nothing),
        });
        self.lock_under_way().insert(id.clone(), Arc::clone(&under_way));
        // One that is sent twice is the first one's to tell.
        let name = (self.peer.client.principal().clone(), id.clone());
        self.daemon.pi.under_way().entry(name).or_insert(under_way);
    }

    pub(super) fn command_under_way(&self, id: &CommandId) -> Option<Arc<RunningCommand>> {
        self.lock_under_way().get(id).cloned()
    }

    pub(super) fn lock_under_way(&self) -> MutexGuard<'_, HashMap<CommandId, Arc<RunningCommand>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells that a command has come so far, where it was not told yet.
    pub(super) async fn reach(&self, id: &CommandId, reached: ReportedStage) {
        let Some(under_way) = self.command_under_way(id) else { return };
        let RunningCommand { command, id, so_far, .. } = &*under_way;
        let mut so_far = so_far.lock().await;
        for (step, phase) in
            [(ReportedStage::Accepted, Phase::Accepted), (ReportedStage::Started, Phase::Started)]
        {
            if *so_far < step && step <= reached {
                self.send(&frames::lifecycle(phase, command, id, None)).await;
                under_way.reach_others(&self.daemon.pi, self.peer.client.principal(), step);
                *so_far = step;
            }
        }
    }

    /// Something happens to a command: before its client is told of that, or another one's is, each is told that the command has come so far.
    pub(super) async fn hears_of(&self, id: &CommandId, reached: ReportedStage) {
        if self.command_under_way(id).is_some() {
            return self.reach(id, reached).await;
        }
        let (shared, principal) = (&self.daemon.pi, self.peer.client.principal());
        let of_another = shared.under_way().get(&(principal.clone(), id.clone())).cloned();
        if let Some(under_way) = of_another {
            under_way.reach_others(shared, principal, reached);
        }
        let told = shared.count();
        self.passed_on.subscribe().wait_for(|passed_on| *passed_on >= told).await.ok();
    }

    /// A refusal that is an outcome is stored before it is told; one that cannot be stored is told as what hinders.
    pub(super) async fn kept(
        &self,
        command: &PiCommand,
        id: &CommandId,
        done: std::result::Result<CommandResult, Failed>,
    ) -> std::result::Result<CommandResult, Failed> {
        let error = match &done {
            Err(Failed::Refused(error)) if is_outcome(error) && !command.body.is_read() => error.clone(),
            Ok(_) | Err(_) => return done,
        };
        if command.id.is_none() {
            return done;
        }
        let refusal = Refusal { id: id.clone(), fingerprint: fingerprint_of(command), error };
        match self.peer.client.store_refusal(refusal).await {
            Ok(()) => done,
            Err(error) => Err(error.into()),
        }
    }

    /// An error that tells of another command's tells it in upstream's words.
    pub(super) async fn in_upstreams_words(&self, error: Error) -> Error {
        let Error::DependencyFailed { dependency, reason } = error else { return error };
        let reason = match self.peer.client.command(&dependency).await {
            Ok(CommandStatus::Ended(stored)) => match stored.outcome {
                Outcome::Failed { error } => said(&error, &ErrorContext::nothing()),
                Outcome::Done { .. } => reason,
            },
            Ok(CommandStatus::Waits { .. } | CommandStatus::Runs { .. }) | Err(_) => reason,
        };
        Error::DependencyFailed { dependency, reason }
    }
}

/// Whether a command has begun, once something happens to it; none where nothing more is heard.
async fn next(followed: &mut Option<ClientSubscription>) -> Option<bool> {
    match followed {
        Some(followed) => followed.next().await.ok().map(|event| has_begun(&event.body)),
        None => std::future::pending().await,
    }
}

/// What a command says, for the refusals that are stored.
pub(super) fn fingerprint_of(command: &PiCommand) -> CommandFingerprint {
    CommandFingerprint::of("pi", &command.fingerprint)
}
