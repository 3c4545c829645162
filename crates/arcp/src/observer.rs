//! An observer: a subscription to all messages that a filter lets through, whoever submitted their jobs. Source: draft-arcp-01, 13.

use mainstay_arcp_protocol::a::subscription::Filter;
use mainstay_model::{CommandId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::job_origin::JobOrigin;

/// A subscription of a session to the messages of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Observer {
    /// The name of the subscription.
    pub(crate) subscription: String,
    /// When it was made.
    pub(crate) since: Timestamp,
    pub(crate) filter: Filter,
}

impl Observer {
    /// Whether messages of this job may be wanted, which a session of the engine has. A filter names that, or the session of ARCP that submitted it.
    pub(crate) fn wants_job(&self, job: &CommandId, origin: &JobOrigin, home: SessionId) -> bool {
        let Filter { session_id, trace_id, job_id, .. } = &self.filter;
        let is_of_session = is_among(session_id.as_ref(), &origin.session)
            || is_among(session_id.as_ref(), &home.to_string());
        is_of_session && is_among(trace_id.as_ref(), &origin.trace) && is_among(job_id.as_ref(), job.as_str())
    }
}

/// Whether a condition of a filter holds: one that is not set always does.
pub(crate) fn is_among(wanted: Option<&Vec<String>>, value: &str) -> bool {
    wanted.is_none_or(|wanted| wanted.iter().any(|one| one == value))
}
