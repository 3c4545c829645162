//! The session state machine. Source: seed 000, "Affordance-Driven Interaction".
//!
//! Two transitions stand beside the seed's: a worker can be lost at any time and is then replaced ([`Transition::WorkerLost`]),
//! and a session can be stopped ([`Transition::Stop`]), which leaves its transcript and ends its worker.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionState {
    /// No worker runs: not yet started, or stopped.
    Uninitialized,
    /// A worker starts, loads and replays.
    WarmingUp,
    /// The session waits for code.
    Ready,
    /// The session runs a job.
    Evaluating,
    /// A job runs and cannot go on without something from outside.
    Waiting(WaitReason),
    /// Broken until it is reset.
    Faulted,
}

/// What a waiting job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WaitReason {
    /// An answer to an ask.
    Ask,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Transition {
    /// From Uninitialized to WarmingUp.
    StartWarmUp,
    /// From WarmingUp to Ready.
    WarmUpCompleted,
    /// From WarmingUp to Faulted.
    WarmUpFailed,
    /// From Ready to Evaluating.
    StartEval,
    /// Evaluating, Waiting → Ready.
    EvalCompleted,
    /// Evaluating, Waiting → Ready: the job failed, the session is sound.
    EvalFailed,
    /// Evaluating, Waiting → Ready.
    EvalCancelled,
    /// From Evaluating to Waiting.
    StartWait(WaitReason),
    /// From Waiting to Evaluating.
    EndWait,
    /// Any state with a worker → WarmingUp: the worker is gone and will be replaced.
    WorkerLost,
    /// Any state but Uninitialized → Faulted: workers are lost too often.
    GiveUp,
    /// Ready, Faulted → WarmingUp.
    Reset,
    /// From any state to WarmingUp.
    HardReset,
    /// From any state to Uninitialized.
    Stop,
}

impl Transition {
    /// Every transition, for tables and tests.
    pub const ALL: [Self; 14] = [
        Self::StartWarmUp,
        Self::WarmUpCompleted,
        Self::WarmUpFailed,
        Self::StartEval,
        Self::EvalCompleted,
        Self::EvalFailed,
        Self::EvalCancelled,
        Self::StartWait(WaitReason::Ask),
        Self::EndWait,
        Self::WorkerLost,
        Self::GiveUp,
        Self::Reset,
        Self::HardReset,
        Self::Stop,
    ];
}

impl SessionState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 6] = [
        Self::Uninitialized,
        Self::WarmingUp,
        Self::Ready,
        Self::Evaluating,
        Self::Waiting(WaitReason::Ask),
        Self::Faulted,
    ];

    /// Its name, as in the seed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uninitialized => "Uninitialized",
            Self::WarmingUp => "WarmingUp",
            Self::Ready => "Ready",
            Self::Evaluating => "Evaluating",
            Self::Waiting(WaitReason::Ask) => "Waiting",
            Self::Faulted => "Faulted",
        }
    }

    /// Whether a job runs.
    pub const fn is_busy(self) -> bool {
        match self {
            Self::Evaluating | Self::Waiting(_) => true,
            Self::Uninitialized | Self::WarmingUp | Self::Ready | Self::Faulted => false,
        }
    }
}

impl std::fmt::Display for SessionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The state after `change`. Total: every pair has an answer.
///
/// # Errors
/// [`Error::InvalidTransition`] where the seed's table has no arrow.
pub fn transition(state: SessionState, change: Transition) -> Result<SessionState, Error> {
    use SessionState as S;
    use Transition as T;
    match (change, state) {
        (T::HardReset, _) => Ok(S::WarmingUp),
        (T::Stop, _) => Ok(S::Uninitialized),
        (T::StartWarmUp, S::Uninitialized) => Ok(S::WarmingUp),
        (T::WarmUpCompleted, S::WarmingUp) => Ok(S::Ready),
        (T::WarmUpFailed, S::WarmingUp) => Ok(S::Faulted),
        (T::StartEval, S::Ready) => Ok(S::Evaluating),
        (T::EvalCompleted | T::EvalFailed | T::EvalCancelled, S::Evaluating | S::Waiting(_)) => Ok(S::Ready),
        (T::StartWait(reason), S::Evaluating) => Ok(S::Waiting(reason)),
        (T::EndWait, S::Waiting(_)) => Ok(S::Evaluating),
        (T::WorkerLost, S::WarmingUp | S::Ready | S::Evaluating | S::Waiting(_)) => Ok(S::WarmingUp),
        (T::GiveUp, S::WarmingUp | S::Ready | S::Evaluating | S::Waiting(_)) => Ok(S::Faulted),
        (T::Reset, S::Ready | S::Faulted) => Ok(S::WarmingUp),
        (
            T::StartWarmUp
            | T::WarmUpCompleted
            | T::WarmUpFailed
            | T::StartEval
            | T::EvalCompleted
            | T::EvalFailed
            | T::EvalCancelled
            | T::StartWait(_)
            | T::EndWait
            | T::WorkerLost
            | T::GiveUp
            | T::Reset,
            S::Uninitialized | S::WarmingUp | S::Ready | S::Evaluating | S::Waiting(_) | S::Faulted,
        ) => Err(Error::InvalidTransition { state, change }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_reset_leads_from_everywhere_to_warming_up() {
        for state in SessionState::ALL {
            assert_eq!(transition(state, Transition::HardReset).unwrap(), SessionState::WarmingUp);
        }
    }

    #[test]
    fn the_arrows_are_those_of_the_seed_with_worker_loss_and_rest() {
        let mut table = String::new();
        for state in SessionState::ALL {
            for change in Transition::ALL {
                if let Ok(next) = transition(state, change) {
                    table.push_str(&format!("{state} --{change:?}--> {next}\n"));
                }
            }
        }
        insta::assert_snapshot!(table);
    }
}
