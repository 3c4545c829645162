//! Why an append is not there: the three kinds that whoever appends answers differently.

use std::fmt;

use mainstay_model::{Error, Seq};

use crate::{Append, Epoch};

/// Why an append is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// Another owner has the session. Whoever appended must append nothing more to it: what it believes of the session is
    /// no longer what the log says.
    Fenced {
        /// The newest epoch of the session.
        newest: Epoch,
    },
    /// The append may not be, and would be refused again.
    Refused(Refusal),
    /// The store cannot take it now: its disk is full, cannot be written or is away, or too much waits for it already. The
    /// same append may succeed later.
    Unavailable {
        /// What the store met, for people.
        reason: String,
    },
}

/// Why an append may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its first event is not the next of the session: one before it is missing, or another has its place.
    OutOfSequence {
        /// The seq that the session's next event has.
        next: Seq,
    },
    /// What it says may not be stored: the session is not there, or a command or a key has an outcome already.
    Content(Error),
}

impl From<AppendError> for Error {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Fenced { .. } | AppendError::Refused(Refusal::OutOfSequence { .. }) => {
                Self::SessionOwned
            }
            AppendError::Refused(Refusal::Content(error)) => error,
            AppendError::Unavailable { reason } => Self::StoreFailed { reason },
        }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced { newest } => write!(f, "the session has another owner, of epoch {}", newest.0),
            Self::Refused(Refusal::OutOfSequence { next }) => {
                write!(f, "the session's next event is {next}")
            }
            Self::Refused(Refusal::Content(error)) => error.fmt(f),
            Self::Unavailable { reason } => write!(f, "the store cannot take it: {reason}"),
        }
    }
}

/// An append that is not there. It comes back whole, so that it can be sent again without a copy of each being kept.
#[derive(Clone, Debug)]
pub struct FailedAppend {
    /// Why it is not there.
    pub error: AppendError,
    /// What was to be appended.
    pub append: Box<Append>,
}

impl From<FailedAppend> for Error {
    fn from(failed: FailedAppend) -> Self {
        failed.error.into()
    }
}
