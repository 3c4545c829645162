//! What is measured, as OpenTelemetry's instruments: the same names, labels and bounds as `/metrics` has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_http::{Gauge, SECONDS};
use metrics::{CounterFn, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, ObservableGauge};

/// Where counts and times are recorded as they come about.
pub(crate) struct Instruments {
    meter: Meter,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    descriptions: HashMap<String, SharedString>,
    counters: HashMap<Key, metrics::Counter>,
    histograms: HashMap<Key, metrics::Histogram>,
}

impl Instruments {
    pub(super) fn of(meter: Meter) -> Self {
        Self { meter, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, name: &KeyName, description: SharedString) {
        self.lock().descriptions.insert(name.as_str().to_owned(), description);
    }

    fn counter(&self, key: &Key, description: Option<&SharedString>) -> metrics::Counter {
        let mut builder = self.meter.u64_counter(key.name().to_owned());
        if let Some(description) = description {
            builder = builder.with_description(description.to_string());
        }
        let count = Count { counter: builder.build(), labels: labels(key), so_far: AtomicU64::new(0) };
        metrics::Counter::from_arc(Arc::new(count))
    }

    fn histogram(&self, key: &Key, description: Option<&SharedString>) -> metrics::Histogram {
        let mut builder = self.meter.f64_histogram(key.name().to_owned()).with_boundaries(SECONDS.to_vec());
        if let Some(description) = description {
            builder = builder.with_description(description.to_string());
        }
        if let Some(unit) = unit_of(key.name()) {
            builder = builder.with_unit(unit);
        }
        let times = Times { histogram: builder.build(), labels: labels(key) };
        metrics::Histogram::from_arc(Arc::new(times))
    }
}

impl Recorder for Instruments {
    fn describe_counter(&self, key: KeyName, _unit: Option<Unit>, description: SharedString) {
        self.describe(&key, description);
    }

    fn describe_gauge(&self, key: KeyName, _unit: Option<Unit>, description: SharedString) {
        self.describe(&key, description);
    }

    fn describe_histogram(&self, key: KeyName, _unit: Option<Unit>, description: SharedString) {
        self.describe(&key, description);
    }

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> metrics::Counter {
        let mut known = self.lock();
        if let Some(counter) = known.counters.get(key) {
            return counter.clone();
        }
        let counter = self.counter(key, known.descriptions.get(key.name()));
        known.counters.insert(key.clone(), counter.clone());
        counter
    }

    /// How much there is of something is looked up ([`Readings`]), and never recorded.
    fn register_gauge(&self, _key: &Key, _metadata: &Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> metrics::Histogram {
        let mut known = self.lock();
        if let Some(histogram) = known.histograms.get(key) {
            return histogram.clone();
        }
        let histogram = self.histogram(key, known.descriptions.get(key.name()));
        known.histograms.insert(key.clone(), histogram.clone());
        histogram
    }
}

struct Count {
    counter: Counter<u64>,
    labels: Vec<KeyValue>,
    so_far: AtomicU64,
}

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        self.so_far.fetch_add(value, Ordering::Relaxed);
        self.counter.add(value, &self.labels);
    }

    fn absolute(&self, value: u64) {
        let before = self.so_far.fetch_max(value, Ordering::Relaxed);
        self.counter.add(value.saturating_sub(before), &self.labels);
    }
}

struct Times {
    histogram: Histogram<f64>,
    labels: Vec<KeyValue>,
}

impl HistogramFn for Times {
    fn record(&self, value: f64) {
        self.histogram.record(value, &self.labels);
    }
}

/// What was looked up last, told whenever metrics are exported.
pub(super) struct Readings {
    meter: Meter,
    last: Arc<Mutex<HashMap<&'static str, Gauge>>>,
    told: HashMap<&'static str, ObservableGauge<u64>>,
}

impl Readings {
    pub(super) fn of(meter: Meter) -> Self {
        Self { meter, last: Arc::default(), told: HashMap::new() }
    }

    /// Takes what was just looked up.
    pub(super) fn take(&mut self, gauges: Vec<Gauge>) {
        for gauge in &gauges {
            if !self.told.contains_key(gauge.name) {
                let instrument = self.instrument(gauge);
                self.told.insert(gauge.name, instrument);
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            gauges.into_iter().map(|gauge| (gauge.name, gauge)).collect();
    }

    fn instrument(&self, gauge: &Gauge) -> ObservableGauge<u64> {
        let (name, last) = (gauge.name, Arc::clone(&self.last));
        let mut builder = self.meter.u64_observable_gauge(name).with_description(gauge.description);
        if let Some(unit) = unit_of(name) {
            builder = builder.with_unit(unit);
        }
        let tell = move |observer: &dyn opentelemetry::metrics::AsyncInstrument<u64>| {
            let last = last.lock().unwrap_or_else(PoisonError::into_inner);
            for (labels, value) in last.get(name).into_iter().flat_map(|gauge| &gauge.values) {
                let labels: Vec<KeyValue> =
                    labels.iter().map(|(name, value)| KeyValue::new(*name, value.clone())).collect();
                observer.observe(*value, &labels);
            }
        };
        builder.with_callback(tell).build()
    }
}

fn labels(key: &Key) -> Vec<KeyValue> {
    key.labels().map(|label| KeyValue::new(label.key().to_owned(), label.value().to_owned())).collect()
}

/// What a metric counts in, by its name.
fn unit_of(name: &str) -> Option<&'static str> {
    let units = [("_seconds", "s"), ("_bytes", "By")];
    units.into_iter().find_map(|(end, unit)| name.ends_with(end).then_some(unit))
}
