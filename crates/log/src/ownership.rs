//! Who may append to a session: one owner at a time, under a lease.
//!
//! An owner is a daemon's identity, and has one lease for all of its sessions, so that renewing costs one write however many
//! they are. A session says who owns it, and in which epoch. A claim of a session whose owner's lease is live is refused; once
//! the lease has lapsed or was given up, a claim begins the next epoch. Only the newest epoch may append, so that an owner
//! that sleeps past its lease does no harm. It keeps the sessions that nobody has claimed meanwhile.

use std::fmt;
use std::time::Duration;

use mainstay_model::{Error, Timestamp};

/// An owner of sessions, which holds one lease for all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(String);

impl OwnerId {
    /// An owner of this name. Each daemon that shares a store has another, and keeps it when it is started again: then it
    /// takes its sessions over at once.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The owner whose store is used by nobody else: whichever daemon of the home has the store's lock.
    pub fn home() -> Self {
        Self::new("home")
    }

    /// Returns the owner's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The lease of one owner of a store that several use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// How long the lease lasts from when it was renewed. The longer, the later the sessions of a daemon that was lost are
    /// taken over; the shorter, the sooner a daemon that the store cannot hear for a while loses its sessions.
    pub lasts: Duration,
}

impl LeaseTerms {
    /// After how long the owner renews it: so that two renewals may fail.
    pub fn renewed_after(&self) -> Duration {
        self.lasts / 3
    }
}

impl Default for LeaseTerms {
    /// 30 seconds, renewed every 10.
    fn default() -> Self {
        Self { lasts: Duration::from_secs(30) }
    }
}

/// What tells the time by which leases lapse. It is the store's, not that of each daemon, so that all agree.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present moment of the store.
    fn now(&self) -> Timestamp;
}

/// The clock of this machine: the store's time where all that use the store run here.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Why a session was not claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// Another owner has it, whose lease is live.
    Held {
        /// The owner of the session.
        owner: OwnerId,
        /// When the owner's lease lapses unless it is renewed, in the store's time.
        expires_at: Timestamp,
    },
    /// The session is not there, or the store failed.
    Failed(Error),
}

impl From<Error> for ClaimError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ClaimError> for Error {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Held { .. } => Self::SessionOwned,
            ClaimError::Failed(error) => error,
        }
    }
}
