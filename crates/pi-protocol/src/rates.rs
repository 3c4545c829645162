//! How often commands come, and how many were refused by a limit: what `get_metrics` tells. And the rate of reads, which the engine does not
//! see.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use mainstay_model::rate::RateLimit;
use mainstay_model::{Error, Principal, RateScope, Timestamp};
use serde_json::{Value, json};

/// Sessions whose reads are counted. Those that have read little are forgotten first.
const SESSIONS: usize = 10_000;
/// The span of the count, in seconds.
const SPAN: i64 = 60;

/// The rates, and the refusals by limits.
#[derive(Default)]
pub(super) struct Rates {
    reads: Mutex<HashMap<(Principal, String), RateLimit>>,
    /// The commands of each second of the last minute.
    recent: Mutex<VecDeque<(i64, u64)>>,
    session_limit: AtomicU64,
    message_size: AtomicU64,
    session_rate: AtomicU64,
    server_rate: AtomicU64,
    connection_limit: AtomicU64,
    in_flight: AtomicU64,
}

impl Rates {
    /// Counts a read of a session.
    ///
    /// # Errors
    /// [`Error::RateLimited`].
    pub(super) fn pass_read(
        &self,
        principal: &Principal,
        session: &str,
        limit: u32,
        now: Timestamp,
    ) -> Result<(), Error> {
        if limit == 0 {
            return Ok(());
        }
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if reads.len() >= SESSIONS {
            reads.retain(|_, rate| rate.idle_at() > now);
        }
        let rate = reads.entry((principal.clone(), session.to_owned())).or_insert(RateLimit::new(limit));
        let limited =
            |retry_after_ms| Error::RateLimited { scope: RateScope::Session, limit, retry_after_ms };
        rate.pass(now).map_err(limited)
    }

    /// Counts a command that was accepted.
    pub(super) fn accepted(&self, now: Timestamp) {
        let second = now.as_second();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut recent, second);
        match recent.back_mut().filter(|(last, _)| *last == second) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => recent.push_back((second, 1)),
        }
    }

    /// How many commands were accepted in the last minute.
    pub(super) fn recent(&self, now: Timestamp) -> u64 {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut recent, now.as_second());
        recent.iter().map(|(_, count)| count).sum()
    }

    /// Counts a refusal, where a limit is its reason.
    pub(super) fn refused(&self, error: &Error) {
        let count = match error {
            Error::TooManySessions { .. } => &self.session_limit,
            Error::MessageTooLarge { .. } => &self.message_size,
            Error::RateLimited { scope: RateScope::Session, .. } => &self.session_rate,
            Error::RateLimited { scope: RateScope::Server, .. } => &self.server_rate,
            Error::TooManyCommands { .. } | Error::LaneFull { .. } => &self.in_flight,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a frame that was too large.
    pub(super) fn too_large(&self) {
        self.message_size.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that was one too many.
    pub(super) fn connection_refused(&self) {
        self.connection_limit.fetch_add(1, Ordering::Relaxed);
    }

    /// How many commands were refused because too many were under way.
    pub(super) fn in_flight_rejections(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// How many were refused by each limit.
    pub(super) fn rejected(&self) -> Value {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "sessionLimit": count(&self.session_limit), "messageSize": count(&self.message_size),
            "rateLimit": count(&self.session_rate), "globalRateLimit": count(&self.server_rate),
            "connectionLimit": count(&self.connection_limit),
            // Answers are limited by the asks that wait for them.
            "extensionUIResponseRateLimit": 0,
        })
    }
}

fn forget(recent: &mut VecDeque<(i64, u64)>, now: i64) {
    while recent.front().is_some_and(|(second, _)| *second <= now.saturating_sub(SPAN)) {
        recent.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_minute_counts() {
        let rates = Rates::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        for second in [0, 0, 30, 59] {
            rates.accepted(at(second));
        }
        assert_eq!([59, 60, 90, 119].map(|second| rates.recent(at(second))), [4, 2, 1, 0]);
    }

    #[test]
    fn each_session_has_its_own_rate_of_reads() {
        let (rates, local) = (Rates::default(), Principal::local());
        let pass = |session| rates.pass_read(&local, session, 1, Timestamp::UNIX_EPOCH).is_ok();
        assert_eq!([pass("a"), pass("a"), pass("b")], [true, false, true]);
    }
}
