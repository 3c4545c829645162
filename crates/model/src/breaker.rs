//! A circuit breaker: after so many failures in a row nothing is tried for a while, and then one alone. Slowness is no
//! failure. Source: protocol page pi, "What upstream gets wrong", 7.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::limits::Limits;
use crate::supervision::elapsed_ms;

/// A circuit breaker for starts of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    /// How many starts failed in a row.
    failures: u32,
    /// How the last one failed.
    reason: String,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open {
        since: Timestamp,
    },
    HalfOpen,
}

/// An attempt that the breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Others are made beside it.
    Ordinary,
    /// The only one, whose end decides whether the breaker closes.
    Probe,
}

/// Nothing is to be tried now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// How the last try failed.
    pub reason: String,
    /// When the next one may be made, in milliseconds, at least 1.
    pub retry_after_ms: u64,
}

/// A breaker as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakerStatus {
    /// Whether and what it lets through.
    pub state: BreakerState,
    /// How many tries have failed in a row.
    pub failures: u32,
    /// How the last of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the next one may be made, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Whether and what a breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BreakerState {
    /// Every start is permitted.
    Closed,
    /// No start is permitted.
    Open,
    /// One try, and its end decides.
    HalfOpen,
}

impl Breaker {
    /// Asks leave for a try; whoever gets it must say how it ended.
    ///
    /// # Errors
    /// [`Refusal`] while it is open, and while the one try is made that decides.
    pub fn admit(&mut self, now: Timestamp, limits: &Limits) -> Result<Attempt, Refusal> {
        match self.state {
            State::Closed => Ok(Attempt::Ordinary),
            State::Open { .. } if self.left_ms(now, limits) == 0 => {
                self.state = State::HalfOpen;
                Ok(Attempt::Probe)
            }
            State::Open { .. } | State::HalfOpen => Err(self.refusal(now, limits)),
        }
    }

    /// Whether a try would get leave now, or has a chance to soon.
    ///
    /// # Errors
    /// [`Refusal`] while it is open.
    pub fn check(&self, now: Timestamp, limits: &Limits) -> Result<(), Refusal> {
        match self.state {
            State::Open { .. } if self.left_ms(now, limits) > 0 => Err(self.refusal(now, limits)),
            State::Open { .. } | State::Closed | State::HalfOpen => Ok(()),
        }
    }

    /// Records that a start succeeded.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Records that a start failed, with the reason.
    pub fn failed(&mut self, now: Timestamp, reason: String, limits: &Limits) {
        self.failures = self.failures.saturating_add(1);
        self.reason = reason;
        let is_too_many = limits.breaker_failures > 0 && self.failures >= limits.breaker_failures;
        if is_too_many {
            self.state = State::Open { since: now };
        }
    }

    /// A try came to no end that says anything. Where it was the one that decides, the next one does.
    pub fn abandoned(&mut self, of: Attempt) {
        if of == Attempt::Probe && self.state == State::HalfOpen {
            self.state = State::Open { since: Timestamp::MIN };
        }
    }

    /// As people see it.
    pub fn status(&self, now: Timestamp, limits: &Limits) -> BreakerStatus {
        let (state, retry_after_ms) = match self.state {
            State::Closed => (BreakerState::Closed, None),
            State::Open { .. } => (BreakerState::Open, Some(self.left_ms(now, limits))),
            State::HalfOpen => (BreakerState::HalfOpen, None),
        };
        let reason = (self.failures > 0).then(|| self.reason.clone());
        BreakerStatus { state, failures: self.failures, reason, retry_after_ms }
    }

    fn refusal(&self, now: Timestamp, limits: &Limits) -> Refusal {
        Refusal { reason: self.reason.clone(), retry_after_ms: self.left_ms(now, limits).max(1) }
    }

    /// How long it stays open yet.
    fn left_ms(&self, now: Timestamp, limits: &Limits) -> u64 {
        match self.state {
            State::Open { since } => limits.breaker_open_ms.saturating_sub(elapsed_ms(since, now)),
            State::Closed => 0,
            State::HalfOpen => limits.breaker_open_ms,
        }
    }
}

/// Whether a turn that failed so, in the words of its agent or its provider, says something of the provider: others would fail with it too.
/// That is so of a connection that fails, of time-outs, of overload and rate limits, of the provider's own errors, and of a key that it does
/// not take. What is wrong with the request itself (a model that is not there, a conversation that is too long), and what is not known, says
/// nothing of it.
pub fn is_of_provider(message: &str) -> bool {
    const WORDS: [&str; 20] = [
        "overloaded",
        "rate limit",
        "rate_limit",
        "too many requests",
        "timed out",
        "timeout",
        "said nothing for",
        "connection",
        "network",
        "fetch failed",
        "socket",
        "other side closed",
        "terminated",
        "econn",
        "enotfound",
        "eai_again",
        "service unavailable",
        "server error",
        "internal error",
        "bad gateway",
    ];
    let message = message.to_ascii_lowercase();
    match status(&message) {
        // What a proxy or a key is refused for is refused for all.
        Some(401 | 402 | 403 | 407 | 408 | 429 | 500..) => true,
        Some(_) => false,
        None => WORDS.iter().any(|words| message.contains(words)),
    }
}

