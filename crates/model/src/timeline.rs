//! What ran when: a fold of a session's events to one line a job. Who reads a page of events folds that; what ended in it without
//! having begun there is passed over.

use crate::Timestamp;
use crate::error::Error;
use crate::event::{CancelEnding, Event, EventBody, JobEnd, Source};
use crate::id::{JobId, Seq};
use crate::session::title;

/// What ran, in the order in which it was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    ran: Vec<TimelineJob>,
}

/// One job that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineJob {
    /// The id of the job.
    pub job: JobId,
    /// The event that accepted it.
    pub requested: Seq,
    /// When the job started.
    pub started: Timestamp,
    /// Who asked for it.
    pub source: Source,
    /// How its code, or what an agent was told, begins; none where that was withheld or says nothing.
    pub line: Option<String>,
    /// The file whose text the code is.
    pub file: Option<String>,
    /// Whether its command took longer than it may.
    pub has_timed_out: bool,
    /// What its grant did not allow, where it was told to stop for that.
    pub denied: Option<Error>,
    /// How it ended; none while it runs.
    pub ended: Option<Ended>,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The event that ended it.
    pub seq: Seq,
    /// How the job ended.
    pub end: JobEnd,
    /// How long it ran, in milliseconds; for one that was cut short, until that was recorded.
    pub milliseconds: u64,
}

impl Timeline {
    /// The timeline of these events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut timeline = Self::default();
        events.into_iter().for_each(|event| timeline.push(event));
        timeline
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &Event) {
        if let Some(begun) = begun(event) {
            self.ran.push(begun);
        } else if let EventBody::EvalTimedOut { job, .. } = &event.body
            && let Some(ran) = self.running(*job)
        {
            ran.has_timed_out = true;
        } else if let EventBody::JobDenied { job, error } = &event.body
            && let Some(ran) = self.running(*job)
        {
            ran.denied.get_or_insert_with(|| error.clone());
        } else if let Some((job, end)) = event.body.job_end()
            && let Some(ran) = self.running(job)
        {
            let milliseconds = measured(&event.body).unwrap_or_else(|| {
                u64::try_from(event.at.duration_since(ran.started).as_millis()).unwrap_or_default()
            });
            ran.ended = Some(Ended { seq: event.seq, end, milliseconds });
        }
    }

    /// Returns the jobs that ran, in order.
    pub fn ran(&self) -> &[TimelineJob] {
        &self.ran
    }

    fn running(&mut self, job: JobId) -> Option<&mut TimelineJob> {
        self.ran.iter_mut().rfind(|ran| ran.job == job && ran.ended.is_none())
    }
}

impl TimelineJob {
    /// How it ended, in a word.
    pub fn ending(&self) -> &'static str {
        match self.ended.map(|ended| ended.end) {
            None => "running",
            Some(_) if self.has_timed_out => "timed out",
            Some(_) if self.denied.is_some() => "denied",
            Some(JobEnd::Completed) => "completed",
            Some(JobEnd::Failed) => "failed",
            Some(JobEnd::Cancelled(CancelEnding::Yielded)) => "cancelled",
            Some(JobEnd::Cancelled(CancelEnding::Killed)) => "killed",
            Some(JobEnd::Interrupted) => "interrupted",
        }
    }
}

/// Whether an event says something of what ran when.
pub fn concerns(event: &Event) -> bool {
    is_request(event)
        || event.body.job_end().is_some()
        || matches!(event.body, EventBody::EvalTimedOut { .. } | EventBody::JobDenied { .. })
}

/// Whether a job begins with an event.
pub fn is_request(event: &Event) -> bool {
    matches!(event.body, EventBody::EvalRequested { .. } | EventBody::JobRequested { .. })
}

/// The job that an event begins.
fn begun(event: &Event) -> Option<TimelineJob> {
    let (job, line, file) = if let EventBody::EvalRequested { job, code, file, .. } = &event.body {
        // There is no code where it is withheld.
        (*job, title(code), file.clone())
    } else if let EventBody::JobRequested { job, work, .. } = &event.body {
        (*job, title(&work.to_string()), None)
    } else {
        return None;
    };
    Some(TimelineJob {
        job,
        requested: event.seq,
        started: event.at,
        source: event.metadata.source.clone(),
        line,
        file,
        has_timed_out: false,
        denied: None,
        ended: None,
    })
}

