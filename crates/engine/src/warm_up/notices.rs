//! What a runner says, numbered.

use mainstay_model::{NoticeNumber, RunnerNotice};
use tokio::sync::mpsc;

/// The notices of one runner, each with its number.
pub(crate) struct Notices {
    said: mpsc::Receiver<RunnerNotice>,
    /// The number of what comes next.
    next: NoticeNumber,
    /// The last that is taken already: what is told again is passed over.
    taken: NoticeNumber,
}

impl Notices {
    /// Notices of which the first has this number, after those that are taken.
    pub(crate) fn after(taken: NoticeNumber, next: NoticeNumber, said: mpsc::Receiver<RunnerNotice>) -> Self {
        Self { said, next, taken }
    }

    /// The next notice; waits for it. None once the runner is gone. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<(NoticeNumber, RunnerNotice)> {
        loop {
            let notice = self.said.recv().await?;
            let number = self.next;
            self.next = number.next();
            if number > self.taken {
                return Some((number, notice));
            }
        }
    }

    /// The number of the notice that was given last, or the last that is taken.
    pub(super) fn last(&self) -> NoticeNumber {
        self.next.previous().max(self.taken)
    }
}
