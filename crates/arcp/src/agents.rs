//! What can be given jobs: the kinds of sessions that can start here are the agents. Source: draft-arcp-1.1, 7.5; seed 002.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_arcp_protocol::b::InventoryEntry;
use mainstay_engine::Client;
use mainstay_gateway::daemon::Daemon;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, SessionKind};
use tokio::sync::Mutex;

/// The version of all agents. It says what an agent takes as input and gives as result, not which program runs it.
pub(crate) const VERSION: &str = "1";

/// How many sessions are looked at for their kinds.
const LOOKED_AT: usize = 200;

/// Why an agent cannot be given a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AgentRefused {
    /// There is none of this name that can start; these are there.
    Unknown(Vec<String>),
    /// There is one of this name, in another version.
    OtherVersion(String),
}

impl AgentRefused {
    /// The same about this agent, for people.
    pub(crate) fn about(&self, agent: &str) -> String {
        match self {
            Self::Unknown(names) if names.is_empty() => format!(
                "there is no agent {agent}: this client has no session, and brings no environment in which one could start; begin one \
                 with `mainstay`, or speak over `mainstay arcp`"
            ),
            Self::Unknown(names) => format!("there is no agent {agent}; there are {}", names.join(", ")),
            Self::OtherVersion(version) => {
                format!("{agent}@{version} is not available; {agent} is there in version {VERSION}")
            }
        }
    }
}

/// The agents that can be given jobs, the preferred one first: the kinds of which a session can start for this client, and those of which it has
/// sessions already, which another client may have started with what that has in its environment.
///
/// # Errors
/// [`Error::StoreFailed`].
pub(crate) async fn inventory(daemon: &Daemon, client: &Client) -> Result<Vec<InventoryEntry>, Error> {
    let known = daemon.kinds.known(client, None).await?;
    let can_start = known.into_iter().filter(|kind| kind.missing.is_none()).map(|kind| kind.kind);
    let filter = SessionFilter { limit: Some(LOOKED_AT), ..SessionFilter::default() };
    let there = client.sessions(filter).await?.into_iter().map(|session| session.kind);
    let mut kinds: Vec<SessionKind> = Vec::new();
    for kind in can_start.chain(there) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let entry = |kind: SessionKind| InventoryEntry {
        name: kind.to_string(),
        versions: vec![VERSION.to_owned()],
        default: Some(VERSION.to_owned()),
    };
    Ok(kinds.into_iter().map(entry).collect())
}

/// The agents that were found for a client: finding them again costs more than a small job, and one look is enough for all who wait for it. An agent
/// that has gone since is refused by the engine.
#[derive(Clone, Default)]
pub(crate) struct AgentCache(Arc<Mutex<BTreeSet<String>>>);

impl AgentCache {
    /// The kind of session that an agent's name means.
    ///
    /// # Errors
    /// Why the agent cannot be given a job; [`Error::StoreFailed`].
    pub(crate) async fn kind_of(
        &self,
        daemon: &Daemon,
        client: &Client,
        name: &str,
        version: Option<&str>,
    ) -> Result<Result<SessionKind, AgentRefused>, Error> {
        let mut found = self.0.lock().await;
        if found.contains(name) && version.is_none_or(|version| version == VERSION) {
            return Ok(Ok(SessionKind::new(name)?));
        }
        let kind = kind_of(daemon, client, name, version).await?;
        if kind.is_ok() {
            found.insert(name.to_owned());
        }
        Ok(kind)
    }
}

async fn kind_of(
    daemon: &Daemon,
    client: &Client,
    name: &str,
    version: Option<&str>,
) -> Result<Result<SessionKind, AgentRefused>, Error> {
    let names: Vec<_> = inventory(daemon, client).await?.into_iter().map(|entry| entry.name).collect();
    if !names.iter().any(|known| known == name) {
        return Ok(Err(AgentRefused::Unknown(names)));
    }
    if version.is_some_and(|version| version != VERSION) {
        return Ok(Err(AgentRefused::OtherVersion(version.unwrap_or_default().to_owned())));
    }
    Ok(Ok(SessionKind::new(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_an_agent_that_is_not_there_is_told_what_to_do() {
        let none = AgentRefused::Unknown(Vec::new()).about("fsharp");
        assert!(none.ends_with("begin one with `mainstay`, or speak over `mainstay arcp`"), "{none}");
        let others = AgentRefused::Unknown(vec!["fsharp".to_owned(), "pi".to_owned()]).about("python3");
        assert_eq!(others, "there is no agent python3; there are fsharp, pi");
    }
}
