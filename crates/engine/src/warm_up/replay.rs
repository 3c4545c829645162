//! Running again what defined a session, and comparing what each submission gives with what it gave before.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mainstay_model::reload::{CHANGES_KEPT, ValueChange};
use mainstay_model::replay::{ReplayComparison, ReplayItem};
use mainstay_model::{
    Blame, Divergence, DivergenceKind, Error, JobId, JobReport, LastWords, Notice, References, Restored,
    RunnerNotice, Seq, WorkerExit,
};
use mainstay_runner::{AskAnswer, Kernel, Submission, Upcoming, WarmUpPhase, WarmUpProgress};
use serde_json::Value;

use super::notices::Notices;
use super::replay_list::what_to_replay;
use super::restore::Attempt;
use super::{FromWorker, WarmUp};
use crate::sync::time::timeout_at;

impl WarmUp {
    pub(super) async fn replay(
        &self,
        runner: &dyn Kernel,
        notices: &mut Notices,
    ) -> Result<Replayed, ReplayFailed> {
        let Ok(committed) = self.committed_session().await else {
            return Err(ReplayFailed::Exited { exit: WorkerExit::Unknown, last_words: None });
        };
        let replay = what_to_replay(self.log.as_ref(), &committed).await?;
        self.given.keep(&replay.items);
        let session = self.spec.session;
        let left_out =
            |(ran_in, requested)| Divergence::of(session, ran_in, requested, DivergenceKind::LeftOut);
        let withheld = |(ran_in, requested, why)| Divergence::of(session, ran_in, requested, why);
        let unknown = replay.withheld.into_iter().map(withheld);
        let diverged: Vec<_> = replay.left_out.into_iter().map(left_out).chain(unknown).collect();
        let deadline = Instant::now() + Duration::from_millis(self.limits.replay_ms);
        let mut run = ReplayRun { runner, notices, deadline, done: 0 };
        let (mut replayed, items) = match self.restored(&mut run, &replay.items).await? {
            Some(Attempt { replayed, rest }) => (replayed, rest),
            None => (Replayed::default(), replay.items),
        };
        replayed.diverged.splice(0..0, diverged);
        self.run_all(&mut run, items, &mut replayed).await?;
        self.start_application(&committed, &mut run).await?;
        Ok(replayed)
    }

    /// Runs these again, in order, and says how far it is.
    pub(super) async fn run_all(
        &self,
        run: &mut ReplayRun<'_>,
        items: Vec<ReplayItem>,
        replayed: &mut Replayed,
    ) -> Result<(), ReplayFailed> {
        let mut items = VecDeque::from(items);
        let total = run.done + u32::try_from(items.len()).unwrap_or(u32::MAX);
        self.tell_progress(run.done, total).await;
        // How many of those that come next the kernel knows of.
        let mut announced = 0_usize;
        while let Some(item) = items.pop_front() {
            if announced == 0 {
                announced = self.announce(run.runner, &item, &items).await;
            }
            announced = announced.saturating_sub(1);
            let again = self.run_again(run.runner, run.notices, item, run.deadline, None).await?;
            replayed.take(again);
            run.done += 1;
            self.tell_progress(run.done, total).await;
        }
        Ok(())
    }

    /// Runs one submission again, and says what came of it beside what was before. What it prints was recorded the first time, and is
    /// dropped; what other code of the session's says meanwhile is too, unless there is somebody to tell it (`others`).
    pub(super) async fn run_again(
        &self,
        runner: &dyn Kernel,
        notices: &mut Notices,
        mut item: ReplayItem,
        deadline: Instant,
        others: Option<&Self>,
    ) -> Result<ReplayedEval, ReplayFailed> {
        let (job, code, file) = (item.job, std::mem::take(&mut item.code), item.file.take());
        let command_line = item.command_line.take();
        let answers = std::mem::take(&mut item.asked).into_iter().map(|asked| asked.answer);
        let run = async {
            // Code that was withheld is not known any more, and not run again.
            runner.run(Submission { job, code, file, command_line, is_withheld: false }).await;
            end_of(job, answers, runner, notices, others).await
        };
        let mut report = timeout_at(deadline.into(), run)
            .await
            .unwrap_or_else(|_| Err(self.replay_took_too_long(item.requested)))?;
        let references = report.references.take();
        let had = self.given.of(job);
        let compared = item.compare(self.spec.session, report, &self.limits, had.as_ref());
        let fails_now = item.fails_now(&compared);
        let ReplayComparison { divergence, changes, gives, .. } = compared;
        let gives_last = gives.has_last_value();
        if !fails_now {
            self.given.note(job, gives);
        }
        Ok(ReplayedEval { divergence, changes, references, gives_last, fails_now })
    }

    /// Tells the kernel of those that it may run together, from this one on, and says how many these are.
    async fn announce(&self, runner: &dyn Kernel, item: &ReplayItem, rest: &VecDeque<ReplayItem>) -> usize {
        let row = std::iter::once(item).chain(rest).take_while(|item| item.may_run_together());
        let upcoming: Vec<_> = row
            .take(self.limits.replay_batch)
            .map(|item| Upcoming { job: item.job, code: item.code.clone(), file: item.file.clone() })
            .collect();
        let count = upcoming.len();
        if count > 1 {
            runner.expect(upcoming).await;
        }
        count
    }

    fn replay_took_too_long(&self, requested: Seq) -> ReplayFailed {
        let limit_ms = self.limits.replay_ms;
        let reason =
            format!("replaying the session took longer than {limit_ms} ms; #{requested} was running");
        ReplayFailed::Error(Error::WorkerFailed { reason })
    }

