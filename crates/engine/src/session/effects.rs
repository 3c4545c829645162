//! Carrying out the effects that `model::decide` answers.

use std::time::Duration;

use mainstay_model::Effect;
use mainstay_runner::{AskAnswer, Submission};

use super::SessionTask;
use crate::worker::Order;

impl SessionTask {
    pub(super) fn carry_out_effect(&mut self, effect: Effect) {
        match effect {
            Effect::StartWorker { after } => self.start_worker(after),
            Effect::Reload => self.reload(),
            Effect::ResetWorker => self.reset_worker(),
            Effect::KillWorker => self.drop_worker(),
            Effect::Run { job, code, file, command_line } => {
                self.unstored.clear();
                self.secrets.clear();
                self.traces.job_begins(&self.session, job);
                self.run_job(Submission { job, code, file, command_line, is_withheld: false });
            }
            Effect::Work { job, work, is_bounded } => {
                self.traces.job_begins(&self.session, job);
                let requested = self.session.running().map(|running| running.requested);
                let requested = requested.unwrap_or(self.session.last_seq);
                self.give(Order::Work { job, work, is_bounded, requested });
            }
            Effect::Steer { queued } => {
                // Its event is the last of the decision.
                self.order(Order::Steer { queued, requested: self.session.last_seq });
            }
            Effect::Pause { job, ask } => {
                self.order(Order::Pause { job, ask, raised: self.session.last_seq });
            }
            Effect::Answer { ask, answer } => {
                let is_secret = self.session.is_secret(ask);
                if let Ok(answer) = answer.as_ref()
                    && is_secret
                {
                    self.secrets.add(answer);
                }
                // Where no worker takes it, the job that asked is gone with its worker.
                let answer = AskAnswer { ask, answer, is_secret };
                self.order(Order::Answer { answer, ended: self.session.last_seq });
            }
            Effect::Interrupt { job } => {
                let wanted = self.session.last_seq;
                self.cancelled = Some((job, wanted));
                self.begin_grace();
                // Where no worker takes it, none runs the job, and its exit is on its way.
                self.order(Order::Interrupt { wanted });
            }
        }
    }

    /// How long the running job may take to stop.
    pub(super) fn grace_of_running(&self) -> Duration {
        let own = self.session.running().and_then(|running| running.grace_ms);
        own.map_or_else(|| self.grace(), Duration::from_millis)
    }

    /// How long a job may take to stop, where the cancel does not say.
    pub(super) fn grace(&self) -> Duration {
        let (limits, kind) = (&self.shared.limits, &self.session.kind);
        let declared = self.shared.factory_of(kind).map(|factory| factory.cancel_grace_ms(kind, limits));
        Duration::from_millis(declared.unwrap_or(limits.cancel_grace_ms))
    }
}
