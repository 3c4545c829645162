//! What can be given jobs: the kinds of sessions that can start here, and the tools of tool workers, are the agents. Source: draft-arcp-1.1, 7.5;
//! seed 002.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_arcp_protocol::b::InventoryEntry;
use mainstay_engine::Client;
use mainstay_gateway::KnownTool;
use mainstay_gateway::daemon::Daemon;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, SessionKind};
use tokio::sync::Mutex;

/// The version of all agents but tools that have versions of their own. It says what an agent takes as input and gives as result, not which program runs it.
pub(crate) const VERSION: &str = "1";

/// How many sessions are looked at for their kinds.
const LOOKED_AT: usize = 200;

/// Why an agent cannot be given a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AgentRefused {
    /// There is none of this name that can start; these are there.
    Unknown(Vec<String>),
    /// There is one of this name, in these versions alone.
    OtherVersion { wanted: String, has: Vec<String> },
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
            Self::OtherVersion { wanted, has } => {
                let has = has.join(", ");
                format!("{agent}@{wanted} is not available; {agent} is there in version {has}")
            }
        }
    }

    /// What the client can do about it.
    pub(crate) const fn next_step(&self) -> &'static str {
        match self {
            Self::Unknown(names) if names.is_empty() => {
                "Begin a session with `mainstay`, or speak over `mainstay arcp`."
            }
            Self::Unknown(_) => "Name one of the agents that there are.",
            Self::OtherVersion { .. } => "Name a version that is there, or none.",
        }
    }
}

/// What the name of an agent means: a kind of session, or a tool of a tool worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    /// The kind of the sessions that do its jobs.
    pub(crate) kind: SessionKind,
    /// The tool of the worker, and the version that is wanted of it.
    pub(crate) tool: Option<(String, Option<String>)>,
}

impl Agent {
    /// What a name means whose jobs sessions of this kind do; none where it is no name of theirs. It says the same whatever is there now, so that a
    /// job that is submitted again is the same job.
    pub(crate) fn of_kind(kind: &SessionKind, name: &str, version: Option<&str>) -> Option<Self> {
        let rest = name.strip_prefix(kind.as_str())?;
        let tool = match rest {
            "" if version.is_none_or(|version| version == VERSION) => None,
            rest => Some((rest.strip_prefix('.')?.to_owned(), version.map(str::to_owned))),
        };
        Some(Self { kind: kind.clone(), tool })
    }
}

/// The agents that can be given jobs, the preferred one first: the kinds of which a session can start for this client, those of which it has
/// sessions already, which another client may have started with what that has in its environment, and the tools of tool workers.
///
/// # Errors
/// [`Error::StoreFailed`].
pub(crate) async fn inventory(daemon: &Daemon, client: &Client) -> Result<Vec<InventoryEntry>, Error> {
    let entry = |kind: &SessionKind| InventoryEntry {
        name: kind.to_string(),
        versions: vec![VERSION.to_owned()],
        default: Some(VERSION.to_owned()),
    };
    let there = available(daemon, client).await?;
    let kinds = there.iter().map(|(kind, _)| entry(kind));
    let tools =
        there.iter().flat_map(|(kind, tools)| tools.iter().flatten().map(|tool| tool_entry(kind, tool)));
    Ok(kinds.chain(tools).collect())
}

fn tool_entry(kind: &SessionKind, tool: &KnownTool) -> InventoryEntry {
    let KnownTool { name, versions, default, .. } = tool;
    let name = format!("{kind}.{name}");
    match versions.as_slice() {
        [] => InventoryEntry { name, versions: vec![VERSION.to_owned()], default: Some(VERSION.to_owned()) },
        _ => InventoryEntry { name, versions: versions.clone(), default: default.clone() },
    }
}

/// The kinds of sessions that are there for a client, with the tools of those that are tool workers.
async fn available(
    daemon: &Daemon,
    client: &Client,
) -> Result<Vec<(SessionKind, Option<Vec<KnownTool>>)>, Error> {
    let known = daemon.kinds.known(client, None).await?;
    let can_start =
        known.into_iter().filter(|kind| kind.missing.is_none()).map(|kind| (kind.kind, kind.tools));
    let filter = SessionFilter { limit: Some(LOOKED_AT), ..SessionFilter::default() };
    let there = client.sessions(filter).await?.into_iter().map(|session| (session.kind, None));
    let mut kinds: Vec<(SessionKind, Option<Vec<KnownTool>>)> = Vec::new();
    for (kind, tools) in can_start.chain(there) {
        if !kinds.iter().any(|(other, _)| *other == kind) {
            kinds.push((kind, tools));
        }
    }
    Ok(kinds)
}

/// The agents that were found for a client: finding them again costs more than a small job, and one look is enough for all who wait for it. An agent
/// that has gone since is refused by the engine.
#[derive(Clone, Default)]
pub(crate) struct AgentCache(Arc<Mutex<BTreeMap<AgentName, Agent>>>);

/// An agent as a client names it: its name, and the version that it wants.
type AgentName = (String, Option<String>);

impl AgentCache {
    /// What an agent's name means.
    ///
    /// # Errors
    /// Why the agent cannot be given a job; [`Error::StoreFailed`].
    pub(crate) async fn agent(
        &self,
        daemon: &Daemon,
        client: &Client,
        name: &str,
        version: Option<&str>,
    ) -> Result<Result<Agent, AgentRefused>, Error> {
        let mut found = self.0.lock().await;
        let asked = (name.to_owned(), version.map(str::to_owned));
        if let Some(agent) = found.get(&asked) {
            return Ok(Ok(agent.clone()));
        }
        let (agent, is_known) = match agent_among(&available(daemon, client).await?, name, version) {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        };
        // There are as many names as clients think of.
        if is_known {
            found.insert(asked, agent.clone());
        }
        Ok(Ok(agent))
    }
}

