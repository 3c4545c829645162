//! How a job is submitted in dialect B. Source: draft-arcp-1.1, 7.1, 7.2 and 9.5.

use mainstay_arcp_protocol::b::{ErrorCode, ErrorPayload, Message, Submit as WireSubmit};
use mainstay_model::{Error, Timestamp};

use super::{B, errors};
use crate::session::Session;
use crate::submissions::Submit;

impl Session<B> {
    /// Submits a job to its agent.
    pub(super) async fn submit_job(
        &mut self,
        message: String,
        trace: Option<String>,
        submit: WireSubmit,
    ) -> Result<(), Error> {
        if let Err(payload) = check(&submit, Timestamp::now()) {
            self.refuse_with(&message, &payload).await;
            return Ok(());
        }
        let timeout_ms = submit.max_runtime_sec.map(|seconds| u64::from(seconds).saturating_mul(1000));
        self.submit(Submit {
            message,
            trace,
            agent: submit.agent.name().to_owned(),
            version: submit.agent.version().map(str::to_owned),
            input: submit.input,
            key: submit.idempotency_key,
            timeout_ms,
        })
        .await
    }

    /// Says that a request was refused.
    pub(super) async fn refuse_with(&self, message: &str, payload: &ErrorPayload) {
        self.send(Message::SessionError(errors::answering(payload, message))).await;
    }
}

/// What is wrong with a submission by itself.
fn check(submit: &WireSubmit, now: Timestamp) -> Result<(), ErrorPayload> {
    let invalid = |message: String| Err(ErrorPayload::new(ErrorCode::InvalidRequest, message));
    if submit.max_runtime_sec == Some(0) {
        return invalid("max_runtime_sec must be at least 1".to_owned());
    }
    let expires_at =
        submit.lease_constraints.as_ref().and_then(|constraints| constraints.expires_at.as_deref());
    match expires_at.map(|text| (text, text.ends_with('Z'), text.parse::<Timestamp>())) {
        None => Ok(()),
        Some((_, true, Ok(at))) if at > now => Ok(()),
        Some((_, true, Ok(_))) => invalid("expires_at lies in the past".to_owned()),
        Some((text, ..)) => invalid(format!("expires_at must be a time in UTC that ends in Z, not {text}")),
    }
}
