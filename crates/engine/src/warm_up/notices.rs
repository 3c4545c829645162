//! What a runner says, numbered.

use mainstay_model::{NoticeNumber, RunnerNotice};
use tokio::sync::mpsc;

/// The notices of one runner, each with its number.
pub(super) struct Notices {
    said: mpsc::Receiver<RunnerNotice>,
    last: NoticeNumber,
}

impl From<mpsc::Receiver<RunnerNotice>> for Notices {
    /// Those of a runner that has just been started.
    fn from(said: mpsc::Receiver<RunnerNotice>) -> Self {
        Self { said, last: NoticeNumber::default() }
    }
}

impl Notices {
    /// The next notice; waits for it. None once the runner is gone. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<(NoticeNumber, RunnerNotice)> {
        let notice = self.said.recv().await?;
        self.last = self.last.next();
        Some((self.last, notice))
    }
}
