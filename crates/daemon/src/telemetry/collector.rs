//! The collector that traces and metrics are sent to: OTLP over HTTP, each message on a connection of its own. One that is away costs what
//! would have been sent, and a line in the log now and then.
//!
//! The encoding is that of `opentelemetry-proto`. Sending is ours, and not that of `opentelemetry-otlp`, so that a daemon that stops can give up
//! what is on its way, and a collector that is away is named once in ten minutes.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::settings::{Endpoint, Settings};

/// How long a collector may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How often it is said that one is away.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(10 * 60);

/// The way to a collector.
#[derive(Clone)]
pub(super) struct Collector(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// Where messages are sent from: who exports waits on a thread without a runtime.
    runtime: Handle,
    reach: Mutex<Reach>,
    /// Cancelled when nobody waits any more for what is on its way.
    given_up: CancellationToken,
}

impl Collector {
    pub(super) fn new(settings: Settings, runtime: Handle) -> Self {
        let given_up = CancellationToken::new();
        Self(Arc::new(Inner { settings, runtime, reach: Mutex::default(), given_up }))
    }

    /// Ends all that is on its way, and all that comes.
    pub(super) fn give_up(&self) {
        self.0.given_up.cancel();
    }

    async fn send(&self, path: &'static str, message: impl Message) -> OTelSdkResult {
        let (inner, body) = (Arc::clone(&self.0), message.encode_to_vec());
        let sent = self.0.runtime.spawn(async move {
            let posted = tokio::select! {
                posted = tokio::time::timeout(ANSWER, post(&inner.settings, path, body)) => posted,
                () = inner.given_up.cancelled() => return Err("the daemon ends".to_owned()),
            };
            let posted = posted.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER.as_secs())));
            inner.tell(&posted);
            posted
        });
        let sent = sent.await.unwrap_or_else(|error| Err(error.to_string()));
        sent.map_err(OTelSdkError::InternalFailure)
    }
}

impl Inner {
    fn tell(&self, posted: &Result<(), String>) {
        let word = self.reach.lock().unwrap_or_else(PoisonError::into_inner).hear(posted, Instant::now());
        let collector = self.settings.endpoint.authority();
        match (word, posted) {
            (Some(ReachChange::Away), Err(reason)) => {
                tracing::warn!(
                    collector,
                    reason,
                    "telemetry is not delivered, and dropped; all else goes on"
                );
            }
            (Some(ReachChange::Back { lost }), _) => {
                tracing::info!(collector, lost, "telemetry is delivered again")
            }
            (Some(ReachChange::Away), Ok(())) | (None, _) => {}
        }
    }
}

/// Whether messages arrive, and what was said of it.
#[derive(Default)]
struct Reach {
    /// Messages that were lost since the last one that arrived.
    lost: u64,
    warned: Option<Instant>,
}

/// What is worth a line in the log.
#[derive(Debug, PartialEq, Eq)]
enum ReachChange {
    Away,
    Back { lost: u64 },
}

impl Reach {
    fn hear(&mut self, posted: &Result<(), String>, now: Instant) -> Option<ReachChange> {
        match posted {
            Ok(()) => {
                let lost = std::mem::take(&mut self.lost);
                (lost > 0).then_some(ReachChange::Back { lost })
            }
            Err(_) => {
                self.lost += 1;
                let is_due = self.warned.is_none_or(|warned| now.duration_since(warned) >= BETWEEN_WARNINGS);
                if is_due {
                    self.warned = Some(now);
                }
                is_due.then_some(ReachChange::Away)
            }
        }
    }
}

async fn post(settings: &Settings, path: &'static str, body: Vec<u8>) -> Result<(), String> {
    let Settings { endpoint, headers, .. } = settings;
    let Endpoint { host, port, path: before } = endpoint;
    let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(reason)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(reason)?;
    let request = Request::post(format!("{before}{path}"))
        .header(HOST, endpoint.authority())
        .header(CONTENT_TYPE, "application/x-protobuf");
    let mut request = request.body(Full::new(Bytes::from(body))).map_err(reason)?;
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    // Ended here, whatever else the collector would say or however long it would keep it.
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let status = sender.send_request(request).await.map_err(reason)?.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
}

fn reason(error: impl StdError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Sends spans to an OTLP collector.
pub(super) struct Spans {
    collector: Collector,
    resource: ResourceAttributesWithSchema,
}

impl Spans {
    pub(super) fn to(collector: Collector) -> Self {
        Self { collector, resource: ResourceAttributesWithSchema::default() }
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans").finish_non_exhaustive()
    }
}

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        self.collector.send("/v1/traces", ExportTraceServiceRequest { resource_spans }).await
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

/// Sends metrics to an OTLP collector.
pub(super) struct Metrics {
    collector: Collector,
}

impl Metrics {
    pub(super) fn to(collector: Collector) -> Self {
        Self { collector }
    }
}

impl PushMetricExporter for Metrics {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.collector.send("/v1/metrics", ExportMetricsServiceRequest::from(metrics)).await
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_is_away_is_told_of_now_and_then_and_once_it_is_back() {
        let (mut reach, begin) = (Reach::default(), Instant::now());
        let lost = || Err("refused".to_owned());
        assert_eq!(reach.hear(&Ok(()), begin), None);
        assert_eq!(reach.hear(&lost(), begin), Some(ReachChange::Away));
        assert_eq!(reach.hear(&lost(), begin + BETWEEN_WARNINGS / 2), None);
        assert_eq!(reach.hear(&lost(), begin + BETWEEN_WARNINGS), Some(ReachChange::Away));
        assert_eq!(reach.hear(&Ok(()), begin + BETWEEN_WARNINGS), Some(ReachChange::Back { lost: 3 }));
        assert_eq!(reach.hear(&Ok(()), begin + BETWEEN_WARNINGS), None);
        // One that comes and goes is no reason to say so each time.
        assert_eq!(reach.hear(&lost(), begin + BETWEEN_WARNINGS), None);
    }
}
