//! What is measured of sessions. Whoever runs the process says where it goes; nowhere costs nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mainstay_model::{Event, EventBody, JobEnd, SessionKind};

/// What sessions did since it was asked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityCounts {
    /// How many jobs have ended.
    pub jobs: u64,
    /// How long the longest of them ran, in milliseconds.
    pub longest_job_ms: u64,
    /// How long the slowest commit took, in microseconds.
    pub longest_commit_us: u64,
}

/// What is counted for the next [`ActivityCounts`].
#[derive(Debug, Default)]
pub(crate) struct ActivityCounters {
    jobs: AtomicU64,
    longest_job_ms: AtomicU64,
    longest_commit_us: AtomicU64,
}

impl ActivityCounters {
    /// Something was committed, so long after it was decided.
    pub(crate) fn committed(&self, events: &[Event], took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.longest_commit_us.fetch_max(took, Ordering::Relaxed);
        for event in events.iter().filter(|event| event.body.job_end().is_some()) {
            self.jobs.fetch_add(1, Ordering::Relaxed);
            self.longest_job_ms.fetch_max(job_ms(&event.body).unwrap_or_default(), Ordering::Relaxed);
        }
    }

    /// All of it; from then on it is counted anew.
    pub(crate) fn take(&self) -> ActivityCounts {
        ActivityCounts {
            jobs: self.jobs.swap(0, Ordering::Relaxed),
            longest_job_ms: self.longest_job_ms.swap(0, Ordering::Relaxed),
            longest_commit_us: self.longest_commit_us.swap(0, Ordering::Relaxed),
        }
    }
}

/// How long a job ran, as its end says.
fn job_ms(end: &EventBody) -> Option<u64> {
    if let EventBody::EvalCompleted { duration_ms, .. }
    | EventBody::EvalFailed { duration_ms, .. }
    | EventBody::JobEnded { duration_ms, .. } = end
    {
        return Some(*duration_ms);
    }
    None
}

/// Something was committed, so long after it was decided.
pub(crate) fn committed(kind: &SessionKind, events: &[Event], took: Duration) {
    metrics::histogram!("mainstay_commit_seconds").record(took);
    metrics::counter!("mainstay_events_total").increment(events.len() as u64);
    for event in events {
        let Some((_, end)) = event.body.job_end() else { continue };
        let (kind, ending) = (kind.to_string(), ending_name(end));
        metrics::counter!("mainstay_jobs_total", "kind" => kind.clone(), "ending" => ending).increment(1);
        if let Some(duration_ms) = job_ms(&event.body) {
            metrics::histogram!("mainstay_job_seconds", "kind" => kind)
                .record(Duration::from_millis(duration_ms));
        }
    }
}

const fn ending_name(end: JobEnd) -> &'static str {
    match end {
        JobEnd::Completed => "completed",
        JobEnd::Failed => "failed",
        JobEnd::Cancelled(_) => "cancelled",
        JobEnd::Interrupted => "interrupted",
    }
}
