//! The cells that a session began with: entries of the sessions that it comes from, each with where it is from. They are read from its own
//! transcript, so who may see it sees them, whatever else it may see.

use std::collections::{BTreeMap, btree_map};
use std::ops::Range;

use axum::extract::Path;
use axum::http::Uri;
use axum::response::Response;
use mainstay_engine::Client;
use mainstay_model::Language;
use mainstay_model::entry::FORMS;
use mainstay_model::transcript::total;
use mainstay_model::{Bundle, Content, Entry, Error, Role, Segment, Session, SessionId, TranscriptEntry};
use maud::{Markup, html};
use serde_json::Value;

use super::cell::{moment, painted};
use super::guard::{Refused, Viewer, place};
use super::patch::Patch;
use super::{display, feed, printed_text};

/// The id of the element that holds the inherited cells.
const CELLS: &str = "inherited-cells";
/// How many entries are shown at once.
const ENTRIES: u64 = 100;

/// Where what a session began with is shown: nothing of it where there are cells of its own before those that are.
///
/// # Errors
/// As [`Client::entries`].
pub(super) async fn section(client: &Client, session: &Session, is_shown: bool) -> Result<Markup, Error> {
    let last = match is_shown {
        true => Some(read(client, session, count(session)).await?),
        false => None,
    };
    Ok(html! {
        section #inherited aria-label="What it began with" {
            @if let Some(last) = last {
                (earlier(session.id, last.from))
                div id=(CELLS) { (last.cells) }
            }
        }
    })
}

/// Those before the ones that are shown.
pub(super) async fn earlier_cells(
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refused> {
    let session = viewer.client.status(viewer.session(&id).await?).await?.session;
    let before = place(&uri, "before").unwrap_or_default().0.min(count(&session));
    let Page { from, cells } = read(&viewer.client, &session, before).await?;
    let patches = [
        Patch::Prepend { to: CELLS.to_owned(), html: cells.into_string() },
        Patch::morph(earlier(session.id, from)),
    ];
    Ok(feed::answer_of(patches.iter().map(Patch::events).collect::<String>()))
}

/// How many entries stand before the session's own.
fn count(session: &Session) -> u64 {
    let inherited = session.transcript.inherited().iter();
    let before: Vec<Segment> =
        inherited.take_while(|segment| segment.session != session.id).copied().collect();
    total(&before)
}

fn earlier(session: SessionId, from: u64) -> Markup {
    html! {
        p #earlier {
            @if from > 0 {
                button.quiet type="button" data-get={ "/ui/sessions/" (session) "/inherited?before=" (from) } { "Show earlier cells" }
            }
        }
    }
}

/// One page of inherited cells.
struct Page {
    /// The index of the first.
    from: u64,
    cells: Markup,
}

/// The last ones before an index, whole.
async fn read(client: &Client, session: &Session, until: u64) -> Result<Page, Error> {
    let from = until.saturating_sub(ENTRIES);
    let limit = usize::try_from(until - from).unwrap_or(usize::MAX);
    let entries = match limit {
        0 => Vec::new(),
        limit => client.entries(session.id, from, limit).await?,
    };
    let cells = cells(from, &entries);
    let mut names = BTreeMap::new();
    for placed in &entries {
        if let btree_map::Entry::Vacant(name) = names.entry(placed.session) {
            let seen = client.seen_session(placed.session).await?;
            name.insert(seen.filter(|seen| seen.deleted_at.is_none()).map(|seen| seen.name));
        }
    }
    let (own, language) = (session.id, session.language());
    let from = cells.first().map_or(from, |cell| cell.indices.start);
    Ok(Page {
        from,
        cells: html! { @for one in &cells { (cell(own, language.as_ref(), one, names.get(&one.first().session).and_then(Option::as_deref))) } },
    })
}

/// What belongs to one job, or is one message.
struct Cell<'a> {
    indices: Range<u64>,
    first: &'a TranscriptEntry,
    others: &'a [TranscriptEntry],
}

impl<'a> Cell<'a> {
    fn first(&self) -> &'a TranscriptEntry {
        self.first
    }

    fn entries(&self) -> impl Iterator<Item = (u64, &'a TranscriptEntry)> {
        (self.indices.start..).zip(std::iter::once(self.first).chain(self.others))
    }
}

/// The cells that entries are of, in order. One whose beginning is not among them is left out, unless it is all there is.
fn cells(from: u64, entries: &[TranscriptEntry]) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    let mut index = from;
    for group in entries.chunk_by(|one, next| (one.session, one.first) == (next.session, next.first)) {
        let Some((first, others)) = group.split_first() else { continue };
        let indices = index..index + group.len() as u64;
        index = indices.end;
        cells.push(Cell { indices, first, others });
    }
    let is_cut = cells.first().is_some_and(|cell| from > 0 && cell.first.entry.role == Role::Output);
    if is_cut && cells.len() > 1 {
        cells.remove(0);
    }
    cells
}

