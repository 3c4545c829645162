//! What an event says of a job, and of the entries of others.

use super::{CancelEnding, EventBody, OutputStream};
use crate::agent::WorkEnding;
use crate::command_line::CommandLine;
use crate::display::Display;
use crate::entry::Origin;
use crate::error::Error;
use crate::eval::{EvalResult, Failure};
use crate::id::JobId;
use crate::transcript::Segment;

/// How a job ended, as the event that ended it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// The code ran to its end.
    Completed,
    /// The code did not run to its end.
    Failed,
    /// The job was cancelled.
    Cancelled(CancelEnding),
    /// It was cut off.
    Interrupted,
}

/// What an event says of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPart<'a> {
    /// Its code was accepted.
    Requested {
        /// The code that the job runs.
        code: &'a str,
        /// The file whose text it is.
        file: Option<&'a str>,
        /// The command line that the code was given.
        command_line: Option<&'a CommandLine>,
        /// The entry it was brought from.
        origin: Option<Origin>,
        /// Whether the code is stored nowhere.
        withheld: bool,
    },
    /// The job printed text.
    Printed {
        /// The stream that carried the text.
        stream: OutputStream,
        /// The text that was printed.
        text: &'a str,
    },
    /// The job displayed something.
    Displayed(&'a Display),
    /// It took back what it had printed and shown.
    Cleared,
    /// What it prints further is left out, but for its end.
    OutputCut,
    /// Someone asked for it to stop.
    CancelRequested,
    /// Its command took longer than it may.
    TimedOut,
    /// Its grant does not allow what it does.
    Denied(&'a Error),
    /// The job has ended.
    Ended(EvalEnd<'a>),
}

/// How an eval ended, with what it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalEnd<'a> {
    /// It ran to its end.
    Completed {
        /// The result that the job returned.
        result: &'a EvalResult,
    },
    /// It did not run to its end.
    Failed {
        /// The reason why the job failed.
        failure: &'a Failure,
        /// What it gave up to there.
        result: &'a EvalResult,
    },
    /// The job was cancelled.
    Cancelled(CancelEnding),
    /// It was cut off.
    Interrupted,
}

impl From<EvalEnd<'_>> for JobEnd {
    fn from(end: EvalEnd<'_>) -> Self {
        match end {
            EvalEnd::Completed { .. } => Self::Completed,
            EvalEnd::Failed { .. } => Self::Failed,
            EvalEnd::Cancelled(ending) => Self::Cancelled(ending),
            EvalEnd::Interrupted => Self::Interrupted,
        }
    }
}

impl EventBody {
    /// The job that this event is of, and what it says of it; none of what is of no job, or of an ask.
    pub fn job_part(&self) -> Option<(JobId, JobPart<'_>)> {
        match self {
            Self::EvalRequested { job, code, file, command_line, origin, withheld, .. } => {
                let (file, command_line) = (file.as_deref(), command_line.as_ref());
                let (origin, withheld) = (*origin, *withheld);
                Some((*job, JobPart::Requested { code, file, command_line, origin, withheld }))
            }
            Self::OutputProduced { job, stream, text } => {
                job.map(|job| (job, JobPart::Printed { stream: *stream, text }))
            }
            Self::OutputDisplayed { job, display } => job.map(|job| (job, JobPart::Displayed(display))),
            Self::OutputCleared { job, .. } => Some((*job, JobPart::Cleared)),
            Self::OutputCut { job, .. } => Some((*job, JobPart::OutputCut)),
            Self::CancelRequested { job, .. } => Some((*job, JobPart::CancelRequested)),
            Self::EvalTimedOut { job, .. } => Some((*job, JobPart::TimedOut)),
            Self::JobDenied { job, error } => Some((*job, JobPart::Denied(error))),
            _ => self.eval_end().map(|(job, end)| (job, JobPart::Ended(end))),
        }
    }

    /// The eval that this event ends, and how.
    pub fn eval_end(&self) -> Option<(JobId, EvalEnd<'_>)> {
        match self {
            Self::EvalCompleted { job, result, .. } => Some((*job, EvalEnd::Completed { result })),
            Self::EvalFailed { job, failure, result, .. } => {
                Some((*job, EvalEnd::Failed { failure, result }))
            }
            Self::EvalCancelled { job, ending, .. } => Some((*job, EvalEnd::Cancelled(*ending))),
            Self::EvalInterrupted { job } => Some((*job, EvalEnd::Interrupted)),
            _ => None,
        }
    }

    /// The entries of sessions that this puts into the session's transcript.
    pub fn brings(&self) -> &[Segment] {
        match self {
            Self::SessionForked(point) => &point.segments,
            Self::EntriesMerged(point) => &point.brought,
            _ => &[],
        }
    }

    /// The job that this event ends, and how.
    pub fn job_end(&self) -> Option<(JobId, JobEnd)> {
        if let Self::JobEnded { job, ending, .. } = self {
            let end = match ending {
                WorkEnding::Done { .. } => JobEnd::Completed,
                WorkEnding::Failed { .. } => JobEnd::Failed,
                WorkEnding::Cancelled { by } => JobEnd::Cancelled(*by),
                WorkEnding::Interrupted => JobEnd::Interrupted,
            };
            return Some((*job, end));
        }
        self.eval_end().map(|(job, end)| (job, end.into()))
    }
}
