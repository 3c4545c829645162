//! Takes a note of the daemon's health now and then, from its start on.

use std::time::Duration;

use mainstay_log::SessionFilter;
use mainstay_model::{Access, Error, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use super::daemon::HttpDaemon;
use super::health::HealthNote;
use mainstay_os::system::own_resident_bytes;

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
        activity: engine.take_activity(),
        waiting: live.iter().map(|session| session.lane.len() as u64).sum(),
        subscribers: engine.subscribers() as u64,
        in_use: engine.sessions_in_use() as u64,
        position: client.last_position().await?.0,
        log_bytes,
        own_bytes: own_resident_bytes().unwrap_or_default(),
        workers,
    })
}
