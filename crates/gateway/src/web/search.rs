//! The screen of a search over all sessions.

use axum::http::Uri;
use axum::response::IntoResponse;
use mainstay_engine::Found;
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::Error;
use mainstay_model::search::Words;
use maud::{Markup, html};

use super::cell::moment;
use super::frame;
use super::guard::{Refused, Viewer, argument};

/// How much is shown.
const SHOWN: usize = 50;

pub(super) async fn page(viewer: Viewer, uri: Uri) -> Result<impl IntoResponse, Refused> {
    let q = argument(&uri, "q").unwrap_or_default();
    let body = match found(&viewer, &q).await {
        Ok(found) if found.is_empty() => {
            html! { p.faint { "Nothing has all these words. " code { "begin*" } " finds words that begin so." } }
        }
        Ok(found) => html! { ul.rows { @for found in &found { (row(found)) } } },
        Err(error) => html! { p.error { (error) } p { (error.next_step()) } },
    };
    Ok(frame::plain("Search", &html! { h1 { "Search: " (q) } (body) }))
}

async fn found(viewer: &Viewer, q: &str) -> Result<Vec<Found>, Error> {
    let filter = EntryFilter {
        words: Words::parse(q)?,
        roles: Vec::new(),
        sessions: SessionFilter::default(),
        since: None,
        until: None,
        offset: 0,
        limit: SHOWN,
    };
    viewer.client.search(filter).await
}

fn row(Found { session, placed, snippet, .. }: &Found) -> Markup {
    let place = if placed.session == session.id { format!("#cell-{}", placed.first) } else { String::new() };
    html! {
        li {
            a href={ "/ui/sessions/" (session.id) (place) } {
                span.name { (session.name) }
                span.title { code { (snippet) } }
            }
            p.facts { span { (placed.entry.role.name()) } span { (moment(placed.at)) } span.path { (session.working_directory) } }
        }
    }
}
