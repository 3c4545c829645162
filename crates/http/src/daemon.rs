//! The daemon as a request over HTTP sees it.

use std::ops::Deref;
use std::sync::Arc;

use super::shared::Shared;
use mainstay_gateway::daemon::Daemon;

/// The daemon, with what a request over HTTP shares.
#[derive(Clone)]
pub struct HttpDaemon {
    core: Daemon,
    /// What a request over HTTP shares.
    pub http: Arc<Shared>,
}

impl HttpDaemon {
    /// A daemon whose connections of this protocol share this.
    pub const fn new(core: Daemon, http: Arc<Shared>) -> Self {
        Self { core, http }
    }
}

impl Deref for HttpDaemon {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.core
    }
}
