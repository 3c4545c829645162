//! The daemon as a connection of MCP sees it.

use std::ops::Deref;
use std::sync::Arc;

use super::Shared;
use mainstay_gateway::daemon::Daemon;

/// The daemon, with what a connection of MCP shares.
#[derive(Clone)]
pub struct McpDaemon {
    core: Daemon,
    /// What a connection of MCP shares.
    pub mcp: Arc<Shared>,
}

impl McpDaemon {
    /// A daemon whose connections of this protocol share this.
    pub const fn new(core: Daemon, mcp: Arc<Shared>) -> Self {
        Self { core, mcp }
    }
}

impl Deref for McpDaemon {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.core
    }
}
