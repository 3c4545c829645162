//! How a command comes in: seen before, refused, carried out at once, or queued. ARCHITECTURE.md, "The way of a command".

use std::sync::Arc;

use futures::FutureExt;
use futures::future::ready;
use mainstay_model::affordance::{Availability, availability};
use mainstay_model::command;
use mainstay_model::decide::Identity;
use mainstay_model::{
    Admission, Command, CommandFingerprint, CommandId, Deadline, Error, Input, JobId, JobSpec, Outcome,
    Principal, QueuedCommand, RateScope, SessionCommand, SessionState, Version,
};
use uuid::Uuid;

use super::SessionTask;
use super::arrivals::{ArrivingCommand, Known, Stored, may_be_known};
use crate::claims::{CommandKey, key_of};
use crate::clock::now;
use crate::lane::Queued;
use crate::pending_commands::{Arrival, Reply};
use crate::sync::atomic::Ordering;
use crate::trace::{CommandTrace, CommitTrace};

impl SessionTask {
    /// Takes a command in, in its order.
    pub(super) fn admit(
        &mut self,
        command: Command,
        (fingerprint, asked_by): (CommandFingerprint, Option<u64>),
        reply: Reply,
        trace: CommandTrace,
    ) {
        let fingerprint = match self.answers_secret(&command) {
            true => command.fingerprint_without_answer(self.session.id),
            false => fingerprint,
        };
        let identity = Identity::of(&command, fingerprint);
        let is_urgent = self.is_urgent(&command.body, &identity);
        let meant = match &command.body {
            SessionCommand::Cancel(command::Cancel { target: None, .. }) => {
                self.session.running().map(|running| (running.job, running.command.clone()))
            }
            _ => None,
        };
        self.arrivals.push(ArrivingCommand { command, identity, asked_by, reply, trace, is_urgent, meant });
        self.take_arrivals();
    }

    /// Whether a command passes those that are not: it concerns what runs or asks already.
    fn is_urgent(&self, body: &SessionCommand, identity: &Identity) -> bool {
        let concerns_what_is_there = match body {
            SessionCommand::Cancel(command::Cancel { target: Some(target), .. }) => {
                !self.arrivals.has(&identity.principal, target)
            }
            SessionCommand::Cancel(command::Cancel { target: None, .. }) | SessionCommand::Steer(_) => {
                self.session.state().is_busy()
            }
            SessionCommand::Answer(command::Answer { ask, .. }) => {
                self.session.asks.iter().any(|pending| pending.ask.ask == *ask)
            }
            _ => false,
        };
        concerns_what_is_there && !self.arrivals.has_same(identity)
    }

    /// Takes a command in whose turn has come: one that was there before gets the first one's outcome, a new one is carried
    /// out, queued or refused, once the log has been asked for it. Only a new one counts for the limits.
    fn arrive(&mut self, arriving: ArrivingCommand) {
        let ArrivingCommand { command, identity, asked_by, reply, trace, is_urgent, meant } = arriving;
        match self.accepted.arrive(&identity, reply) {
            Arrival::New(reply) => {
                let arriving =
                    ArrivingCommand { command, identity, asked_by, reply, trace, is_urgent, meant };
                if may_be_known(&arriving.identity) {
                    self.arrivals.look_up(arriving, &self.shared.log, self.session.id);
                } else {
                    self.admit_known(arriving, Ok(None));
                }
            }
            Arrival::Joined => {
                self.note_asked(asked_by, &identity);
                trace.replayed();
            }
            Arrival::Follow(reply, outcome, version) => {
                trace.replayed();
                // What the session shows with the answer is to be stored by then.
                self.send(Vec::new());
                let nothing = ready(Ok(Vec::new())).boxed();
                let reply = vec![(reply, outcome)];
                self.on_their_way.fetch_add(1, Ordering::Relaxed);
                self.hand_over(nothing, Vec::new(), reply, version, CommitTrace::default(), None);
            }
            Arrival::Copy(reply, outcome, version) => {
                trace.replayed();
                self.copy(identity, reply, outcome, version);
            }
            Arrival::Conflict(reply, error) => {
                trace.refused(&error);
                reply.refuse(error);
            }
        }
    }

    /// Goes on with a command that was looked up, and with those behind it.
    pub(super) fn has_looked_up(&mut self, arriving: ArrivingCommand, known: Known) {
        self.admit_known(arriving, known);
        self.take_arrivals();
    }

    fn take_arrivals(&mut self) {
        while let Some(next) = self.arrivals.next_in_turn() {
            self.arrive(next);
        }
    }

