//! Where traces begin: a request is a span, and part of its client's trace where it says which that is (W3C `traceparent`).
//!
//! The span goes along with the request, and from there with the [`Client`] that carries it out; nothing reads it from the task it happens to
//! run in. It has the path's pattern and never the path, which may name sessions, nor the query, which may have a token.

use axum::extract::{MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use mainstay_engine::Client;
use mainstay_log::trace::{TARGET, ended};
use opentelemetry::global::get_text_map_propagator;
use opentelemetry::propagation::Extractor;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The span of a request, which goes along with it.
#[derive(Clone)]
struct RequestSpan(Span);

/// Traces a request over HTTP to the head of its answer.
pub async fn trace(mut request: Request, next: Next) -> Response {
    let span = span_of(&request);
    if span.is_disabled() {
        return next.run(request).await;
    }
    let parent = get_text_map_propagator(|propagator| propagator.extract(&Headers(request.headers())));
    // Refused where nothing exports it, and then there is nothing to be part of.
    span.set_parent(parent).ok();
    request.extensions_mut().insert(RequestSpan(span.clone()));
    let response = next.run(request).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "ERROR");
    }
    ended(&span);
    response
}

/// The method of a request, in the words that metrics and spans have: clients may make up any other.
pub fn method_of(request: &Request) -> &'static str {
    let known = [
        Method::GET,
        Method::POST,
        Method::DELETE,
        Method::PUT,
        Method::PATCH,
        Method::HEAD,
        Method::OPTIONS,
    ];
    let names = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"];
    let found = known.iter().zip(names).find(|(method, _)| *method == request.method());
    found.map_or("_OTHER", |(_, name)| name)
}

fn span_of(request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
    let method = method_of(request);
    info_span!(
        target: TARGET,
        parent: None,
        "http",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

/// A client that carries out this request; its commands are part of the request's trace.
pub fn within(client: Client, request: &Parts) -> Client {
    match request.extensions.get::<RequestSpan>() {
        Some(RequestSpan(span)) => client.traced(span.clone()),
        None => client,
    }
}

/// Headers, for whoever reads a trace's place from them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
