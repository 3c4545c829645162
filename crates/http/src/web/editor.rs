//! What the editor asks while someone types: what the compiler says of the code, and what could stand at the cursor.

use axum::Json;
use axum::extract::Path;
use axum::response::{Html, IntoResponse};
use mainstay_model::{Error, TextPosition};
use mainstay_runner::{CompletionItem, Completions};
use maud::html;
use serde::Deserialize;

use super::cell::problems;
use super::guard::{Refused, Viewer};

/// How many completions are shown.
const SHOWN: usize = 50;

#[derive(Deserialize)]
pub(super) struct Typed {
    code: String,
    #[serde(default)]
    cursor: Option<TextPosition>,
}

/// The problems of the code, as HTML; none where the session cannot tell now.
pub(super) async fn check(
    viewer: Viewer,
    Path(id): Path<String>,
    Json(Typed { code, .. }): Json<Typed>,
) -> Result<impl IntoResponse, Refused> {
    let session = viewer.session(&id).await?;
    let found = match viewer.client.check(session, code, None).await {
        Ok(found) => found,
        // It knows nothing before it is ready, and some kernels never do; that is no news to who types.
        Err(Error::NotOffered { .. } | Error::NotOfKind { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let found: Vec<_> = found.into_iter().filter(|diagnostic| !diagnostic.is_unchecked()).collect();
    Ok(Html(problems(&found).into_string()))
}

/// What could stand at the cursor, as HTML; which text it takes the place of is said with it.
pub(super) async fn complete(
    viewer: Viewer,
    Path(id): Path<String>,
    Json(Typed { code, cursor }): Json<Typed>,
) -> Result<impl IntoResponse, Refused> {
    let session = viewer.session(&id).await?;
    let cursor = cursor.unwrap_or(TextPosition { line: 1, column: 1 });
    let Completions { items, start } = match viewer.client.complete(session, code, cursor).await {
        Ok(found) => found,
        Err(Error::NotOffered { .. }) => Completions::default(),
        Err(error) => return Err(error.into()),
    };
    let start = start.unwrap_or(cursor);
    let more = items.len().saturating_sub(SHOWN);
    let html = html! {
        @for (index, CompletionItem { label, kind, detail, .. }) in items.iter().take(SHOWN).enumerate() {
            div role="option" id={ "completion-" (index) } aria-selected="false" data-line=(start.line) data-column=(start.column) {
                span.label { (label) } " " span.kind { (kind) }
                @if let Some(detail) = detail { " " span.detail { (detail) } }
            }
        }
        @if more > 0 { div.more { "and " (more) " others" } }
    };
    Ok(Html(html.into_string()))
}
