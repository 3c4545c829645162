//! What may be done now. Source: seed 000, the affordance table.
//!
//! An action is *offered* (an agent is told of it), *permitted* (it works but is not advertised: the escape hatches and
//! plain reads), or *refused*, and then the refusal says what is offered and what would make the action possible.
//!
//! What is offered is the seed's table, and Start where it has none, for an idle session. What is permitted goes beyond
//! it, in nine ways:
//! - HardReset is permitted everywhere. The seed's table withholds it while a job runs, its note and its state machine
//!   call it valid from any state; an escape hatch that is shut when it is needed is none.
//! - Stop, Rename, Compact, Label and Delete, which the seed does not know, are permitted everywhere.
//! - Events may be read before the session is Ready: that is how one watches it warm up.
//! - Explore, a query as check and complete are, is permitted while a job runs.
//! - Test and Review, which the seed does not know, are permitted where Explore is: finding tests is such a query, and so is looking at the
//!   syntax of code. Running tests is an Eval besides.
//! - Complete and Explore are permitted before the session is Ready, once there is a worker: they know what has run again so
//!   far. Check is not: it would call wrong what is only not there yet.
//! - Refresh, which the seed does not know, and Rebuild, which is a hard reset to it, are permitted where the session is Ready.
//! - Pause, which the seed does not know, is permitted while an agent works.
//! - Comm, which the seed does not know, is permitted where the session is Ready: programs send it, and it is of no use to an agent.
//! - Ask and Answer, which the seed does not know, are permitted everywhere.
//!
//! Waiting, which the seed does not know either, affords what Evaluating does, since its job runs, and an answer. Elsewhere
//! asks are raised and answered too: a client's ask waits whatever the session does.

use serde::{Deserialize, Serialize};

use crate::access::Right;
use crate::capability::{Capabilities, Capability};
use crate::state::SessionState;

/// Something a client may want of a session.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Stop the running job.
    Cancel,
    /// Run code in the session.
    Eval,
    /// Have an agent do something.
    Prompt,
    /// Say something to an agent that works.
    Steer,
    /// Have an agent that works pause, and ask how to go on.
    Pause,
    /// Type-check code without running it.
    Check,
    /// Complete at a cursor.
    Complete,
    /// List the members of a namespace, module or type.
    Explore,
    /// Find and run tests.
    Test,
    /// Say what in code could be written more plainly.
    Review,
    /// Read the session's events.
    Events,
    /// Read the session's status.
    Status,
    /// Start afresh in the same worker.
    Reset,
    /// Start afresh in a new worker.
    HardReset,
    /// Build the session's project, then start afresh with it.
    Rebuild,
    /// Have a new worker, with the definitions run again against what is there now.
    Refresh,
    /// Start a worker for an idle session.
    Start,
    /// Stop the session, so that it is idle.
    Stop,
    /// Give the session another name.
    Rename,
    /// Put entries of another session into the transcript.
    Merge,
    /// Delete the session for good.
    Delete,
    /// Have a summary stand for the beginning of the transcript.
    Compact,
    /// Give an entry of the transcript a label.
    Label,
    /// Say something to a kernel beside code, as a front end that shows its widgets does.
    Comm,
    /// Raise an ask for the clients.
    Ask,
    /// Answer an ask that waits.
    Answer,
}

/// Whether an action may be taken in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Availability {
    /// It works, and clients are told of it.
    Offered,
    /// It works, and is not advertised.
    Permitted,
    /// It does not work now.
    Refused,
}

impl Action {
    /// Every action, in the order in which they are listed: what is most wanted while a job runs comes first.
    pub const ALL: [Self; 26] = [
        Self::Answer,
        Self::Cancel,
        Self::Steer,
        Self::Pause,
        Self::Eval,
        Self::Prompt,
        Self::Check,
        Self::Complete,
        Self::Explore,
        Self::Test,
        Self::Review,
        Self::Events,
        Self::Status,
        Self::Reset,
        Self::HardReset,
        Self::Rebuild,
        Self::Refresh,
        Self::Start,
        Self::Stop,
        Self::Rename,
        Self::Merge,
        Self::Delete,
        Self::Compact,
        Self::Label,
        Self::Comm,
        Self::Ask,
    ];

