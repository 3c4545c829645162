//! What a scenario is, and how it can end.

use futures::future::BoxFuture;

use crate::probe::Probe;

/// One of the two incompatible protocols that share the name ARCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Protocol 1.0 of draft-arcp-01: `session.open`, 66 message types.
    A,
    /// Protocol 1.1 of draft-arcp-1.1: `session.hello`, 20 message types.
    B,
}

/// How strongly the specification demands what a scenario tests (RFC 2119).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A runtime that fails it does not conform.
    Must,
    /// A runtime may have its reasons to fail it.
    Should,
    /// A runtime is free to fail it.
    May,
}

impl Word {
    /// The word in capitals, as the specification writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        }
    }
}

/// One requirement of the specification, and how a runtime is tried against it.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The dialect, the section and a name, for example `b.6.3.rotates-token`.
    pub id: &'static str,
    /// How strongly the specification demands it.
    pub word: Word,
    /// The requirement in one sentence.
    pub requirement: &'static str,
    pub(crate) body: for<'a> fn(&'a Probe) -> BoxFuture<'a, Verdict>,
}

impl Scenario {
    /// The dialect, which the first letter of the id says.
    pub fn dialect(&self) -> Dialect {
        if self.id.starts_with("a.") { Dialect::A } else { Dialect::B }
    }

    /// The section of the specification, for example `6.3`.
    pub fn section(&self) -> &'static str {
        let rest = self.id.get(2..).unwrap_or_default();
        rest.rfind('.').and_then(|end| rest.get(..end)).unwrap_or(rest)
    }
}

/// What the body of a scenario returns: nothing where it passed.
pub(crate) type Verdict = Result<(), Stop>;

/// Why a scenario ended without passing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The runtime did something else than it was expected to.
    Failed { expected: String, got: String },
    /// What the scenario needs was not given, or not negotiated.
    Skipped(String),
    /// The requirement has a condition, which this runtime does not meet.
    NotApplicable(String),
}

impl Stop {
    pub(crate) fn failed(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Failed { expected: expected.into(), got: got.into() }
    }

    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped(why.into())
    }

    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }
}

/// Fails the scenario unless a condition holds.
pub(crate) fn expect(holds: bool, expected: &str, got: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Stop::failed(expected, got())) }
}

/// How a scenario ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The runtime did what the requirement says.
    Passed,
    /// The runtime did something else.
    Failed {
        /// What the scenario waited for.
        expected: String,
        /// What came in its place.
        got: String,
        /// What was sent and received, oldest first.
        frames: Vec<Frame>,
    },
    /// The scenario was not run, and why.
    Skipped(String),
    /// The requirement does not apply to this runtime, and why.
    NotApplicable(String),
}

/// One thing that happened on a connection of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The number of the connection within its scenario, from 1.
    pub connection: usize,
    /// Whether it was sent, received, or the end of the connection.
    pub kind: FrameKind,
    /// The text of the frame.
    pub text: String,
}

/// What a frame is, seen from the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The runner sent it.
    Sent,
    /// The runtime sent it.
    Received,
    /// The connection ended there.
    Closed,
}

impl FrameKind {
    /// The kind in one lowercase word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Closed => "closed",
        }
    }
}

/// Declares the scenarios of a file: the id, the word, the requirement, and the function that tries it.
macro_rules! scenarios {
    ($($id:literal $word:ident $requirement:literal => $body:path;)+) => {
        pub(super) fn scenarios() -> Vec<crate::Scenario> {
            vec![$(crate::Scenario {
                id: $id,
                word: crate::Word::$word,
                requirement: $requirement,
                body: |probe| Box::pin($body(probe)),
            }),+]
        }
    };
}
pub(crate) use scenarios;
