//! Where the process records counts and times: for Prometheus, and where the daemon also exports them, in both places alike, since `metrics`
//! knows but one recorder for a process.

use std::sync::{Arc, OnceLock};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Bounds of times, in seconds: from what is in memory to what people wait for.
pub const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0];

/// What each metric is.
const DESCRIPTIONS: [(&str, &str); 7] = [
    ("mainstay_commit_seconds", "From a decision to its durable commit"),
    ("mainstay_events_total", "Events committed"),
    (
        "mainstay_runner_starts_total",
        "Runners that were started in shims, by the kind of session and whether their process stood by",
    ),
    ("mainstay_jobs_total", "Jobs that have ended, by the kind of session and how they ended"),
    ("mainstay_job_seconds", "How long jobs ran"),
    ("mainstay_http_requests_total", "Requests over HTTP that were answered"),
    ("mainstay_http_request_seconds", "From a request over HTTP to the head of its answer"),
];

/// Where this process records. None where something else in it records elsewhere already.
static RECORDED: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Begins to record, in this place too. To be called before [`Shared`](super::shared::Shared) is made, which begins to record here alone.
pub fn record_also(other: impl Recorder + Sync + 'static) {
    begin(|own| metrics::set_global_recorder(Both(own, other)).is_ok());
}

/// Installs the recorder of metrics.
pub(super) fn record() {
    begin(|own| metrics::set_global_recorder(own).is_ok());
}

fn begin(install: impl FnOnce(PrometheusRecorder) -> bool) {
    let recorded = RECORDED.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        let builder =
            builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS).ok()?;
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        if !install(recorder) {
            return None;
        }
        for (name, description) in DESCRIPTIONS {
            match name.ends_with("_seconds") {
                true => metrics::describe_histogram!(name, description),
                false => metrics::describe_counter!(name, description),
            }
        }
        Some(handle)
    });
    if recorded.is_none() {
        tracing::warn!("metrics are recorded elsewhere in this process; /metrics has none");
    }
}

/// What is recorded so far, as Prometheus reads it; empty where this process records elsewhere.
pub(super) fn render() -> String {
    RECORDED.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

/// A recorder that passes everything on to two others.
pub(super) struct Both<A, B>(pub(super) A, pub(super) B);

impl<A: Recorder, B: Recorder> Recorder for Both<A, B> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_counter(key.clone(), unit, description.clone());
        self.1.describe_counter(key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_gauge(key.clone(), unit, description.clone());
        self.1.describe_gauge(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_histogram(key.clone(), unit, description.clone());
        self.1.describe_histogram(key, unit, description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let both = Both(self.0.register_counter(key, metadata), self.1.register_counter(key, metadata));
        Counter::from_arc(Arc::new(both))
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        let both = Both(self.0.register_gauge(key, metadata), self.1.register_gauge(key, metadata));
        Gauge::from_arc(Arc::new(both))
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        let both = Both(self.0.register_histogram(key, metadata), self.1.register_histogram(key, metadata));
        Histogram::from_arc(Arc::new(both))
    }
}

impl CounterFn for Both<Counter, Counter> {
    fn increment(&self, value: u64) {
        self.0.increment(value);
        self.1.increment(value);
    }

    fn absolute(&self, value: u64) {
        self.0.absolute(value);
        self.1.absolute(value);
    }
}

impl GaugeFn for Both<Gauge, Gauge> {
    fn increment(&self, value: f64) {
        self.0.increment(value);
        self.1.increment(value);
    }

    fn decrement(&self, value: f64) {
        self.0.decrement(value);
        self.1.decrement(value);
    }

    fn set(&self, value: f64) {
        self.0.set(value);
        self.1.set(value);
    }
}

impl HistogramFn for Both<Histogram, Histogram> {
    fn record(&self, value: f64) {
        self.0.record(value);
        self.1.record(value);
    }
}
