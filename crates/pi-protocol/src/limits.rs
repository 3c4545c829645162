//! Upstream's limits, for those who want to be held to them. Source: protocols/pi.md, "Limits".

use mainstay_model::Limits;

/// pi-server's limits; Mainstay's own where it has none.
pub fn upstream_limits() -> Limits {
    Limits {
        message_bytes: 10 * 1024 * 1024,
        live_sessions: 100,
        connections: 1_000,
        connection_requests: 100,
        session_commands_per_minute: 100,
        commands_per_minute: 1_000,
        commands: 10_000,
        dependencies: 32,
        dependency_wait_ms: 30_000,
        query_ms: 30_000,
        pi_turn_ms: 300_000,
        drain_ms: 30_000,
        ..Limits::default()
    }
}
