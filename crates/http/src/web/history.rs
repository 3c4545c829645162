//! The history of what the viewer submitted, on the page and at prompts: the screen of it, and the list that the editor searches in.

use std::collections::{BTreeMap, btree_map};

use axum::http::Uri;
use axum::response::{Html, IntoResponse};
use mainstay_engine::Client;
use mainstay_log::HistoryFilter;
use mainstay_model::{Content, Error, HistoryLine, HistoryPage, Language, LineNumber, SessionId};
use maud::{Markup, html};

use super::cell::{moment, painted};
use super::frame;
use super::guard::{Refused, Viewer, argument};
use crate::history::words;

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
    let languages = languages(&viewer.client, &lines).await?;
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
            ul.rows { @for line in &lines { (row(line, line.session.and_then(|session| languages.get(&session)?.as_ref()))) } }
            @if let Some(older) = older { p { a href=(older) { "Older ones" } } }
        },
    ))
}

/// What the sessions that lines are of run, as far as it is known: an agent hears words.
async fn languages(
    client: &Client,
    lines: &[HistoryLine],
) -> Result<BTreeMap<SessionId, Option<Language>>, Error> {
    let mut languages = BTreeMap::new();
    for session in lines.iter().filter_map(|line| line.session) {
        if let btree_map::Entry::Vacant(language) = languages.entry(session) {
            let seen = client.seen_session(session).await?;
            language.insert(seen.and_then(|session| session.language()));
        }
    }
    Ok(languages)
}

fn row(line: &HistoryLine, language: Option<&Language>) -> Markup {
    let HistoryLine { at, folder, session, content, .. } = line;
    html! {
        li {
            (painted(content.beginning(), language))
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
