//! What waits in the lane: whose turn comes, and who leaves without it.

use std::sync::Arc;

use mainstay_model::affordance::{Availability, availability};
use mainstay_model::decide::Identity;
use mainstay_model::{
    CommandId, Error, Input, Notice, Outcome, PendingAsk, Principal, Response, RunningJob, SessionState,
};

use super::SessionTask;
use crate::clock::now;
use crate::dependencies::{Dependant, WaitResult, Waiter};
use crate::lane::Queued;

impl SessionTask {
    /// Lets the commands in the lane go as far as the state allows; refuses them where it never will. Each that goes comes
    /// back here when it is decided.
    pub(super) fn advance_lane(&mut self) {
        // The next daemon, or the next worker, carries out what waits.
        if self.is_draining || self.is_runner_gone {
            return;
        }
        let first = self.lane.first().map(Queued::key);
        self.waiter.take_if(|waiter| first.as_ref().is_none_or(|first| !waiter.is_of(first)));
        let Some(next) = self.lane.first() else { return };
        let (state, action) = (self.session.state(), next.queued.body.action());
        if availability(state, action) == Availability::Refused {
            let never = match state {
                SessionState::Faulted => self.session.refusal(action),
                SessionState::Uninitialized => Error::SessionStopped,
                SessionState::WarmingUp
                | SessionState::Ready
                | SessionState::Evaluating
                | SessionState::Waiting(_) => return,
            };
            return self.leave_first(never);
        }
        if let Some(error) = self.shared.delegations.stopped(&next.key()) {
            return self.leave_first(error);
        }
        if !next.is_free {
            return self.wait_for_dependencies();
        }
        if let Some(next) = self.lane.take_first() {
            let fingerprint = next.queued.fingerprint.clone();
            let (command, deadline) = next.into_command();
            self.carry_out(command, fingerprint, deadline);
        }
    }

    fn wait_for_dependencies(&mut self) {
        let Some(first) = self.lane.first().filter(|_| self.waiter.is_none()) else { return };
        let (key, depends_on) = (first.key(), first.queued.depends_on.clone());
        let behind = depends_on.iter().find(|dependency| self.lane.has(&key.0, dependency));
        if let Some(dependency) = behind.cloned() {
            return self.leave_first(Error::DependencyInLane { dependency });
        }
        let limit_ms = self.shared.limits.dependency_wait_ms;
        let dependant = Dependant { key, session: self.session.id, depends_on, limit_ms };
        let (claims, log) = (Arc::clone(&self.shared.single_process.claims), Arc::clone(&self.shared.log));
        self.waiter = Some(Waiter::start(dependant, claims, log, self.waiter_in.clone()));
    }

    /// Hears that a command has what it depends on, or never will.
    pub(super) fn has_waited(&mut self, WaitResult { key, result }: WaitResult) {
        if self.waiter.take_if(|waiter| waiter.is_of(&key)).is_none() {
            return;
        }
        match result {
            Ok(()) => {
                self.lane.set_free(&key);
                self.advance_lane();
            }
            Err(error) => self.leave_first(error),
        }
    }

    fn leave_first(&mut self, error: Error) {
        if let Some(first) = self.lane.take_first() {
            self.leave(first, error);
        }
    }

    /// Answers the command that was taken out of the lane, and then the one that cancelled it.
    pub(super) fn withdraw(&mut self, withdrawn: Queued, cancel: Identity) {
        let response = Response::Withdrawn { command: withdrawn.queued.command.clone() };
        self.leave(withdrawn, Error::Cancelled);
        self.commit(now(), Vec::new(), vec![cancel.answer(Outcome::Done { response })]);
    }

    /// Ends a command whose task was given to it by a job that has come to its end, wherever it is.
    pub(super) fn parent_ended(&mut self, principal: Principal, command: CommandId, error: Error) {
        match self.lane.take(&principal, &command) {
            Some(queued) => self.leave(queued, error),
            None => self.notice(Notice::ParentEnded { principal, command, error }),
        }
    }

    /// Answers a command that was taken out of the lane and will not be carried out.
    pub(super) fn leave(&mut self, queued: Queued, error: Error) {
        self.decide_surely(Input::Leave { identity: queued.identity(), error });
    }

    /// Stops carrying out commands, since the daemon goes down. Those that wait stay in the lane for the next one; who waits for them is told
    /// so.
    pub(super) fn begin_draining(&mut self) {
        self.is_draining = true;
        self.waiter = None;
        for key in self.lane.keys() {
            self.accepted.send_away(&key, &Error::DaemonStopping);
        }
    }

    /// Commands that wait are told that their turn will not come.
    pub(super) fn turn_away(&mut self) {
        while self.lane.first().is_some() {
            self.leave_first(Error::SessionStopped);
        }
    }

    /// Answers what takes longer than it may.
    pub(super) fn end_overdue(&mut self) {
        while let Some((queued, error)) = self.lane.take_overdue(now()) {
            self.leave(queued, error);
        }
        let overdue =
            |running: &&RunningJob| !running.is_answered && running.ends_by().is_some_and(|at| at <= now());
        let unanswered =
            |pending: &&PendingAsk| pending.ask.deadline.is_some_and(|deadline| deadline.at <= now());
        while let Some(ask) = self.session.asks.iter().find(unanswered).map(|pending| pending.ask.ask) {
            self.notice(Notice::AskOverdue { ask });
        }
        if let Some(job) = self.session.running().filter(overdue).map(|running| running.job) {
            self.notice(Notice::DeadlineReached { job });
        }
    }
}
