//! The lease under which this engine owns its sessions: renewed as long as the engine is there, one write for all of them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mainstay_log::Log;

use crate::sync::task::spawn;
use crate::sync::time::sleep;

/// How long is waited after a renewal that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Renews the lease in the background until the engine is gone, or at once no more where the store says that it does not
/// lapse.
pub(crate) fn keep_lease(log: &Arc<dyn Log>) {
    spawn(renew_on(Arc::downgrade(log)));
}

async fn renew_on(log: Weak<dyn Log>) {
    // Held no longer than for the call, lest it keep the store of an engine that is gone.
    while let Some(held) = log.upgrade() {
        let renewed = held.renew().await;
        drop(held);
        match renewed {
            Ok(None) => return,
            Ok(Some(after)) => sleep(after).await,
            Err(error) => {
                tracing::warn!(%error, "the lease of this daemon's sessions could not be renewed");
                sleep(PAUSE).await;
            }
        }
    }
}