    fn admit_known(&mut self, arriving: ArrivingCommand, known: Known) {
        let is_running =
            |meant: &(JobId, CommandId)| self.session.running().is_some_and(|running| running.job == meant.0);
        let known = match (known, &arriving.meant) {
            (Ok(None), Some(meant)) if !is_running(meant) => {
                Err(Error::NotRunning { command: meant.1.clone() })
            }
            (known, _) => known,
        };
        let ArrivingCommand { command, identity, asked_by, reply, trace, .. } = arriving;
        match known {
            Ok(None) => self.admit_new(command, (identity, asked_by), reply, trace),
            Ok(Some(Stored::UnderId(stored))) => {
                trace.replayed();
                self.accepted.give_up(&key_of(&identity));
                reply.replay(stored.outcome, stored.version);
            }
            Ok(Some(Stored::UnderKey(stored))) => {
                trace.replayed();
                self.copy(identity, reply.repeated(), stored.outcome, stored.version);
            }
            Err(error) => {
                trace.refused(&error);
                self.accepted.give_up(&key_of(&identity));
                reply.refuse(error);
            }
        }
    }

    /// Stores an outcome that was found by its key under one more id.
    fn copy(&mut self, identity: Identity, reply: Reply, outcome: Outcome, version: Version) {
        let copy = Identity { key: None, ..identity };
        self.accepted.accept(copy.clone(), Some(reply));
        self.send(Vec::new());
        self.append(Vec::new(), vec![copy.answer(outcome)], version, None);
    }

    fn admit_new(
        &mut self,
        command: Command,
        (identity, asked_by): (Identity, Option<u64>),
        reply: Reply,
        trace: CommandTrace,
    ) {
        match self.admissible(&command) {
            Ok(place) => {
                let fingerprint = identity.fingerprint.clone();
                self.traces.accepted(key_of(&identity), trace);
                self.note_asked(asked_by, &identity);
                self.accepted.accept(identity.clone(), Some(reply));
                let deadline = command.timeout_ms.map(|limit_ms| Deadline::after(now(), limit_ms));
                let stopped = self.shared.delegations.stopped(&key_of(&identity));
                match (place, stopped) {
                    // The answer is stored: the same command does not begin later, either.
                    (QueuePlace::Now, Some(error)) => {
                        self.keep_slot();
                        self.decide_surely(Input::Leave { identity, error });
                    }
                    (QueuePlace::Now, None) => self.carry_out(command, fingerprint, deadline),
                    (QueuePlace::Lane, _) => self.queue(command, fingerprint, deadline),
                }
            }
            Err(error) => {
                trace.refused(&error);
                self.accepted.give_up(&key_of(&identity));
                reply.refuse(error);
            }
        }
    }

    /// Notes which client's connection asks for a command, once that is claimed: what is not under way is not remembered.
    fn note_asked(&self, by: Option<u64>, identity: &Identity) {
        if let Some(client) = by {
            let claims = &self.shared.single_process.claims;
            let is_under_way = |command: &CommandKey| claims.holder(command).is_some();
            self.shared.clients.note_asked(client, key_of(identity), is_under_way);
        }
    }

    /// Where a command goes, if it goes anywhere.
    fn admissible(&mut self, command: &Command) -> Result<QueuePlace, Error> {
        self.must_be_there()?;
        command.validate(&self.shared.limits)?;
        if command.body.rules().starts_worker {
            self.shared.must_serve(&self.session.kind)?;
        }
        if let SessionCommand::Work(JobSpec::Turn { .. }) = &command.body
            && let Some(provider) = self.provider()
        {
            self.shared.breakers.check_provider(&self.session.kind, provider)?;
        }
        let place = self.place(command)?;
        let is_limited = command.body.rules().is_limited || command.is_serial();
        if is_limited {
            self.shared.single_process.outcomes.check()?;
            self.check_store()?;
        }
        self.take_slot(&command.body)?;
        // Last: what is refused for anything else counts for no rate.
        if is_limited && let Err(error) = self.check_rates() {
            self.keep_slot();
            return Err(error);
        }
        Ok(place)
    }

    /// Refuses what comes once the session was deleted.
    pub(super) fn must_be_there(&self) -> Result<(), Error> {
        match self.session.deleted_at {
            None => Ok(()),
            Some(_) => Err(Error::SessionNotFound { reference: self.session.id.to_string() }),
        }
    }

    /// Refuses new work while too much of this session waits for a store that cannot take it.
    fn check_store(&self) -> Result<(), Error> {
        if !self.is_store_away.load(Ordering::Relaxed) {
            return Ok(());
        }
        let waiting = self.accepted.handed_over().saturating_sub(*self.through.borrow());
        match waiting >= self.shared.limits.store_queue {
            true => Err(Error::StoreFailed {
                reason: format!("{waiting} changes of this session wait for the store already"),
            }),
            false => Ok(()),
        }
    }

    fn check_rates(&mut self) -> Result<(), Error> {
        let limits = &self.shared.limits;
        if self.shared.single_process.claims.count() > limits.commands {
            return Err(Error::TooManyCommands { limit: limits.commands });
        }
        let (scope, limit) = (RateScope::Session, limits.session_commands_per_minute);
        let limited = |retry_after_ms| Error::RateLimited { scope, limit, retry_after_ms };
        let mut rate = self.rate;
        rate.pass(now()).map_err(limited)?;
        self.shared.single_process.rate.pass()?;
        // A command that either refuses counts for neither.
        self.rate = rate;
        Ok(())
    }

