//! The asks of a session: raised, answered and secret.

use super::{Activity, Session};
use crate::ask::{Ask, AskEnding, PendingAsk, Raiser};
use crate::event::Event;
use crate::id::{AskId, CommandId, Principal};
use crate::permission::Permission;
use crate::state::{Transition, WaitReason};
use crate::vote::Vote;

/// How many of the asks that were answered with a secret a session knows at most.
const SECRET_ASKS_KEPT: usize = 64;

impl Session {
    /// The ask with this id, while it waits for an answer.
    pub fn ask(&self, ask: AskId) -> Option<&PendingAsk> {
        self.asks.iter().find(|pending| pending.ask.ask == ask)
    }

    /// Whether an answer to this ask is a secret, also where it has been answered lately.
    pub fn is_secret(&self, ask: AskId) -> bool {
        self.secret_asks.contains(&ask)
            || self.ask(ask).is_some_and(|pending| pending.ask.question.is_secret())
    }

    /// The ask that this command raised, while it waits for an answer.
    pub fn ask_of(&self, principal: &Principal, command: &CommandId) -> Option<&PendingAsk> {
        self.asks.iter().find(|pending| pending.answers(principal, command))
    }

    pub(super) fn ask_raised(&mut self, ask: &Ask, event: &Event) {
        let pending = PendingAsk {
            ask: ask.clone(),
            raised: event.seq,
            raised_at: event.at,
            source: event.metadata.source.clone(),
            votes: Vec::new(),
        };
        match &ask.raiser {
            Raiser::Command { .. } => self.asks.push(pending),
            Raiser::Job { job } => {
                // One of a job that does not run is over before it began.
                if let Some(running) = self.running().filter(|running| running.job == *job).cloned() {
                    self.asks.push(pending);
                    self.step(
                        Transition::StartWait(WaitReason::Ask),
                        Activity::Waiting { running, reason: WaitReason::Ask },
                    );
                }
            }
        }
    }

    /// Counts an answer to an ask that needs the same of more principals.
    pub(super) fn ask_voted(&mut self, ask: AskId, vote: Vote) {
        if let Some(pending) = self.asks.iter_mut().find(|pending| pending.ask.ask == ask) {
            pending.count_vote(vote);
        }
    }

    pub(super) fn ask_ended(&mut self, ask: AskId, ending: &AskEnding) {
        if *ending == AskEnding::Withheld {
            self.secret_asks.push_back(ask);
            if self.secret_asks.len() > SECRET_ASKS_KEPT {
                self.secret_asks.pop_front();
            }
        }
        self.allow_by(ask, ending);
        self.asks.retain(|pending| pending.ask.ask != ask);
        let Some(running) = self.running().cloned() else { return };
        if !self.asks.iter().any(|pending| pending.is_of_job(running.job)) {
            self.step(Transition::EndWait, Activity::Evaluating { running });
        }
    }

    /// Somebody may have allowed an operation for the rest of the job.
    fn allow_by(&mut self, ask: AskId, ending: &AskEnding) {
        let AskEnding::Answered { value } = ending else { return };
        let question = self.ask(ask).map(|pending| &pending.ask.question);
        let operation = question.and_then(Permission::operation);
        if let (Some(operation), Some(Permission::Job), Some(grants)) = (
            operation,
            Permission::of(value),
            self.running_job_mut().and_then(|running| running.grants.as_deref_mut()),
        ) {
            grants.allow(operation);
        }
    }
}
