//! How often something may happen: a rate with room for a burst, kept in one number.

use crate::Timestamp;

/// A minute, in microseconds.
const MINUTE: i64 = 60_000_000;

/// Lets so many through in a minute, all at once if they come so, and then one by one as the minute passes.
///
/// It is the generic cell rate algorithm: `due` is when all that was let through would have come at an even pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    per_minute: u32,
    due: Timestamp,
}

impl RateLimit {
    /// As many in a minute; 0 for no limit.
    pub const fn new(per_minute: u32) -> Self {
        Self { per_minute, due: Timestamp::UNIX_EPOCH }
    }

    /// From when on a new one would let through as many as this one.
    pub const fn idle_at(&self) -> Timestamp {
        self.due
    }

    /// Lets one through.
    ///
    /// # Errors
    /// After how many milliseconds the next one may come, at least 1, where too many have come.
    pub fn pass(&mut self, now: Timestamp) -> Result<(), u64> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let pace = MINUTE / i64::from(self.per_minute);
        let now = now.as_microsecond();
        let due = self.due.as_microsecond().max(now);
        let early = due - now - (MINUTE - pace);
        if early > 0 {
            return Err(u64::try_from(early).unwrap_or(0).div_ceil(1000));
        }
        self.due = Timestamp::from_microsecond(due + pace).unwrap_or(Timestamp::MAX);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millisecond: u64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + millisecond as i64).unwrap()
    }

    #[test]
    fn a_burst_passes_and_then_one_by_one() {
        let mut limit = RateLimit::new(60);
        for _ in 0..60 {
            assert_eq!(limit.pass(at(0)), Ok(()));
        }
        assert_eq!(limit.pass(at(0)), Err(1_000));
        assert_eq!(limit.pass(at(400)), Err(600));
        assert_eq!(limit.pass(at(1_000)), Ok(()));
        assert_eq!(limit.pass(at(1_000)), Err(1_000));
    }

    #[test]
    fn without_a_limit_all_pass() {
        let mut limit = RateLimit::new(0);
        assert!((0..1_000_000).all(|_| limit.pass(at(0)).is_ok()));
    }

    proptest! {
        #[test]
        fn in_no_minute_pass_more_than_two_bursts_and_who_waits_as_told_passes(
            per_minute in 1_u32..300,
            pauses in prop::collection::vec(0_u64..2_000, 1..400),
        ) {
            let mut limit = RateLimit::new(per_minute);
            let mut now = 0;
            let mut passed = Vec::new();
            for pause in pauses {
                now += pause;
                match limit.pass(at(now)) {
                    Ok(()) => passed.push(now),
                    Err(wait) => {
                        prop_assert_eq!(limit.clone().pass(at(now + wait)), Ok(()));
                        prop_assert!(wait >= 1);
                    }
                }
            }
            let in_minute_from = |start: u64| passed.iter().filter(|at| (start..start + 60_000).contains(at)).count();
            let most = passed.iter().map(|start| in_minute_from(*start)).max().unwrap_or(0);
            prop_assert!(most <= 2 * per_minute as usize, "{} in a minute", most);
        }
    }
}
