//! The jobs of a session: requested, cancelled and ended.

use super::running_job::RunningJob;
use super::{Activity, Session};
use crate::Timestamp;
use crate::agent::{JobKind, JobSpec, WorkEnding};
use crate::event::Event;
use crate::grant::LeaseChange;
use crate::id::{JobId, LeaseId, Seq};
use crate::state::Transition;

/// How many characters of a session's first input are its title.
const TITLE_CHARACTERS: usize = 60;

/// How code begins: its first line that is not blank, cut where it is long.
pub(crate) fn title(code: &str) -> Option<String> {
    let line = code.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARACTERS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

/// The prompt of a job; none where it is no turn.
pub(super) fn prompt_of(work: &JobSpec) -> Option<&str> {
    match work {
        JobSpec::Turn { prompt } => Some(prompt.text.as_str()),
        JobSpec::Compaction { .. }
        | JobSpec::Shell { .. }
        | JobSpec::Setting(_)
        | JobSpec::Build
        | JobSpec::Rebuild
        | JobSpec::Comm(_) => None,
    }
}

impl Session {
    /// A job begins; a turn, or an eval, with these words.
    pub(super) fn start_job(&mut self, event: &Event, said: Option<&str>) {
        let Some(running) = RunningJob::begun(event) else { return };
        if !self.step(Transition::StartEval, Activity::Evaluating { running }) {
            return;
        }
        let Some(said) = said else { return };
        if self.evals == 0 {
            self.title = title(said);
        }
        self.evals += 1;
        if let Some(rebuilt) = &mut self.rebuilt {
            rebuilt.is_news = false;
        }
    }

    /// A job ended that is no eval. What was done has changed the session, whatever it was.
    pub(super) fn work_ended(&mut self, job: JobId, ending: &WorkEnding) {
        let change = match ending {
            WorkEnding::Done { .. } => Transition::EvalCompleted,
            WorkEnding::Failed { .. } => Transition::EvalFailed,
            WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => Transition::EvalCancelled,
        };
        let is_counted = self.runs_what_counts();
        let build = self.build_under_way().map(|build| (build.requested, build.requested_at));
        if !self.end_job(job, change) {
            return;
        }
        match (ending, build) {
            (WorkEnding::Done { .. }, Some((since, at))) => {
                self.take_built(since);
                self.built = Some(at);
            }
            // What this build had is still not built, and the next time it is written may mend it: that is told.
            (_, Some((since, _))) => {
                for told in self.unbuilt.values_mut().filter(|told| **told <= since) {
                    *told = Seq::ZERO;
                }
            }
            (_, None) => {}
        }
        match ending {
            WorkEnding::Done { .. } => self.version = self.version.next(),
            WorkEnding::Failed { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => {
                self.failed(is_counted, false);
            }
        }
    }

    /// Whether what runs is an eval or a turn: those are counted, and those of them that fail.
    fn runs_what_counts(&self) -> bool {
        self.running().is_some_and(|running| match running.kind {
            JobKind::Eval | JobKind::Turn => true,
            JobKind::Compaction
            | JobKind::Shell
            | JobKind::Setting
            | JobKind::Build
            | JobKind::Rebuild
            | JobKind::Comm => false,
        })
    }

    /// A job did not run to its end; it may have changed the session all the same.
    fn failed(&mut self, is_counted: bool, changes_state: bool) {
        self.failures += u64::from(is_counted);
        if changes_state {
            self.version = self.version.next();
        }
    }

    pub(super) fn request_cancel(&mut self, job: JobId, grace_ms: Option<u64>) {
        if let Some(running) = self.running_mut(job) {
            (running.cancel_requested, running.grace_ms) = (true, grace_ms);
            self.version = self.version.next();
        }
    }

    pub(super) fn time_out(&mut self, job: JobId) {
        if let Some(running) = self.running_mut(job) {
            (running.cancel_requested, running.is_answered) = (true, true);
        }
    }

    pub(super) fn change_lease(&mut self, job: JobId, lease: LeaseId, change: &LeaseChange, at: Timestamp) {
        let grants = self.running_mut(job).and_then(|running| running.grants.as_deref_mut());
        if let Some(grants) = grants {
            grants.change_lease(lease, change, at);
        }
    }

    pub(super) fn complete_eval(&mut self, job: JobId) {
        if self.end_job(job, Transition::EvalCompleted) {
            self.version = self.version.next();
        }
    }

    /// Ends an eval that did not run to its end.
    pub(super) fn end_in_vain(&mut self, job: JobId, change: Transition, changes_state: bool) {
        let is_counted = self.runs_what_counts();
        if self.end_job(job, change) {
            self.failed(is_counted, changes_state);
        }
    }

    /// The job that runs.
    pub(super) fn running_job_mut(&mut self) -> Option<&mut RunningJob> {
        match &mut self.life {
            Activity::Evaluating { running } | Activity::Waiting { running, .. } => Some(running),
            Activity::Uninitialized
            | Activity::WarmingUp { .. }
            | Activity::Ready
            | Activity::Faulted { .. } => None,
        }
    }

    fn running_mut(&mut self, job: JobId) -> Option<&mut RunningJob> {
        self.running_job_mut().filter(|running| running.job == job)
    }

    fn end_job(&mut self, job: JobId, change: Transition) -> bool {
        self.running().is_some_and(|running| running.job == job) && self.step(change, Activity::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something_and_short() {
        assert_eq!(title("\n  let rate = 2\nrate"), Some("let rate = 2".to_owned()));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"é".repeat(60)), Some("é".repeat(60)));
        assert_eq!(title(&"é".repeat(61)), Some("é".repeat(60) + "…"));
    }
}
