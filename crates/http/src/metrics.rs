//! What the daemon is doing, in numbers, for Prometheus. Counts and times are recorded where they come about; how much there is of something is
//! looked up when someone asks.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::Error;

use super::caller::Caller;
use super::daemon::HttpDaemon;
use super::recorders;
use mainstay_gateway::problem::Problem;

/// Counts and times a request.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let path = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let method = mainstay_gateway::trace::method_of(&request).to_owned();
    let response = next.run(request).await;
    let status = response.status().as_str().to_owned();
    metrics::counter!("mainstay_http_requests_total", "method" => method, "path" => path.clone(), "status" => status)
        .increment(1);
    metrics::histogram!("mainstay_http_request_seconds", "path" => path).record(began.elapsed());
    response
}

/// Serves the metrics at `GET /metrics`.
pub(super) async fn get(caller: Caller) -> Result<Response, Problem> {
    // They are of all sessions.
    caller.client.require_all("read the daemon's metrics")?;
    let mut text = recorders::render();
    for gauge in gauges(&caller.daemon, &caller.client).await? {
        gauge.write(&mut text);
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// How much there is of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// The name of the gauge.
    pub name: &'static str,
    /// What the gauge measures, for people.
    pub description: &'static str,
    /// How much, each with its labels.
    pub values: Vec<(Vec<(&'static str, String)>, u64)>,
}

impl Gauge {
    fn of(name: &'static str, description: &'static str, value: u64) -> Self {
        Self { name, description, values: vec![(Vec::new(), value)] }
    }

    /// As Prometheus reads it.
    fn write(&self, text: &mut String) {
        let Self { name, description, values } = self;
        text.push_str(&format!("# HELP {name} {description}\n# TYPE {name} gauge\n"));
        for (labels, value) in values {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            text.push_str(&format!("{name}{labels} {value}\n"));
        }
    }
}

/// How much there is of what comes and goes, as far as this client sees it.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn gauges(daemon: &HttpDaemon, client: &Client) -> Result<Vec<Gauge>, Error> {
    let engine = &daemon.engine;
    let live = client.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
    let waiting: usize = live.iter().map(|session| session.lane.len()).sum();
    let sessions = client.count_sessions(SessionFilter::default()).await?;
    let streams = engine.limits().streams.saturating_sub(daemon.http.streams.available_permits());
    let mut gauges: Vec<Gauge> = [
        ("mainstay_sessions", "Sessions that are stored", sessions),
        ("mainstay_live_sessions", "Sessions that are not idle", live.len()),
        ("mainstay_waiting_commands", "Commands that wait for their turn", waiting),
        ("mainstay_commands_under_way", "Commands without an outcome", engine.commands_under_way()),
        ("mainstay_asks", "Asks that wait for an answer", client.asks().await?.len()),
        ("mainstay_subscribers", "Followers of events", engine.subscribers()),
        ("mainstay_streams", "Open streams, of server-sent events and over WebSocket", streams),
    ]
    .map(|(name, description, value)| Gauge::of(name, description, value as u64))
    .into();
    let store = std::fs::metadata(daemon.home.join("store/mainstay.db")).map_or(0, |file| file.len());
    gauges.push(Gauge::of("mainstay_log_bytes", "The store's main file", store));
    if let Some(bytes) = mainstay_os::system::own_resident_bytes() {
        gauges.push(Gauge::of("mainstay_resident_bytes", "Memory of the daemon", bytes));
    }
    let mut values = Vec::new();
    for session in &live {
        if let Some(usage) = client.usage(session.id).await {
            let labels = vec![("session", session.id.to_string()), ("kind", session.kind.to_string())];
            values.push((labels, usage.resident_bytes));
        }
    }
    let (name, description) = ("mainstay_worker_resident_bytes", "Memory of each session's worker");
    gauges.push(Gauge { name, description, values });
    Ok(gauges)
}
