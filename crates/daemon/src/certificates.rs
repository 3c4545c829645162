//! Looks at the files with the certificates of the remote port from time to time, and has it served with what they have.

use std::time::Duration;

use mainstay_gateway::tls::Tls;
use mainstay_home::config::{RemoteFiles, Renewal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How long it takes at most until a change is seen. The files are few and small, and reading them sees every way in which they may change.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// Has the port served with what the files have, for ever.
pub(crate) async fn renew(mut files: RemoteFiles, served: Tls) {
    loop {
        sleep(BETWEEN_LOOKS).await;
        let tls = served.clone();
        let looked = spawn_blocking(move || {
            let renewal = files.renew(&tls);
            (files, renewal)
        });
        // It does not panic.
        let Ok((same, renewal)) = looked.await else { return };
        files = same;
        match renewal {
            Renewal::Unchanged => {}
            Renewal::Renewed { has_same_names: true } => {
                tracing::info!("other machines are served with the certificates that the files have now");
            }
            Renewal::Renewed { has_same_names: false } => tracing::warn!(
                "the new certificate is for other names than the one before; the daemon learns them when it is restarted"
            ),
            Renewal::Unusable(error) => {
                tracing::warn!(%error, "the files with certificates have changed and cannot be used; those of before count");
            }
        }
    }
}
