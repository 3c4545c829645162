//! Which notices of the worker were heard, which are taken, and which are acknowledged.
//!
//! A notice is *taken* by the append that stores the last of what it led to: the number goes into that append's transaction. So
//! whoever has the session next knows what it has yet to be told, and nothing is stored twice or not at all. What is held back to be
//! joined with what follows is not taken; what one notice led to is either all in one append or all held back.

use mainstay_model::{NoticeNumber, RunnerId, TakenNotices};

use super::SessionTask;
use crate::commit::Step;

/// What was heard of one runner's notices.
pub(super) struct HeardNotices {
    runner: RunnerId,
    /// The newest notice that was heard.
    last: NoticeNumber,
    /// Up to which notice the runner was sent an acknowledgement.
    acknowledged: NoticeNumber,
}

impl HeardNotices {
    /// Of a runner whose notices up to one are taken and acknowledged.
    pub(super) fn after(taken: TakenNotices) -> Self {
        let TakenNotices { runner, up_to } = taken;
        Self { runner, last: up_to, acknowledged: up_to }
    }

    /// Of a runner that has just been started.
    pub(super) fn of_new(runner: RunnerId) -> Self {
        Self::after(TakenNotices { runner, up_to: NoticeNumber::default() })
    }
}

impl SessionTask {
    /// The worker's notices up to this one are heard with what follows.
    pub(super) fn hear_up_to(&mut self, number: NoticeNumber) {
        if let Some(heard) = &mut self.heard {
            heard.last = number;
        }
    }

    /// Which notices are taken once all is stored that was decided so far. What is held back is of the newest notice alone, since
    /// nothing is recorded before what was held back of earlier ones.
    pub(super) fn taken(&self) -> Option<TakenNotices> {
        let HeardNotices { runner, last, .. } = *self.heard.as_ref()?;
        let up_to = if self.holds_output() { last.previous() } else { last };
        Some(TakenNotices { runner, up_to })
    }

    /// Has the worker's notices acknowledged once all that they led to is durable. What is held back for what follows is not
    /// yet on its way there.
    pub(super) fn acknowledge(&mut self) {
        if self.holds_output() {
            return;
        }
        if let Some(runner) = self.runner()
            && let Some(heard) = &mut self.heard
            && heard.last > heard.acknowledged
        {
            heard.acknowledged = heard.last;
            self.commits.send(Step::Acknowledge { runner, up_to: heard.last }).ok();
        }
    }
}
