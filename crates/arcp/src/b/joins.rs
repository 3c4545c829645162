//! The jobs that a session is told of though another submitted them, or that had ended when they were submitted again: when it joined and left them,
//! and what it is told of what happened before.

use mainstay_engine::CommandStatus;
use mainstay_model::{CommandId, Error, Event, Outcome, Position, Response, Seq, SessionId};

use super::session::{PAGE, Session};
use crate::feed::job_of;
use crate::stored_session::{Change, History, Join};

impl Session {
    /// Makes the changes of what is told that belong behind the events up to this place, in their order.
    pub(super) async fn apply_joins(&mut self, up_to: Position) -> Result<(), Error> {
        while let Some(join) = self.stored.joins.get(self.joined).filter(|join| join.at <= up_to).cloned() {
            self.joined += 1;
            match join.change {
                Change::Joined { home, history, is_own } => {
                    self.know_agent(home).await?;
                    self.teller.join(&join.job, home, is_own);
                    self.tell_history(&join, home, history).await?;
                }
                Change::Left => self.teller.leave(&join.job),
            }
        }
        Ok(())
    }

    /// Tells what happened to a job before it was joined, as far as that is wanted.
    async fn tell_history(&mut self, join: &Join, home: SessionId, history: History) -> Result<(), Error> {
        if history == History::Nothing {
            return Ok(());
        }
        let events = match history {
            History::End => self.end_of(&join.job, home, join.at).await?,
            History::All | History::After { .. } | History::Nothing => {
                self.history_of(&join.job, home, join.at).await?
            }
        };
        for event in &events {
            let agents = &self.agents;
            let agent_of = |home| agents.get(&home).cloned().unwrap_or_default();
            let told = self.teller.tell_part(event, agent_of, history);
            for message in told {
                self.send_numbered(&message).await?;
            }
        }
        Ok(())
    }

    /// The event that ended a job. It is found without reading all of its session where its outcome says which it is.
    async fn end_of(&self, job: &CommandId, home: SessionId, up_to: Position) -> Result<Vec<Event>, Error> {
        let completed = match self.client.command(job).await? {
            CommandStatus::Ended(stored) => match stored.outcome {
                Outcome::Done { response: Response::Evaluated(eval) } => Some(eval.completed),
                Outcome::Done { response: Response::Worked(work) } => Some(work.completed),
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
    pub(super) async fn history_of(
        &self,
        job: &CommandId,
        home: SessionId,
        up_to: Position,
    ) -> Result<Vec<Event>, Error> {
        let (mut after, mut found) = (Seq::ZERO, Vec::new());
        loop {
            let page = self.client.events(home, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.seq;
            let is_over = last.position > up_to;
            let is_of_job = |event: &Event| {
                event.position <= up_to && job_of(event, self.client.principal()) == Some(job)
            };
            found.extend(page.into_iter().filter(is_of_job));
            if is_over {
                return Ok(found);
            }
        }
    }

    /// Stores a change of what is told from now on. Once that is acknowledged, [`Session::apply_changes`] tells what follows from it.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where the job's session cannot be read, and nothing is changed.
    pub(super) async fn store_change(&mut self, job: CommandId, change: Change) -> Result<(), Error> {
        // What happened before is told as history, or not at all.
        self.reach_the_end().await?;
        if let Change::Joined { home, .. } = &change {
            self.client.events(*home, Seq::ZERO, 1).await?;
        }
        self.stored.joins.push(Join { at: self.position, job, change });
        self.store().await
    }

    /// Tells what follows from the changes that were stored.
    pub(super) async fn apply_changes(&mut self) -> Result<(), Error> {
        self.apply_joins(self.position).await
    }
}
