//! The jobs that ran when the last daemon was lost.

use mainstay_model::{CommandId, JobKind, Principal, Session, SessionId};

/// A job that ran when the last daemon was lost, and was interrupted by that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostJob {
    /// The session in which the job was lost.
    pub session: SessionId,
    /// Who asked for it.
    pub principal: Principal,
    /// The command that asked for it.
    pub command: CommandId,
    /// What kind of job it was.
    pub kind: JobKind,
}

impl LostJob {
    pub(super) fn of(session: &Session) -> Option<Self> {
        let running = session.running()?;
        Some(Self {
            session: session.id,
            principal: running.source.principal(),
            command: running.command.clone(),
            kind: running.kind,
        })
    }
}
