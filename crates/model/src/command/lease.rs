//! Changing a lease of the running job: more time, or none. Source: ARCP draft 01, section 15.5.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::id::LeaseId;
use crate::limits::Limits;

/// The longest reason, in bytes.
const LONGEST_REASON: usize = 1_000;

/// Have a job hold a permission for longer that it was given for a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtendLease {
    /// The lease that is extended.
    pub lease: LeaseId,
    /// For how long it is to be held from now on, in milliseconds; at most, and without this, as long as it was given for at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// Take a permission back before its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevokeLease {
    /// The lease that is taken back.
    pub lease: LeaseId,
    /// Why it is taken back, for people.
    pub reason: String,
}

impl Request for ExtendLease {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Answer)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.extend_lease(accepted.metadata, self.lease, self.duration_ms).map(Decided::Done)
    }
}

impl Request for RevokeLease {
    fn rules(&self) -> Rules {
        Rules::always(Action::Answer)
    }

    fn validate(&self, _: &Limits) -> Result<(), Error> {
        if self.reason.len() > LONGEST_REASON {
            let reason = format!("it may have at most {LONGEST_REASON} bytes");
            return Err(Error::InvalidArgument { argument: "reason".to_owned(), reason });
        }
        Ok(())
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.revoke_lease(accepted.metadata, self.lease, &self.reason).map(Decided::Done)
    }
}