fn cell(own: SessionId, language: Option<&Language>, cell: &Cell<'_>, name: Option<&str>) -> Markup {
    let (index, first) = (cell.indices.start, cell.first());
    let is_code = first.entry.role == Role::Input;
    let ending =
        cell.entries().find_map(|(_, placed)| placed.entry.metadata.get("ending").and_then(Value::as_str));
    html! {
        article.cell.inherited.eval[is_code].work[!is_code] id={ "from-" (index) } tabindex="-1" aria-labelledby={ "f" (index) "-head" }
            data-entries=(cell.indices.end) {
            header id={ "f" (index) "-head" } {
                a.seq href={ "#from-" (index) } title="The entry that it begins with" { "[" (index + 1) "]" }
                span {
                    "from "
                    @match name {
                        Some(name) => a href={ "/ui/sessions/" (first.session) "#cell-" (first.first) } { (name) },
                        None => "another session",
                    }
                }
                (moment(first.at))
                @match ending {
                    Some("completed") => span.state.ok { "done" },
                    Some(ending) if is_code => span.state.bad { (ending) },
                    Some(_) | None => {}
                }
            }
            @for (index, placed) in cell.entries() { (said(own, language, index, &placed.entry)) }
        }
    }
}

fn said(own: SessionId, language: Option<&Language>, index: u64, entry: &Entry) -> Markup {
    let text = entry.content.beginning();
    html! {
        @match entry.role {
            Role::Input => (painted(text, language)),
            Role::Output if entry.metadata.contains_key(FORMS) => (shown(own, index, entry)),
            Role::Output => @if !text.is_empty() { pre.words tabindex="0" { (printed_text::text(text)) } },
            Role::User => p.prompt { (entry.shown(text)) },
            Role::Assistant | Role::System => p.said { (entry.shown(text)) },
            Role::Thinking => details.thinking { summary { "thinking" } p { (text) } },
            Role::Summary => p.noted { "summary: " (text) },
            Role::ToolCall | Role::ToolResult => details.tool {
                summary { b { (entry.tool().unwrap_or("tool")) } " " (if entry.role == Role::ToolCall { "called" } else { "answered" }) }
                pre tabindex="0" { (entry.shown(text)) }
            },
        }
        @if let Content::Object { bytes, .. } = &entry.content { p.cut { "… " (bytes) " bytes in all" } }
    }
}

/// A display; of a large one its text.
fn shown(own: SessionId, index: u64, entry: &Entry) -> Markup {
    let bundle = match &entry.content {
        Content::Text(json) => serde_json::from_str::<Bundle>(json).ok(),
        Content::Object { .. } => None,
    };
    let address = |kind: &str| format!("/ui/sessions/{own}/entries/{index}/{kind}");
    html! {
        @match bundle {
            Some(bundle) => div.display { (display::shown(&bundle, &address)) },
            None => pre.words tabindex="0" { (entry.shown(entry.content.beginning())) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Seq, Timestamp};
    use uuid::Uuid;

    fn placed(session: u128, first: u64, role: Role, text: &str) -> TranscriptEntry {
        let entry = Entry { role, content: Content::of(text.to_owned()).0, metadata: BTreeMap::new() };
        TranscriptEntry {
            session: SessionId::from_uuid(Uuid::from_u128(session)),
            number: 0,
            hash: entry.hash(),
            entry,
            at: Timestamp::UNIX_EPOCH,
            first: Seq(first),
            last: Seq(first),
            origin: None,
        }
    }

    #[test]
    fn entries_of_one_job_are_one_cell_and_one_that_is_cut_off_is_left_for_the_page_before() {
        let entries = [
            placed(1, 3, Role::Output, "of what was before"),
            placed(1, 5, Role::Input, "let a = 1"),
            placed(1, 5, Role::Output, "val a"),
            placed(2, 5, Role::Input, "a"),
            placed(2, 5, Role::Output, "<1>"),
        ];
        let ranges = |from| cells(from, &entries).into_iter().map(|cell| cell.indices).collect::<Vec<_>>();
        assert_eq!(ranges(7), [8..10, 10..12]);
        assert_eq!(ranges(0), [0..1, 1..3, 3..5]);
        assert_eq!(cells(9, &entries[..1]).len(), 1, "it is all there is");
        let html = cell(entries[3].session, None, &cells(7, &entries)[1], None).into_string();
        assert!(
            html.contains("from another session")
                && html.contains("&lt;1&gt;")
                && html.contains(r#"data-entries="12""#),
            "{html}"
        );
    }
}
