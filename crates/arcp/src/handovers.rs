//! Jobs that one session hands over to another of the same principal. Source: draft-arcp-01, 14.
//!
//! That a job was handed over is an event of the engine's session that has it, so the folds of both sessions find it at the same place in
//! the log, however often they read that.

use mainstay_model::{CommandId, Error, Event, EventBody, Position, SessionId};

use crate::dialect::Dialect;
use crate::fold_place::Base;
use crate::message_fold::MessageFold;
use crate::session::Session;
use crate::session_change::History;

impl<D: Dialect> Session<D> {
    /// Takes a job up that this event hands over to this session, which was not told of it before. What is known of the job is what the log says
    /// up to there.
    pub(crate) async fn take_over(&mut self, event: &Event) -> Result<(), Error> {
        let EventBody::JobHandedOver { command: job, to, .. } = &event.body else { return Ok(()) };
        let is_known = self.fold.job(job).is_some();
        if is_known || *to != self.stored.id || event.metadata.source.principal() != *self.client.principal()
        {
            return Ok(());
        }
        let (home, up_to) = (event.session, Position(event.position.0.saturating_sub(1)));
        let history = match self.history_of(job, home, up_to).await {
            // It was deleted meanwhile.
            Err(Error::SessionNotFound { .. }) => return Ok(()),
            history => history?,
        };
        let base = Base { position: Position::ZERO, seq: 0, jobs: Vec::new(), observers: Vec::new() };
        let translator = self.fold.translator.clone();
        let mut past = MessageFold::new(&self.stored.id, self.client.principal(), translator, &base);
        past.join(job, home, false, false);
        for earlier in &history {
            past.tell_part(earlier, |_| String::new(), History::Nothing);
        }
        for mut known in past.open_jobs() {
            known.told.iter_mut().for_each(|told| told.last_seq = 0);
            self.fold.take_up(&known);
        }
        self.load_agent_names().await
    }

    /// Whether this session holds a job that was handed over, by the last time that it was; none of a job that never was, or where the events of that
    /// were deleted.
    pub(crate) async fn holds_by_handover(
        &self,
        job: &CommandId,
        home: SessionId,
    ) -> Result<Option<bool>, Error> {
        let history = match self.history_of(job, home, Position(u64::MAX)).await {
            Err(Error::SessionNotFound { .. }) => return Ok(None),
            history => history?,
        };
        let own = &self.stored.id;
        Ok(history.iter().rev().find_map(|event| match &event.body {
            EventBody::JobHandedOver { to, .. } => Some(to == own),
            _ => None,
        }))
    }
}
