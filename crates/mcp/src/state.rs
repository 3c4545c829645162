//! What a client carries from one call to its repetition: which command it is about, sealed, so that nobody makes one up or uses another's.

use mainstay_model::{AskId, Error, Timestamp};
use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::running_command::RunningCommand;

/// What the key is for. Another key makes all that is sealed void.
const PURPOSE: &str = "mainstay 2026-07-28 MCP request state";

/// The contents of a sealed state, before it is signed.
#[derive(Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    running: &'a RunningCommand,
    /// What the client is asked this time: what it is asked next has another state.
    asked: &'a [AskId],
    /// When the state was sealed.
    at: Timestamp,
}

/// The contents of a state whose seal is valid.
#[derive(Deserialize)]
pub(super) struct OpenedState {
    /// Which command a repeated call is about.
    #[serde(flatten)]
    pub(super) running: RunningCommand,
    /// When its client was asked.
    pub(super) at: Timestamp,
}

/// Seals which command a call is about, and what it asks now, for its own principal.
///
/// # Errors
/// [`Error::DaemonFailed`].
pub(super) fn seal(call: &Call, running: &RunningCommand, asked: &[AskId]) -> Result<String, Error> {
    let whose = call.client().principal().to_string();
    let options = SealOptions::new().associated_data(whose.as_bytes());
    let sealed = codec(call)
        .and_then(|codec| codec.seal_json_with(&Sealed { running, asked, at: Timestamp::now() }, &options));
    sealed.map_err(|error| Error::DaemonFailed { reason: error.to_string() })
}

/// Which command a repeated call is about, and when its client was asked.
///
/// # Errors
/// Invalid params where it was not sealed here, for this principal.
pub(super) fn open(call: &Call, sealed: &str) -> Result<OpenedState, ErrorData> {
    let whose = call.client().principal().to_string();
    let opened = codec(call).and_then(|codec| codec.open_json_with(sealed, whose.as_bytes()));
    opened.map_err(|error| ErrorData::invalid_params(format!("requestState: {error}"), None))
}

fn codec(call: &Call) -> Result<RequestStateCodec, RequestStateError> {
    RequestStateCodec::try_new(call.key(PURPOSE))
}
