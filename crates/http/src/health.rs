//! How the daemon was: the last notes that were taken of its health. So whoever looks sees what was before.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mainstay_engine::ActivityCounts;
use mainstay_model::{SessionId, Timestamp};
use tokio::sync::watch;

/// How the daemon was at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthNote {
    pub(crate) at: Timestamp,
    /// What sessions did since the note before.
    pub(crate) activity: ActivityCounts,
    /// Commands that waited for their turn.
    pub(crate) waiting: u64,
    pub(crate) subscribers: u64,
    /// Sessions that had a task.
    pub(crate) in_use: u64,
    /// The place of the newest event.
    pub(crate) position: u64,
    /// What the store's database takes.
    pub(crate) log_bytes: u64,
    /// The memory of the daemon itself.
    pub(crate) own_bytes: u64,
    /// The memory of each worker, by its session.
    pub(crate) workers: Vec<(SessionId, u64)>,
}

/// The newest notes on the daemon's health.
pub(crate) struct Health {
    notes: Mutex<VecDeque<HealthNote>>,
    keep: usize,
    written: watch::Sender<()>,
}

impl Health {
    /// None yet, and so many at most.
    pub(crate) fn new(keep: usize) -> Self {
        Self { notes: Mutex::default(), keep, written: watch::Sender::new(()) }
    }

    pub(super) fn push(&self, note: HealthNote) {
        let mut notes = self.lock();
        while notes.len() >= self.keep.max(1) {
            notes.pop_front();
        }
        notes.push_back(note);
        drop(notes);
        self.written.send_replace(());
    }

    /// What there is, the oldest first.
    pub(crate) fn notes(&self) -> Vec<HealthNote> {
        self.lock().iter().cloned().collect()
    }

    /// Changes with each note.
    pub(crate) fn written(&self) -> watch::Receiver<()> {
        self.written.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<HealthNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_of(position: u64) -> HealthNote {
        HealthNote {
            at: Timestamp::UNIX_EPOCH,
            activity: ActivityCounts::default(),
            waiting: 0,
            subscribers: 0,
            in_use: 0,
            position,
            log_bytes: 0,
            own_bytes: 0,
            workers: Vec::new(),
        }
    }

    #[test]
    fn the_last_notes_are_kept_and_who_waits_hears_of_each() {
        let health = Health::new(2);
        let mut written = health.written();
        (1..=3).for_each(|position| health.push(note_of(position)));
        assert_eq!(health.notes(), [note_of(2), note_of(3)]);
        assert!(written.has_changed().unwrap());
        written.mark_unchanged();
        health.push(note_of(4));
        assert!(written.has_changed().unwrap());
    }
}
