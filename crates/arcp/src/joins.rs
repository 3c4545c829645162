//! The changes of what a session is told of, beside the jobs that it submits: jobs of others, jobs of its own that had ended when they were submitted
//! again, and observers. Each is stored with its place in the fold, and tells what it wants to be told of what happened before.

use std::collections::HashSet;

use mainstay_engine::CommandStatus;
use mainstay_model::{
    AskId, CommandId, Error, Event, EventBody, Outcome, Position, Response, Seq, SessionId,
};

use crate::dialect::Dialect;
use crate::event_delivery::PAGE;
use crate::feed::job_of;
use crate::held_jobs::Haste;
use crate::job_origin::Acceptance;
use crate::message_fold::Translator;
use crate::session::Session;
use crate::session_change::{Change, History, Join};

/// How many changes are kept for each subscription that a session may have, until its client acknowledges what it has.
const CHANGES_KEPT: usize = 4;

impl<D: Dialect> Session<D> {
    /// Makes the changes of what is told that belong behind the events up to this place, in their order.
    pub(crate) async fn apply_joins(&mut self, up_to: Position) -> Result<(), Error> {
        while let Some(join) = self.stored.joins.get(self.joined).filter(|join| join.at <= up_to).cloned() {
            if self.to_be_counted.is_some_and(|counted| self.joined >= counted.joined) {
                self.check_count();
            }
            self.joined += 1;
            self.release_for(&join.change).await?;
            self.apply(join).await?;
            self.note_whole();
        }
        Ok(())
    }

    async fn apply(&mut self, Join { at, change, .. }: Join) -> Result<(), Error> {
        match change {
            Change::Joined { job, home, history, is_own, has_begun, told } => {
                self.load_agent(home).await?;
                self.fold.join(&job, home, is_own, has_begun);
                if let Some(told) = told {
                    let agent = self.agent_of(home).cloned().unwrap_or_default();
                    self.fold.tell_as(&job, home, &told, agent);
                }
                self.tell_history(&job, at, home, history).await?;
            }
            Change::Left { job } => self.fold.leave(&job),
            Change::Observed { observer, since, jobs } => {
                self.begin_observing(observer, since, at, &jobs).await?;
            }
            Change::ObserverEnded { subscription } => self.fold.end_observer(&subscription),
            Change::ObserverOverflowed { subscription, after, ended_at } => {
                self.fold.end_observer(&subscription);
                let number = self.fold.seq() + 1;
                if let Some(closed) = self.fold.translator.closed(&subscription, after, ended_at, number) {
                    self.fold.go_on_behind(number);
                    self.send_told(&[closed]).await?;
                }
            }
        }
        Ok(())
    }

    /// Tells what happened to a job before it was joined, as far as that is wanted.
    async fn tell_history(
        &mut self,
        job: &CommandId,
        up_to: Position,
        home: SessionId,
        history: History,
    ) -> Result<(), Error> {
        let events = match history {
            History::Nothing => return Ok(()),
            History::End => self.end_of(job, home, up_to).await?,
            History::All | History::After(_) | History::Questions => {
                self.history_of(job, home, up_to).await?
            }
        };
        let waiting = match history {
            History::Questions => waiting_in(&events),
            _ => HashSet::new(),
        };
        for event in &events {
            let history = match &event.body {
                EventBody::AskRaised(ask) if waiting.contains(&ask.ask) => History::All,
                EventBody::AskVoted { ask, .. } if waiting.contains(ask) => History::All,
                _ => history,
            };
            let agents = &self.agents;
            let agent_of = |home| agents.get(&home).cloned().unwrap_or_default();
            let told = self.fold.tell_part(event, agent_of, history);
            self.send_told(&told).await?;
        }
        Ok(())
    }

    /// The event that ended a job, with what that depends on. It is found without reading all of its session where its outcome says which it is.
    pub(crate) async fn end_of(
        &self,
        job: &CommandId,
        home: SessionId,
        up_to: Position,
    ) -> Result<Vec<Event>, Error> {
        let completed = match self.client.command(job).await? {
            CommandStatus::Ended(stored) => match stored.outcome {
                Outcome::Done { response: Response::Evaluated(eval) } => Some(eval.completed),
                // An agent's result has what it said before.
                Outcome::Done { .. } | Outcome::Failed { .. } => None,
            },
            CommandStatus::Waits { .. } | CommandStatus::Runs { .. } => return Ok(Vec::new()),
        };
        let Some(seq) = completed else { return self.history_of(job, home, up_to).await };
        let mut ended = self.client.events(home, Seq(seq.0.saturating_sub(1)), 1).await?;
        // An end that came after the job was joined is told in its turn.
        ended.retain(|event| event.position <= up_to);
        Ok(ended)
    }

