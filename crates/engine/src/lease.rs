//! The lease under which this engine owns its sessions: renewed as long as the engine is there, one write for all of them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mainstay_log::Log;
use tokio::sync::watch;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::task::spawn;
use crate::sync::time::sleep;

/// How long is waited after a renewal that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Renews the lease in the background, until it is given up or dropped. Where the store says that the lease does not lapse,
/// it is renewed once.
pub(crate) struct LeaseKeeper {
    /// Whether the renewing is to end. The task that renews has the only receiver.
    ends: watch::Sender<bool>,
    /// Whether the store has said that the lease does not lapse.
    is_for_good: Arc<AtomicBool>,
}

impl LeaseKeeper {
    /// Begins to renew the lease of the engine that has this store.
    pub(crate) fn start(log: &Arc<dyn Log>) -> Self {
        let (ends, ended) = watch::channel(false);
        let is_for_good = Arc::<AtomicBool>::default();
        spawn(renew_on(Arc::downgrade(log), ended, Arc::clone(&is_for_good)));
        Self { ends, is_for_good }
    }

    /// Whether nobody else can take a session over. Before the store has said so, somebody may.
    pub(crate) fn is_for_good(&self) -> bool {
        self.is_for_good.load(Ordering::Acquire)
    }

    /// Gives the lease up: others may claim the sessions at once. A renewal that is under way comes to its end before, and
    /// none follows.
    pub(crate) async fn give_up(&self, log: &dyn Log) {
        self.ends.send_replace(true);
        self.ends.closed().await;
        if let Err(error) = log.release().await {
            tracing::warn!(%error, "the lease of this daemon's sessions was not given up; it lapses");
        }
    }
}

async fn renew_on(log: Weak<dyn Log>, mut ended: watch::Receiver<bool>, is_for_good: Arc<AtomicBool>) {
    while !*ended.borrow() {
        // Held no longer than for the call, lest it keep the store of an engine that is gone.
        let Some(held) = log.upgrade() else { return };
        let renewed = held.renew().await;
        drop(held);
        let after = match renewed {
            Ok(None) => return is_for_good.store(true, Ordering::Release),
            Ok(Some(after)) => after,
            Err(error) => {
                tracing::warn!(%error, "the lease of this daemon's sessions could not be renewed");
                PAUSE
            }
        };
        tokio::select! {
            // Also when the engine is gone.
            _ = ended.changed() => return,
            () = sleep(after) => {}
        }
    }
}
