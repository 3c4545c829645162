//! The screen of one session: its cells, what may be done, and the editor.

use axum::extract::Path;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use mainstay_model::{Seq, Session, SessionId};
use maud::{Markup, html};

use super::cell_state::Cell;
use super::earlier_cells::EarlierCells;
use super::guard::{Refused, Viewer, place};
use super::patch::Patch;
use super::status::{self, StatusElements};
use super::{cell, earlier_cells, feed, frame, inherited_cells, test_panel};

/// How many cells are shown at once.
const CELLS: usize = 100;

pub(super) async fn page(viewer: Viewer, Path(id): Path<String>) -> Result<impl IntoResponse, Refused> {
    let client = &viewer.client;
    let session = viewer.session(&id).await?;
    let status = client.status(session).await?;
    let past = earlier_cells::up_to(client, session, status.session.last_seq).await?;
    let runs = test_panel::runs(client, &status.session).await?;
    let shown = status::shown(client, &status, &runs).await?;
    let (cells, older) = last_cells(&past);
    let inherited = inherited_cells::section(client, &status.session, older.is_none()).await?;
    let before = html! { (inherited) (more(session, older)) };
    let stream = format!("/ui/sessions/{session}/stream?after={}", status.session.last_seq);
    Ok(frame::screen(&status.session.name, &stream, &screen(&status.session, shown, &before, &cells)))
}

fn screen(session: &Session, shown: StatusElements, before: &Markup, cells: &[&Cell]) -> Markup {
    let language = session.language();
    let StatusElements { head, actions, asks, lane, run, tests } = shown;
    html! {
        main.session id="main" data-session=(session.id) data-folder=(session.working_directory) {
            (head)
            (tests)
            (before)
            div id=(cell::CELLS) role="feed" aria-label="Cells" aria-live="polite" aria-relevant="additions" {
                @for shown in cells { (cell::whole(shown, language.as_ref())) }
            }
            (lane)
            (asks)
            (editor(session, &run, &actions))
        }
    }
}

fn editor(session: &Session, run: &Markup, actions: &Markup) -> Markup {
    let (label, hint) = match (session.is_agent(), session.kind.is_fsharp()) {
        (true, _) => ("Say something to the agent", "Say something to the agent"),
        (false, true) => ("Code", "let answer = 6 * 7"),
        (false, false) => ("Code", "6 * 7"),
    };
    html! {
        form #editor aria-label="Editor" {
            div.field {
                textarea #code name="code" rows="3" spellcheck="false" autocapitalize="off" autocomplete="off" placeholder=(hint)
                    aria-label=(label) aria-describedby="problems" aria-autocomplete="list" aria-controls="completions" {}
                div #completions role="listbox" tabindex="0" aria-label="Completions" hidden {}
            }
            div #problems aria-live="polite" {}
            div.dock { (run) (actions) }
        }
    }
}

/// The last cells of what was read, and before which there are older ones.
fn last_cells(EarlierCells { page, has_before }: &EarlierCells) -> (Vec<&Cell>, Option<Seq>) {
    let mut cells: Vec<&Cell> = page.cells().rev().take(CELLS).collect();
    cells.reverse();
    let has_older = *has_before || page.cells().count() > CELLS;
    let first = cells.first().filter(|_| has_older).map(|cell| cell.seq);
    (cells, first)
}

/// How older ones are had.
fn more(session: SessionId, first: Option<Seq>) -> Markup {
    html! {
        p #older {
            @if let Some(first) = first {
                button.quiet type="button" data-get={ "/ui/sessions/" (session) "/older?before=" (first) } { "Show older cells" }
            }
        }
    }
}

/// The cells before one.
pub(super) async fn older_cells(
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refused> {
    let before = place(&uri, "before").unwrap_or_default();
    let session = viewer.session(&id).await?;
    let mut past = earlier_cells::before(&viewer.client, session, before).await?;
    past.page.keep_before(before);
    let (cells, older) = last_cells(&past);
    let status = viewer.client.status(session).await?;
    let language = status.session.language();
    let html = html! { @for shown in &cells { (cell::whole(shown, language.as_ref())) } };
    let inherited = inherited_cells::section(&viewer.client, &status.session, older.is_none()).await?;
    let patches = [
        Patch::Prepend { to: cell::CELLS.to_owned(), html: html.into_string() },
        Patch::morph(html! { (inherited) (more(session, older)) }),
    ];
    let events: String = patches.iter().map(Patch::events).collect();
    Ok(feed::answer_of(events))
}

/// How many entries the session's transcript has up to a cell, with it: where a fork of it ends.
pub(super) async fn entries_until(
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<impl IntoResponse, Refused> {
    /// How many entries are read at once.
    const READ: usize = 512;
    let last = place(&uri, "seq").unwrap_or_default();
    let session = viewer.session(&id).await?;
    let (mut from, mut until) = (0, 0);
    loop {
        let entries = viewer.client.entries(session, from, READ).await?;
        if entries.is_empty() {
            break;
        }
        for (index, placed) in (from..).zip(&entries) {
            if placed.session != session || placed.first <= last {
                until = index + 1;
            }
        }
        from += entries.len() as u64;
    }
    Ok(axum::Json(serde_json::json!({ "entries": until })))
}
