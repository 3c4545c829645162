//! Appending to the database, and reading events and outcomes back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use mainstay_model::decide::Answer;
use mainstay_model::{
    CommandId, Error, Event, IdempotencyKey, Position, Principal, Seq, Session, SessionId, TakenNotices,
};

use super::failure::reason_of;
use super::options::Sharing;
use super::{SqliteLog, append, changes, lease, queries};
use crate::trace::Steps;
use crate::{
    Append, AppendError, Appended, ClaimError, Epoch, EventLog, FailedAppend, KeyScope, Refusal,
    StoredOutcome, precision,
};

#[async_trait]
impl EventLog for SqliteLog {
    fn append(&self, append: Append) -> Appended {
        let append = precision::to_microseconds(append);
        self.expect_outcomes(&append);
        let steps = Steps::queued(&append.trace);
        let queued = append::AppendRows::encode(&append, &self.sharing).map(|rows| {
            self.writer.submit_traced(rows.bytes(), steps, move |statements| rows.apply(statements))
        });
        self.transcribe_when_due(append.events.len() as u64);
        Box::pin(async move {
            let appended = match queued {
                Ok(queued) => queued.await.unwrap_or_else(|error| Err(unavailable(error))),
                Err(error) => Err(AppendError::Refused(Refusal::Content(error))),
            };
            match appended {
                Ok(first) => Ok(append::placed(append.session, append.first, first, append.events)),
                Err(error) => Err(FailedAppend { error, append: Box::new(append) }),
            }
        })
    }

    async fn store_refusal(&self, answer: Answer) -> Result<(), Error> {
        self.known.add(&answer.principal, &answer.command);
        let row = append::OutcomeRow::encode(&answer)?;
        self.writer.submit(row.bytes(), move |statements| row.store_alone(statements)).await
    }

    async fn claim(&self, session: SessionId) -> Result<Epoch, ClaimError> {
        let sharing = Arc::clone(&self.sharing);
        self.writer.submit(0, move |statements| lease::claim(statements, session, &sharing)).await?
    }

    async fn newest_epoch(&self, session: SessionId) -> Result<Option<Epoch>, Error> {
        self.readers.run(move |connection| queries::newest_epoch(connection, session)).await
    }

    async fn taken(&self, session: SessionId) -> Result<Option<TakenNotices>, Error> {
        self.readers.run(move |connection| queries::taken(connection, session)).await
    }

    fn changes_by_others(&self) -> BoxStream<'static, Position> {
        match &*self.sharing {
            Sharing::Alone => stream::empty().boxed(),
            Sharing::Shared { .. } => changes::by_others(&self.writer),
        }
    }

    async fn renew(&self) -> Result<Option<Duration>, Error> {
        let Some(after) = self.sharing.renewed_after() else { return Ok(None) };
        let sharing = Arc::clone(&self.sharing);
        self.writer.submit(0, move |statements| lease::renew_lease(statements, &sharing)).await?;
        Ok(Some(after))
    }

    async fn release(&self) -> Result<(), Error> {
        if self.sharing.renewed_after().is_none() {
            return Ok(());
        }
        let sharing = Arc::clone(&self.sharing);
        self.writer.submit(0, move |statements| lease::release_lease(statements, &sharing)).await
    }

    async fn events(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Event>, Error> {
        self.readers.run(move |connection| queries::events(connection, session, after, limit)).await
    }

    async fn all_events(&self, after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        self.readers.run(move |connection| queries::all_events(connection, after, limit)).await
    }

    async fn last_position(&self) -> Result<Position, Error> {
        self.readers.run(queries::last_position).await
    }

    async fn outcome(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<Option<StoredOutcome>, Error> {
        if !self.known.may_have(principal, command) {
            return Ok(None);
        }
        let (principal, command) = (principal.clone(), command.clone());
        self.readers.look_up(move |connection| queries::outcome(connection, &principal, &command)).await
    }

    async fn outcome_of_key(
        &self,
        principal: &Principal,
        scope: KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<StoredOutcome>, Error> {
        if !self.known.may_have_key(principal, scope, key) {
            return Ok(None);
        }
        let (principal, key) = (principal.clone(), key.clone());
        self.readers
            .look_up(move |connection| queries::outcome_of_key(connection, &principal, scope, &key))
            .await
    }

    async fn count_outcomes(&self) -> Result<u64, Error> {
        self.readers.run(queries::count_outcomes).await
    }

    async fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        self.readers.run(move |connection| queries::session(connection, session)).await
    }
}

impl SqliteLog {
    /// Takes in that the commands and keys of an append may have an outcome from now on.
    fn expect_outcomes(&self, append: &Append) {
        for Answer { principal, command, key, .. } in &append.outcomes {
            self.known.add(principal, command);
            if let Some(key) = key {
                for scope in [KeyScope::Creations, KeyScope::Session(append.session)] {
                    self.known.add_key(principal, scope, key);
                }
            }
        }
    }
}

/// The error for an append that was not refused and is not there.
fn unavailable(error: Error) -> AppendError {
    AppendError::Unavailable { reason: reason_of(error) }
}
