//! Jobs: evals, the work of agents, and the commands that ask for them.

use crate::Sent;
use crate::view::agent::WorkView;
use crate::view::{CommandView, EvalView, SessionView};
use mainstay_model::{Admission, CommandId, CommandLine, Delivery, JobId, JobSpec, Prompt};
use mainstay_runner::AgentQuestion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

operations! {
    /// Asks a job to stop, or takes back a command that waits for its turn.
    "session/cancel" CancelSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// The command whose end is wanted; without it, that of the job that runs.
        #[serde(default)]
        target: Option<CommandId>,
        /// How long the job may take to stop before its worker is killed, in milliseconds; at most `cancel-longest-ms`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_ms: Option<u64>,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Cancelling;

    /// Runs code; answered when it has ended.
    "session/eval" Eval {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be run.
        code: String,
        /// The file whose text it is, absolute.
        #[serde(default)]
        file: Option<String>,
        /// The command line that the code is given, of F# and Python; without it, the session's own.
        #[serde(default)]
        command_line: Option<CommandLine>,
        /// Whether it, and what it gives and prints, is stored nowhere and told to who asked alone. It cannot wait.
        #[serde(default)]
        withheld: bool,
        /// What to do where the session cannot run it yet.
        #[serde(default)]
        admission: Admission,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> EvalView;

    /// Has something done that is no code, by an agent: a turn, in which it answers what is said to it, a compaction, a line of a shell, a
    /// setting; of a kernel: a rebuild of its project, or what a front end says in a comm. Answered when that has ended. What is said meanwhile is heard by `session/listen`,
    /// and in the events.
    "session/work" DoWork {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// What: `{"work": "turn", "prompt": {"text": "…"}}`, and so on.
        #[serde(flatten)]
        work: JobSpec,
        /// What to do where the session cannot do it yet. An idle agent is started for what waits.
        #[serde(default = "waiting")]
        admission: Admission,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> WorkView;

    /// Says something to an agent while it works.
    "session/steer" SteerSession {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// The prompt for the agent.
        prompt: Prompt,
        /// When it is to hear it: before its `next` step, or `atEnd`, when it would be done.
        hears: Delivery,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Has an agent pause in its turn before it does anything more, and ask how to go on. The ask is answered as any other; what is said is said
    /// to the agent, and an empty text lets it go on.
    "session/pause" PauseSession {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// Whose turn is meant: a command of the same principal. Without it, the turn that runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<CommandId>,
        /// What people are asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// What an agent that is there knows: its `models`, its `commands`, its `state`, its `statistics`; in its own words.
    "agent/question" AskAgent {
        /// Its session: its id, the end of it, or its name.
        session: String,
        /// The question for the agent.
        question: AgentQuestion,
    } -> Value;

    /// How far a command has come.
    "command/get" GetCommand {
        /// The id of the command.
        command: CommandId,
    } -> CommandView;
}

const fn waiting() -> Admission {
    Admission::Queue
}

/// What a cancel met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelling {
    /// The session whose job is cancelled.
    pub session: SessionView,
    /// The job that was asked to stop; none where the command still waited, and will not run.
    pub job: Option<JobId>,
}
