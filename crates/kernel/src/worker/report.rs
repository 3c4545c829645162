//! What became of a job, as the worker says it.

use std::time::Duration;

use mainstay_model::{EvalResult, JobEnding, JobReport, RaisedError};

use crate::protocol::{FailureCode, WorkerOutcome, WorkerResult};
use crate::startup_context::StartupContext;

/// The report of a job that has a result.
pub(super) fn report(result: WorkerResult, beginning: &StartupContext) -> JobReport {
    let WorkerResult {
        outcome,
        value,
        value_type,
        bindings,
        display,
        diagnostics,
        error,
        kept,
        changes_state,
        uses_last,
        environment,
        touched,
        duration_ms,
        ..
    } = result;
    let ending = match outcome {
        WorkerOutcome::Completed => JobEnding::Completed,
        WorkerOutcome::Rejected => JobEnding::Rejected,
        WorkerOutcome::Interrupted => JobEnding::Interrupted { kept },
        WorkerOutcome::Raised => JobEnding::Raised(error.unwrap_or_else(|| RaisedError {
            kind: "Exception".to_owned(),
            message: "an exception escaped".to_owned(),
            stack: None,
            coloured_stack: None,
        })),
    };
    JobReport {
        ending,
        result: EvalResult { value, value_type, bindings, display, diagnostics, uses_last, touched },
        changes_state,
        took: Duration::from_millis(duration_ms),
        references: environment.map(|environment| beginning.at_origins(environment.references())),
    }
}

/// What is said of a job that has no result of its own.
pub(super) fn unserved(code: FailureCode, message: String) -> JobReport {
    let changes_state = match code {
        FailureCode::BadRequest | FailureCode::NotFound => false,
        // Part of it may have run before the worker gave up.
        FailureCode::Busy | FailureCode::Internal => true,
    };
    let ending = JobEnding::Raised(RaisedError {
        kind: "WorkerError".to_owned(),
        message,
        stack: None,
        coloured_stack: None,
    });
    JobReport { ending, result: EvalResult::default(), changes_state, took: Duration::ZERO, references: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_result_is_replayed_unless_it_was_refused() {
        let replayed = |code| unserved(code, String::new()).changes_state;
        assert!(replayed(FailureCode::Internal) && replayed(FailureCode::Busy));
        assert!(!replayed(FailureCode::BadRequest) && !replayed(FailureCode::NotFound));
    }
}
