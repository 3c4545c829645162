//! The screen of a search over all sessions.

use axum::http::Uri;
use axum::response::IntoResponse;
use mainstay_engine::SearchHit;
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::search::Words;
use mainstay_model::{Error, Validity};
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
        Ok(found) => html! { ul.rows { @for found in &found { (row(found, &q)) } } },
        Err(error) => html! { p.error { (error) } p { (error.next_step()) } },
    };
    let form = html! {
        form.find action="/ui/search" role="search" {
            input type="search" name="q" value=(q) aria-label="Words" autocomplete="off";
            button type="submit" { "Find" }
        }
    };
    Ok(frame::plain("Search", &html! { h1 { "Search" } (form) (body) }))
}

async fn found(viewer: &Viewer, q: &str) -> Result<Vec<SearchHit>, Error> {
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

/// A text with what was looked for in it marked.
fn marked(text: &str, q: &str) -> Markup {
    let words: Vec<String> =
        q.split_whitespace().map(|word| word.trim_matches(['"', '*']).to_lowercase()).collect();
    let is_found = |word: &str| {
        let word = word.to_lowercase();
        words.iter().any(|wanted| !wanted.is_empty() && word.starts_with(wanted.as_str()))
    };
    html! {
        @for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            @let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            @if is_found(word) { mark { (word) } (piece[word.len()..]) } @else { (piece) }
        }
    }
}

fn row(SearchHit { session, placed, snippet, validity, .. }: &SearchHit, words: &str) -> Markup {
    let place = if placed.session == session.id { format!("#cell-{}", placed.first) } else { String::new() };
    html! {
        li {
            a href={ "/ui/sessions/" (session.id) (place) } {
                span.name { (session.name) }
                span.title { code { (marked(snippet, words)) } }
            }
            p.facts {
                span { (placed.entry.role.name()) }
                @if let Some(mark) = validity.and_then(Validity::mark) { span.warning { (mark) } }
                span { (moment(placed.at)) } span.path { (session.working_directory) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_were_looked_for_are_marked_wherever_they_stand() {
        let shown = marked("let <Words>, wordsmith sword é", "words* é");
        assert_eq!(
            shown.into_string(),
            "let &lt;<mark>Words</mark>&gt;, <mark>wordsmith</mark> sword <mark>é</mark>"
        );
    }
}