    /// What happened to a job up to this place in the log.
    pub(crate) async fn history_of(
        &self,
        job: &CommandId,
        home: SessionId,
        up_to: Position,
    ) -> Result<Vec<Event>, Error> {
        self.history_behind(job, home, Seq::ZERO, up_to).await
    }

    /// What happened to a job behind an event of its session and up to this place in the log.
    pub(crate) async fn history_behind(
        &self,
        job: &CommandId,
        home: SessionId,
        mut after: Seq,
        up_to: Position,
    ) -> Result<Vec<Event>, Error> {
        let (mut found, mut asks) = (Vec::new(), Vec::new());
        loop {
            let page = self.client.events(home, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.seq;
            let is_over = last.position > up_to;
            let principal = self.client.principal();
            for event in page.into_iter().filter(|event| event.position <= up_to) {
                let is_of_job = match &event.body {
                    // Whoever answers an ask does so by a command of its own.
                    EventBody::AskVoted { ask, .. } | EventBody::AskEnded { ask, .. } => asks.contains(ask),
                    _ => job_of(&event, principal) == Some(job),
                };
                if let (true, EventBody::AskRaised(ask)) = (is_of_job, &event.body) {
                    asks.push(ask.ask);
                }
                if is_of_job {
                    found.push(event);
                }
            }
            if is_over {
                return Ok(found);
            }
        }
    }

    /// The event that accepted the command of a job of this client's principal.
    pub(crate) async fn acceptance_of(
        &self,
        job: &CommandId,
        home: SessionId,
    ) -> Result<Option<Event>, Error> {
        let history = match self.history_of(job, home, Position(u64::MAX)).await {
            // What was deleted says nothing any more.
            Err(Error::SessionNotFound { .. }) => return Ok(None),
            history => history?,
        };
        let accepts = |event: &Event| {
            Acceptance::of(event).is_some() && event.metadata.source.principal() == *self.client.principal()
        };
        Ok(history.into_iter().find(accepts))
    }

    /// Whether this message asked for a change already: it is sent again where its answer was lost.
    pub(crate) fn has_changed_by(&self, message: &str) -> bool {
        self.stored.joins.iter().any(|join| join.message.as_deref() == Some(message))
    }

    /// Stores a change of what is told from now on. Once that is acknowledged, [`Session::apply_joins`] tells what follows from it.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where the job's session cannot be read, [`Error::TooManyRequests`] where too many are stored, and nothing is
    /// changed.
    pub(crate) async fn store_change(&mut self, message: Option<&str>, change: Change) -> Result<(), Error> {
        // What happened before is told as history, or not at all.
        self.reach_the_end().await?;
        if let Change::Joined { home, .. } = &change {
            self.client.events(*home, Seq::ZERO, 1).await?;
        }
        self.store_change_here(message, change).await
    }

    /// The same behind the event that was told last, though others may have happened.
    pub(crate) async fn store_change_here(
        &mut self,
        message: Option<&str>,
        change: Change,
    ) -> Result<(), Error> {
        let limit = self.settings.subscriptions.saturating_mul(CHANGES_KEPT).max(1);
        if self.stored.joins.len() >= limit {
            match change {
                _ if D::FORGETS => {
                    // The fold counts what waits, so a client that resumes would never be told it.
                    self.tell_held(Haste::AtOnce).await?;
                    self.note_held();
                    self.begin_fold_here();
                }
                Change::Left { .. } | Change::ObserverEnded { .. } | Change::ObserverOverflowed { .. } => {}
                Change::Joined { .. } | Change::Observed { .. } => {
                    let what = "subscriptions that are not acknowledged".to_owned();
                    return Err(Error::TooManyRequests { what, limit });
                }
            }
        }
        let message = message.map(str::to_owned);
        self.stored.joins.push(Join { at: self.position, message, change });
        self.store().await
    }
}

/// The questions that wait for an answer behind these events.
fn waiting_in(events: &[Event]) -> HashSet<AskId> {
    let mut waiting = HashSet::new();
    for event in events {
        match &event.body {
            EventBody::AskRaised(ask) => {
                waiting.insert(ask.ask);
            }
            EventBody::AskEnded { ask, .. } => {
                waiting.remove(ask);
            }
            _ => {}
        }
    }
    waiting
}
