//! The form in which events and answers carry grants.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Grants;
use super::budget::Budget;
use super::delegator::Delegator;
use super::kind::OperationKind;
use super::lease::Lease;
use super::operation::AskedOperation;
use super::pattern::PatternLimits;
use crate::Timestamp;
use crate::error::Error;
use crate::id::LeaseId;

/// What may be done: kinds of operations with patterns of their targets, until when, and at what cost.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Grants")]
pub(super) struct StoredGrants {
    /// The patterns of targets, by the kind of operation.
    #[serde(default)]
    capabilities: BTreeMap<OperationKind, Vec<String>>,
    /// When it expires; it does not where this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    /// What was granted and what is spent, by currency.
    #[serde(default)]
    budget: Budget,
    /// Why it was revoked, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked: Option<String>,
    /// Whether people are asked about what no pattern covers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asks: bool,
    /// What was allowed beside the patterns, each operation as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allowed: Vec<AskedOperation>,
    /// What people allowed beside the patterns for a time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    leases: BTreeMap<LeaseId, Lease>,
    /// Who gave the job its task, where another did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delegator: Option<Box<Delegator>>,
    /// How many principals must give the same answer to what its job asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quorum: Option<u32>,
}

impl From<Grants> for StoredGrants {
    fn from(grants: Grants) -> Self {
        let Grants { capabilities, expires_at, budget, revoked, asks, allowed, leases, delegator, quorum } =
            grants;
        let texts = |patterns: Vec<super::Pattern>| patterns.iter().map(ToString::to_string).collect();
        let capabilities = capabilities.into_iter().map(|(kind, patterns)| (kind, texts(patterns))).collect();
        Self { capabilities, expires_at, budget, revoked, asks, allowed, leases, delegator, quorum }
    }
}

impl TryFrom<StoredGrants> for Grants {
    type Error = Error;

    fn try_from(stored: StoredGrants) -> Result<Self, Error> {
        let capabilities = stored.capabilities.iter();
        let capabilities =
            capabilities.map(|(kind, patterns)| (kind.as_str(), patterns.iter().map(String::as_str)));
        let grants = Self::parse(capabilities, &PatternLimits::STORED)?;
        let StoredGrants { expires_at, budget, revoked, asks, allowed, leases, delegator, quorum, .. } =
            stored;
        let grants = grants.until(expires_at).costing(budget);
        Ok(Self { revoked, asks, allowed, leases, delegator, quorum, ..grants })
    }
}
