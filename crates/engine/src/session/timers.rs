//! The deadlines of a session: overdue jobs, output that is held back, the grace of a cancelled job, and agents that become idle.

use std::time::Duration;

use mainstay_model::{Deadline, Notice, RunningJob, SessionState, Timestamp};

use super::SessionTask;
use crate::clock::now;
use crate::sync::time::Instant;

impl SessionTask {
    pub(super) fn next_timer(&self) -> Option<Instant> {
        let running = self.session.running().filter(|running| !running.is_answered);
        let overdue = running.and_then(RunningJob::ends_by);
        let unanswered =
            self.session.asks.iter().filter_map(|pending| pending.ask.deadline).map(|deadline| deadline.at);
        // An idle session keeps its task until its rate can be forgotten.
        let is_stopped = self.is_open && self.session.state() == SessionState::Uninitialized;
        let forgotten = is_stopped.then(|| self.rate.idle_at()).filter(|at| *at > now());
        let idle = self.idle_at();
        let deadline = overdue
            .into_iter()
            .chain(forgotten)
            .chain(self.lane.next_deadline())
            .chain(unanswered)
            .chain(idle)
            .min();
        let deadline = deadline.map(|at| Instant::now() + until(at));
        [self.flush_at, self.grace.map(|(at, _)| at), deadline].into_iter().flatten().min()
    }

    /// Begins the grace of a job that is to stop, once the runner is told: one that outlives this daemon is told when it is durable that
    /// the job is to stop.
    pub(super) fn begin_grace(&mut self) {
        let Some((job, wanted)) = self.cancelled else { return };
        let waits = self.runner().is_some_and(|runner| runner.process().outlives_daemon());
        let is_running = self.session.running().is_some_and(|running| running.job == job);
        if waits && is_running && wanted > self.visible.borrow().last_seq {
            return;
        }
        self.cancelled = None;
        self.grace = Some((Instant::now() + self.grace_of_running(), job));
    }

    /// When an agent that has nothing to do is stopped.
    pub(super) fn idle_at(&self) -> Option<Timestamp> {
        let limit_ms = self.shared.limits.agent_idle_ms;
        let is_idle = self.session.is_agent() && self.session.state() == SessionState::Ready;
        (is_idle && limit_ms > 0).then(|| Deadline::after(self.session.last_activity, limit_ms).at)
    }

    pub(super) fn on_timer(&mut self) {
        self.end_overdue();
        if self.idle_at().is_some_and(|at| at <= now()) {
            self.notice(Notice::Idle);
        }
        let now = Instant::now();
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_output();
        }
        if let Some((at, job)) = self.grace
            && at <= now
        {
            self.grace = None;
            self.hear_out();
            self.notice(Notice::GraceExpired { job });
        }
    }
}

/// Returns how long it is until a time; zero where it is past.
fn until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
}
