//! What a scenario works with: it opens connections, and says what the runtime's agent can be asked for.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use uuid::Uuid;

use crate::peer::{Peer, Transcript};
use crate::scenario::Stop;
use crate::settings::{Settings, Work};
use crate::transport::{Link, Target};

/// The runtime under test, as one scenario sees it.
pub(crate) struct Probe {
    pub(crate) settings: Settings,
    pub(crate) transcript: Transcript,
    connections: AtomicUsize,
}

/// How a job behaves that a scenario needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    Succeeds,
    Fails,
    Slow,
    Chatty,
    Asks,
    Permitted,
}

impl Probe {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, transcript: Transcript::default(), connections: AtomicUsize::new(0) }
    }

    /// Opens a connection to the runtime.
    pub(crate) async fn connect(&self) -> Result<Peer, Stop> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let opened = tokio::time::timeout(self.settings.wait, Link::open(&self.settings.target)).await;
        let link = match opened {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => return Err(Stop::failed("a connection", error.to_string())),
            Err(_) => return Err(Stop::failed("a connection", "no answer in time")),
        };
        let Settings { wait, quiet, .. } = self.settings;
        Ok(Peer::new(link, number, self.transcript.clone(), wait, quiet))
    }

    /// Skips the scenario where a second connection would reach another process.
    pub(crate) fn needs_connections(&self) -> Result<(), Stop> {
        match self.settings.target {
            Target::WebSocket { .. } => Ok(()),
            Target::Stdio { .. } => Err(Stop::skipped("over standard streams there is one connection")),
        }
    }

    /// The token of another principal, or a skip.
    pub(crate) fn other_token(&self) -> Result<&str, Stop> {
        self.settings.other_token.as_deref().ok_or_else(|| Stop::skipped("no --other-token"))
    }

    /// The name and the input of the agent (dialect B) that behaves so.
    pub(crate) fn agent(&self, behaviour: Behaviour) -> Result<(&str, Value), Stop> {
        work(&self.settings.agent, "agent", "input", behaviour)
    }

    /// The name and the arguments of the tool (dialect A) that behaves so.
    pub(crate) fn tool(&self, behaviour: Behaviour) -> Result<(&str, Value), Stop> {
        work(&self.settings.tool, "tool", "arguments", behaviour)
    }
}

fn work<'a>(work: &'a Work, name: &str, input: &str, behaviour: Behaviour) -> Result<(&'a str, Value), Stop> {
    let named = work.name.as_deref().ok_or_else(|| Stop::skipped(format!("no --{name}")))?;
    let (option, value) = match behaviour {
        Behaviour::Succeeds => (String::new(), Some(work.input.clone().unwrap_or_default())),
        Behaviour::Fails => (format!("failing-{input}"), work.failing.clone()),
        Behaviour::Slow => (format!("slow-{input}"), work.slow.clone()),
        Behaviour::Chatty => (format!("chatty-{input}"), work.chatty.clone()),
        Behaviour::Permitted => (format!("permission-{input}"), work.permission.clone()),
        Behaviour::Asks => (format!("asking-{input}"), work.asking.clone()),
    };
    Ok((named, value.ok_or_else(|| Stop::skipped(format!("no --{option}")))?))
}

/// Returns an id that no other run of the scenario has.
pub(crate) fn fresh(prefix: &str) -> String {
    format!("{prefix}-{}", Uuid::now_v7())
}