    /// The table of actions: the name in messages, who may take it, and what the session must be able to do.
    const fn row(self) -> (&'static str, Right, Option<Capability>) {
        match self {
            Self::Cancel => ("cancel", Right::Drive, None),
            Self::Eval => ("eval", Right::Drive, Some(Capability::Code)),
            Self::Prompt => ("prompt", Right::Drive, Some(Capability::Conversation)),
            Self::Steer => ("steer", Right::Drive, Some(Capability::Conversation)),
            Self::Pause => ("pause", Right::Drive, Some(Capability::Conversation)),
            Self::Check => ("check", Right::Drive, Some(Capability::Code)),
            Self::Complete => ("complete", Right::Drive, Some(Capability::Code)),
            Self::Explore => ("explore", Right::Drive, Some(Capability::Code)),
            Self::Test => ("test", Right::Drive, Some(Capability::Tests)),
            Self::Review => ("review", Right::Drive, Some(Capability::Review)),
            Self::Events => ("events", Right::See, None),
            Self::Status => ("status", Right::See, None),
            Self::Reset => ("reset", Right::Drive, None),
            Self::HardReset => ("hardReset", Right::Drive, None),
            Self::Rebuild => ("rebuild", Right::Drive, Some(Capability::Code)),
            Self::Refresh => ("refresh", Right::Drive, Some(Capability::Code)),
            Self::Start => ("start", Right::Drive, None),
            Self::Stop => ("stop", Right::Drive, None),
            Self::Rename => ("rename", Right::Drive, None),
            Self::Merge => ("merge", Right::Drive, None),
            Self::Delete => ("delete", Right::Own("delete a session of another"), None),
            Self::Compact => ("compact", Right::Drive, None),
            Self::Label => ("label", Right::Drive, None),
            Self::Comm => ("comm", Right::Drive, Some(Capability::Comms)),
            Self::Ask => ("ask", Right::Drive, None),
            Self::Answer => ("answer", Right::Drive, None),
        }
    }

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// What a principal must have to take it.
    pub const fn right(self) -> Right {
        self.row().1
    }

    /// What a session must be able to do for it; nothing where every session knows it.
    pub const fn needs(self) -> Option<Capability> {
        self.row().2
    }

