//! Resources: what clients may attach to a conversation, and people pick. [`uri`] says what an address means, [`read`] what stands
//! behind it. Only what the principal may see is listed or read; all else is not found.

use mainstay_log::SessionFilter;
use mainstay_model::{Error, Session};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::call::Call;
use super::error;

mod read;
pub(super) mod uri;

pub(super) use read::MARKDOWN;
use uri::{Address, Part};

/// The most sessions that are listed; `list_sessions` and `mainstay://sessions` have no more.
const LISTED: usize = 30;
const JSON: &str = "application/json";

/// The resources that are there by themselves: the sessions, and each of the most recently active ones.
pub(super) async fn list(call: &Call) -> Result<Vec<Resource>, Error> {
    let filter = SessionFilter { limit: Some(LISTED), ..SessionFilter::default() };
    let sessions = call.client().sessions(filter).await?;
    let all = Resource::new(Address::Sessions.to_string(), "sessions")
        .with_description("The sessions, most recently active first.")
        .with_mime_type(JSON);
    Ok([all].into_iter().chain(sessions.iter().map(listed)).collect())
}

fn listed(session: &Session) -> Resource {
    let uri = Address::of(session.id.to_string(), Part::Status).to_string();
    Resource::new(uri, session.name.clone())
        .with_description(format!("{} in {}", session.kind, session.working_directory))
        .with_mime_type(JSON)
}

/// What can be read of any session.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    [
        ("", "session", JSON, "A session's state and what it offers."),
        (
            "/transcript{?from,count}",
            "transcript",
            MARKDOWN,
            "Its cells and messages, from a number on; the newest without it.",
        ),
        ("/cell/{number}", "cell", MARKDOWN, "One cell or message."),
        ("/diagnostics", "diagnostics", JSON, "What the compiler remarked since the last reset."),
        ("/events{?since}", "events", JSON, "What happened after a cursor; the newest without it."),
    ]
    .into_iter()
    .map(|(rest, name, kind, what)| {
        ResourceTemplate::new(format!("mainstay://session/{{id}}{rest}"), name)
            .with_description(what)
            .with_mime_type(kind)
    })
    .collect()
}

/// Reads a resource.
///
/// # Errors
/// Not found where there is no such resource, or none that the principal may see.
pub(super) async fn read(call: &Call, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let address = address(uri)?;
    let found = read::read(call, &address).await.map_err(|error| refused(uri, &error))?;
    let read::Text { text, kind } = found
        .ok_or_else(|| not_found(uri, "Its session has no such cell. Its transcript has the numbers."))?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(kind)]))
}

/// What an address means.
///
/// # Errors
/// Not found where no resource has such an address.
pub(super) fn address(uri: &str) -> Result<Address, ErrorData> {
    Address::read(uri).ok_or_else(|| {
        not_found(uri, "No resource has an address of this form. resources/templates/list has the forms.")
    })
}

fn not_found(uri: &str, why: &'static str) -> ErrorData {
    ErrorData::resource_not_found(why, Some(serde_json::json!({ "uri": uri })))
}

/// The protocol's error for a resource that cannot be had.
pub(super) fn refused(uri: &str, error: &Error) -> ErrorData {
    if let Error::SessionNotFound { .. } = error {
        let address = serde_json::json!({ "uri": uri });
        return ErrorData::resource_not_found(error::in_words(error), Some(address));
    }
    error::of_protocol(error)
}
