//! The screen of a session's lineage: which sessions were forked off which, as a picture whose every part is a link.

use axum::extract::Path;
use axum::response::IntoResponse;
use mainstay_engine::Relative;
use mainstay_model::SessionId;
use maud::{Markup, html};

use super::frame;
use super::guard::{Refused, Viewer};

/// Pixels between two sessions.
const DOWN: usize = 44;
const ACROSS: usize = 34;

pub(super) async fn page(viewer: Viewer, Path(id): Path<String>) -> Result<impl IntoResponse, Refused> {
    let session = viewer.session(&id).await?;
    let relatives = viewer.client.lineage(session).await?;
    Ok(frame::plain(
        "Lineage",
        &html! {
            h1 { "Lineage" }
            p.faint { "Each session stands below the one it was forked off." }
            div.picture { (picture(session, &relatives)) }
        },
    ))
}

/// A session in the picture: in which row and column, and the row it comes from.
struct Place<'a> {
    relative: &'a Relative,
    column: usize,
    parent: Option<usize>,
}

fn places(relatives: &[Relative]) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::with_capacity(relatives.len());
    for relative in relatives {
        let parent = relative.session.forked_from.as_ref();
        let parent = parent
            .and_then(|parent| places.iter().position(|place| place.relative.session.id == parent.session));
        let column = parent.map_or(0, |row| places[row].column + 1);
        places.push(Place { relative, column, parent });
    }
    places
}

fn picture(own: SessionId, relatives: &[Relative]) -> Markup {
    let places = places(relatives);
    let deepest = places.iter().map(|place| place.column).max().unwrap_or_default();
    let (width, height) = (deepest * ACROSS + 420, places.len() * DOWN + 8);
    let x = |column: usize| column * ACROSS + 14;
    let y = |row: usize| row * DOWN + 22;
    html! {
        svg.lineage viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" aria-label="The sessions and what they were forked off" {
            @for (row, place) in places.iter().enumerate() {
                @if let Some(parent) = place.parent {
                    path d={ "M" (x(places[parent].column)) " " (y(parent) + 8) "V" (y(row)) "H" (x(place.column) - 8) } {}
                }
            }
            @for (row, Place { relative, column, .. }) in places.iter().enumerate() {
                a href={ "/ui/sessions/" (relative.session.id) } {
                    circle.own[relative.session.id == own] cx=(x(*column)) cy=(y(row)) r="7" {}
                    text x=(x(*column) + 16) y=(y(row) + 5) {
                        (relative.session.name) " · " (relative.entries) " entries"
                        @let merged: u64 = relative.merged.values().sum();
                        @if merged > 0 { " · " (merged) " of them merged" }
                        @if relative.session.deleted_at.is_some() { " · deleted" }
                    }
                }
            }
        }
    }
}
