//! The result of a call: what its tool answered, or the error, as the protocol carries it.

use std::fmt::Display;

use mainstay_model::Error;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use super::call::Call;
use super::clients::Results;
use super::error;
use super::staleness::Staleness;
use super::text::bounded;
use super::tool::Answer;

/// The result of a call that was answered so.
pub(super) async fn answered<A: Answer>(
    call: &Call,
    answer: Result<A, Error>,
) -> Result<CallToolResult, ErrorData> {
    match answer {
        Ok(mut answer) => {
            if let Some(whole) = answer.whole() {
                return Ok(whole);
            }
            let pictures = answer.pictures();
            answer.fit(call.habits().text_bytes);
            let mut result = result(call, &answer, answer.is_failure())?;
            result
                .content
                .extend(pictures.into_iter().map(|picture| ContentBlock::image(picture.data, picture.kind)));
            if A::IS_MARKED
                && let Some(session) = call.session()
                // What was done stays done, whether this can be told or not.
                && let Ok(Some(stale)) = Staleness::of(call, session).await
            {
                mark(&mut result, &stale)?;
            }
            Ok(result)
        }
        Err(error) => result(call, &error::explain(call, &error).await, true),
    }
}

/// Says in an answer what it rests on and has changed.
fn mark(result: &mut CallToolResult, stale: &Staleness) -> Result<(), ErrorData> {
    let told =
        serde_json::to_value(stale).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    if let Some(Value::Object(members)) = &mut result.structured_content {
        members.insert("stale".to_owned(), told);
    }
    if let Some(ContentBlock::Text(text)) = result.content.first_mut() {
        text.text = format!("{stale}\n{}", text.text);
    }
    Ok(())
}

fn result(
    call: &Call,
    answer: &(impl Serialize + Display),
    is_failure: bool,
) -> Result<CallToolResult, ErrorData> {
    let text = bounded(answer.to_string(), call.habits().text_bytes);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if call.results() == Results::Structured {
        let structured = serde_json::to_value(answer);
        result.structured_content =
            Some(structured.map_err(|error| ErrorData::internal_error(error.to_string(), None))?);
    }
    result.is_error = is_failure.then_some(true);
    Ok(result)
}