    /// Whether sessions that can do this know it.
    pub fn is_of(self, capabilities: Capabilities) -> bool {
        self.needs().is_none_or(|needed| capabilities.has(needed))
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Whether `action` may be taken in `state`. Total.
pub const fn availability(state: SessionState, action: Action) -> Availability {
    use Action as A;
    use Availability::{Offered, Permitted, Refused};
    use SessionState as S;
    match (state, action) {
        (_, A::Status) => Offered,
        (_, A::Stop | A::Rename | A::Compact | A::Label | A::Delete | A::Ask) => Permitted,

        (S::Uninitialized | S::Ready, A::Merge) => Permitted,
        (S::WarmingUp | S::Evaluating | S::Waiting(_) | S::Faulted, A::Merge) => Refused,

        (S::Waiting(_), A::Answer) => Offered,
        (S::Uninitialized | S::WarmingUp | S::Ready | S::Evaluating | S::Faulted, A::Answer) => Permitted,

        (S::Uninitialized, A::Start) => Offered,
        (S::WarmingUp | S::Ready | S::Evaluating | S::Waiting(_) | S::Faulted, A::Start) => Refused,

        (S::Ready | S::Evaluating | S::Waiting(_) | S::Faulted, A::Events) => Offered,
        (S::Uninitialized | S::WarmingUp, A::Events) => Permitted,

        (S::Ready | S::Faulted, A::HardReset) => Offered,
        (S::Uninitialized | S::WarmingUp | S::Evaluating | S::Waiting(_), A::HardReset) => Permitted,

        (S::Ready | S::Faulted, A::Reset) => Offered,
        (S::Uninitialized | S::WarmingUp | S::Evaluating | S::Waiting(_), A::Reset) => Refused,

        (S::Ready, A::Rebuild | A::Refresh | A::Comm) => Permitted,
        (
            S::Uninitialized | S::WarmingUp | S::Evaluating | S::Waiting(_) | S::Faulted,
            A::Rebuild | A::Refresh | A::Comm,
        ) => Refused,

        (S::Ready, A::Eval | A::Explore | A::Prompt) => Offered,
        (
            S::Uninitialized | S::WarmingUp | S::Evaluating | S::Waiting(_) | S::Faulted,
            A::Eval | A::Prompt,
        ) => Refused,

        (S::Evaluating | S::Waiting(_), A::Steer) => Offered,
        // It hears it once it is there.
        (S::Uninitialized | S::WarmingUp | S::Ready, A::Steer) => Permitted,
        (S::Faulted, A::Steer) => Refused,

        (S::Evaluating | S::Waiting(_), A::Pause) => Permitted,
        (S::Uninitialized | S::WarmingUp | S::Ready | S::Faulted, A::Pause) => Refused,

        (S::Ready, A::Test | A::Review) => Permitted,
        (S::WarmingUp | S::Evaluating | S::Waiting(_), A::Explore | A::Test | A::Review) => Permitted,
        (S::Uninitialized | S::Faulted, A::Explore | A::Test | A::Review) => Refused,

        (S::Ready | S::Evaluating | S::Waiting(_), A::Check | A::Complete) => Offered,
        (S::WarmingUp, A::Complete) => Permitted,
        (S::WarmingUp, A::Check) => Refused,
        (S::Uninitialized | S::Faulted, A::Check | A::Complete) => Refused,

        (S::Evaluating | S::Waiting(_), A::Cancel) => Offered,
        (S::Uninitialized | S::WarmingUp | S::Ready | S::Faulted, A::Cancel) => Refused,
    }
}

/// How a request comes to the action it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is carried out now, or refused.
    AtOnce,
    /// It starts an idle session, and waits while that warms up.
    Started,
    /// The same, and while a job runs it waits for its turn. While that job waits for an answer it is refused.
    InTurn,
}

/// Whether a request for `action` that comes to it like this is carried out in `state`, now or later. Total.
pub const fn reaches(state: SessionState, action: Action, reach: Reach) -> bool {
    use SessionState as S;
    const fn is_available(state: SessionState, action: Action) -> bool {
        !matches!(availability(state, action), Availability::Refused)
    }
    match (reach, state) {
        (Reach::Started | Reach::InTurn, S::Uninitialized | S::WarmingUp)
        | (Reach::InTurn, S::Evaluating) => is_available(S::Ready, action),
        (Reach::AtOnce | Reach::Started, _) | (Reach::InTurn, S::Ready | S::Waiting(_) | S::Faulted) => {
            is_available(state, action)
        }
    }
}

/// The actions that clients are told of in `state` of a session that can do this, in the order of [`Action::ALL`].
pub fn offered(state: SessionState, capabilities: Capabilities) -> Vec<Action> {
    let is_offered =
        |action: &Action| action.is_of(capabilities) && availability(state, *action) == Availability::Offered;
    Action::ALL.into_iter().filter(is_offered).collect()
}

/// What would make a refused action possible: one sentence a client can act on.
pub const fn remedy(state: SessionState, action: Action) -> &'static str {
    match (state, action) {
        (
            SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_),
            Action::Start,
        ) => "The session has been started already.",
        (
            SessionState::Uninitialized
            | SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Faulted,
            Action::Cancel,
        ) => "Nothing runs; there is nothing to cancel.",
        (
            SessionState::Uninitialized
            | SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Faulted,
            Action::Pause,
        ) => "The agent does nothing that could be paused; say something to it first.",
        (SessionState::Uninitialized, _) => "Start the session first.",
        (SessionState::WarmingUp, _) => "Wait until the session is Ready.",
        (SessionState::Ready, _) => "It can be done now.",
        (SessionState::Faulted, Action::Rebuild) => {
            "Hard reset the session, then build: either drops its definitions. Where what it loads breaks it again, build the \
             project outside of Mainstay first."
        }
        (SessionState::Evaluating, _) => "Wait for the running job to end, or cancel it.",
        (SessionState::Waiting(_), _) => "Answer what the running job asks, or cancel it.",
        (SessionState::Faulted, _) => {
            "Stop the session and start it again, which keeps its definitions; or reset it, which drops them."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SessionKind;
    use Action as A;

    /// The seed's table, in its order of rows; load_script is an eval here, and get_available_projects a status.
    #[test]
    fn what_is_offered_is_what_the_seed_lists() {
        let table = [
            (SessionState::Uninitialized, vec![A::Status, A::Start]),
            (SessionState::WarmingUp, vec![A::Status]),
            (
                SessionState::Ready,
                vec![
                    A::Eval,
                    A::Check,
                    A::Complete,
                    A::Explore,
                    A::Events,
                    A::Status,
                    A::Reset,
                    A::HardReset,
                ],
            ),
            (SessionState::Evaluating, vec![A::Cancel, A::Check, A::Complete, A::Events, A::Status]),
            (SessionState::Faulted, vec![A::Events, A::Status, A::Reset, A::HardReset]),
        ];
        for (state, actions) in table {
            assert_eq!(offered(state, Capabilities::of_kind(&SessionKind::fsharp())), actions, "{state}");
        }
    }

    #[test]
    fn the_escape_hatch_is_never_refused() {
        for state in SessionState::ALL {
            assert_ne!(availability(state, A::HardReset), Availability::Refused, "{state}");
            assert_ne!(availability(state, A::Stop), Availability::Refused, "{state}");
        }
    }

    #[test]
    fn only_fsharp_finds_tests_and_is_reviewed() {
        let kinds = [SessionKind::fsharp(), SessionKind::new("python").unwrap(), SessionKind::agent()];
        for action in [A::Test, A::Review] {
            assert_eq!(
                kinds.clone().map(|kind| action.is_of(Capabilities::of_kind(&kind))),
                [true, false, false]
            );
        }
    }

    #[test]
    fn a_request_that_starts_the_session_or_waits_is_carried_out_where_one_at_once_is_refused() {
        use Reach::{AtOnce, InTurn, Started};
        let reached = |action, reach| SessionState::ALL.map(|state| reaches(state, action, reach));
        assert_eq!(reached(A::Eval, AtOnce), [false, false, true, false, false, false]);
        assert_eq!(reached(A::Eval, Started), [true, true, true, false, false, false]);
        assert_eq!(reached(A::Eval, InTurn), [true, true, true, true, false, false]);
        assert_eq!(reached(A::Check, AtOnce), [false, false, true, true, true, false]);
        assert_eq!(reached(A::Check, Started), [true, true, true, true, true, false]);
        assert_eq!(reached(A::Cancel, Started), reached(A::Cancel, AtOnce));
    }

    #[test]
    fn cancel_is_offered_exactly_while_a_job_runs() {
        for state in SessionState::ALL {
            assert_eq!(availability(state, A::Cancel) == Availability::Offered, state.is_busy(), "{state}");
        }
    }
}
