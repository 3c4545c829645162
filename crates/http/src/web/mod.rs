//! The page at `/ui`: HTML from the server, which patches from the server keep up to date (`assets/live.js`). Source: seed 000, "The Tao of
//! Datastar".
//!
//! [`sessions`] and [`session`] are its two screens, [`search`] and [`health`] two more. [`page`] folds a session's events to cells ([`cell_state`]), [`cell`]
//! writes them ([`test_panel`] says how tests ended, [`coverage`] which lines they reach, [`display`] what code shows, `mainstay_plot` draws the charts among it), [`stream`] sends what changes ([`patch`]). What people do goes to the HTTP API, from `assets/page.js`; [`editor`] only
//! reads. No text that someone said is ever part of a script.

mod agent;
mod assets;
mod cell;
mod cell_state;
mod coverage;
mod display;
mod earlier_cells;
mod editor;
mod feed;
mod frame;
mod guard;
mod health;
mod history;
mod inherited_cells;
mod lineage;
mod markdown;
mod merge;
mod notices;
mod page;
mod patch;
mod printed_text;
mod reset;
mod search;
mod session;
mod sessions;
mod status;
mod stream;
mod test_panel;

#[cfg(test)]
mod tests;

use axum::Router;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::HttpDaemon;

/// Every path below `/ui`.
pub(crate) fn routes() -> Router<HttpDaemon> {
    Router::new()
        .route("/ui", get(sessions::page))
        .route("/ui/stream", get(sessions::stream))
        .route("/ui/kinds", get(sessions::kinds_of))
        .route("/ui/search", get(search::page))
        .route("/ui/history", get(history::page))
        .route("/ui/history/lines", get(history::options))
        .route("/ui/health", get(health::page))
        .route("/ui/health/stream", get(health::stream))
        .route("/ui/sessions/{session}", get(session::page))
        .route("/ui/sessions/{session}/stream", get(stream::of_session))
        .route("/ui/sessions/{session}/older", get(session::older_cells))
        .route("/ui/sessions/{session}/inherited", get(inherited_cells::earlier_cells))
        .route("/ui/sessions/{session}/entries/{index}/{kind}", get(display::serve_entry))
        .route("/ui/sessions/{session}/lineage", get(lineage::page))
        .route("/ui/sessions/{session}/coverage", get(coverage::page))
        .route("/ui/sessions/{session}/coverage/stream", get(coverage::stream))
        .route("/ui/sessions/{session}/merge", get(merge::page))
        .route("/ui/sessions/{session}/reset", get(reset::question))
        .route("/ui/sessions/{session}/settings", get(agent::settings))
        .route("/ui/sessions/{session}/check", post(editor::check))
        .route("/ui/sessions/{session}/complete", post(editor::complete))
        .route("/ui/sessions/{session}/entries", get(session::entries_until))
        .route("/ui/sessions/{session}/displays/{seq}/{kind}", get(display::serve))
        .layer(from_fn(guard::headers))
}

/// Paths whose answers are the same for everybody: what a browser asks for before it has a secret, or without being able to show it.
pub(crate) fn public_routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/ui/assets/{hash}/{name}", get(assets::serve))
        .route("/ui/frame", get(display::frame))
        .layer(from_fn(guard::headers))
}

/// Why something is refused, for people.
pub(crate) fn refused(error: mainstay_model::Error) -> Response {
    guard::with_headers(guard::Refused(error).into_response())
}

/// What a browser is given that opens an address of the page: a document whose script fetches the content.
pub(crate) fn shell() -> Response {
    guard::with_headers(frame::shell().into_response())
}
