//! Two places in which counts and times are recorded alike: `metrics` knows but one for a process.

use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

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
