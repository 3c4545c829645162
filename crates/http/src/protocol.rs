//! What HTTP and the page enter in the registry of protocols.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get, post};
use futures::future::BoxFuture;
use mainstay_model::Limits;

use super::problem::no_such_path;
use super::routes::routes;
use super::{HttpDaemon, Shared, health_record};
use crate::web;
use mainstay_gateway::browser;
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::port::takes_html;
use mainstay_gateway::protocol::{Pages, Paths, Protocol};

/// The protocol of editors, pages and scripts, with the page.
#[derive(Clone)]
pub struct Http {
    shared: Arc<Shared>,
}

impl Http {
    /// With as many places as the limits give. The process records metrics from then on.
    pub fn new(limits: &Limits) -> Self {
        Self { shared: Arc::new(Shared::new(limits)) }
    }

    /// A daemon whose requests share what those of this protocol do.
    pub fn daemon(&self, daemon: Daemon) -> HttpDaemon {
        HttpDaemon::new(daemon, Arc::clone(&self.shared))
    }
}

impl Protocol for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn paths(&self, daemon: &Daemon) -> Paths {
        let of_http = self.daemon(daemon.clone());
        let guarded = Router::new()
            .merge(routes().with_state(of_http.clone()))
            .merge(web::routes().with_state(of_http));
        let public = Router::new()
            .route("/health", get(health_of_port))
            .route("/ui/enter", post(browser::enter).with_state(daemon.clone()))
            .route("/", any(root))
            .merge(web::public_routes());
        Paths { guarded, public }
    }

    fn pages(&self) -> Option<Pages> {
        Some(Pages { path: "/ui", shell: web::shell, refused: web::refused })
    }

    fn run(&self, daemon: Daemon) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(health_record::keep(self.daemon(daemon))))
    }
}

/// People who open the port alone are shown the page.
async fn root(headers: HeaderMap) -> Response {
    if takes_html(&headers) { Redirect::to("/ui").into_response() } else { no_such_path().into_response() }
}

/// Says that something lives, and no more: it wants no token.
async fn health_of_port() -> &'static str {
    "ok\n"
}
