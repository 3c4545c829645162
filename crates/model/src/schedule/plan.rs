//! Which runs of a schedule are due at a moment, and when the next is.

use std::collections::VecDeque;

use jiff::SignedDuration;

use super::{MissedRuns, Schedule, When};
use crate::Timestamp;

/// Up to how late a run is no missed one: a daemon wakes a moment after the time.
const ON_TIME: SignedDuration = SignedDuration::from_secs(10);

/// What is due of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The runs that are to be submitted now, in order.
    pub runs: Vec<Timestamp>,
    /// How many moments have passed whose runs are left out.
    pub left_out: u64,
    /// How many moments have passed since the last look.
    pub passed: u64,
    /// The next run; none where there is none.
    pub next: Option<Timestamp>,
}

impl Schedule {
    /// The first moment of a new schedule. One that is past is due at once.
    pub(super) fn first(&self) -> Option<Timestamp> {
        match &self.when {
            When::At(at) => Some(*at),
            When::Every(rule) => rule.next_after(self.created_at, self.created_at, 0),
        }
    }

    /// The runs that are due at `now`, after those that were planned before.
    pub fn due(&self, now: Timestamp) -> Due {
        let mut passed = 0;
        let mut on_time: Option<Timestamp> = None;
        let mut missed = VecDeque::new();
        let kept = match self.missed {
            MissedRuns::Skip => 0,
            MissedRuns::RunOnce => 1,
            MissedRuns::RunAll(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let mut next = self.state.next;
        while let Some(moment) = next.filter(|moment| *moment <= now) {
            passed += 1;
            missed.extend(on_time.replace(moment));
            while missed.len() > kept {
                missed.pop_front();
            }
            next = self.after(moment, self.state.passed + passed);
        }
        // The newest runs unless it is too late for it and missed runs are left out.
        let newest = on_time.filter(|at| kept > 0 || now.duration_since(*at) <= ON_TIME);
        let before = match self.missed {
            MissedRuns::RunAll(_) => kept.saturating_sub(1),
            MissedRuns::Skip | MissedRuns::RunOnce => 0,
        };
        let from = missed.len().saturating_sub(before);
        let runs: Vec<_> = missed.into_iter().skip(from).chain(newest).collect();
        Due { left_out: passed - runs.len() as u64, passed, next, runs }
    }

    /// The moment after one, where so many have passed.
    fn after(&self, moment: Timestamp, passed: u64) -> Option<Timestamp> {
        match &self.when {
            When::At(_) => None,
            When::Every(rule) => rule.next_after(self.created_at, moment, passed),
        }
    }
}
