//! Why a grant refuses an operation, or a smaller grant. Source: ARCP draft 1.1, sections 9.3 to 9.6 and 12.

use thiserror::Error as ThisError;

use super::amount::{Amount, Currency};
use super::kind::OperationKind;
use crate::Timestamp;
use crate::error::Error;

/// Why an operation may not be done.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Denial {
    /// The target has no one form that patterns can be matched against.
    #[error("`{kind}` of `{target}` cannot be checked: {reason}")]
    NotCanonical {
        /// What was to be done.
        kind: OperationKind,
        /// The target as it was given, cut and without control characters.
        target: String,
        /// Why it has no one form.
        reason: String,
    },
    /// No pattern of the grant covers the operation.
    #[error("`{kind}` of `{target}` is not granted")]
    NotCovered {
        /// What was to be done.
        kind: OperationKind,
        /// The target in its one form, cut and without control characters.
        target: String,
    },
    /// The grant has expired, whatever it covered.
    #[error("the grant expired at {at}")]
    Expired {
        /// When the grant expired.
        at: Timestamp,
    },
    /// Nothing remains of a currency of the budget.
    #[error("nothing remains of the budget in {currency}")]
    BudgetExhausted {
        /// The currency of which nothing remains.
        currency: Currency,
    },
    /// The grant was taken back before its time.
    #[error("the grant was revoked: {reason}")]
    Revoked {
        /// The reason that was given.
        reason: String,
    },
}

/// What a request asks for beyond the grant that it is to be a part of.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum NotASubset {
    /// No pattern of the grant is shown to cover this one.
    #[error("`{pattern}` of `{capability}` is more than is held")]
    Pattern {
        /// The kind of operation that the pattern is for.
        capability: OperationKind,
        /// The pattern that is not covered.
        pattern: String,
    },
    /// More is asked for than remains of the budget.
    #[error("`{asked}` is more than the `{remaining}` that remain")]
    Budget {
        /// The amount that was asked for.
        asked: Amount,
        /// What remains of its currency.
        remaining: Amount,
    },
    /// A later end is asked for.
    #[error("`{asked}` is later than `{held}`")]
    Expiry {
        /// The end that was asked for.
        asked: Timestamp,
        /// The end of the grant that is held.
        held: Timestamp,
    },
}

impl From<Denial> for Error {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::NotCanonical { kind, target, reason } => {
                Self::GrantDenied { operation: kind.into(), target, reason: Some(reason) }
            }
            Denial::NotCovered { kind, target } => {
                Self::GrantDenied { operation: kind.into(), target, reason: None }
            }
            Denial::Expired { at } => Self::GrantExpired { at },
            Denial::BudgetExhausted { currency } => Self::BudgetExhausted { currency: currency.into() },
            Denial::Revoked { reason } => Self::GrantRevoked { reason },
        }
    }
}

impl From<NotASubset> for Error {
    fn from(beyond: NotASubset) -> Self {
        let (capability, asked) = match beyond {
            NotASubset::Pattern { capability, pattern } => (capability.into(), pattern),
            NotASubset::Budget { asked, .. } => ("budget".to_owned(), asked.to_string()),
            NotASubset::Expiry { asked, .. } => ("expiry".to_owned(), asked.to_string()),
        };
        Self::GrantExceeded { capability, asked }
    }
}
