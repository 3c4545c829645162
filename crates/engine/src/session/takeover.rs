//! How a session's task goes on where an earlier daemon had the session: with its runner where that lives, else with a new one.

use mainstay_model::decide::Identity;
use mainstay_model::{Effect, Notice, PendingAsk};
use mainstay_runner::StartedRunner;

use super::SessionTask;
use super::heard_notices::HeardNotices;
use crate::inherited::{AdoptedRunner, Inherited};
use crate::lane::{Lane, Queued};
use crate::warm_up::Notices;
use crate::worker::Worker;

impl SessionTask {
    /// Goes on with what an earlier daemon left.
    pub(super) fn inherit(&mut self, inherited: Inherited) {
        let Inherited { lane, answered, prompts, adopted } = inherited;
        self.answered = answered;
        self.named_prompts = prompts;
        match adopted {
            Some(adopted) => self.go_on(lane, adopted),
            None => self.take_over(lane),
        }
    }

    /// Goes on where an earlier daemon was lost, and the worker with it. Before anyone can ask: a job that was cut off has its outcome
    /// before its command can come again, and a command that waits, for its turn or an answer, is known.
    fn take_over(&mut self, lane: Vec<Queued>) {
        // Its outcome is on its way to the log for a while, and its key must be known meanwhile.
        self.expect_running();
        self.expect_waiting(lane);
        self.notice(Notice::DaemonLost);
        self.advance_lane();
    }

    /// Goes on with a runner that has outlived the daemon that started it. The job that runs goes on running, and the client that sent
    /// its command again waits for its end.
    fn go_on(&mut self, lane: Vec<Queued>, adopted: AdoptedRunner) {
        let AdoptedRunner { started, taken, given, put_out, secrets, is_gone, is_job_lost } = adopted;
        self.is_runner_gone = is_gone;
        let StartedRunner { runner, next, notices, .. } = started;
        secrets.iter().for_each(|secret| self.secrets.add(secret));
        self.expect_running();
        if let Some(running) = self.session.running() {
            self.output.go_on(running.job, put_out);
        }
        runner.process().acknowledge(taken.up_to, self.session.last_seq);
        self.heard = Some(HeardNotices::after(taken));
        if let Some(factory) = self.shared.factory_of(&self.session.kind).cloned() {
            let notices = Notices::after(taken.up_to, next, notices);
            let mut worker = Worker::adopt(self.warm_up(factory), runner.clone(), notices);
            worker.is_up(runner, self.grace(), self.visible.clone());
            self.worker = Some(worker);
        }
        for order in given {
            self.give(order);
        }
        self.steer_again_adopted();
        let running = self.session.running().map(|running| (running.job, running.cancel_requested));
        if let Some((job, true)) = running
            && !is_job_lost
        {
            self.carry_out_effect(Effect::Interrupt { job });
        }
        self.expect_waiting(lane);
        self.keep_slot();
        match running {
            Some((job, _)) if is_job_lost => self.notice(Notice::JobLost { job }),
            Some(_) | None => self.advance_lane(),
        }
    }

    /// Knows the command of the running job, unless it was answered already: then it is found in the log.
    fn expect_running(&mut self) {
        if let Some(running) = self.session.running().filter(|_| self.answered.is_none()) {
            self.accepted.accept(Identity::of_running(running), None);
        }
    }

    /// Knows the commands that wait, for their turn or an answer.
    fn expect_waiting(&mut self, lane: Vec<Queued>) {
        for queued in &lane {
            self.accepted.accept(queued.identity(), None);
        }
        for identity in self.session.asks.iter().filter_map(PendingAsk::identity) {
            self.accepted.accept(identity, None);
        }
        self.lane = Lane::of(lane);
    }
}
