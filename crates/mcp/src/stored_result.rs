//! The result of a call whose command has ended, from the outcome that is stored of it.

use mainstay_model::{
    CommandId, Error, EventBody, Outcome, Response, Seq, SessionId, TestSelection, Timestamp,
};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;

use super::call::{Call, unexpected};
use super::eval::EvalAnswer;
use super::lifecycle::{CreatedAnswer, SessionAnswer};
use super::rebuild::ResetAnswer;
use super::tests::RunAnswer;
use super::tool_result::answered;
use mainstay_gateway::view::eval_view;
use mainstay_log::StoredOutcome;

/// The answer that a call has whose command ended so.
pub(super) async fn result_of(
    call: &Call,
    command: &CommandId,
    stored: StoredOutcome,
) -> Result<CallToolResult, ErrorData> {
    if let Some(session) = stored.session {
        call.is_about(session);
    }
    match (stored.outcome, stored.session) {
        (Outcome::Done { response: Response::Evaluated(outcome) }, Some(session)) => {
            let requested = event(call, session, outcome.requested).await;
            let is_run = requested
                .as_ref()
                .is_ok_and(|(_, code)| code.as_deref().is_some_and(TestSelection::is_run_by));
            let view = match requested {
                Ok(_) => eval_view(call.client(), session, command.clone(), outcome).await,
                Err(error) => Err(error),
            };
            match is_run {
                true => answered(call, view.map(RunAnswer::from)).await,
                false => answered(call, view.map(EvalAnswer::from)).await,
            }
        }
        (Outcome::Done { response: Response::Worked(outcome) }, Some(session)) => {
            answered(call, ResetAnswer::of_build(call, session, outcome).await).await
        }
        (Outcome::Done { response: Response::Created { session } | Response::Forked { session, .. } }, _) => {
            call.use_session(session);
            let status = call.client().status(session).await;
            let made = status
                .map(|status| CreatedAnswer::from(&status.session).saying_language(call, &status.session));
            answered(call, made).await
        }
        (Outcome::Done { .. }, Some(session)) => {
            let status = call.client().status(session).await;
            answered(call, status.map(|status| SessionAnswer::from(&status.session))).await
        }
        (Outcome::Done { response }, None) => answered::<EvalAnswer>(call, Err(unexpected(&response))).await,
        (Outcome::Failed { error }, _) => answered::<EvalAnswer>(call, Err(error)).await,
    }
}

/// When an event was, and the code that it says was to run.
pub(super) async fn event(
    call: &Call,
    session: SessionId,
    at: Seq,
) -> Result<(Timestamp, Option<String>), Error> {
    let events = call.client().events(session, Seq(at.0.saturating_sub(1)), 1).await?;
    let Some(event) = events.into_iter().next() else { return Ok((Timestamp::now(), None)) };
    let code = if let EventBody::EvalRequested { code, .. } = event.body { Some(code) } else { None };
    Ok((event.at, code))
}
