//! What this engine keeps in memory about all sessions together, on the assumption that no other process uses the store.
//!
//! Where several daemons share one, each of these must be replaced by something that they share: ARCHITECTURE.md,
//! `crates/engine`, has the list. Until then what they hold is true of this daemon's sessions only.

use std::sync::{Arc, PoisonError};

use mainstay_model::rate::RateLimit;
use mainstay_model::{Error, Limits, RateScope};

use crate::claims::Claims;
use crate::clock::now;
use crate::reserved_names::Names;
use crate::server_lane::ServerLane;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What is known in one process of all sessions.
pub(crate) struct SingleProcess {
    /// Which session has accepted which command: an id belongs to one session.
    pub(crate) claims: Arc<Claims>,
    /// How many commands may come in a minute.
    pub(crate) rate: CommandRate,
    /// How many outcomes are stored.
    pub(crate) outcomes: OutcomeCount,
    /// Where sessions are created and loaded, one after the other: two never get the same alias.
    pub(crate) server_lane: ServerLane,
    /// Names that sessions are about to get.
    pub(crate) names: Arc<Names>,
    /// Held by the client that creates a session for want of one.
    pub(crate) creation_turn: Arc<tokio::sync::Mutex<()>>,
}

impl SingleProcess {
    /// Of a store that has so many outcomes.
    pub(crate) fn new(limits: &Limits, outcomes: u64) -> Self {
        Self {
            claims: Arc::default(),
            rate: CommandRate::new(limits.commands_per_minute),
            outcomes: OutcomeCount { stored: AtomicU64::new(outcomes), limit: limits.outcomes },
            server_lane: ServerLane::new(limits.lane_commands),
            names: Arc::default(),
            creation_turn: Arc::default(),
        }
    }
}

/// The rate of the commands of all sessions together.
pub(crate) struct CommandRate {
    limit: u32,
    passed: Mutex<RateLimit>,
}

impl CommandRate {
    fn new(limit: u32) -> Self {
        Self { limit, passed: Mutex::new(RateLimit::new(limit)) }
    }

    /// Counts a command that comes now.
    ///
    /// # Errors
    /// [`Error::RateLimited`] where too many have come.
    pub(crate) fn pass(&self) -> Result<(), Error> {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner).pass(now());
        let (scope, limit) = (RateScope::Server, self.limit);
        passed.map_err(|retry_after_ms| Error::RateLimited { scope, limit, retry_after_ms })
    }
}

/// How many outcomes are stored, where that is limited.
pub(crate) struct OutcomeCount {
    stored: AtomicU64,
    /// How many may be; 0 where that is not limited.
    limit: u64,
}

impl OutcomeCount {
    /// Refuses where as many outcomes are stored as may be.
    ///
    /// # Errors
    /// [`Error::TooManyOutcomes`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.limit > 0 && self.stored.load(Ordering::Relaxed) >= self.limit {
            true => Err(Error::TooManyOutcomes { limit: self.limit }),
            false => Ok(()),
        }
    }

    /// Notes that so many more are on their way to the disk.
    pub(crate) fn add(&self, count: u64) {
        self.stored.fetch_add(count, Ordering::Relaxed);
    }
}
