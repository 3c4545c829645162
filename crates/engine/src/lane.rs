//! The serial lane of one session: accepted commands that wait for their turn. The log has all of them.

use std::collections::VecDeque;

use mainstay_model::decide::Identity;
use mainstay_model::{Command, CommandId, Deadline, Error, Principal, QueuedCommand, Source, Timestamp};

use crate::claims::CommandKey;

/// A command that waits for its turn.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) source: Source,
    pub(crate) queued: Box<QueuedCommand>,
    /// Whether all it depends on have succeeded.
    pub(crate) is_free: bool,
}

impl Queued {
    /// A command that was accepted, with all that is needed to carry it out when its turn comes.
    pub(crate) fn new(source: Source, queued: QueuedCommand) -> Self {
        let is_free = queued.depends_on.is_empty();
        Self { source, queued: Box::new(queued), is_free }
    }

    pub(crate) fn key(&self) -> CommandKey {
        (self.source.principal(), self.queued.command.clone())
    }

    fn is(&self, principal: &Principal, id: &CommandId) -> bool {
        self.queued.command == *id && self.source.principal() == *principal
    }

    /// The command, for when its turn has come.
    pub(crate) fn into_command(self) -> (Command, Option<Deadline>) {
        let QueuedCommand { command, key, if_version, deadline, grants, body, .. } = *self.queued;
        (Command { key, if_version, grants, ..Command::new(command, self.source, body) }, deadline)
    }

    /// What it is known and answered by.
    pub(crate) fn identity(&self) -> Identity {
        let QueuedCommand { command, key, fingerprint, .. } = (*self.queued).clone();
        Identity { principal: self.source.principal(), command, key, fingerprint }
    }
}

/// The lane that runs a session's commands one by one.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    waiting: VecDeque<Queued>,
}

impl Lane {
    /// The commands that an earlier daemon had accepted, in order.
    pub(crate) fn of(waiting: Vec<Queued>) -> Self {
        Self { waiting: waiting.into() }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What the commands are known by, in order.
    pub(crate) fn keys(&self) -> Vec<CommandKey> {
        self.waiting.iter().map(Queued::key).collect()
    }

    pub(crate) fn push(&mut self, queued: Queued) {
        self.waiting.push_back(queued);
    }

    pub(crate) fn first(&self) -> Option<&Queued> {
        self.waiting.front()
    }

    pub(crate) fn take_first(&mut self) -> Option<Queued> {
        self.waiting.pop_front()
    }

    /// Notes that all that a command depends on have succeeded.
    pub(crate) fn set_free(&mut self, key: &CommandKey) {
        if let Some(queued) = self.waiting.iter_mut().find(|queued| queued.is(&key.0, &key.1)) {
            queued.is_free = true;
        }
    }

    pub(crate) fn has(&self, principal: &Principal, id: &CommandId) -> bool {
        self.waiting.iter().any(|queued| queued.is(principal, id))
    }

    pub(crate) fn take(&mut self, principal: &Principal, id: &CommandId) -> Option<Queued> {
        let place = self.waiting.iter().position(|queued| queued.is(principal, id))?;
        self.waiting.remove(place)
    }

    /// When the first of them takes longer than it may.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.iter().filter_map(|queued| queued.queued.ends_by()).min()
    }

    /// One that has taken longer than it may, and what it is answered.
    pub(crate) fn take_overdue(&mut self, now: Timestamp) -> Option<(Queued, Error)> {
        let overdue = |queued: &Queued| queued.queued.overdue(now);
        let (place, error) = self
            .waiting
            .iter()
            .map(overdue)
            .enumerate()
            .find_map(|(place, overdue)| overdue.map(|error| (place, error)))?;
        Some((self.waiting.remove(place)?, error))
    }
}
