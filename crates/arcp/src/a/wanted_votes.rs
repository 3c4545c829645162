//! Questions that want the vote of a session's principal, though the session is not told of the job that asks: so everybody who may answer learns that
//! an answer is wanted. Source: draft-arcp-01, 12.3.
//!
//! They are no part of what a session is told of its jobs, and are told anew on each connection, as long as they wait.

use std::collections::HashMap;

use mainstay_engine::WaitingAsk;
use mainstay_model::{AskId, Error, Event, EventBody, Timestamp};

use super::translator::encoded;
use super::{A, ids, news};
use crate::job_news::{JobNews, news_of};
use crate::session::Session;

/// The questions that a connection was told beside the jobs of its session.
#[derive(Default)]
pub(super) struct WantedVotes {
    /// Whether those were told that waited when the connection began.
    has_begun: bool,
    /// The messages that told them.
    told: HashMap<AskId, String>,
}

impl Session<A> {
    /// Asks for the votes that are wanted, once the client is told what is new.
    pub(super) async fn ask_for_votes(&mut self) -> Result<(), Error> {
        if self.dialect.votes.has_begun || self.dialect.held_until.is_some() || self.owned.is_none() {
            return Ok(());
        }
        self.dialect.votes.has_begun = true;
        for waiting in self.client.asks().await? {
            self.ask_for_vote(&waiting).await;
        }
        Ok(())
    }

    /// Asks for the vote that an event says is wanted, and says that one is wanted no more.
    pub(super) async fn hear_of_votes(&mut self, event: &Event) -> Result<(), Error> {
        match &event.body {
            EventBody::AskRaised(ask)
                if ask.question.needed_answers() > 1 && self.dialect.votes.has_begun =>
            {
                match self.client.ask(&ask.ask.to_string()).await {
                    Ok(waiting) => self.ask_for_vote(&waiting).await,
                    // It may have ended by now, and those who are not told of it need not know.
                    Err(Error::AskNotPending { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            EventBody::AskEnded { ask, ending, .. } => {
                let Some(question) = self.dialect.votes.told.remove(ask) else { return Ok(()) };
                let by = news_of(event).into_iter().find_map(|news| match news {
                    JobNews::AskEnded { by, .. } => by.map(|by| by.told_to(self.client.principal())),
                    _ => None,
                });
                let ended = news::question_ended(question, ending, by);
                let id = ids::at(self.reached(), event.at, rand::random());
                self.send_frame(encoded(&ended.beside_jobs(&self.stored.id, id, event.at))).await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks for the principal's vote, where it is wanted and the session is not asked otherwise. Trust is raised by few, who are asked in other ways.
    async fn ask_for_vote(&mut self, WaitingAsk { session, pending }: &WaitingAsk) {
        let (ask, question) = (pending.ask.ask, &pending.ask.question);
        let is_wanted = self.fold.translator.asks
            && question.needed_answers() > 1
            && pending.elevation().is_none()
            && !pending.has_voted(self.client.principal())
            && self.client.drives(session);
        if !is_wanted || self.fold.is_asked(ask) || self.dialect.votes.told.contains_key(&ask) {
            return;
        }
        let now = Timestamp::now();
        let id = ids::of_vote(self.reached(), now, ask);
        self.dialect.votes.told.insert(ask, id.clone());
        let asked = news::wanted_vote(&self.fold.translator, pending);
        self.send_frame(encoded(&asked.beside_jobs(&self.stored.id, id, now))).await;
    }
}
