//! Leases: permissions that people give for a time while a job runs. Source: ARCP draft 01, section 15.5.

use serde::{Deserialize, Serialize};

use super::denial::Denial;
use super::kind::OperationKind;
use super::operation::{AskedOperation, Operation};
use super::pattern::{Pattern, PatternLimits};
use crate::Timestamp;
use crate::error::Error;
use crate::event::Deadline;
use crate::limits::Limits;
use crate::trust::TrustLevel;
use crate::trust_refusal::TrustRefusal;

/// For how long somebody gives a permission, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseTerms {
    /// For how long the operation may be done without a question, in milliseconds.
    pub duration_ms: u64,
    /// The targets of the same kind of operation to which it may be done; without it, the one that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// A permission that a job holds for a time, beside the patterns of its grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "StoredLease", into = "StoredLease")]
#[schemars(with = "StoredLease")]
pub struct Lease {
    asked: AskedOperation,
    pattern: Option<Pattern>,
    granted_at: Timestamp,
    expires_at: Timestamp,
    duration_ms: u64,
    level: Option<TrustLevel>,
}

/// What becomes of a lease while its job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "change", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LeaseChange {
    /// Somebody gave the lease to the job.
    Granted {
        /// What it allows, and until when.
        terms: Box<Lease>,
    },
    /// It is held for longer.
    Extended {
        /// Until when it is held now.
        expires_at: Timestamp,
    },
    /// It was taken back before its time.
    Revoked {
        /// Why it was taken back, for people.
        reason: String,
    },
}

impl AskedOperation {
    /// A pattern of targets that covers this operation.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the text is no pattern, or one that does not cover it.
    pub fn covered_by(&self, pattern: &str) -> Result<Pattern, Error> {
        let pattern = Pattern::parse(&self.kind, pattern, &PatternLimits::REQUEST)?;
        match pattern.allows(&self.operation()?) {
            true => Ok(pattern),
            false => Err(invalid("pattern of a lease", "it does not cover what was asked about")),
        }
    }
}

impl Lease {
    /// A lease for an operation that people were asked about, as long as they say, and `lease-longest-ms` at most.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is for no time, or its pattern does not cover what was asked.
    pub fn new(
        asked: AskedOperation,
        terms: &LeaseTerms,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let LeaseTerms { duration_ms, pattern } = terms;
        if *duration_ms == 0 {
            return Err(invalid("lease", "it must be for at least a millisecond"));
        }
        if limits.lease_longest_ms == 0 {
            return Err(invalid(
                "lease",
                "`lease-longest-ms` is 0: allow the operation once, or for the whole job",
            ));
        }
        let pattern = pattern.as_deref().map(|text| asked.covered_by(text)).transpose()?;
        let operation = asked.operation()?;
        let duration_ms = (*duration_ms).min(limits.lease_longest_ms);
        let expires_at = after(now, duration_ms);
        Ok(Self {
            asked: AskedOperation::from(&operation),
            pattern,
            granted_at: now,
            expires_at,
            duration_ms,
            level: None,
        })
    }

    /// A lease of what a job is to be trusted with, for so long, and `lease-longest-ms` at most.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is for no time, or its pattern is none.
    pub fn of_elevation(
        level: TrustLevel,
        (kind, pattern): (&OperationKind, &str),
        duration_ms: u64,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let duration_ms = duration_ms.min(limits.lease_longest_ms);
        if duration_ms == 0 {
            return Err(invalid("lease", "it must be for at least a millisecond"));
        }
        Ok(Self {
            asked: AskedOperation { kind: kind.clone(), target: pattern.to_owned(), is_recursive: false },
            pattern: Some(Pattern::parse(kind, pattern, &PatternLimits::REQUEST)?),
            granted_at: now,
            expires_at: after(now, duration_ms),
            duration_ms,
            level: Some(level),
        })
    }

    /// The level of trust to which it raises its job, where that was asked for; none of another permission.
    pub const fn level(&self) -> Option<TrustLevel> {
        self.level
    }

    /// For how long it was given at first, in milliseconds.
    pub const fn duration_ms(&self) -> u64 {
        self.duration_ms
    }

    /// Returns the operation that was asked about when it was given.
    pub const fn asked(&self) -> &AskedOperation {
        &self.asked
    }

    /// The targets that it covers: its pattern, or the one target that was asked about.
    pub fn resource(&self) -> &str {
        self.pattern.as_ref().map_or(&self.asked.target, Pattern::as_str)
    }

    /// Returns when it ends by itself.
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// Whether it is still held.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// Whether it allows an operation now.
    pub(super) fn allows(&self, operation: &Operation, now: Timestamp) -> bool {
        let covers = match &self.pattern {
            Some(pattern) => self.asked.kind == *operation.kind() && pattern.allows(operation),
            None => self.asked.is(operation),
        };
        covers && self.is_live(now)
    }

    /// Until when it is held if its holder asks for more time: from now on for as long as it was given for at first, and since it was given
    /// for no longer than `lease-longest-ms`. One that raises the trust in its job is not extended: who may do everything gives it anew.
    ///
    /// # Errors
    /// [`Error::GrantExpired`] where it has ended, [`Error::GrantExceeded`] where it may last no longer than it does,
    /// [`Error::TrustRefused`] where it raises the trust in its job.
    pub fn extension(
        &self,
        duration_ms: Option<u64>,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Timestamp, Error> {
        if !self.is_live(now) {
            return Err(Denial::Expired { at: self.expires_at }.into());
        }
        if self.level.is_some() {
            return Err(Error::TrustRefused { refusal: TrustRefusal::Extension });
        }
        let wanted = after(now, duration_ms.unwrap_or(self.duration_ms).min(self.duration_ms));
        let until = wanted.min(after(self.granted_at, limits.lease_longest_ms));
        match until > self.expires_at {
            true => Ok(until),
            false => Err(Error::GrantExceeded { capability: "expiry".to_owned(), asked: wanted.to_string() }),
        }
    }

    /// Moves the end to this moment.
    pub(super) const fn extend(&mut self, until: Timestamp) {
        self.expires_at = until;
    }
}

fn after(moment: Timestamp, milliseconds: u64) -> Timestamp {
    Deadline::after(moment, milliseconds).at
}

fn invalid(argument: &str, reason: &str) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason: reason.to_owned() }
}

/// The form in which events and statuses carry a lease.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Lease")]
struct StoredLease {
    /// What was asked about when it was given.
    asked: AskedOperation,
    /// The targets that it covers, where they are more than the one that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    /// When it was given.
    granted_at: Timestamp,
    /// When it ends by itself.
    expires_at: Timestamp,
    /// For how long it was given at first, in milliseconds.
    duration_ms: u64,
    /// The level of trust to which it raises its job, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<TrustLevel>,
}

impl From<Lease> for StoredLease {
    fn from(lease: Lease) -> Self {
        let Lease { asked, pattern, granted_at, expires_at, duration_ms, level } = lease;
        Self {
            asked,
            pattern: pattern.map(|pattern| pattern.to_string()),
            granted_at,
            expires_at,
            duration_ms,
            level,
        }
    }
}

impl TryFrom<StoredLease> for Lease {
    type Error = Error;

    fn try_from(stored: StoredLease) -> Result<Self, Error> {
        let StoredLease { asked, pattern, granted_at, expires_at, duration_ms, level } = stored;
        let pattern = pattern.as_deref();
        let pattern = pattern.map(|text| Pattern::parse(&asked.kind, text, &PatternLimits::STORED));
        Ok(Self { pattern: pattern.transpose()?, asked, granted_at, expires_at, duration_ms, level })
    }
}
