//! When a lost worker is replaced, and when to give up. Source: design.md, "Sessions".

use crate::Timestamp;
use crate::limits::Limits;

/// What to do about a lost worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start another worker after a pause.
    Restart {
        /// The how manieth loss in a row this is, from 1; 0 for an end that is no loss.
        attempt: u32,
        /// How long to wait first, in milliseconds.
        after_ms: u64,
    },
    /// Workers are lost too often.
    GiveUp {
        /// The how manieth loss in a row this is.
        attempt: u32,
    },
}

/// Judges a loss at `now`, given the earlier `losses` in a row and since when the lost worker had been ready.
pub fn judge(losses: &[Timestamp], ready_at: Option<Timestamp>, now: Timestamp, limits: &Limits) -> Verdict {
    let was_stable = ready_at.is_some_and(|ready| elapsed_ms(ready, now) >= limits.restart_stable_ms);
    let recent = if was_stable {
        0
    } else {
        losses.iter().filter(|loss| elapsed_ms(**loss, now) < limits.restart_window_ms).count()
    };
    let attempt = u32::try_from(recent).unwrap_or(u32::MAX).saturating_add(1);
    if attempt > limits.restart_budget {
        return Verdict::GiveUp { attempt };
    }
    let doubled = limits.restart_first_ms.saturating_mul(1_u64.checked_shl(attempt - 1).unwrap_or(u64::MAX));
    Verdict::Restart { attempt, after_ms: doubled.min(limits.restart_longest_ms) }
}

/// Milliseconds from `earlier` to `later`; 0 where the clock went back.
pub fn elapsed_ms(earlier: Timestamp, later: Timestamp) -> u64 {
    u64::try_from(later.as_millisecond().saturating_sub(earlier.as_millisecond())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn waits_double_from_one_second_and_the_sixth_loss_in_five_minutes_faults() {
        let limits = Limits::default();
        let mut losses = Vec::new();
        let mut waits = Vec::new();
        for second in 0..6 {
            match judge(&losses, None, at(second), &limits) {
                Verdict::Restart { after_ms, .. } => waits.push(after_ms),
                Verdict::GiveUp { attempt } => assert_eq!(attempt, 6),
            }
            losses.push(at(second));
        }
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000]);
    }

    #[test]
    fn the_wait_never_exceeds_thirty_seconds() {
        let limits = Limits { restart_budget: 100, ..Limits::default() };
        let losses: Vec<_> = (0..80).map(at).collect();
        assert_eq!(judge(&losses, None, at(80), &limits), Verdict::Restart { attempt: 81, after_ms: 30_000 });
    }

    #[test]
    fn sixty_stable_seconds_begin_anew() {
        let limits = Limits::default();
        let losses: Vec<_> = (0..5).map(at).collect();
        let restart = |ready, now| judge(&losses, Some(at(ready)), at(now), &limits);
        assert_eq!(restart(10, 70), Verdict::Restart { attempt: 1, after_ms: 1_000 });
        assert_eq!(restart(10, 69), Verdict::GiveUp { attempt: 6 });
    }

    #[test]
    fn losses_older_than_five_minutes_do_not_count() {
        let losses: Vec<_> = (0..5).map(at).collect();
        assert_eq!(
            judge(&losses, None, at(303), &Limits::default()),
            Verdict::Restart { attempt: 2, after_ms: 2_000 }
        );
    }

    proptest! {
        #[test]
        fn it_never_panics(losses: Vec<i32>, ready: Option<i32>, now: i32, budget: u32, first: u64) {
            let limits = Limits { restart_budget: budget, restart_first_ms: first, ..Limits::default() };
            let losses: Vec<_> = losses.into_iter().map(|second| at(second.into())).collect();
            judge(&losses, ready.map(|second| at(second.into())), at(now.into()), &limits);
        }
    }
}
