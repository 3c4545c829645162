//! HTTP for editors, pages and scripts: commands in, streams out. Source: seed 000, "The Tao of Datastar"; protocols/sagefs.md, "HTTP".
//!
//! A POST hands a command over and is answered `202` with where to hear of it ([`submitting`]); a GET is a stream of Datastar's events
//! ([`streams`], [`signals`]) or reads what is there now ([`reading`]). [`caller`] says who asks and which session is meant, [`body`] reads
//! what was sent, [`problem`] is the one table from errors to answers.

mod asked;
mod body;
mod caller;
mod checking;
mod commands;
mod creating;
mod prefer;
mod problem;
mod reading;
mod signals;
mod streams;
mod submitting;

use axum::Router;
use axum::routing::{MethodRouter, delete, get, post};

use std::sync::Arc;

use tokio::sync::Semaphore;

use checking::Checks;
pub(crate) use problem::Problem;

use crate::browser::Links;
use crate::rpc::server::Daemon;

/// What all requests share.
pub struct Shared {
    checks: Checks,
    /// Links that let a browser in.
    pub(crate) links: Links,
    /// Places for streams.
    streams: Arc<Semaphore>,
}

impl Shared {
    /// With places for so many streams at once.
    pub fn new(streams: usize) -> Self {
        Self {
            checks: Checks::default(),
            links: Links::default(),
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
        }
    }
}

/// What is said to one session: at the root for the one that `?session=` names, or the most recent; and below the session's own path.
fn of_a_session() -> [(&'static str, MethodRouter<Daemon>); 17] {
    [
        ("/exec", post(commands::exec)),
        ("/eval", get(streams::eval)),
        ("/load", post(commands::load)),
        ("/diagnostics", post(checking::check).get(streams::diagnostics)),
        ("/completions", post(checking::complete).get(streams::completions)),
        ("/cancel", post(commands::cancel)),
        ("/reset", post(commands::reset)),
        ("/hard-reset", post(commands::hard_reset)),
        ("/start", post(commands::start)),
        ("/stop", post(commands::stop)),
        ("/rename", post(commands::rename)),
        ("/prompt", post(commands::prompt)),
        ("/steer", post(commands::steer)),
        ("/fork", post(creating::fork)),
        ("/merge", post(commands::merge)),
        ("/status", get(streams::status)),
        ("/events", get(streams::events)),
    ]
}

/// Every path but those of other protocols.
pub(crate) fn routes() -> Router<Daemon> {
    let mut router = Router::new()
        .route("/sessions", get(reading::sessions).post(creating::create))
        .route("/sessions/{session}", get(reading::session).merge(delete(commands::delete)))
        .route("/sessions/{session}/entries", get(reading::entries))
        .route("/sessions/{session}/lineage", get(reading::lineage))
        .route("/asks", get(reading::asks))
        .route("/asks/{ask}", post(commands::answer))
        .route("/commands/{command}", get(reading::command))
        .route("/search", get(reading::search))
        .route("/shutdown", post(commands::shut_down));
    for (path, methods) in of_a_session() {
        router = router.route(path, methods.clone()).route(&format!("/sessions/{{session}}{path}"), methods);
    }
    router
        .fallback(|| async { Problem::of_path() })
        .method_not_allowed_fallback(|| async { Problem::of_method() })
}
