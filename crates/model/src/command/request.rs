//! What is known of every session command: the rules by which it is admitted, and what follows from it.

use uuid::Uuid;

use super::SessionCommand;
use crate::access::Right;
use crate::affordance::Action;
use crate::decide::{Draft, Identity};
use crate::error::Error;
use crate::event::{Deadline, Metadata};
use crate::grant::Grants;
use crate::limits::Limits;
use crate::outcome::Response;

/// A session command: each has a file of its own, which implements this.
pub(crate) trait Request {
    /// The rules by which it is admitted.
    fn rules(&self) -> Rules;

    /// Checks what can be checked without the session.
    fn validate(&self, _: &Limits) -> Result<(), Error> {
        Ok(())
    }

    /// The form of which its fingerprint is made, where that is not the command itself: without what must not be stored, and without what
    /// was found out about the session when it was sent.
    fn fingerprinted(&self) -> Option<SessionCommand> {
        None
    }

    /// What follows from it in the draft's session, whose state offers it.
    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error>;
}

/// What is known of a command that is carried out.
pub(crate) struct Accepted {
    /// The origin of the events that it leads to.
    pub(crate) metadata: Metadata,
    /// What it is answered under.
    pub(crate) identity: Identity,
    /// When it must have ended.
    pub(crate) deadline: Option<Deadline>,
    /// What its job may do.
    pub(crate) grants: Option<Box<Grants>>,
    /// Names the job or the ask that it leads to, if any.
    pub(crate) fresh: Uuid,
}

/// How far a command has come once it was decided on.
pub(crate) enum Decided {
    /// The command is carried out already.
    Done(Response),
    /// A job or an ask goes on, and answers it.
    GoesOn,
}

/// The rules by which a command is admitted. Source: design.md, "The way of a command".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The action whose availability decides whether it is admitted.
    pub action: Action,
    /// What it waits for.
    pub lane: Lane,
    /// What its principal must have.
    pub right: Right,
    /// Whether a job comes of it, which goes on when the client that asked for it is gone.
    pub runs_job: bool,
    /// Whether it needs a worker, and starts one where none is.
    pub starts_worker: bool,
    /// Whether rates and the number of outcomes limit it. An escape hatch is not limited, and neither is an answer.
    pub is_limited: bool,
    /// Whether it begins something, which a daemon that is stopping refuses.
    pub begins_work: bool,
    /// What it ends besides.
    pub ends: Ends,
}

/// What a command waits for before it is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Nothing: it passes a running job.
    Immediate,
    /// Its turn in the session.
    Serial,
    /// Its turn among all that give sessions their aliases, so that no two get the same; then it passes a running job.
    Server,
}

/// What a command ends besides what it is for. Before that, the worker is heard out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Nothing that runs is ended.
    Nothing,
    /// The worker of the session ends.
    Worker,
    /// The session: nothing comes after it.
    Session,
}

impl Rules {
    /// Of a command that passes a running job, needs no worker, is limited, and begins something.
    pub(crate) const fn immediate(action: Action) -> Self {
        Self {
            action,
            lane: Lane::Immediate,
            right: action.right(),
            runs_job: false,
            starts_worker: false,
            is_limited: true,
            begins_work: true,
            ends: Ends::Nothing,
        }
    }

    /// Of a command that takes its turn in the session, and needs a worker.
    pub(crate) const fn serial(action: Action) -> Self {
        Self { lane: Lane::Serial, starts_worker: true, ..Self::immediate(action) }
    }

    /// Of a command that must always be possible: it is not limited, and a daemon that is stopping takes it.
    pub(crate) const fn always(action: Action) -> Self {
        Self { is_limited: false, begins_work: false, ..Self::immediate(action) }
    }
}
