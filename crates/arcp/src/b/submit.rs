//! How a job is submitted in dialect B. Source: draft-arcp-1.1, 7.1, 7.2 and 9.5.

use mainstay_arcp_protocol::b::{ErrorCode, ErrorPayload, Message, Submit as WireSubmit};
use mainstay_model::Error;

use super::{B, errors, lease};
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
        if submit.max_runtime_sec == Some(0) {
            let reason = "max_runtime_sec must be at least 1";
            self.refuse_with(&message, &ErrorPayload::new(ErrorCode::InvalidRequest, reason)).await;
            return Ok(());
        }
        let grants = match lease::asked(&submit) {
            Ok(grants) => grants.map(Box::new),
            Err(payload) => {
                self.refuse_with(&message, &payload).await;
                return Ok(());
            }
        };
        let timeout_ms = submit.max_runtime_sec.map(|seconds| u64::from(seconds).saturating_mul(1000));
        self.submit(Submit {
            message,
            trace,
            agent: submit.agent.name().to_owned(),
            version: submit.agent.version().map(str::to_owned),
            input: submit.input,
            key: submit.idempotency_key,
            timeout_ms,
            grants,
            delegation: None,
        })
        .await
    }

    /// Says that a request was refused.
    pub(super) async fn refuse_with(&self, message: &str, payload: &ErrorPayload) {
        self.send(Message::SessionError(errors::answering(payload, message))).await;
    }
}
