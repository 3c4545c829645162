//! How a session of dialect A ends in order: its jobs go on without it, are told to stop first, or are waited for. Source: draft-arcp-01, 9 and 10.4.

use mainstay_arcp_protocol::a::session::{OpenJobs, SessionClose, SessionEvicted};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::{CommandId, Error};

use super::A;
use crate::held_jobs::Haste;
use crate::peer::End;
use crate::session::{Served, Session};

/// What a client can do whose session is being closed.
pub(super) const STEP: &str = "Open another session for it, or close this one with `jobs` `detach`.";

/// A session that is to end once its jobs have.
pub(super) struct Closing {
    /// The message that wants it closed.
    message: String,
    /// What is said in the end.
    last: Message,
    /// Whether its jobs are told to stop.
    cancels: bool,
    /// The jobs that were told to.
    told_to_stop: Vec<CommandId>,
}

impl Session<A> {
    /// Ends the session as its client wants.
    pub(super) async fn close(&mut self, id: &str, close: SessionClose) -> Result<Option<Served>, Error> {
        self.reach_the_end().await?;
        // A client that goes slows nothing down any more.
        self.held.pacing.clear();
        self.tell_held(Haste::AtOnce).await?;
        let jobs = close.jobs.unwrap_or(OpenJobs::Detach);
        let last = Message::SessionClose(close);
        if jobs == OpenJobs::Detach {
            // What is not closed can be resumed for the end of its jobs.
            let has_open_jobs = !self.open_jobs().is_empty() || self.pending.count() > 0;
            return self.end_closed(id, last, !has_open_jobs).await.map(Some);
        }
        self.begin_closing(id, last, jobs == OpenJobs::Cancel).await
    }

    /// Ends the session with all of its jobs.
    pub(super) async fn evict(&mut self, id: &str) -> Result<Option<Served>, Error> {
        self.held.pacing.clear();
        self.tell_held(Haste::AtOnce).await?;
        let evicted = SessionEvicted {
            code: Some(ErrorCode::Cancelled),
            reason: Some("cancelled".to_owned()),
            message: None,
        };
        self.begin_closing(id, Message::SessionEvicted(evicted), true).await
    }

    async fn begin_closing(
        &mut self,
        id: &str,
        last: Message,
        cancels: bool,
    ) -> Result<Option<Served>, Error> {
        self.dialect.closing =
            Some(Closing { message: id.to_owned(), last, cancels, told_to_stop: Vec::new() });
        self.finish_closing().await
    }

    /// Ends the session where it was to end and its jobs have; tells those to stop that are to.
    pub(super) async fn finish_closing(&mut self) -> Result<Option<Served>, Error> {
        let Some(mut closing) = self.dialect.closing.take() else { return Ok(None) };
        let open = self.open_jobs();
        if open.is_empty() && self.pending.count() == 0 {
            // A stream may have been slowed down since the session began to close.
            self.held.pacing.clear();
            self.tell_held(Haste::AtOnce).await?;
            return self.end_closed(&closing.message, closing.last, true).await.map(Some);
        }
        if closing.cancels {
            for job in open {
                if !closing.told_to_stop.contains(&job) {
                    self.cancel_job(&job, None).await?;
                    closing.told_to_stop.push(job);
                }
            }
        }
        self.dialect.closing = Some(closing);
        Ok(None)
    }

    async fn end_closed(&mut self, id: &str, last: Message, is_closed: bool) -> Result<Served, Error> {
        match is_closed {
            true => self.store_closed().await?,
            false => self.renew().await?,
        }
        self.answer(id, last).await;
        Ok(Served::Ended(End::Gone))
    }

    /// Stores that the session is closed. Where it was handed a job before that was stored, it stays one that can be resumed: who handed that over
    /// took it for an open one.
    pub(super) async fn store_closed(&mut self) -> Result<(), Error> {
        self.stored.is_closed = true;
        self.renew().await?;
        self.reach_the_end().await?;
        if !self.open_jobs().is_empty() {
            self.stored.is_closed = false;
            self.store().await?;
        }
        Ok(())
    }

    /// Whether nothing was asked in the session.
    pub(super) fn is_unused(&self) -> bool {
        self.fold.seq() == 0 && self.pending.count() == 0 && self.stored.joins.is_empty()
    }
}
