//! Handing what was decided to the committer: events, outcomes and the replies that wait for them.

use std::sync::Arc;

use mainstay_log::{Append, Appended, NewEvent};
use mainstay_model::decide::Answer;
use mainstay_model::{Event, EventBody, Metadata, Outcome, Position, Seq, TakenNotices, Timestamp, Version};

use super::SessionTask;
use crate::claims::CommandKey;
use crate::commit::{Commit, Step};
use crate::open_tasks::{Delegations, concern_tasks};
use crate::pending_commands::Reply;
use crate::sync::atomic::Ordering;
use crate::sync::time::Instant;
use crate::trace::CommitTrace;

/// Events that the session has been through, and that are not yet on their way to the log.
#[derive(Default)]
pub(super) struct UnsentEvents {
    /// The events, in order; the last is the session's newest.
    events: Vec<NewEvent>,
    /// Which notices of the worker are taken once they are stored.
    taken: Option<TakenNotices>,
}

impl SessionTask {
    /// Takes in what was decided, and has it stored.
    pub(super) fn commit(
        &mut self,
        at: Timestamp,
        events: Vec<(Metadata, EventBody)>,
        outcomes: Vec<Answer>,
    ) {
        self.take_in(at, events);
        self.send(outcomes);
    }

    /// Takes in events. They go to the log together with what is decided next, at the latest before anything else is heard.
    pub(super) fn take_in(&mut self, at: Timestamp, events: Vec<(Metadata, EventBody)>) {
        for (metadata, body) in events {
            let (session, seq) = (self.session.id, self.session.last_seq.next());
            // The position is the log's to give, and nothing here depends on it.
            let event = Event { session, seq, position: Position::ZERO, at, metadata, body };
            self.session.evolve(&event);
            self.named_prompts.take_in(seq, &event.body);
            self.unsent.events.push(NewEvent { at, metadata: event.metadata, body: event.body });
        }
        // Before the worker is dropped, where it is for that.
        self.unsent.taken = self.taken().or(self.unsent.taken);
    }

    /// Hands over what was taken in, with the outcomes that it brings about.
    pub(super) fn send(&mut self, mut outcomes: Vec<Answer>) {
        let UnsentEvents { events, taken } = std::mem::take(&mut self.unsent);
        if events.is_empty() && outcomes.is_empty() {
            return;
        }
        outcomes.retain(|answer| {
            let is_of = |(principal, command): &CommandKey| {
                *principal == answer.principal && *command == answer.command
            };
            !self.answered.as_ref().is_some_and(is_of)
        });
        let live = outcomes.iter_mut().filter_map(|answer| answer.outcome.live_mut());
        live.for_each(|live| live.put_out.append(&mut self.unstored));
        self.append(events, outcomes, self.session.version, taken);
    }

    /// Appends the session's newest events, and outcomes whose commands ended in this version of it.
    pub(super) fn append(
        &mut self,
        events: Vec<NewEvent>,
        outcomes: Vec<Answer>,
        version: Version,
        taken: Option<TakenNotices>,
    ) {
        let first = Seq(self.session.last_seq.0 - events.len() as u64).next();
        let outcomes = self.accepted.with_aliases(outcomes);
        let ended =
            outcomes.iter().map(|answer| (answer.principal.clone(), answer.command.clone())).collect();
        let mut replies = Vec::new();
        for answer in &outcomes {
            let waiting = self.accepted.decided(answer, version);
            replies.extend(waiting.into_iter().map(|reply| (reply, answer.outcome.clone())));
        }
        self.shared.single_process.outcomes.add(outcomes.len() as u64);
        // A job that ends by itself leaves no tasks here that are known, and yet some may be followed.
        let delegates = concern_tasks(&events).then(|| Arc::clone(&self.shared.delegations));
        let (span, trace) = self.traces.commit(&events, &outcomes);
        // Before anyone can read it in the log.
        self.on_their_way.fetch_add(1, Ordering::Relaxed);
        let appended = self.shared.log.append(Append {
            session: self.session.id,
            epoch: self.epoch,
            first,
            events,
            outcomes,
            version,
            projection: self.session.clone(),
            taken,
            trace: span,
        });
        self.hand_over(appended, ended, replies, version, trace, delegates);
    }

    pub(super) fn hand_over(
        &mut self,
        appended: Appended,
        ended: Vec<CommandKey>,
        replies: Vec<(Reply, Outcome)>,
        version: Version,
        trace: CommitTrace,
        delegates: Option<Arc<Delegations>>,
    ) {
        self.accepted.commit_handed_over();
        // The committer outlives this task.
        let after = Arc::new(self.session.clone());
        let decided = Instant::now();
        let forgets = self.session.deleted_at.map(|_| Arc::clone(&self.shared));
        let commit = Commit { decided, appended, after, ended, replies, version, trace, forgets, delegates };
        self.commits.send(Step::Commit(Box::new(commit))).ok();
    }
}
