//! A command under way, and how far clients were told that it has come.

use std::sync::{Arc, Mutex, PoisonError};

use mainstay_model::{CommandId, Principal};

use super::command::PiCommand;
use super::frames::{self, Phase};
use super::shared::Shared;

/// How far a command's way has been told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReportedStage {
    Nothing,
    Accepted,
    Started,
}

/// A command under way, and how far its way has been told: by the task that waits for its end, or by the one that tells its events,
/// whichever hears of it first.
pub(super) struct RunningCommand {
    pub(super) command: Arc<PiCommand>,
    pub(super) id: CommandId,
    /// The connection that has it.
    pub(super) number: u64,
    /// How far its own client was told.
    pub(super) so_far: tokio::sync::Mutex<ReportedStage>,
    /// How far the other connections were.
    pub(super) others: Mutex<ReportedStage>,
}

impl RunningCommand {
    /// Tells the other connections that it has come so far, where they were not told yet.
    pub(super) fn reach_others(&self, shared: &Shared, principal: &Principal, reached: ReportedStage) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        for (step, phase) in
            [(ReportedStage::Accepted, Phase::Accepted), (ReportedStage::Started, Phase::Started)]
        {
            if *others < step && step <= reached {
                let frame = frames::lifecycle(phase, &self.command, &self.id, None);
                shared.tell_others(principal, self.number, frame.to_string());
                *others = step;
            }
        }
    }
}
