//! What a session's task begins with that an earlier daemon left.

use mainstay_model::TakenNotices;
use mainstay_runner::StartedRunner;
use serde_json::Value;

use crate::claims::CommandKey;
use crate::lane::Queued;
use crate::named_prompts::NamedPrompts;
use crate::output::PutOutSoFar;
use crate::worker::Order;

/// What a session's task begins with that an earlier one left.
pub(crate) struct Inherited {
    /// The commands that wait for their turn.
    pub(crate) lane: Vec<Queued>,
    /// The command of a job that was cut off, where the log has an outcome under its id already: it gets no second.
    pub(crate) answered: Option<CommandKey>,
    /// What is queued for an agent.
    pub(crate) prompts: NamedPrompts,
    /// The runner that has outlived the daemon that started it.
    pub(crate) adopted: Option<AdoptedRunner>,
}

/// What had outlived its daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spared {
    Nothing,
    /// The runner; the job that ran, if any, was never given to it.
    Runner,
    /// The runner, and the job that ran in it, if any.
    RunnerAndJob,
}

impl Inherited {
    /// What of it had outlived its daemon.
    pub(crate) fn spared(&self) -> Spared {
        match &self.adopted {
            None => Spared::Nothing,
            Some(adopted) if adopted.is_job_lost => Spared::Runner,
            Some(_) => Spared::RunnerAndJob,
        }
    }
}

/// A runner that a session's task goes on with.
pub(crate) struct AdoptedRunner {
    pub(crate) started: StartedRunner,
    /// Which of its notices are taken already.
    pub(crate) taken: TakenNotices,
    /// What the running job was given last, which may not have come there.
    pub(crate) given: Vec<Order>,
    /// How much is stored of what the running job has put out.
    pub(crate) put_out: PutOutSoFar,
    /// The secrets that the running job was answered.
    pub(crate) secrets: Vec<Value>,
    /// Whether the runner has ended meanwhile, so that it is given nothing more.
    pub(crate) is_gone: bool,
    /// Whether the session has a running job that the runner was never given, and whose code is stored nowhere.
    pub(crate) is_job_lost: bool,
}
