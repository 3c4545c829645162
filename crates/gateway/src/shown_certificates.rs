//! The certificates of the clients that are connected: a connection is closed once its certificate is no
//! longer accepted, for example because its authority has revoked it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

/// The certificates of all clients that are connected.
#[derive(Clone, Default)]
pub(crate) struct ShownCertificates(Arc<Mutex<Connected>>);

#[derive(Default)]
struct Connected {
    last_id: u64,
    connections: HashMap<u64, ShownCertificate>,
}

#[derive(Clone)]
struct ShownCertificate {
    /// The certificate of the client, and those between it and an authority.
    chain: Arc<[CertificateDer<'static>]>,
    cut: CancellationToken,
}

/// One connection among them, until it is dropped.
pub(crate) struct Registration {
    id: u64,
    all: ShownCertificates,
}

impl ShownCertificates {
    /// Notes a connection whose client has shown this chain of certificates, and what cuts it.
    pub(crate) fn register(&self, chain: &[CertificateDer<'static>], cut: CancellationToken) -> Registration {
        let mut connected = self.lock();
        connected.last_id += 1;
        let id = connected.last_id;
        connected.connections.insert(id, ShownCertificate { chain: chain.into(), cut });
        Registration { id, all: self.clone() }
    }

    /// Cuts the connections whose chain of certificates is not good.
    pub(crate) fn retain(&self, is_good: impl Fn(&[CertificateDer<'static>]) -> bool) {
        // A certificate takes a while to be verified, and others connect meanwhile.
        let all: Vec<_> = self.lock().connections.values().cloned().collect();
        for shown in all.into_iter().filter(|shown| !is_good(&shown.chain)) {
            tracing::info!("a connection is cut: the certificate of its client is good no longer");
            shown.cut.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.all.lock().connections.remove(&self.id);
    }
}