/// Whether a name is that of a tool whose input is an object, as far as that is known.
///
/// # Errors
/// [`Error::StoreFailed`].
pub(crate) async fn takes_objects(daemon: &Daemon, client: &Client, name: &str) -> Result<bool, Error> {
    let known = daemon.kinds.known(client, None).await?;
    let is_it = |kind: &SessionKind, tool: &KnownTool| {
        let rest = name.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('.'));
        tool.takes_objects && rest == Some(tool.name.as_str())
    };
    Ok(known.iter().any(|known| known.tools.iter().flatten().any(|tool| is_it(&known.kind, tool))))
}

/// What a name means, and whether that is known to be there: a tool that is not known may be there once its worker has started, which says
/// what there is.
fn agent_among(
    there: &[(SessionKind, Option<Vec<KnownTool>>)],
    name: &str,
    version: Option<&str>,
) -> Result<(Agent, bool), AgentRefused> {
    let other_version = |has: &[&str]| {
        let has = has.iter().copied().map(str::to_owned).collect();
        Err(AgentRefused::OtherVersion { wanted: version.unwrap_or_default().to_owned(), has })
    };
    let is_other = |has: &[&str]| version.is_some_and(|version| !has.contains(&version));
    if let Some((kind, _)) = there.iter().find(|(kind, _)| kind.as_str() == name) {
        return match is_other(&[VERSION]) {
            true => other_version(&[VERSION]),
            false => Ok((Agent { kind: kind.clone(), tool: None }, true)),
        };
    }
    // The name of a worker may have dots as well.
    let of_worker = |(kind, tools): &(SessionKind, Option<Vec<KnownTool>>)| {
        let tool = name.strip_prefix(kind.as_str())?.strip_prefix('.')?.to_owned();
        Some((kind.clone(), tools.clone()?, tool))
    };
    let longest = there.iter().filter_map(of_worker).max_by_key(|(kind, ..)| kind.as_str().len());
    let Some((kind, tools, tool)) = longest else {
        let kinds = there.iter().map(|(kind, _)| kind.to_string());
        let tools = there.iter().flat_map(|(kind, tools)| {
            tools.iter().flatten().map(move |tool| format!("{kind}.{}", tool.name))
        });
        return Err(AgentRefused::Unknown(kinds.chain(tools).collect()));
    };
    let known = tools.into_iter().find(|known| known.name == tool);
    let agent = Agent { kind, tool: Some((tool, version.map(str::to_owned))) };
    let Some(known) = known else { return Ok((agent, false)) };
    let versions: Vec<&str> = match known.versions.as_slice() {
        [] => vec![VERSION],
        versions => versions.iter().map(String::as_str).collect(),
    };
    match is_other(&versions) {
        true => other_version(&versions),
        false => Ok((agent, true)),
    }
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

    fn there() -> Vec<(SessionKind, Option<Vec<KnownTool>>)> {
        let kind = |name: &str| SessionKind::new(name).unwrap();
        let tool = |name: &str, versions: &[&str]| KnownTool {
            name: name.to_owned(),
            versions: versions.iter().map(ToString::to_string).collect(),
            default: versions.first().map(ToString::to_string),
            takes_objects: false,
        };
        vec![
            (kind("python3"), None),
            (kind("py"), Some(vec![])),
            (kind("py.x"), Some(vec![tool("quote", &[]), tool("search", &["2", "1"])])),
        ]
    }

    #[test]
    fn a_name_means_a_kind_or_a_tool_in_a_version() {
        let agent = |name: &str, version: Option<&str>| agent_among(&there(), name, version);
        let means = |kind: &str, tool: Option<(&str, Option<&str>)>| {
            let tool = tool.map(|(name, version)| (name.to_owned(), version.map(str::to_owned)));
            let is_known = kind != "py";
            Ok((Agent { kind: SessionKind::new(kind).unwrap(), tool }, is_known))
        };
        assert_eq!(agent("python3", Some("1")), means("python3", None));
        assert_eq!(agent("py.x", None), means("py.x", None));
        assert_eq!(agent("py.x.quote", Some("1")), means("py.x", Some(("quote", Some("1")))));
        assert_eq!(agent("py.x.search", None), means("py.x", Some(("search", None))));
        assert_eq!(agent("py.x.search", Some("1")), means("py.x", Some(("search", Some("1")))));
        // Its worker may not have been started yet.
        assert_eq!(agent("py.other", Some("7")), means("py", Some(("other", Some("7")))));
        let about = |name: &str, version: Option<&str>| agent(name, version).unwrap_err().about(name);
        let search = "py.x.search@3 is not available; py.x.search is there in version 2, 1";
        assert_eq!(about("py.x.search", Some("3")), search);
        assert!(about("py.x.quote", Some("2")).ends_with("in version 1"));
        let unknown = about("python3.quote", None);
        assert!(unknown.ends_with("there are python3, py, py.x, py.x.quote, py.x.search"), "{unknown}");
        // The same name means the same, whatever is there.
        for (name, version) in [("py.x", None), ("py.x.search", Some("1")), ("py.x.quote", Some("1"))] {
            let (found, _) = agent(name, version).unwrap();
            assert_eq!(Agent::of_kind(&found.kind, name, version), Some(found));
        }
        assert_eq!(Agent::of_kind(&SessionKind::new("py").unwrap(), "pyx", None), None);
    }
}
