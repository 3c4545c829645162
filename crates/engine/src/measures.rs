//! What is measured of sessions. Whoever runs the process says where it goes; nowhere costs nothing.

use std::time::Duration;

use mainstay_model::{Event, EventBody, JobEnd, SessionKind};

/// Something was committed, so long after it was decided.
pub(crate) fn committed(kind: &SessionKind, events: &[Event], took: Duration) {
    metrics::histogram!("mainstay_commit_seconds").record(took);
    metrics::counter!("mainstay_events_total").increment(events.len() as u64);
    for event in events {
        let Some((_, end)) = event.body.job_end() else { continue };
        let (kind, ending) = (kind.to_string(), ending_name(end));
        metrics::counter!("mainstay_jobs_total", "kind" => kind.clone(), "ending" => ending).increment(1);
        if let EventBody::EvalCompleted { duration_ms, .. }
        | EventBody::EvalFailed { duration_ms, .. }
        | EventBody::JobEnded { duration_ms, .. } = &event.body
        {
            metrics::histogram!("mainstay_job_seconds", "kind" => kind)
                .record(Duration::from_millis(*duration_ms));
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
