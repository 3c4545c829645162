//! Leases of dialect B and the grants of the engine. Source: draft-arcp-1.1, 7.1, 9.2, 9.5 and 9.6.

use std::collections::BTreeMap;

use mainstay_arcp_protocol::b::{ErrorCode, ErrorPayload, Lease, LeaseConstraints, Submit};
use mainstay_model::grant::{Budget, Grants, PatternLimits};
use mainstay_model::{CommandId, Error, Timestamp};
use serde_json::Value;

use super::errors;

/// The kind under which a lease names its budget.
const BUDGET: &str = "cost.budget";

/// What a submission asks that its job may do at most; none where it asks for no bounds.
///
/// # Errors
/// INVALID_REQUEST where a pattern, an amount or the end is not of its form.
pub(super) fn asked(submit: &Submit) -> Result<Option<Grants>, ErrorPayload> {
    let expires_at = match submit.lease_constraints.as_ref().and_then(|bounds| bounds.expires_at.as_deref()) {
        Some(text) => Some(end(text)?),
        None => None,
    };
    if submit.lease_request.is_empty() && expires_at.is_none() {
        return Ok(None);
    }
    let invalid = |error: Error| errors::payload(&error);
    let amounts = submit.lease_request.get(BUDGET).into_iter().flatten().map(String::as_str);
    let budget = Budget::parse(amounts).map_err(invalid)?;
    let patterns = submit.lease_request.iter().filter(|(kind, _)| *kind != BUDGET);
    let patterns = patterns.map(|(kind, patterns)| (kind.as_str(), patterns.iter().map(String::as_str)));
    let grants = Grants::parse(patterns, &PatternLimits::REQUEST).map_err(invalid)?;
    Ok(Some(grants.until(expires_at).costing(budget)))
}

fn end(text: &str) -> Result<Timestamp, ErrorPayload> {
    match (text.ends_with('Z'), text.parse::<Timestamp>()) {
        (true, Ok(at)) => Ok(at),
        _ => {
            let message = format!("expires_at must be a time in UTC that ends in Z, not {text}");
            Err(ErrorPayload::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// The job that gave a job its task, as a client is shown it: its id, and the id of the task, which is that of the job that carries
/// it out. Source: draft-arcp-02, 10.1.
pub(super) fn given_by(grants: Option<&Grants>, job: &CommandId) -> (Option<String>, Option<String>) {
    let delegator = grants.and_then(Grants::delegator);
    let ids = delegator.map(|delegator| (delegator.parent.to_string(), job.to_string()));
    ids.unzip()
}

/// A grant as a client is shown it.
#[derive(Default)]
pub(super) struct ShownLease {
    pub(super) lease: Lease,
    pub(super) constraints: Option<LeaseConstraints>,
    pub(super) budget: Option<BTreeMap<String, Value>>,
}

impl ShownLease {
    /// Of a job; an empty one where nothing bounds it.
    pub(super) fn of(grants: Option<&Grants>) -> Self {
        let Some(grants) = grants else { return Self::default() };
        let texts = |(kind, patterns): (_, &Vec<_>)| {
            (String::from(kind), patterns.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let mut lease: Lease =
            grants.capabilities().iter().map(|(kind, patterns)| texts((kind.clone(), patterns))).collect();
        let left: Vec<_> = grants.budget().all_remaining().collect();
        if !left.is_empty() {
            lease.insert(
                BUDGET.to_owned(),
                grants.budget().granted().map(|amount| amount.to_string()).collect(),
            );
        }
        let expires_at = grants.expires_at().map(|at| at.to_string());
        let amount = |left: mainstay_model::grant::Amount| {
            (left.currency.as_str().to_owned(), Value::String(left.value.to_string()))
        };
        Self {
            lease,
            constraints: expires_at.map(|at| LeaseConstraints { expires_at: Some(at) }),
            budget: (!left.is_empty()).then(|| left.into_iter().map(amount).collect()),
        }
    }
}