    /// Says how far the replay is, where there is something to replay.
    pub(super) async fn tell_progress(&self, done: u32, total: u32) {
        if total > 0 {
            self.tell
                .send(FromWorker::WarmsUp(WarmUpProgress { phase: WarmUpPhase::Replay, done, total }))
                .await
                .ok();
        }
    }
}

/// A replay that is under way.
pub(super) struct ReplayRun<'a> {
    pub(super) runner: &'a dyn Kernel,
    pub(super) notices: &'a mut Notices,
    /// When it has taken too long.
    pub(super) deadline: Instant,
    /// How many submissions have run again.
    pub(super) done: u32,
}

#[derive(Default)]
pub(super) struct Replayed {
    pub(super) count: u32,
    /// Whether one failed that had run to its end the first time.
    pub(super) has_failed: bool,
    /// What the session has by a snapshot; none where there was none.
    pub(super) restored: Option<Box<Restored>>,
    pub(super) diverged: Vec<Divergence>,
    /// What gave another value than before.
    pub(super) changes: Vec<ValueChange>,
    /// What the worker said last that code depends on.
    pub(super) references: Option<References>,
}

impl Replayed {
    pub(super) fn take(&mut self, again: ReplayedEval) {
        let ReplayedEval { divergence, changes, references, gives_last, fails_now } = again;
        self.count += 1;
        self.has_failed |= fails_now;
        self.diverged.extend(divergence);
        // The last value is that of the last one that gives one.
        if gives_last {
            self.changes.retain(|change| change.name != "it");
        }
        self.changes.extend(changes);
        self.changes.truncate(CHANGES_KEPT);
        self.references = references.or(self.references.take());
    }
}

/// A submission that ran again.
pub(super) struct ReplayedEval {
    divergence: Option<Divergence>,
    changes: Vec<ValueChange>,
    references: Option<References>,
    /// Whether it gave the value of an expression.
    gives_last: bool,
    /// Whether it failed, where it had run to its end the first time.
    pub(super) fails_now: bool,
}

pub(super) enum ReplayFailed {
    Exited { exit: WorkerExit, last_words: Option<LastWords> },
    Error(Error),
}

impl From<Error> for ReplayFailed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Hears of a job's end. What it asks is answered as it was the first time; what other jobs' code says is told by `others`.
pub(super) async fn end_of(
    job: JobId,
    mut answers: impl Iterator<Item = Result<Value, Error>>,
    runner: &dyn Kernel,
    notices: &mut Notices,
    others: Option<&WarmUp>,
) -> Result<JobReport, ReplayFailed> {
    loop {
        let (number, notice) = notices.next().await.unzip();
        // What a replay says leads to nothing that is stored, and nobody adopts a runner in a warm-up.
        if let Some(number) = number {
            runner.acknowledge(number, Seq::ZERO);
        }
        if let (Some(others), Some(number), Some(notice)) = (others, number, &notice)
            && says_another(notice, job)
        {
            others.tell_of(number, Notice::Runner(notice.clone())).await;
            continue;
        }
        match notice {
            Some(
                RunnerNotice::Output { .. }
                | RunnerNotice::Display { .. }
                | RunnerNotice::Cleared { .. }
                | RunnerNotice::Comm { .. }
                | RunnerNotice::CommTaken { .. }
                | RunnerNotice::Application(_)
                | RunnerNotice::Agent(_)
                | RunnerNotice::Checks { .. }
                | RunnerNotice::Built { .. },
            ) => {}
            Some(RunnerNotice::Asks { ask, .. }) => {
                let answer = answers.next().unwrap_or(Err(Error::Cancelled));
                runner.answer(AskAnswer::open(ask, answer)).await;
            }
            Some(RunnerNotice::Finished { job: finished, report }) if finished == job => return Ok(report),
            Some(RunnerNotice::Finished { .. }) => {}
            Some(RunnerNotice::Exited { exit, last_words }) => {
                return Err(ReplayFailed::Exited {
                    exit,
                    last_words: last_words.or_else(|| suspected(job, exit)),
                });
            }
            None => return Err(ReplayFailed::Exited { exit: WorkerExit::Unknown, last_words: None }),
        }
    }
}

/// Whether code of another job prints or shows something.
fn says_another(notice: &RunnerNotice, running: JobId) -> bool {
    match notice {
        RunnerNotice::Output { job, .. } | RunnerNotice::Display { job, .. } => *job != Some(running),
        RunnerNotice::Application(_) => true,
        RunnerNotice::Cleared { .. }
        | RunnerNotice::Comm { .. }
        | RunnerNotice::CommTaken { .. }
        | RunnerNotice::Asks { .. }
        | RunnerNotice::Checks { .. }
        | RunnerNotice::Agent(_)
        | RunnerNotice::Finished { .. }
        | RunnerNotice::Built { .. }
        | RunnerNotice::Exited { .. } => false,
    }
}

/// Whom to suspect where a worker is lost during a replay without a word: the submission that ran, unless the worker was ended
/// from outside. Were it never left out, each new worker would be lost in the same way.
fn suspected(job: JobId, exit: WorkerExit) -> Option<LastWords> {
    let is_known = exit != WorkerExit::Unknown && !exit.is_from_outside();
    let reason = "it was lost while a submission ran again".to_owned();
    let (blame, reason) = (Blame { job, is_sure: false }, Some(reason));
    is_known.then_some(LastWords { blame, reason, diagnostics: Vec::new() })
}
