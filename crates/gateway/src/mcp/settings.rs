//! What a user decides of MCP, and what its connections share.

use serde::Deserialize;

use super::clients::Results;
use super::names::Names;
use super::under_way::CallsUnderWay;

/// The settings, `[mcp]` in `config.toml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The names of tools that clients are shown; calls take all.
    pub names: Names,
    /// In what form results are given where a request does not say it; by default as fits the client.
    pub results: Option<Results>,
    /// How many seconds a call waits that does not say it; by default as fits the client.
    pub wait: Option<u32>,
}

/// What all connections share.
#[derive(Default)]
pub struct Shared {
    pub(super) settings: Settings,
    pub(super) calls: CallsUnderWay,
}

impl Shared {
    /// Creates the shared state with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings, calls: CallsUnderWay::default() }
    }
}
