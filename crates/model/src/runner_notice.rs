//! What a runner says: to the engine's rules, which decide what follows. All of it can be written to a stream, so that a runner may live in a
//! process of its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::AgentNotice;
use crate::application::ApplicationNotice;
use crate::ask::Question;
use crate::comm::CommMessage;
use crate::diagnostic::Diagnostic;
use crate::display::Display;
use crate::eval::{EvalResult, RaisedError, WorkerExit};
use crate::event::{Blame, OutputStream};
use crate::fingerprint::References;
use crate::grant::AskedOperation;
use crate::id::{AskId, JobId, RunnerId};
use crate::language::Language;
use crate::startup::Startup;

/// The place of a notice among those of one runner's life: the first has 1, and no number is left out.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct NoticeNumber(pub u64);

impl NoticeNumber {
    /// Returns the number of the notice after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the number of the notice before this one; 0, which no notice has, before the first.
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// Which notices of a session's runner are taken: what they led to is stored. It is stored with that, so that whoever has the
/// session next knows which notices have yet to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TakenNotices {
    /// The runner that gave the notices.
    pub runner: RunnerId,
    /// The last notice that is taken; 0 where none is.
    pub up_to: NoticeNumber,
}

/// What a runner says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunnerNotice {
    /// The job printed text.
    Output {
        /// The job that ran.
        job: Option<JobId>,
        /// The stream that carried the text.
        stream: OutputStream,
        /// The text that was printed.
        text: String,
    },
    /// The job displayed something.
    Display {
        /// The job that ran.
        job: Option<JobId>,
        /// The content that was displayed.
        display: Box<Display>,
    },
    /// Code takes back what it has put out.
    Cleared {
        /// The job that ran.
        job: JobId,
        /// Whether something else takes its place at once.
        is_replaced: bool,
    },
    /// A kernel says something to front ends.
    Comm {
        /// The job that ran.
        job: Option<JobId>,
        /// The message that was published.
        message: Box<CommMessage>,
    },
    /// A kernel has done what a front end's message was for.
    CommTaken {
        /// The job that handled the message.
        job: JobId,
    },
    /// The tools of an agent are about to do something, and wait to hear whether the grant of the job allows it.
    Checks {
        /// The job that is at work.
        job: JobId,
        /// What the answer is given under.
        check: AskId,
        /// What they are about to do.
        operation: AskedOperation,
    },
    /// A job asks, and waits for the answer.
    Asks {
        /// The job that asks.
        job: JobId,
        /// The id of the new ask.
        ask: AskId,
        /// The question for the clients.
        question: Question,
        /// How long the answer may take, in milliseconds.
        timeout_ms: Option<u64>,
    },
    /// The application of the session's project runs, or runs no more.
    Application(ApplicationNotice),
    /// An agent says something, or has ended a job.
    Agent(AgentNotice),
    /// A job has ended.
    Finished {
        /// The job that ended.
        job: JobId,
        /// What came of it.
        report: JobReport,
    },
    /// The session's project was built, or could not be.
    Built {
        /// The job that built the project.
        job: JobId,
        /// What came of it.
        report: BuildReport,
    },
    /// It is gone. Always the last notice.
    Exited {
        /// How the worker's process ended.
        exit: WorkerExit,
        /// What is known of why.
        last_words: Option<LastWords>,
    },
}

/// What is known of why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastWords {
    /// Whose code brought it about.
    pub blame: Blame,
    /// Why, where that is known.
    pub reason: Option<String>,
    /// What the compiler said of the running job's code, where that ended the worker.
    pub diagnostics: Vec<Diagnostic>,
}

/// A runner that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerInfo {
    /// The language tool and its version.
    pub kernel: String,
    /// The runtime under it.
    pub runtime: String,
    /// The language that code is in, where the runner says it; else what the kind of the session tells counts.
    pub language: Option<Language>,
    /// The process id of the worker, where it is a process of this machine.
    pub pid: Option<u32>,
    /// What code rests on in it, as far as it tells: all that it refers to, once it has the session's definitions.
    pub references: Option<References>,
    /// What it brought in before the session's own code.
    pub startup: Option<Box<Startup>>,
}

/// What came of building a session's project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildReport {
    /// Whether there is something new to load, or else why not.
    pub built: Result<(), String>,
    /// What the compiler said.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the warm compiler did it, and no build.
    #[serde(default)]
    pub by_warm_compiler: bool,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobReport {
    /// How the job ended.
    pub ending: JobEnding,
    /// The result that the job returned.
    pub result: EvalResult,
    /// Whether it must run again to rebuild the session.
    pub changes_state: bool,
    /// How long it ran.
    pub took: Duration,
    /// All that the session's code rests on now, where that is not what the worker said last.
    pub references: Option<References>,
}

/// How a worker says a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum JobEnding {
    /// It ran to its end.
    Completed,
    /// The code has errors.
    Rejected,
    /// The code raised an exception that it did not catch.
    Raised(RaisedError),
    /// It yielded to an interrupt.
    Interrupted {
        /// How many bytes of the code had run to their end before, where that changed the session; else 0.
        kept: usize,
    },
}

impl JobEnding {
    /// What may be stored of how code ended that is withheld.
    pub(crate) fn withheld(self) -> Self {
        let hidden = || "withheld".to_owned();
        match self {
            Self::Raised(_) => Self::Raised(RaisedError {
                kind: hidden(),
                message: hidden(),
                stack: None,
                coloured_stack: None,
            }),
            Self::Interrupted { kept } => Self::Interrupted { kept: kept.min(1) },
            Self::Completed | Self::Rejected => self,
        }
    }
}