    fn place(&self, command: &Command) -> Result<QueuePlace, Error> {
        if self.is_draining && command.body.rules().begins_work {
            return Err(Error::DaemonStopping);
        }
        if let SessionCommand::Cancel(command::Cancel { target: Some(target), .. }) = &command.body {
            return self.place_of_cancel(&command.source.principal(), target);
        }
        if self.takes_back_first(&command.body) {
            return Ok(QueuePlace::Now);
        }
        let (state, action) = (self.session.state(), command.body.action());
        if !action.is_of(self.session.capabilities()) {
            return Err(Error::NotOfKind { action, kind: self.session.kind.clone() });
        }
        let is_offered = availability(state, action) != Availability::Refused;
        let has_turn = is_offered && self.lane.is_empty() && !self.is_runner_gone;
        if is_offered && !command.is_serial() || has_turn && command.depends_on.is_empty() {
            return Ok(QueuePlace::Now);
        }
        // What depends on others waits for them, whatever it says of its turn.
        let may_wait = command.admission == Admission::Queue || has_turn;
        if !command.is_serial() || !may_wait || (!is_offered && state == SessionState::Faulted) {
            return Err(self.session.refusal(action));
        }
        if command.body.is_withheld() || self.answers_secret(command) {
            return Err(Error::Withheld { what: "wait for its turn".to_owned() });
        }
        let limit = self.shared.limits.lane_commands;
        if self.lane.len() >= limit {
            return Err(Error::LaneFull { limit });
        }
        Ok(QueuePlace::Lane)
    }

    /// Whether it is an answer that must not be stored.
    fn answers_secret(&self, command: &Command) -> bool {
        matches!(command.body, SessionCommand::Answer(command::Answer { ask, .. }) if self.session.is_secret(ask))
    }

    /// Whether this is a cancel of whatever runs, where nothing does yet: then the first that waits is meant.
    pub(super) fn takes_back_first(&self, command: &SessionCommand) -> bool {
        matches!(command, SessionCommand::Cancel(command::Cancel { target: None, .. }))
            && !self.session.state().is_busy()
            && !self.lane.is_empty()
    }

    /// Whether this is the end of the session, deleted or unloaded, that is not refused.
    pub(super) fn ends(&self, command: &Command) -> bool {
        let is_expected = command.if_version.is_none_or(|version| version == self.session.version);
        is_expected
            && match &command.body {
                SessionCommand::Unload(command::Unload { alias }) => {
                    self.session.is_loaded_as(alias.as_deref())
                }
                body => matches!(body, SessionCommand::Delete),
            }
    }

    /// A cancel that names its command passes everything, as long as that command runs, asks or waits here.
    fn place_of_cancel(&self, principal: &Principal, target: &CommandId) -> Result<QueuePlace, Error> {
        let runs = self.session.running().is_some_and(|running| running.answers(principal, target));
        let asks = self.session.ask_of(principal, target).is_some();
        if runs || asks || self.lane.has(principal, target) {
            Ok(QueuePlace::Now)
        } else {
            Err(Error::NotRunning { command: target.clone() })
        }
    }

    /// Takes a place among the live sessions for an idle session that is to start.
    fn take_slot(&mut self, command: &SessionCommand) -> Result<(), Error> {
        if command.rules().starts_worker && self.session.state() == SessionState::Uninitialized {
            let slot = Arc::clone(&self.shared.live).try_acquire_owned();
            let full = |_| Error::TooManySessions { limit: self.shared.limits.live_sessions };
            self.live = Some(slot.map_err(full)?);
        }
        Ok(())
    }

    fn queue(&mut self, command: Command, fingerprint: CommandFingerprint, deadline: Option<Deadline>) {
        let (state, action) = (self.session.state(), command.body.action());
        if state == SessionState::Uninitialized && availability(state, action) == Availability::Refused {
            self.start_for(&command);
        }
        let Command { id, key, source, depends_on, if_version, grants, body, .. } = command;
        let queued =
            QueuedCommand { command: id, fingerprint, key, depends_on, if_version, deadline, grants, body };
        let queued = Queued::new(source, queued);
        self.traces.waits(&queued.key());
        self.lane.push(queued.clone());
        let Queued { source, queued, .. } = queued;
        self.decide_surely(Input::Queue { source, queued });
    }

    /// Starts an idle session because a command waits for it.
    fn start_for(&mut self, command: &Command) {
        let id = CommandId::anonymous(Uuid::now_v7());
        let start = Command::new(id, command.source.clone(), SessionCommand::Start);
        let fingerprint = start.fingerprint(self.session.id);
        self.carry_out(start, fingerprint, None);
    }
}

/// Where a command goes.
enum QueuePlace {
    /// It is carried out.
    Now,
    /// It waits for its turn.
    Lane,
}
