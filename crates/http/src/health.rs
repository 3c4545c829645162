//! How the daemon was: a note now and then from its start on, the last ones kept. So who looks sees what was, whoever looked before.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_engine::Pulse;
use mainstay_log::SessionFilter;
use mainstay_model::{Access, Error, SessionId, Timestamp};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::daemon::HttpDaemon;
use mainstay_os::system::own_resident_bytes;

/// How the daemon was at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthNote {
    pub(crate) at: Timestamp,
    /// What sessions did since the note before.
    pub(crate) pulse: Pulse,
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

    fn push(&self, note: HealthNote) {
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

/// Notes how the daemon is until it stops.
pub(super) async fn keep(daemon: HttpDaemon) {
    let rhythm = daemon.engine.limits().health_ms;
    if rhythm == 0 {
        return;
    }
    let mut ticks = interval(Duration::from_millis(rhythm));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = daemon.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match note(&daemon).await {
            Ok(note) => daemon.http.health.push(note),
            Err(error) => tracing::debug!(%error, "how the daemon is was not noted"),
        }
    }
}

async fn note(daemon: &HttpDaemon) -> Result<HealthNote, Error> {
    let engine = &daemon.engine;
    // It is there for a moment only: nobody who is listed among the clients.
    let client = engine.attach(Access::local(), "health");
    let live = client.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
    let mut workers = Vec::with_capacity(live.len());
    for session in &live {
        if let Some(usage) = client.usage(session.id).await {
            workers.push((session.id, usage.resident_bytes));
        }
    }
    let mut log_bytes = 0;
    // The database, and what was written to it last.
    for file in ["store/mainstay.db", "store/mainstay.db-wal"] {
        log_bytes += tokio::fs::metadata(daemon.home.join(file)).await.map_or(0, |file| file.len());
    }
    Ok(HealthNote {
        at: Timestamp::now(),
        pulse: engine.take_pulse(),
        waiting: live.iter().map(|session| session.lane.len() as u64).sum(),
        subscribers: engine.subscribers() as u64,
        in_use: engine.sessions_in_use() as u64,
        position: client.last_position().await?.0,
        log_bytes,
        own_bytes: own_resident_bytes().unwrap_or_default(),
        workers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_of(position: u64) -> HealthNote {
        HealthNote {
            at: Timestamp::UNIX_EPOCH,
            pulse: Pulse::default(),
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
