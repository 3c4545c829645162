//! What a user decides of MCP, and what its connections share.

use serde::{Deserialize, Serialize};

use super::clients::Results;
use super::names::Names;
use super::running_calls::RunningCalls;

/// The settings, `[mcp]` in `config.toml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The tool names that clients are shown. Calls accept all names.
    pub names: Names,
    /// The form of results when a request does not choose one. Without it, the form that fits the client.
    pub results: Option<Results>,
    /// How many seconds a call waits for its result when it does not say. Without it, the time that fits the client.
    pub wait: Option<u32>,
}

/// What all connections share.
#[derive(Default)]
pub struct Shared {
    pub(super) settings: Settings,
    pub(super) calls: RunningCalls,
}

impl Shared {
    /// Creates the shared state with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings, calls: RunningCalls::default() }
    }
}
