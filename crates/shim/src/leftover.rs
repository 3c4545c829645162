//! What a shim has left that ended while no daemon was there: what its runner had said and nobody had taken. The next daemon takes it in
//! as if the runner had just said it, and hears last that the runner is gone.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_model::{
    AskId, CommMessage, Diagnostic, Epoch, Error, JobId, JobSpec, NoticeNumber, QueuedPrompt, RunnerId,
    RunnerInfo, RunnerNotice, Seq, SessionId, TextPosition, WorkerExit,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Completions, FoundRunner, GivenToRunner, Kernel, Process, ResourceUsage,
    Runner, StartedRunner, StoredProgress, Submission,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::ending::lives;
use crate::folder::ShimFolder;
use crate::host::read_frames;
use crate::messages::{FromShim, RunnerDescription, decode};

/// Notices on their way to the session.
const NOTICES: usize = 64;

/// Whose notices lie in the file beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Leftover {
    pub(crate) session: SessionId,
    pub(crate) runner: RunnerDescription,
    /// The number of the first notice.
    pub(crate) next: NoticeNumber,
    pub(crate) given: GivenToRunner,
    /// The event up to which the session was known to be stored.
    pub(crate) stored: Seq,
    /// The newest epoch of those who had the session.
    pub(crate) epoch: Epoch,
}

impl Leftover {
    pub(crate) fn write(&self, folder: &ShimFolder) -> std::io::Result<()> {
        // Secrets are for a job that runs, and none does any more.
        let given = GivenToRunner { secrets: Vec::new(), ..self.given.clone() };
        let text = serde_json::to_vec_pretty(&Self { given, ..self.clone() })?;
        let path = folder.leftover();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        folder.write(name, &text)
    }

    /// Removes what this runner has left, unless another has moved in meanwhile.
    fn remove(folder: &ShimFolder, runner: RunnerId) {
        let left = std::fs::read(folder.leftover()).ok();
        let left: Option<Self> = left.and_then(|text| serde_json::from_slice(&text).ok());
        if left.is_some_and(|left| left.runner.id == runner)
            && !folder.record().is_some_and(|record| lives(&record))
        {
            folder.remove();
        }
    }

    /// What a session's shim has left; none where it has left nothing, or not for who has so much of the session.
    pub(crate) fn of(folder: &ShimFolder, stored: StoredProgress, epoch: Epoch) -> Option<FoundRunner> {
        let left: Self = serde_json::from_slice(&std::fs::read(folder.leftover()).ok()?).ok()?;
        if left.runner.id != stored.taken.runner || left.stored > stored.last_seq || left.epoch >= epoch {
            return None;
        }
        let frames = read_frames(&folder.left_notices()).inspect_err(|error| {
            tracing::error!(%error, session = %left.session, "what a shim has left cannot be read");
        });
        let Self { runner: RunnerDescription { id, is_agent, info, .. }, next: first, given, .. } = left;
        let next = first.max(stored.taken.up_to.next());
        let is_taken = usize::try_from(next.0 - first.0).unwrap_or(usize::MAX);
        let frames = frames.ok()?;
        // A gap would be taken for notices that led to nothing.
        let Some(notices) =
            frames.iter().skip(is_taken).map(|frame| notice(frame)).collect::<Option<Vec<_>>>()
        else {
            tracing::error!(session = %left.session, "what a shim of another version has left is not understood");
            return None;
        };
        let gone = Arc::new(Gone { id, info, folder: folder.clone(), last: last_of(next, notices.len()) });
        let runner = if is_agent { Runner::Agent(gone) } else { Runner::Kernel(gone) };
        let (tell, heard) = mpsc::channel(NOTICES);
        tokio::spawn(async move {
            let has_exit = notices.iter().any(|notice| matches!(notice, RunnerNotice::Exited { .. }));
            let exited = RunnerNotice::Exited { exit: WorkerExit::Unknown, last_words: None };
            for notice in notices.into_iter().chain((!has_exit).then_some(exited)) {
                if tell.send(notice).await.is_err() {
                    return;
                }
            }
        });
        let started = StartedRunner { id, runner, next, notices: heard };
        Some(FoundRunner { started, given, is_gone: true })
    }
}

fn notice(frame: &[u8]) -> Option<RunnerNotice> {
    match decode::<FromShim>(frame) {
        Ok(FromShim::Notice { notice, .. }) => Some(notice),
        Ok(_) | Err(_) => None,
    }
}

fn last_of(next: NoticeNumber, count: usize) -> NoticeNumber {
    NoticeNumber(next.0.saturating_sub(1) + count as u64)
}

/// A runner that is gone, of which notices are left. It takes nothing; that it is gone is the last notice.
struct Gone {
    id: RunnerId,
    info: RunnerInfo,
    folder: ShimFolder,
    /// The last notice that is left.
    last: NoticeNumber,
}

fn gone<T>() -> Result<T, Error> {
    Err(Error::WorkerFailed { reason: "it ended while no daemon was there".to_owned() })
}

#[async_trait]
impl Process for Gone {
    fn info(&self) -> RunnerInfo {
        RunnerInfo { pid: None, ..self.info.clone() }
    }

    async fn answer(&self, _: AskAnswer) {}

    async fn interrupt(&self) {}

    fn acknowledge(&self, up_to: NoticeNumber, _: Seq) {
        if up_to >= self.last {
            Leftover::remove(&self.folder, self.id);
        }
    }

    fn outlives_daemon(&self) -> bool {
        true
    }

    fn kill(&self) {}

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Kernel for Gone {
    async fn run(&self, _: Submission) {}

    async fn build(&self, _: JobId) {}

    async fn take_comm(&self, _: JobId, _: CommMessage) {}

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        gone()
    }

    async fn check(&self, _: String, _: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        gone()
    }

    async fn complete(&self, _: String, _: TextPosition) -> Result<Completions, Error> {
        gone()
    }

    async fn query(&self, _: KernelQuery) -> Result<KernelAnswer, Error> {
        gone()
    }
}

#[async_trait]
impl Agent for Gone {
    async fn work(&self, _: JobId, _: JobSpec, _: bool) {}

    async fn steer(&self, _: QueuedPrompt, _: Seq) {}

    async fn pause(&self, _: JobId, _: AskId) {}

    async fn tell(&self, _: AgentQuestion) -> Result<Value, Error> {
        gone()
    }
}
