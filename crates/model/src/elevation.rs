//! Elevations: a job that a grant bounds is to be trusted with more for a time, which a person allows who may do everything. Source: ARCP
//! draft 01, 15.3 and 15.6.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ask::{PendingAsk, Question, Raiser};
use crate::error::Error;
use crate::event::Source;
use crate::grant::{LeaseTerms, OperationKind, Pattern, PatternLimits};
use crate::id::Principal;
use crate::limits::Limits;
use crate::permission::Permission;

pub use crate::trust::TrustLevel;

/// The title of the schema of such a question.
const TITLE: &str = "elevation";
/// The longest reason, in bytes.
const LONGEST_REASON: usize = 1_000;

/// What a job is to be trusted with, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elevation {
    /// The level to which the job is raised, for these operations alone.
    pub level: TrustLevel,
    /// The kind of operations.
    pub kind: OperationKind,
    /// The targets of that kind, as a pattern of grants.
    pub pattern: String,
    /// For how long it is to be trusted, in milliseconds.
    pub duration_ms: u64,
    /// Why it is to be trusted, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Through what it was asked for, as the session of a protocol; nobody answers through the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
}

impl Elevation {
    /// Checks what can be checked without the job.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the pattern is none, the time is none, or the reason is too long.
    pub fn validate(&self) -> Result<(), Error> {
        Pattern::parse(&self.kind, &self.pattern, &PatternLimits::REQUEST)?;
        if self.duration_ms == 0 {
            return Err(invalid("lease", "it must be for at least a millisecond".to_owned()));
        }
        if self.reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
            return Err(invalid("reason", format!("it may have at most {LONGEST_REASON} bytes")));
        }
        Ok(())
    }

    /// The same, for at most as long as a lease may last.
    #[must_use]
    pub fn within(self, limits: &Limits) -> Self {
        Self { duration_ms: self.duration_ms.min(limits.lease_longest_ms), ..self }
    }

    /// The question whether the job may be trusted so, which this principal wants. Nobody's answer is no.
    pub fn question(&self, principal: &Principal, quorum: Option<u32>) -> Question {
        let Self { level, kind, pattern, duration_ms, reason, .. } = self;
        let seconds = duration_ms.div_ceil(1_000);
        // What others wrote is shown as a quotation, so that it cannot pass for the question.
        let why = reason.as_ref().map(|reason| format!(" The reason given: {reason:?}.")).unwrap_or_default();
        let pattern = pattern.escape_debug();
        let answers = [Permission::Once, Permission::No].map(Permission::as_str);
        Question {
            prompt: format!(
                "May this job be `{level}` with `{kind}` of `{pattern}` for {seconds} s? `{principal}` asks for \
                 it.{why} Only who may do everything answers."
            ),
            schema: json!({ "title": TITLE, "enum": answers, "elevation": self }),
            default: Some(json!(Permission::No.as_str())),
            quorum,
        }
    }

    /// For how long an answer gives what was asked for: as long as it says, and no longer than was asked.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is for other targets.
    pub fn terms(&self, given: Option<LeaseTerms>) -> Result<LeaseTerms, Error> {
        let Some(LeaseTerms { duration_ms, pattern }) = given else {
            return Ok(LeaseTerms { duration_ms: self.duration_ms, pattern: None });
        };
        if pattern.is_some_and(|pattern| pattern != self.pattern) {
            let reason = format!("`{}` was asked for, and nothing else is given", self.pattern);
            return Err(invalid("pattern of a lease", reason));
        }
        Ok(LeaseTerms { duration_ms: duration_ms.min(self.duration_ms), pattern: None })
    }
}

impl Question {
    /// What a job is to be trusted with, as the question says. Whether it may be believed says [`PendingAsk::elevation`].
    pub fn elevation(&self) -> Option<Elevation> {
        let schema = (self.schema["title"] == TITLE).then_some(&self.schema)?;
        serde_json::from_value(schema["elevation"].clone()).ok()
    }
}

impl PendingAsk {
    /// What the job is to be trusted with; none of another question. What a worker asks by itself is none, whatever its schema says.
    pub fn elevation(&self) -> Option<Elevation> {
        let is_wanted_by_client = matches!(self.source, Source::Client { .. });
        match self.ask.raiser {
            Raiser::Job { .. } if is_wanted_by_client => self.ask.question.elevation(),
            Raiser::Job { .. } | Raiser::Command { .. } => None,
        }
    }
}

fn invalid(argument: &str, reason: String) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason }
}
