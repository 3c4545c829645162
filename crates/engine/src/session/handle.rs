//! The way to a session's task: the requests that it serves, and who keeps it alive.

use std::sync::{Arc, OnceLock};

use mainstay_log::Epoch;
use mainstay_model::{
    Action, Command, CommandFingerprint, CommandId, Diagnostic, Error, Notice, Principal, Seq, Session, Swap,
    TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{AgentQuestion, Completions, Kernel, ResourceUsage};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use crate::inherited::Spared;
use crate::pending_commands::Reply;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::trace::CommandTrace;

/// The kernel of a session that is up and has its definitions.
pub(crate) type ReadyKernel = Option<Arc<dyn Kernel>>;

/// What a session's task is asked.
pub(crate) enum Request {
    /// A command, and who waits for its outcome.
    Submit {
        command: Command,
        fingerprint: CommandFingerprint,
        reply: Reply,
        /// The client whose connection asks for it.
        asked_by: Option<u64>,
        trace: CommandTrace,
    },
    /// Check code without running it.
    Check { code: String, file: Option<String>, reply: oneshot::Sender<Result<Vec<Diagnostic>, Error>> },
    /// Complete at a cursor.
    Complete { code: String, cursor: TextPosition, reply: oneshot::Sender<Result<Completions, Error>> },
    /// What a kernel knows of what its session has.
    Query { query: KernelQuery, reply: oneshot::Sender<Result<KernelAnswer, Error>> },
    /// Have the project's code run as these files have it now.
    Swap { files: Vec<String>, reply: oneshot::Sender<Result<Option<Swap>, Error>> },
    /// Whether the session has a worker that does something now.
    Offers { action: Action, reply: oneshot::Sender<Result<(), Error>> },
    /// The kernel, where it is up and runs nothing.
    Kernel { reply: oneshot::Sender<ReadyKernel> },
    /// What an agent says of itself.
    Question { question: AgentQuestion, reply: oneshot::Sender<Result<Value, Error>> },
    /// What the worker uses.
    Usage { reply: oneshot::Sender<Option<ResourceUsage>> },
    /// Something became known from outside.
    Hear { notice: Notice },
    /// The job that gave a command its task has come to its end, and the command is to stop.
    ParentEnded { principal: Principal, command: CommandId, error: Error },
    /// The daemon is about to go down: what waits and what comes is turned away; answered when nothing runs any more.
    Drain { reply: oneshot::Sender<()> },
    /// Another daemon has taken the session over: the task ends, with its worker.
    TakenOver,
    /// The daemon goes down; answered when the session is idle.
    ShutDown { reply: oneshot::Sender<()> },
    /// The daemon goes down, and another adopts what outlives it; answered when all that was heard of it is on its way to the log.
    LetGo { reply: oneshot::Sender<()> },
}

/// The way to a session's task. As long as someone holds one, the task stays.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    pub(super) requests: mpsc::Sender<Envelope>,
    /// The session as committed.
    pub(crate) visible: watch::Receiver<Arc<Session>>,
    pub(super) ending: Ending,
}

/// Why a session's task ended, where that is not the store's failure: whoever waits for an answer of it is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending(Arc<OnceLock<Error>>);

impl Ending {
    /// The task ends since another has the session.
    pub(crate) fn note_owned(&self) {
        // What ends a task first is why it ends.
        self.0.set(Error::SessionOwned).ok();
    }

    /// Returns why the task ended.
    pub(crate) fn reason(&self) -> Option<Error> {
        self.0.get().cloned()
    }
}

/// What the engine has of a session's task. As long as the door is open, the task stays: it opens it while the session is not
/// idle, so an idle session costs nothing.
pub(crate) struct Entry {
    pub(super) requests: mpsc::WeakSender<Envelope>,
    pub(super) visible: watch::Receiver<Arc<Session>>,
    pub(super) ending: Ending,
    /// How many commits are on their way to the session as committed.
    pub(super) on_their_way: Arc<AtomicU64>,
    /// Under which epoch the task appends.
    pub(super) epoch: Epoch,
    /// The session's newest event when the task began: what comes later the task appends itself.
    pub(super) after: Seq,
    /// What the task went on with that had outlived its daemon.
    pub(crate) spared: Spared,
    pub(super) _door: Arc<KeepAlive>,
}

/// Has the way to a task while it is to stay.
pub(super) type KeepAlive = Mutex<Option<mpsc::Sender<Envelope>>>;

/// A request, with what keeps the task until it has served it.
pub(super) struct Envelope {
    pub(super) request: Request,
    pub(super) door: mpsc::Sender<Envelope>,
}

impl SessionHandle {
    /// Sends the task a request; says whether it is there to hear it.
    pub(crate) async fn send(&self, request: Request) -> bool {
        self.requests.send(Envelope { request, door: self.requests.clone() }).await.is_ok()
    }

    /// Ends the task of a session that another daemon has taken over. Done when the last of its commits is through.
    pub(crate) async fn taken_over(mut self) {
        self.send(Request::TakenOver).await;
        // The sender goes with the committer.
        while self.visible.changed().await.is_ok() {}
    }

    /// What says why the task ended once it has.
    pub(crate) fn ending(&self) -> Ending {
        self.ending.clone()
    }

    /// Whether the task takes requests.
    pub(crate) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }
}

/// A session's task, as who passes on the commits of others sees it.
pub(crate) struct OwnTask {
    pub(crate) handle: SessionHandle,
    pub(crate) epoch: Epoch,
    pub(crate) after: Seq,
}

impl Entry {
    /// The session as the log has it now, where that is known here: it has a task, nothing is on its way to the log, and
    /// nobody else appends to it.
    pub(crate) fn as_stored(&self) -> Option<Arc<Session>> {
        self.upgrade()?;
        // First: what a client may have read in the log is in what is visible by now.
        let is_all_there = self.on_their_way.load(Ordering::Acquire) == 0;
        is_all_there.then(|| Arc::clone(&self.visible.borrow()))
    }

    /// The task, while there is one that takes requests, with what tells its commits from those of others.
    pub(crate) fn task(&self) -> Option<OwnTask> {
        self.upgrade().map(|handle| OwnTask { handle, epoch: self.epoch, after: self.after })
    }

    /// The way to the task, while there is one that takes requests.
    pub(crate) fn upgrade(&self) -> Option<SessionHandle> {
        let (requests, visible, ending) =
            (self.requests.upgrade()?, self.visible.clone(), self.ending.clone());
        let handle = SessionHandle { requests, visible, ending };
        handle.is_open().then_some(handle)
    }
}

/// Closes a mailbox and drops what is in it, and what was on its way there. Dropping the mailbox alone would leave the latter, whose
/// senders would wait for ever: each has the way to the mailbox with it, and so keeps it.
pub(super) async fn turn_away_all(mut mailbox: mpsc::Receiver<Envelope>) {
    mailbox.close();
    while mailbox.recv().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_was_about_to_send_when_a_mailbox_closes_is_not_left_waiting() {
        let (requests, mailbox) = mpsc::channel::<Envelope>(2);
        let envelope = |reply| Envelope { request: Request::Drain { reply }, door: requests.clone() };
        let (reply, early) = oneshot::channel();
        requests.send(envelope(reply)).await.ok().unwrap();
        let place = requests.reserve().await.unwrap();
        let closing = tokio::spawn(turn_away_all(mailbox));
        requests.closed().await;
        let (reply, late) = oneshot::channel();
        place.send(envelope(reply));
        assert!(early.await.is_err());
        assert!(late.await.is_err());
        closing.await.unwrap();
    }
}