/// The HTTP status that a message names as such: at its beginning, or behind a word for it.
fn status(message: &str) -> Option<u16> {
    const BEFORE: [&str; 7] =
        ["status code ", "status: ", "status ", "http ", "error: ", "error ", "\"code\":"];
    let number = |text: &str| {
        let word = text.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next()?;
        let number = word.parse().ok()?;
        (400..600).contains(&number).then_some(number)
    };
    let behind = |words: &str| {
        let mut behind = message.match_indices(words).map(|(at, _)| &message[at + words.len()..]);
        behind.find_map(number)
    };
    number(message).or_else(|| BEFORE.iter().find_map(|words| behind(words)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn limits() -> Limits {
        Limits { breaker_failures: 3, breaker_open_ms: 10_000, ..Limits::default() }
    }

    fn opened(now: Timestamp) -> Breaker {
        let mut breaker = Breaker::default();
        (0..3).for_each(|n| breaker.failed(now, format!("failure {n}"), &limits()));
        breaker
    }

    #[test]
    fn only_what_others_would_fail_with_too_is_of_the_provider() {
        let of_provider = [
            "500 no",
            "529 overloaded",
            "503 Service Unavailable",
            "429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
            "401 Incorrect API key provided",
            "403 Your organization has been disabled",
            "Request failed with status code 502",
            "{\"error\":{\"code\": 503,\"message\":\"The model is busy\"}}",
            "Overloaded",
            "Connection error.",
            "fetch failed: connect ECONNREFUSED 127.0.0.1:1",
            "Request timed out.",
            "the model said nothing for 600000 ms",
            "terminated",
            "API Error: 500 internal",
        ];
        let of_request = [
            "400 messages.3: tool_use ids were found without tool_result blocks",
            "404 model: x-large is not there",
            "413 request too large",
            "422 temperature: must be at most 2",
            "400 the connection header is not allowed",
            "{\"error\":{\"code\":400,\"message\":\"API key not valid\",\"status\":\"INVALID_ARGUMENT\"}}",
            "Error: 500ms is too short",
            "This model's maximum context length is 512 tokens",
            "Model not found: a/b",
            "the model failed",
            "broken",
            "",
        ];
        assert_eq!(of_provider.map(is_of_provider), [true; 15]);
        assert_eq!(of_request.map(is_of_provider), [false; 12]);
    }

    proptest! {
        #[test]
        fn whatever_is_said_is_of_the_provider_or_not(message in ".{0,60}") {
            is_of_provider(&message);
        }
    }

    #[test]
    fn it_opens_after_so_many_failures_in_a_row() {
        let mut breaker = Breaker::default();
        for _ in 0..2 {
            (0..2).for_each(|_| breaker.failed(at(0), String::new(), &limits()));
            assert_eq!(breaker.admit(at(0), &limits()), Ok(Attempt::Ordinary));
            breaker.succeeded();
        }
        let refusal = Refusal { reason: "failure 2".to_owned(), retry_after_ms: 6_000 };
        assert_eq!(opened(at(0)).admit(at(4), &limits()), Err(refusal));
    }

    #[test]
    fn once_it_has_been_open_long_enough_one_try_decides() {
        let mut breaker = opened(at(0));
        assert_eq!(breaker.admit(at(10), &limits()), Ok(Attempt::Probe));
        assert!(breaker.admit(at(10), &limits()).is_err(), "one alone");
        let mut failed = breaker.clone();
        failed.failed(at(11), "again".to_owned(), &limits());
        assert_eq!(failed.admit(at(12), &limits()).unwrap_err().retry_after_ms, 9_000);
        breaker.succeeded();
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn a_probe_that_says_nothing_leaves_the_decision_to_the_next() {
        let mut breaker = opened(at(0));
        breaker.admit(at(10), &limits()).unwrap();
        breaker.abandoned(Attempt::Ordinary);
        assert!(breaker.admit(at(10), &limits()).is_err(), "an earlier one says nothing of it");
        breaker.abandoned(Attempt::Probe);
        assert_eq!(breaker.admit(at(10), &limits()), Ok(Attempt::Probe));
        let mut closed = Breaker::default();
        closed.abandoned(Attempt::Ordinary);
        assert_eq!(closed, Breaker::default());
    }

    #[test]
    fn none_opens_where_none_is_wanted() {
        let limits = Limits { breaker_failures: 0, ..limits() };
        let mut breaker = Breaker::default();
        (0..100).for_each(|_| breaker.failed(at(0), String::new(), &limits));
        assert_eq!(breaker.admit(at(0), &limits), Ok(Attempt::Ordinary));
    }

    proptest! {
        /// Whatever happens, at most one try is under way while it is not closed, and after a success all are let through.
        #[test]
        fn while_it_is_not_closed_at_most_one_try_is_under_way(steps in proptest::collection::vec((0_u8..4, 0_i64..30), 0..60)) {
            let (mut breaker, mut now, mut deciding) = (Breaker::default(), 0, 0);
            for (step, later) in steps {
                now += later;
                match step {
                    0 if breaker.admit(at(now), &limits()).is_ok() => {
                        deciding += u32::from(breaker.state != State::Closed);
                    }
                    0 => {}
                    1 if deciding > 0 => { breaker.failed(at(now), String::new(), &limits()); deciding = 0; }
                    2 if deciding > 0 => { breaker.succeeded(); deciding = 0; }
                    3 if deciding > 0 => { breaker.abandoned(Attempt::Probe); deciding = 0; }
                    _ if breaker.state == State::Closed => breaker.failed(at(now), String::new(), &limits()),
                    _ => {}
                }
                prop_assert!(deciding <= 1);
                prop_assert_eq!(deciding == 1, breaker.state == State::HalfOpen);
            }
        }
    }
}
