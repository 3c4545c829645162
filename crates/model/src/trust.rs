//! Levels of trust. Source: ARCP draft 01, 15.3.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::trust_refusal::TrustRefusal;

/// How far somebody is trusted. Source: ARCP draft 01, 15.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// It may look at most: an anonymous principal, and one that changes nothing.
    Untrusted,
    /// It may do what it was given: a principal with some rights, and a job that a grant bounds.
    Constrained,
    /// Nothing bounds it: a principal with the right to everything, and its jobs without a grant.
    Trusted,
    /// The daemon itself, and nobody else.
    Privileged,
}

impl TrustLevel {
    const ALL: [Self; 4] = [Self::Untrusted, Self::Constrained, Self::Trusted, Self::Privileged];

    /// Returns the name of the level.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Constrained => "constrained",
            Self::Trusted => "trusted",
            Self::Privileged => "privileged",
        }
    }

    /// Checks that a job can be elevated to it.
    ///
    /// # Errors
    /// [`Error::TrustRefused`] for the level of the daemon, [`Error::InvalidArgument`] for one that is no more than a job has.
    pub fn check_reachable(self) -> Result<(), Error> {
        match self {
            Self::Trusted => Ok(()),
            Self::Privileged => Err(Error::TrustRefused { refusal: TrustRefusal::Privileged }),
            Self::Untrusted | Self::Constrained => {
                Err(invalid("level of trust", format!("`{self}` is no more than each job has")))
            }
        }
    }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TrustLevel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join("`, `");
            invalid("level of trust", format!("it is one of `{names}`"))
        })
    }
}

fn invalid(argument: &str, reason: String) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason }
}
