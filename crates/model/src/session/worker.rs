//! The worker of a session: warmed up, faulted, stopped and lost.

use super::{Activity, DIVERGENCES_KEPT, Rebuilt, Session, WorkerInfo};
use crate::Timestamp;
use crate::event::WarmUpReason;
use crate::replay::Divergence;
use crate::state::{SessionState, Transition};

impl Session {
    pub(super) fn start_warm_up(&mut self, reason: WarmUpReason) {
        let change = match reason {
            WarmUpReason::Started => Transition::StartWarmUp,
            WarmUpReason::Reset => Transition::Reset,
            WarmUpReason::HardReset | WarmUpReason::Merged => Transition::HardReset,
            WarmUpReason::Refreshed
            | WarmUpReason::Cancelled
            | WarmUpReason::WorkerLost
            | WarmUpReason::DaemonLost => Transition::WorkerLost,
        };
        if self.step(change, Activity::WarmingUp { reason }) {
            self.worker = None;
            self.summary_is_new = false;
            if reason == WarmUpReason::Refreshed {
                self.version = self.version.next();
            }
        }
    }

    pub(super) fn complete_warm_up(&mut self, worker: WorkerInfo, diverged: &[Divergence]) {
        if self.step(Transition::WarmUpCompleted, Activity::Ready) {
            let told = diverged.iter().filter(|divergence| divergence.is_told());
            let diverged: Vec<_> = told.take(DIVERGENCES_KEPT).cloned().collect();
            self.rebuilt = (!diverged.is_empty()).then_some(Rebuilt { diverged, is_news: true });
            self.worker = Some(worker);
        }
    }

    pub(super) fn record_fault(&mut self, message: &str) {
        let change = match self.state() {
            SessionState::WarmingUp => Transition::WarmUpFailed,
            SessionState::Uninitialized
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => Transition::GiveUp,
        };
        if self.step(change, Activity::Faulted { message: message.to_owned() }) {
            self.worker = None;
        }
    }

    pub(super) fn stop(&mut self) {
        self.step(Transition::Stop, Activity::Uninitialized);
        self.worker = None;
        self.summary_is_new = false;
        self.losses.clear();
    }

    /// Notes the loss of the worker. Of the times of such losses those are kept that count for the restart policy: as many as this attempt to
    /// start another says.
    pub(super) fn lose_worker(&mut self, attempt: u32, at: Timestamp) {
        self.worker = None;
        if attempt == 0 {
            return;
        }
        self.losses.push(at);
        let keep = usize::try_from(attempt).unwrap_or(usize::MAX);
        let surplus = self.losses.len().saturating_sub(keep);
        self.losses.drain(..surplus);
    }
}
