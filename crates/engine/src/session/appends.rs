//! Handing what was decided to the committer: events, outcomes and the replies that wait for them.

use std::sync::Arc;

use mainstay_log::{Append, Appended, NewEvent};
use mainstay_model::decide::Answer;
use mainstay_model::{Event, EventBody, Metadata, Outcome, Position, Seq, Timestamp, Version};

use super::SessionTask;
use crate::claims::CommandKey;
use crate::commit::{Commit, Step};
use crate::pending_commands::Reply;
use crate::sync::atomic::Ordering;
use crate::sync::time::Instant;
use crate::trace::CommitTrace;

impl SessionTask {
    pub(super) fn commit(
        &mut self,
        at: Timestamp,
        events: Vec<(Metadata, EventBody)>,
        mut outcomes: Vec<Answer>,
    ) {
        outcomes.retain(|answer| {
            let is_of = |(principal, command): &CommandKey| {
                *principal == answer.principal && *command == answer.command
            };
            !self.answered.as_ref().is_some_and(is_of)
        });
        let live = outcomes.iter_mut().filter_map(|answer| answer.outcome.live_mut());
        live.for_each(|live| live.put_out.append(&mut self.unstored));
        let first = self.session.last_seq.next();
        let mut new_events = Vec::with_capacity(events.len());
        for (metadata, body) in events {
            let (session, seq) = (self.session.id, self.session.last_seq.next());
            // The position is the log's to give, and nothing here depends on it.
            let event = Event { session, seq, position: Position::ZERO, at, metadata, body };
            self.session.evolve(&event);
            new_events.push(NewEvent { at, metadata: event.metadata, body: event.body });
        }
        self.append(first, new_events, outcomes, self.session.version);
    }

    /// Appends events that the session has been through, and outcomes whose commands ended in this version of it.
    pub(super) fn append(
        &mut self,
        first: Seq,
        events: Vec<NewEvent>,
        outcomes: Vec<Answer>,
        version: Version,
    ) {
        let outcomes = self.accepted.with_aliases(outcomes);
        let ended =
            outcomes.iter().map(|answer| (answer.principal.clone(), answer.command.clone())).collect();
        let mut replies = Vec::new();
        for answer in &outcomes {
            let waiting = self.accepted.decided(answer, version);
            replies.extend(waiting.into_iter().map(|reply| (reply, answer.outcome.clone())));
        }
        self.shared.single_process.outcomes.add(outcomes.len() as u64);
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
            taken: None,
            trace: span,
        });
        self.hand_over(appended, ended, replies, version, trace);
    }

    pub(super) fn hand_over(
        &mut self,
        appended: Appended,
        ended: Vec<CommandKey>,
        replies: Vec<(Reply, Outcome)>,
        version: Version,
        trace: CommitTrace,
    ) {
        self.accepted.commit_handed_over();
        // The committer outlives this task.
        let after = Arc::new(self.session.clone());
        let decided = Instant::now();
        let forgets = self.session.deleted_at.map(|_| Arc::clone(&self.shared));
        let commit = Commit { decided, appended, after, ended, replies, version, trace, forgets };
        self.commits.send(Step::Commit(Box::new(commit))).ok();
    }
}
