//! The daemon as a connection of the pi protocol sees it.

use std::ops::Deref;
use std::sync::Arc;

use super::shared::Shared;
use mainstay_gateway::daemon::Daemon;

/// The daemon, with what a connection of the pi protocol shares.
#[derive(Clone)]
pub struct PiDaemon {
    core: Daemon,
    /// What a connection of the pi protocol shares.
    pub pi: Arc<Shared>,
}

impl PiDaemon {
    /// A daemon whose connections of this protocol share this.
    pub const fn new(core: Daemon, pi: Arc<Shared>) -> Self {
        Self { core, pi }
    }
}

impl Deref for PiDaemon {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.core
    }
}
