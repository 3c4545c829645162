//! A command that was handed over to its session, and what a call that is repeated goes on with.

use std::collections::BTreeMap;

use mainstay_model::{AskId, CommandId, PendingAsk, Session, SessionId};
use serde::{Deserialize, Serialize};

use mainstay_formats::notebook::runs::CellRun;

/// What is said of what comes after other code.
pub(super) const WAITS_TURN: &str = "other code runs; this waits for its turn";
/// A command that was handed over to its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunningCommand {
    pub(super) session: SessionId,
    pub(super) command: CommandId,
    /// Where it runs a cell of a notebook, what the same call ran of it, this one last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cells: Option<Vec<CellRun>>,
}

/// What a repeated call goes on with.
pub(super) struct Continued {
    pub(super) running: RunningCommand,
    /// What it brought that is no answer.
    pub(super) invalid: InvalidAnswers,
}

/// Why answers are none, by the ask.
pub(super) type InvalidAnswers = BTreeMap<AskId, String>;

/// What a command asks that runs.
pub(super) fn asks_of(session: &Session, is_of: impl Fn(&CommandId) -> bool) -> Vec<PendingAsk> {
    let Some(running) = session.running().filter(|running| is_of(&running.command)) else {
        return Vec::new();
    };
    session.asks.iter().filter(|pending| pending.is_of_job(running.job)).cloned().collect()
}