/// How long a job took, where its end says it.
fn measured(body: &EventBody) -> Option<u64> {
    if let EventBody::EvalCompleted { duration_ms, .. }
    | EventBody::EvalFailed { duration_ms, .. }
    | EventBody::JobEnded { duration_ms, .. } = body
    {
        Some(*duration_ms)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::eval::{EvalResult, Failure};
    use crate::event::{Metadata, OutputStream};
    use crate::fingerprint::CommandFingerprint;
    use crate::id::{CommandId, Position, SessionId};

    /// One event for each: what it says of the how manieth job.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Said {
        Requested { withheld: bool },
        Printed,
        TimedOut,
        Denied,
        Completed,
        Failed,
        Cancelled(CancelEnding),
        Interrupted,
    }

    fn body(said: Said, nth: u8) -> EventBody {
        let job = JobId::from_uuid(Uuid::from_u128(nth.into()));
        let result = EvalResult::default();
        match said {
            Said::Requested { withheld } => EventBody::EvalRequested {
                job,
                command: CommandId::from_uuid(job.as_uuid()),
                fingerprint: CommandFingerprint::of("", &nth),
                key: None,
                deadline: None,
                grants: None,
                code: if withheld { String::new() } else { format!("\n  job {nth}\nmore") },
                file: None,
                command_line: None,
                origin: None,
                withheld,
            },
            Said::Printed => EventBody::OutputProduced {
                job: Some(job),
                stream: OutputStream::Stdout,
                text: "text".to_owned(),
            },
            Said::TimedOut => EventBody::EvalTimedOut { job, limit_ms: 5 },
            Said::Denied => EventBody::JobDenied { job, error: spent() },
            Said::Completed => {
                EventBody::EvalCompleted { job, result, changes_state: false, duration_ms: nth.into() }
            }
            Said::Failed => EventBody::EvalFailed {
                job,
                failure: Failure::Rejected,
                result,
                changes_state: false,
                duration_ms: nth.into(),
            },
            Said::Cancelled(ending) => EventBody::EvalCancelled { job, ending, kept: None, grace_ms: None },
            Said::Interrupted => EventBody::EvalInterrupted { job },
        }
    }

    fn spent() -> Error {
        Error::BudgetExhausted { currency: "USD".to_owned() }
    }

    /// A second apart from each other.
    fn events(said: &[(Said, u8)]) -> Vec<Event> {
        let source = Source::Worker;
        let metadata = Metadata { source, correlation: None, causation: None, environment: None };
        let event = |(seq, (said, nth)): (u64, &(Said, u8))| Event {
            session: SessionId::from_uuid(Uuid::nil()),
            seq: Seq(seq),
            position: Position(seq),
            at: Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap(),
            metadata: metadata.clone(),
            body: body(*said, *nth),
        };
        (1..).zip(said).map(event).collect()
    }

    fn said() -> impl Strategy<Value = Said> {
        prop_oneof![
            any::<bool>().prop_map(|withheld| Said::Requested { withheld }),
            Just(Said::Printed),
            Just(Said::TimedOut),
            Just(Said::Denied),
            Just(Said::Completed),
            Just(Said::Failed),
            Just(Said::Cancelled(CancelEnding::Yielded)),
            Just(Said::Cancelled(CancelEnding::Killed)),
            Just(Said::Interrupted),
        ]
    }

    #[test]
    fn each_job_has_its_line_its_end_and_its_time() {
        let (requested, withheld) = (Said::Requested { withheld: false }, Said::Requested { withheld: true });
        let timeline = Timeline::of(&events(&[
            (Said::Completed, 9),
            (requested, 1),
            (Said::Printed, 1),
            (Said::Completed, 1),
            (withheld, 2),
            (Said::Failed, 2),
            (requested, 3),
            (Said::TimedOut, 3),
            (Said::Cancelled(CancelEnding::Killed), 3),
            (requested, 4),
            (Said::Denied, 4),
            (Said::Cancelled(CancelEnding::Yielded), 4),
            (requested, 5),
        ]));
        let short = |ran: &TimelineJob| {
            let milliseconds = ran.ended.map(|ended| ended.milliseconds);
            (ran.requested.0, ran.line.clone(), ran.ending(), milliseconds)
        };
        let line = |nth: u8| Some(format!("job {nth}"));
        let expected = [
            (2, line(1), "completed", Some(1)),
            (5, None, "failed", Some(2)),
            (7, line(3), "timed out", Some(2000)),
            (10, line(4), "denied", Some(2000)),
            (13, line(5), "running", None),
        ];
        assert_eq!(timeline.ran().iter().map(short).collect::<Vec<_>>(), expected);
        let denied: Vec<_> = timeline.ran().iter().map(|ran| ran.denied.clone()).collect();
        assert_eq!(denied, [None, None, None, Some(spent()), None]);
    }

    proptest! {
        /// Whatever is said in whatever order: every request has its line, in order, ends at most once, by an event of its own
        /// that comes after it, and what no job says is not needed.
        #[test]
        fn every_request_is_there_and_ends_with_its_own_first_end(
            said in proptest::collection::vec((said(), 0..4_u8), 0..40),
        ) {
            let events = events(&said);
            let timeline = Timeline::of(&events);
            let requests: Vec<_> = events.iter().filter(|event| is_request(event)).map(|event| event.seq).collect();
            prop_assert_eq!(timeline.ran().iter().map(|ran| ran.requested).collect::<Vec<_>>(), requests);
            let mut ends = std::collections::BTreeSet::new();
            for ran in timeline.ran() {
                let Some(Ended { seq, end, .. }) = ran.ended else { continue };
                let index = usize::try_from(seq.0).unwrap() - 1;
                prop_assert_eq!(events[index].body.job_end(), Some((ran.job, end)));
                prop_assert!(seq > ran.requested && ends.insert(seq));
            }
            prop_assert_eq!(&Timeline::of(events.iter().filter(|event| concerns(event))), &timeline);
        }

        /// A page's timeline is the end of the whole one's.
        #[test]
        fn what_began_in_a_page_is_the_same_as_in_the_whole(
            jobs in proptest::collection::vec((said(), any::<bool>()), 0..20), from in 0..40_usize,
        ) {
            // A session's work is serial: one job at a time, each with an end but perhaps the last.
            let said: Vec<_> = (0_u8..).zip(jobs).flat_map(|(nth, (end, withheld))| {
                let end = if matches!(end, Said::Requested { .. }) { Said::Printed } else { end };
                [(Said::Requested { withheld }, nth), (end, nth)]
            }).collect();
            let events = events(&said);
            let page = &events[from.min(events.len())..];
            let whole = Timeline::of(&events);
            let part = Timeline::of(page);
            prop_assert!(whole.ran().ends_with(part.ran()));
        }
    }
}
