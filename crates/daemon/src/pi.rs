//! pi, the coding agent, joined to the engine.

use std::time::Duration;

use mainstay_agent::pi::{LiveSessions, PiAgents, PiSettings};
use mainstay_home::Home;
use mainstay_home::config::PiConfig;
use mainstay_model::Limits;

/// Starts pi for the sessions of agents.
pub(crate) fn agents(home: &Home, config: PiConfig, limits: &Limits) -> PiAgents {
    let search = mainstay_home::search::pi_programs(home, config.path);
    let PiConfig { path: _, provider, model, arguments, environment, live_sessions, dialog_ms, limits: _ } =
        config;
    let silence = (limits.agent_silence_ms > 0).then(|| Duration::from_millis(limits.agent_silence_ms));
    let grace = Duration::from_millis(limits.agent_cancel_grace_ms);
    let live = || LiveSessions { daemon_file: home.daemon_file(), token_file: home.token_file() };
    let live_sessions = live_sessions.then(live);
    PiAgents::new(PiSettings {
        search,
        provider,
        model,
        arguments,
        environment,
        silence,
        dialog_ms,
        grace,
        live_sessions,
    })
}
