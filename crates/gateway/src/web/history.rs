//! The history of what the viewer submitted, on the page and at prompts: the screen of it, and the list that the editor searches in.

use axum::http::Uri;
use axum::response::{Html, IntoResponse};
use mainstay_log::HistoryFilter;
use mainstay_model::{Content, Error, HistoryLine, HistoryPage, LineNumber};
use maud::{Markup, html};

use super::cell::{fsharp, moment};
use super::frame;
use super::guard::{Refused, Viewer, argument};
use crate::http::history::words;

/// How many lines the screen shows at once.
const SHOWN: usize = 100;
/// How many the editor proposes.
const PROPOSED: usize = 30;

async fn lines(viewer: &Viewer, uri: &Uri, limit: usize) -> Result<HistoryPage, Error> {
    let q = argument(uri, "q").unwrap_or_default();
    let before = argument(uri, "before").and_then(|before| before.parse().ok()).map(LineNumber);
    let filter =
        HistoryFilter { words: words(&q), before, limit: Some(limit), ..viewer.client.own_history() };
    viewer.client.history(filter).await
}

pub(super) async fn page(viewer: Viewer, uri: Uri) -> Result<impl IntoResponse, Refused> {
    let q = argument(&uri, "q").unwrap_or_default();
    let HistoryPage { lines, extent } = lines(&viewer, &uri, SHOWN).await?;
    let older = lines.last().filter(|last| lines.len() == SHOWN && last.number > extent.oldest);
    let older = older.map(|last| {
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("q", &q)
            .append_pair("before", &last.number.to_string())
            .finish();
        format!("/ui/history?{query}")
    });
    Ok(frame::plain(
        "History",
        &html! {
            h1 { "History" }
            p.faint { "What you ran and said, here and at prompts: " (extent.lines) " lines. Nobody else sees them." }
            form.find action="/ui/history" role="search" {
                input type="search" name="q" value=(q) placeholder="Words in it" aria-label="Words in it" autocomplete="off";
                button type="submit" { "Find" }
            }
            @if lines.is_empty() { p.faint { "There is nothing." } }
            ul.rows { @for line in &lines { (row(line)) } }
            @if let Some(older) = older { p { a href=(older) { "Older ones" } } }
        },
    ))
}

fn row(HistoryLine { at, folder, session, content, .. }: &HistoryLine) -> Markup {
    html! {
        li {
            (fsharp(content.beginning()))
            p.facts {
                span { (moment(*at)) }
                @if let Content::Object { bytes, .. } = content { span { (bytes) " bytes" } }
                @if let Some(session) = session { a href={ "/ui/sessions/" (session) } { "its session" } }
                @if let Some(folder) = folder { span.path { (folder) } }
            }
        }
    }
}

/// The lines that the editor proposes, as options.
pub(super) async fn options(viewer: Viewer, uri: Uri) -> Result<impl IntoResponse, Refused> {
    let HistoryPage { lines, .. } = lines(&viewer, &uri, PROPOSED).await?;
    let html = html! {
        @if lines.is_empty() { p.faint { "Nothing has all these words." } }
        @for HistoryLine { number, at, content, .. } in &lines {
            div role="option" id={ "line-" (number) } aria-selected="false" data-number=(number) {
                span.label { (content.beginning()) } " " span.kind { (moment(*at)) }
            }
        }
    };
    Ok(Html(html.into_string()))
}
