//! Commands that no session accepts, and yet are answered once: those that are refused before, whose refusal is stored, and reads, whose end
//! is remembered for the commands that depend on them.

use std::sync::Arc;

use mainstay_model::decide::Answer;
use mainstay_model::{CommandFingerprint, CommandId, Error, Outcome, SessionId};
use uuid::Uuid;

use crate::claims::{Claim, Claims, CommandKey};
use crate::client::Client;

/// A command that was refused before a session had accepted it.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The client's name for the command.
    pub id: CommandId,
    /// What the command said.
    pub fingerprint: CommandFingerprint,
    /// Why it was refused.
    pub error: Error,
}

/// A read that is under way: a command that depends on it waits for its end.
pub struct Reading {
    claims: Arc<Claims>,
    key: CommandKey,
    _claim: Claim,
}

impl Reading {
    /// Records how the read ended.
    pub fn end(self, ended: Result<(), String>) {
        self.claims.remember_read(self.key.clone(), ended);
    }
}

impl Client {
    /// Stores the refusal of a command of this client's principal as its outcome. Counts for the limits that a command counts for.
    ///
    /// # Errors
    /// [`Error::CommandConflict`] where the command has an outcome already, [`Error::TooManyOutcomes`], [`Error::RateLimited`],
    /// [`Error::StoreFailed`].
    pub async fn store_refusal(&self, refusal: Refusal) -> Result<(), Error> {
        let shared = &self.engine().shared;
        shared.single_process.outcomes.check()?;
        self.count_read()?;
        let Refusal { id, fingerprint, error } = refusal;
        let outcome = Outcome::Failed { error };
        let principal = self.principal().clone();
        shared.log.store_refusal(Answer { principal, command: id, key: None, fingerprint, outcome }).await?;
        shared.single_process.outcomes.add(1);
        Ok(())
    }

    /// Counts a read as a command of all sessions together.
    ///
    /// # Errors
    /// [`Error::RateLimited`].
    pub fn count_read(&self) -> Result<(), Error> {
        self.engine().shared.single_process.rate.pass()
    }

    /// Begins a read that other commands may depend on; none where a command of this id is under way.
    pub fn begin_read(&self, id: &CommandId) -> Option<Reading> {
        let claims = Arc::clone(&self.engine().shared.single_process.claims);
        let key = (self.principal().clone(), id.clone());
        // No session holds it.
        let nobody = SessionId::from_uuid(Uuid::now_v7());
        let claim = Claim::take(&claims, key.clone(), nobody)?;
        Some(Reading { claims, key, _claim: claim })
    }

    /// Waits until the command of this id that is under way has ended.
    pub async fn ended(&self, id: &CommandId) {
        let key = (self.principal().clone(), id.clone());
        if let Some(end) = self.engine().shared.single_process.claims.end_of(&key) {
            end.reached().await;
        }
    }
}
