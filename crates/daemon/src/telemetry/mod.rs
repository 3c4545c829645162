//! Traces and metrics for OpenTelemetry, where someone says where to ([`settings`]). What is traced is made where it happens, by `engine::trace`
//! and its like, and what is measured by `engine::measures`; here it is sent ([`collector`]), and the daemon waits for none of it.

mod collector;
mod instruments;
mod settings;

use std::time::Duration;

use mainstay_home::VERSION;
use mainstay_home::config::TelemetryConfig;
use mainstay_http::{HttpDaemon, gauges};
use mainstay_model::{Access, Error};
use opentelemetry::global::set_text_map_propagator;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::Layer;

use self::collector::{Collector, Metrics, Spans};
use self::instruments::{Instruments, Readings};
use self::settings::{Sampling, Settings};
use super::logging::Traces;

/// How long the daemon's end may wait for what is not sent yet.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Never: metrics are exported when how much there is of everything has just been looked up ([`Telemetry::measure`]).
const BY_ITSELF: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What is exported, and how.
pub(super) struct Telemetry {
    collector: Collector,
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    metrics_every: Duration,
}

impl Telemetry {
    /// None where nothing is exported. To be called in a runtime, from which all is sent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the name of what nothing could work with.
    pub(super) fn start(config: &TelemetryConfig) -> Result<Option<Self>, Error> {
        let environment = |name: &str| std::env::var(name).ok();
        let settings = Settings::of(config, &environment)?;
        Ok(settings.map(|settings| Self::export(settings, Handle::current())))
    }

    fn export(settings: Settings, runtime: Handle) -> Self {
        let (sampler, metrics_every) = (sampler(settings.sampling), settings.metrics_every);
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(opentelemetry::KeyValue::new("service.version", VERSION))
            .build();
        let collector = Collector::new(settings, runtime);
        let traces = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(Spans::to(collector.clone())).build())
            .with_sampler(sampler)
            .with_resource(resource.clone())
            .build();
        let reader = PeriodicReader::builder(Metrics::to(collector.clone())).with_interval(BY_ITSELF).build();
        let metrics = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
        set_text_map_propagator(TraceContextPropagator::new());
        Self { collector, traces, metrics, metrics_every }
    }

    /// Returns the layer that takes spans.
    pub(super) fn traces(&self) -> Traces {
        tracing_opentelemetry::layer()
            .with_tracer(self.traces.tracer("mainstay"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .boxed()
    }

    /// What counts and times are recorded in.
    pub(super) fn recorder(&self) -> Instruments {
        Instruments::of(self.metrics.meter("mainstay"))
    }

    /// Looks up how much there is of everything, and exports all that is measured, again and again.
    pub(super) fn measure(&self, daemon: HttpDaemon) -> impl Future<Output = ()> + Send + 'static {
        let (metrics, every) = (self.metrics.clone(), self.metrics_every);
        let mut readings = Readings::of(metrics.meter("mainstay"));
        async move {
            loop {
                tokio::time::sleep(every).await;
                let client = daemon.engine.attach(Access::local(), "telemetry");
                match gauges(&daemon, &client).await {
                    Ok(gauges) => readings.take(gauges),
                    Err(error) => tracing::warn!(%error, "the daemon's numbers cannot be looked up"),
                }
                let metrics = metrics.clone();
                // The collector says what went wrong.
                tokio::task::spawn_blocking(move || metrics.force_flush().ok()).await.ok();
            }
        }
    }

    /// Sends what is not sent yet, as far as there is time.
    pub(super) async fn end(self) {
        let Self { collector, traces, metrics, metrics_every: _ } = self;
        let (done, is_done) = tokio::sync::oneshot::channel();
        let rest = move || {
            // What could not be sent has been told.
            traces.shutdown_with_timeout(LAST_WORDS).ok();
            metrics.shutdown_with_timeout(LAST_WORDS).ok();
            done.send(()).ok();
        };
        // No thread of the runtime, which would wait for it.
        if let Err(error) = std::thread::Builder::new().name("last-words".to_owned()).spawn(rest) {
            tracing::warn!(%error, "the last traces and metrics are lost");
            return;
        }
        if tokio::time::timeout(LAST_WORDS, is_done).await.is_err() {
            tracing::warn!("the last traces and metrics are lost: the collector does not take them in time");
        }
        collector.give_up();
    }
}

fn sampler(Sampling { ratio, follows_parent }: Sampling) -> Sampler {
    let own = Sampler::TraceIdRatioBased(ratio);
    if follows_parent { Sampler::ParentBased(Box::new(own)) } else { own }
}
