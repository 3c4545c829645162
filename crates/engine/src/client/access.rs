//! What a client may see, drive and delete. A session that it may not see does not exist for it.

use std::collections::BTreeMap;

use mainstay_log::SessionFilter;
use mainstay_model::breaker::BreakerStatus;
use mainstay_model::{AskId, Error, PendingAsk, Rights, Session, SessionId, TrustRefusal};

use super::Client;

impl Client {
    /// Refuses who may not do everything; `what` is what it wants to do.
    ///
    /// # Errors
    /// [`Error::NotPermitted`].
    pub fn require_all(&self, what: &str) -> Result<(), Error> {
        match self.access.rights {
            Rights::All => Ok(()),
            Rights::Some { .. } | Rights::ReadOnly { .. } => Err(self.not_permitted(what)),
        }
    }

    /// Refuses who may only look; `what` is what it wants to do.
    pub(crate) fn must_write(&self, what: &str) -> Result<(), Error> {
        match self.access.rights {
            Rights::All | Rights::Some { .. } => Ok(()),
            Rights::ReadOnly { .. } => Err(self.not_permitted(what)),
        }
    }

    /// Whether it may drive this session: change it, and ask its worker.
    pub fn drives(&self, session: &Session) -> bool {
        self.access.drives(session)
    }

    /// Whether it may delete this session.
    pub fn may_delete(&self, session: &Session) -> bool {
        let is_own = session.owner == self.access.principal;
        self.access.rights == Rights::All || is_own && self.drives(session)
    }

    pub(super) fn without_own_reasons<K: Ord>(
        &self,
        mut breakers: BTreeMap<K, BreakerStatus>,
    ) -> BTreeMap<K, BreakerStatus> {
        if self.access.rights != Rights::All {
            breakers.values_mut().for_each(|breaker| breaker.reason = None);
        }
        breakers
    }

    pub(super) fn without_reasons(&self, error: Error) -> Error {
        match error {
            Error::RunnerUnavailable { kind, provider, retry_after_ms, .. }
                if self.access.rights != Rights::All =>
            {
                let reason = "the user of the daemon can see why".to_owned();
                Error::RunnerUnavailable { kind, provider, reason, retry_after_ms }
            }
            error => error,
        }
    }

    /// Of these sessions only those that may be seen.
    pub(crate) fn seen(&self, filter: SessionFilter) -> SessionFilter {
        match self.access.rights {
            Rights::All => filter,
            Rights::Some { .. } | Rights::ReadOnly { .. } => {
                SessionFilter { seen_by: Some((*self.access).clone()), ..filter }
            }
        }
    }

    pub(super) async fn sees(&self, session: SessionId) -> Result<bool, Error> {
        if self.access.rights == Rights::All {
            return Ok(true);
        }
        let session = self.engine.session(session).await?;
        Ok(session.is_some_and(|session| self.access.sees(&session)))
    }

    /// A session as committed, where it may be seen; also one that was deleted.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn seen_session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        Ok(self.engine.session(session).await?.filter(|found| self.access.sees(found)))
    }

    /// Refuses a session that may not be seen, or was deleted.
    pub(crate) async fn must_see(&self, session: SessionId) -> Result<(), Error> {
        let found = self.engine.session(session).await?;
        let is_there = found.is_some_and(|found| found.deleted_at.is_none() && self.access.sees(&found));
        if is_there { Ok(()) } else { Err(not_found(session)) }
    }

    /// What others drive is not theirs to delete.
    pub(super) async fn must_own(&self, session: SessionId, to: &str) -> Result<(), Error> {
        self.must_drive(session).await?;
        match self.engine.session(session).await? {
            Some(found) if self.may_delete(&found) => Ok(()),
            Some(_) => Err(self.not_permitted(to)),
            None => Err(not_found(session)),
        }
    }

    pub(crate) async fn must_drive(&self, session: SessionId) -> Result<(), Error> {
        if self.access.rights == Rights::All {
            return Ok(());
        }
        match self.engine.session(session).await? {
            Some(found) if self.access.drives(&found) => Ok(()),
            Some(found) if self.access.sees(&found) => Err(self.not_permitted("drive this session")),
            Some(_) | None => Err(not_found(session)),
        }
    }

    /// Whether it may answer this ask of a session that it drives: whether a job is trusted more says only who may do everything.
    pub fn may_be_asked(&self, pending: &PendingAsk) -> bool {
        self.access.rights == Rights::All || pending.elevation().is_none()
    }

    /// Whether a job is trusted more says only who may do everything. What is looked at is not older than any event that somebody has read: who
    /// has an ask's id from the log finds the ask here.
    pub(super) async fn may_answer(&self, session: SessionId, ask: AskId) -> Result<(), Error> {
        if self.access.rights == Rights::All {
            return Ok(());
        }
        let found = self.engine.stored(session).await?;
        match found.ask(ask).and_then(PendingAsk::elevation) {
            Some(_) => Err(Error::TrustRefused { refusal: TrustRefusal::NotAllRights }),
            None => Ok(()),
        }
    }

    fn not_permitted(&self, what: &str) -> Error {
        Error::NotPermitted { principal: self.access.principal.clone(), what: what.to_owned() }
    }
}

pub(super) fn not_found(session: SessionId) -> Error {
    Error::SessionNotFound { reference: session.to_string() }
}
