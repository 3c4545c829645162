//! Building the list of submissions to replay from the events of a session.

use super::comparison::EvalValues;
use super::divergence::DivergenceKind;
use super::{RecordedAsk, Replay, ReplayItem};
use crate::ask::{Ask, AskEnding, Raiser};
use crate::error::Error;
use crate::eval::EvalResult;
use crate::event::{Blame, CompletedPart, Event, EventBody};
use crate::id::{AskId, JobId, Seq, SessionId};

/// Collects what must run again, from the events of the session's transcript since its last reset, in order.
///
/// Only submissions that ended and changed the session's state count, those whose value one of these uses (`it`), and the
/// one that gave the last value of all. Of one that was cancelled only the part that had run to its end counts: the rest may
/// never end, and what it had done is not known. One that was cut off does not count, nor one that ended a worker.
#[derive(Debug, Default)]
pub struct ReplayList {
    pending: Option<ReplayItem>,
    /// Every submission that may have to run again; none where one turned out not to.
    candidates: Vec<Option<ReplayItem>>,
    /// Which of them give the present value of `it`: the submission that gave it, behind those whose value that one used.
    /// They are there for nothing else.
    last_value: Vec<usize>,
    /// Whose code may have ended a worker once.
    suspects: Vec<JobId>,
    left_out: Vec<(SessionId, Seq)>,
    /// The job that cannot run again, while it runs, where it was requested, and why.
    hidden: Option<(JobId, SessionId, Seq, DivergenceKind)>,
    withheld: Vec<(SessionId, Seq, DivergenceKind)>,
}

impl ReplayList {
    /// Takes in the next event.
    pub fn push(&mut self, event: Event) {
        match event.body {
            EventBody::EvalRequested { job, withheld: true, .. } => {
                self.pending = None;
                self.hidden = Some((job, event.session, event.seq, DivergenceKind::Withheld));
            }
            EventBody::EvalRequested { job, code, file, command_line, .. } => {
                let requested = event.seq;
                let asked = Vec::new();
                self.pending = Some(ReplayItem {
                    job,
                    session: event.session,
                    requested,
                    code,
                    file,
                    command_line,
                    asked,
                    succeeded: false,
                    gave: None,
                    was_silent: false,
                });
            }
            EventBody::AskRaised(ask) => self.asked(*ask),
            EventBody::AskEnded { ask, ending, .. } => self.answered(ask, &ending),
            EventBody::EvalCompleted { job, result, changes_state, .. } => {
                self.end(job, changes_state, true, &result);
            }
            EventBody::EvalFailed { job, result, changes_state, .. } => {
                self.end(job, changes_state, false, &result);
            }
            EventBody::EvalCancelled { job, kept, .. } => self.end_kept(job, kept),
            EventBody::EvalInterrupted { job } => self.end_kept(job, None),
            EventBody::WorkerExited { blame: Some(blame), .. } => self.blame(blame),
            EventBody::SessionReset | EventBody::SessionHardReset => *self = Self::default(),
            _ => {}
        }
    }

    /// What must run again.
    pub fn finish(self) -> Replay {
        let Self { candidates, left_out, withheld, .. } = self;
        Replay { items: candidates.into_iter().flatten().collect(), left_out, withheld }
    }

    pub(super) fn asked(&mut self, Ask { ask, raiser, .. }: Ask) {
        if let (Some(pending), Raiser::Job { job }) = (&mut self.pending, raiser)
            && pending.job == job
        {
            pending.asked.push(RecordedAsk { ask, answer: Err(Error::Cancelled) });
        }
    }

    fn answered(&mut self, ask: AskId, ending: &AskEnding) {
        let has_asked = |pending: &mut ReplayItem| pending.asked.iter().any(|asked| asked.ask == ask);
        if *ending == AskEnding::Withheld
            && let Some(item) = self.pending.take_if(has_asked)
        {
            self.hidden = Some((item.job, item.session, item.requested, DivergenceKind::Secret));
        }
        let pending = self.pending.iter_mut().flat_map(|pending| &mut pending.asked);
        for asked in pending.filter(|asked| asked.ask == ask) {
            asked.answer = ending.answer();
        }
    }

    fn end(&mut self, job: JobId, changes_state: bool, succeeded: bool, result: &EvalResult) {
        self.end_hidden(job, changes_state);
        let Some(item) = self.pending.take_if(|pending| pending.job == job) else { return };
        let gives_value = succeeded && result.value_type.is_some();
        if !changes_state && !gives_value {
            return;
        }
        if changes_state && result.uses_last {
            // What gave the value is there for good now.
            self.last_value.clear();
        }
        if gives_value && !result.uses_last {
            self.forget_last_value();
        }
        if !changes_state {
            self.last_value.push(self.candidates.len());
        } else if gives_value {
            self.last_value.clear();
        }
        let (gave, was_silent) = (Some(EvalValues::of(result)), result.diagnostics.is_empty());
        self.candidates.push(Some(ReplayItem { succeeded, gave, was_silent, ..item }));
    }

    fn end_hidden(&mut self, job: JobId, changes_state: bool) {
        if let Some((_, session, requested, why)) = self.hidden.take_if(|(hidden, ..)| *hidden == job)
            && changes_state
        {
            self.withheld.push((session, requested, why));
        }
    }

    /// A submission of which at most the beginning had run to its end.
    fn end_kept(&mut self, job: JobId, kept: Option<CompletedPart>) {
        self.end_hidden(job, kept.is_some());
        let Some(mut item) = self.pending.take_if(|pending| pending.job == job) else { return };
        let Some(CompletedPart { bytes, bindings }) = kept else { return };
        if !item.code.is_char_boundary(bytes) {
            return;
        }
        item.code.truncate(bytes);
        item.gave = Some(EvalValues::of(&EvalResult { bindings, ..EvalResult::default() }));
        // It may have used the last value, and may have given another.
        self.last_value.clear();
        self.candidates.push(Some(ReplayItem { succeeded: true, ..item }));
    }

    fn blame(&mut self, Blame { job, is_sure }: Blame) {
        if is_sure || self.suspects.contains(&job) {
            self.leave_out(job);
        } else {
            self.suspects.push(job);
        }
    }

    fn leave_out(&mut self, job: JobId) {
        let is_of =
            |candidate: &&mut Option<ReplayItem>| candidate.as_ref().is_some_and(|item| item.job == job);
        if let Some(item) = self.candidates.iter_mut().find(is_of).and_then(Option::take) {
            self.left_out.push((item.session, item.requested));
        }
    }

    /// Another value took the place of the last one, which nothing needs any more.
    fn forget_last_value(&mut self) {
        for index in self.last_value.drain(..) {
            self.candidates[index] = None;
        }
    }
}
