//! What clients of the protocol read: of the transcript, which is ours, and of the agent itself where only it knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_engine::Client;
use mainstay_model::breaker::{BreakerState, BreakerStatus};
use mainstay_model::{
    Admission, Capability, Command, Error, Role, Session, SessionCommand, SessionId, SessionKind,
    SessionState, Timestamp, TokenUsage, TranscriptEntry,
};
use mainstay_runner::{AgentQuestion, Conversation};
use serde_json::{Value, json};

use super::command::{Body, Read};
use super::handlers::{Call, CommandResult, Failed, Result};
use super::info::{agents, context_usage, find, info, infos, name_of, stored_agents};
use super::session_path;
use super::{history, html, messages, recovery};
use mainstay_gateway::command::anonymous;

/// Entries of a tree at most. Source: protocols/pi.md, "Session commands".
const TREE: usize = 10_000;
/// Characters of a text in it.
const TREE_TEXT: usize = 400;

impl Call<'_> {
    /// Reads; nothing is changed by it.
    pub(super) async fn read(&self) -> Result {
        self.wait_for_dependencies().await?;
        let data = match &self.command.body {
            Body::Read(read) => return self.read_session(*read).await,
            Body::ExportHtml { path } => self.export(path.as_deref()).await?,
            Body::ListSessions => {
                let sessions = agents(self.client).await?;
                json!({ "sessions": infos(self.daemon, self.client, &sessions).await? })
            }
            Body::SwitchSession { .. } => {
                let session = self.client.status(self.session().await?).await?.session;
                let data = json!({ "sessionInfo": info(self.daemon, self.client, &session).await? });
                return Ok(CommandResult {
                    data: Some(data),
                    version: Some(session.version),
                    ..CommandResult::default()
                });
            }
            Body::GetMetrics => self.metrics().await?,
            Body::HealthCheck => self.health(),
            Body::GetStartupRecovery => recovery::told(self.daemon, self.client).await,
            Body::GetCommandHistory(query) => history::read(self.client, &self.daemon.home, query).await?,
            Body::ListStoredSessions => {
                let sessions = stored_agents(self.client).await?;
                let mut stored = Vec::with_capacity(sessions.len());
                for session in &sessions {
                    stored.push(self.stored(session).await?);
                }
                json!({ "sessions": stored })
            }
            Body::CreateSession { .. }
            | Body::DeleteSession
            | Body::LoadSession { .. }
            | Body::Prompt { .. }
            | Body::Steer(_)
            | Body::FollowUp(_)
            | Body::Abort(_)
            | Body::Set(_)
            | Body::Compact { .. }
            | Body::Bash { .. }
            | Body::SetSessionName { .. }
            | Body::NewSession
            | Body::SwitchSessionFile { .. }
            | Body::Fork { .. }
            | Body::NavigateTree { .. }
            | Body::Answer { .. } => Value::Null,
        };
        Ok(CommandResult { data: Some(data), ..CommandResult::default() })
    }

    /// Waits until what the command depends on has succeeded.
    pub(super) async fn wait_for_dependencies(&self) -> Result<()> {
        Ok(self.client.succeeded(&self.command.depends_on).await?)
    }

    async fn read_session(&self, read: Read) -> Result {
        let id = self.session().await?;
        let session = self.client.status(id).await?.session;
        if let Some(expected) = self.command.if_version
            && expected != session.version
        {
            let error = Error::VersionMismatch { expected, actual: session.version };
            return Err(Failed::Error { error, is_replay: false });
        }
        let version = Some(session.version);
        let data = match read {
            Read::State => info(self.daemon, self.client, &session).await?,
            Read::Messages => {
                let Conversation { entries, state, .. } = self.client.conversation(id).await?;
                json!({ "messages": messages::of_entries(&entries, state.as_ref()) })
            }
            Read::AvailableModels => self.question(id, AgentQuestion::Models).await?,
            Read::Commands => self.question(id, AgentQuestion::Commands).await?,
            Read::Skills => skills(&self.question(id, AgentQuestion::Commands).await?),
            Read::Tools => {
                return Err(Failed::Said {
                    message: "get_tools is not supported: pi's RPC mode does not tell its tools".to_owned(),
                    is_replay: false,
                    is_stored: false,
                });
            }
            Read::SessionFiles => json!({ "files": files(&self.files_of(id)) }),
            Read::Stats => {
                let name = name_of(&session, self.client.principal());
                let shown = self.shown(&session).await?.into_iter().map(|(_, placed)| placed);
                statistics(name, &session, &shown.collect::<Vec<_>>())
            }
            Read::ForkMessages => json!({ "messages": self.fork_messages(&session).await? }),
            Read::Tree => self.tree(&session).await?,
            Read::LastAssistantText => json!({ "text": self.last_words(&session).await? }),
            Read::ContextUsage => context_usage(&session),
        };
        Ok(CommandResult { data: Some(data), version, ..CommandResult::default() })
    }

    /// What only the agent knows. An idle one is started for it.
    async fn question(
        &self,
        session: SessionId,
        question: AgentQuestion,
    ) -> std::result::Result<Value, Error> {
        if self.client.status(session).await?.session.state() == SessionState::Uninitialized {
            let start = Command {
                admission: Admission::Now,
                ..Command::new(anonymous(), self.client.source(), SessionCommand::Start)
            };
            match self.client.submit(session, start).await {
                // Someone else has started it meanwhile.
                Ok(_) | Err(Error::NotOffered { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let limits = self.daemon.engine.limits();
        self.client.settled(session, Duration::from_millis(limits.worker_start_ms)).await?;
        self.client.question(session, question).await
    }

    async fn entries(&self, session: SessionId) -> std::result::Result<Vec<TranscriptEntry>, Error> {
        self.client.entries(session, 0, usize::MAX).await
    }

    /// The entries that the agent is shown, each with its index in the transcript.
    async fn shown(&self, session: &Session) -> std::result::Result<Vec<(usize, TranscriptEntry)>, Error> {
        let entries = self.entries(session.id).await?;
        Ok(entries.into_iter().enumerate().filter(|(_, placed)| session.shows(placed)).collect())
    }

    /// What people said, which a fork may begin before: each by its number.
    async fn fork_messages(&self, session: &Session) -> std::result::Result<Vec<Value>, Error> {
        let entries = self.shown(session).await?;
        let said = entries.iter().filter(|(_, placed)| is_typed(placed));
        Ok(said
            .map(|(index, placed)| {
                json!({ "entryId": (index + 1).to_string(), "text": placed.entry.content.beginning() })
            })
            .collect())
    }

    /// The transcript as a tree of one branch: forks are sessions of their own.
    async fn tree(&self, session: &Session) -> std::result::Result<Value, Error> {
        let mut entries = self.shown(session).await?;
        let entries = entries.split_off(entries.len().saturating_sub(TREE));
        let (indices, entries): (Vec<usize>, Vec<TranscriptEntry>) = entries.into_iter().unzip();
        let labels = self.client.labels_of(session.id, &entries).await?;
        let named = |index: usize| (index + 1).to_string();
        let node = |(nth, (placed, label)): (usize, (&TranscriptEntry, Option<String>))| {
            let text: String = placed.entry.content.beginning().chars().take(TREE_TEXT).collect();
            let parent = nth.checked_sub(1).and_then(|before| indices.get(before));
            let mut node = json!({
                "entryId": indices.get(nth).copied().map(named),
                "parentId": parent.copied().map(named),
                "entryType": if placed.entry.role == Role::Summary { "compaction" } else { "message" },
                "role": if placed.entry.is_shell_run() { Some("bashExecution") } else { role_name(placed.entry.role) },
                "text": text,
                "timestamp": placed.at,
            });
            if let Some(label) = label {
                node["label"] = label.into();
            }
            node
        };
        let nodes: Vec<Value> = entries.iter().zip(labels).enumerate().map(node).collect();
        let leaf = indices.last().copied().map(named);
        Ok(json!({ "currentLeafId": leaf, "nodes": nodes }))
    }

    /// What a model said last; null where it said nothing.
    async fn last_words(&self, session: &Session) -> std::result::Result<Option<String>, Error> {
        let entries = self.shown(session).await?;
        let last = entries.iter().rfind(|(_, placed)| placed.entry.role == Role::Assistant);
        let Some((index, _)) = last else { return Ok(None) };
        let whole = self.client.whole_entries(session.id, *index as u64, 1).await?;
        Ok(whole.first().map(|placed| placed.entry.content.beginning().to_owned()))
    }

    /// Writes the conversation as a page; to a file that is not there yet.
    async fn export(&self, path: Option<&str>) -> std::result::Result<Value, Error> {
        self.client.require_all("write files as the daemon's user")?;
        let id = self.session().await?;
        let session = self.client.status(id).await?.session;
        let invalid = |reason: String| Error::InvalidArgument { argument: "outputPath".to_owned(), reason };
        let name = format!("pi-session-{}.html", name_of(&session, self.client.principal()));
        let path =
            Path::new(&session.working_directory).join(path.map_or(PathBuf::from(name), PathBuf::from));
        let Conversation { entries, .. } = self.client.conversation(id).await?;
        let page = html::page(&session.name, &entries);
        let mut options = tokio::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).open(&path).await;
        let mut file = file.map_err(|error| invalid(format!("`{}`: {error}", path.display())))?;
        let written = tokio::io::AsyncWriteExt::write_all(&mut file, page.as_bytes()).await;
        written.map_err(|error| invalid(format!("`{}`: {error}", path.display())))?;
        Ok(json!({ "path": path.display().to_string() }))
    }

    /// The folder in which pi has files of its own of a session.
    fn files_of(&self, session: SessionId) -> PathBuf {
        session_path::folder(&self.daemon.home, session)
    }

    async fn stored(&self, session: &Session) -> std::result::Result<Value, Error> {
        let mut stored = info(self.daemon, self.client, session).await?;
        let file = files(&self.files_of(session.id)).into_iter().next();
        stored["fileExists"] = file.is_some().into();
        let path = match file {
            Some(mut file) => file["path"].take(),
            None => session_path::of(&self.daemon.home, session.id).display().to_string().into(),
        };
        stored["sessionFile"] = path.clone();
        stored["sessionPath"] = path;
        stored["cwd"] = session.working_directory.as_str().into();
        Ok(stored)
    }

    async fn metrics(&self) -> std::result::Result<Value, Error> {
        let engine = &self.daemon.engine;
        let (limits, rates) = (engine.limits(), &self.daemon.pi.rates);
        let (commands, keys) = self.daemon.pi.known();
        Ok(json!({
            "sessionCount": super::handlers::count(self.client).await?,
            "connectionCount": self.daemon.pi.connections(),
            "pendingConnectionCount": 0,
            "totalCommandsExecuted": self.daemon.pi.commands(),
            "commandsRejected": rates.rejected(),
            // What upstream must clean up does not arise here.
            "zombieSessionsDetected": 0,
            "zombieSessionsCleaned": 0,
            "doubleUnregisterErrors": 0,
            "rateLimitUsage": { "globalCount": rates.recent(Timestamp::now()), "globalLimit": limits.commands_per_minute },
            "stores": {
                "replay": {
                    "inFlightCount": engine.commands_under_way(), "outcomeCount": commands, "idempotencyCacheSize": keys,
                    "maxInFlightCommands": limits.commands, "maxCommandOutcomes": limits.outcomes,
                    "inFlightRejections": rates.in_flight_rejections(),
                },
                "version": { "sessionCount": engine.sessions_in_use() },
                "execution": { "laneCount": engine.sessions_in_use() },
                "lock": { "activeLocks": 0, "timeoutCount": 0, "waitingCount": 0 },
                "extensionUI": {
                    "pendingCount": self.client.asks().await?.len(), "maxPendingRequests": limits.asks, "rejectedCount": 0,
                },
                "sessionStore": { "metadataResetCount": 0 },
                "journal": { "enabled": true, "initialized": true },
            },
            "circuitBreakers": self.breakers(),
            "bashCircuitBreaker": {
                "enabled": false, "globalState": "closed", "sessionCount": 0, "openSessionCount": 0, "totalCalls": 0,
                "totalTimeouts": 0, "totalRejected": 0,
            },
        }))
    }

    fn breakers(&self) -> Vec<Value> {
        let breakers = self.client.provider_breakers();
        breakers.iter().map(|(provider, status)| json!({ "provider": provider, "state": status })).collect()
    }

    fn health(&self) -> Value {
        let is_open = |status: &BreakerStatus| status.state == BreakerState::Open;
        let kinds = self.client.breakers();
        let is_agents = |kind: &SessionKind| self.client.capabilities_of(kind).has(Capability::Conversation);
        let do_not_start = kinds.iter().any(|(kind, status)| is_agents(kind) && is_open(status));
        let start = do_not_start.then(|| "agents do not start; see `mainstay status`".to_owned());
        let providers = self.client.provider_breakers();
        let failing = providers.iter().filter(|(_, status)| is_open(status));
        let fail = failing.map(|(provider, _)| format!("turns with the provider {provider} fail"));
        let issues: Vec<String> = start.into_iter().chain(fail).collect();
        let is_healthy = issues.is_empty();
        json!({
            "healthy": is_healthy, "issues": issues, "hasOpenCircuit": !is_healthy, "hasOpenBashCircuit": false,
        })
    }
}

/// Of what can be prompted with a slash, the skills.
fn skills(commands: &Value) -> Value {
    let commands = commands["commands"].as_array().cloned().unwrap_or_default();
    let skills = commands.into_iter().filter(|command| command["source"] == "skill");
    let skill = |command: Value| {
        let name = command["name"].as_str().unwrap_or_default();
        json!({
            "name": name.strip_prefix("skill:").unwrap_or(name),
            "description": command["description"].as_str().unwrap_or_default(),
            "filePath": command["sourceInfo"]["path"].as_str().or(command["path"].as_str()).unwrap_or_default(),
            "source": command["sourceInfo"]["source"].as_str().or(command["location"].as_str()).unwrap_or_default(),
        })
    };
    json!({ "skills": skills.map(skill).collect::<Vec<_>>() })
}

/// What a conversation came to.
fn statistics(name: String, session: &Session, entries: &[TranscriptEntry]) -> Value {
    let mut roles: BTreeMap<Role, u64> = BTreeMap::new();
    let mut messages = std::collections::BTreeSet::new();
    for placed in entries {
        *roles.entry(placed.entry.role).or_default() += 1;
        messages.insert((placed.session, placed.first, placed.entry.role == Role::User));
    }
    let count = |role: Role| roles.get(&role).copied().unwrap_or_default();
    let typed = entries.iter().filter(|placed| is_typed(placed)).count();
    let models: std::collections::BTreeSet<_> = entries
        .iter()
        .filter(|placed| matches!(placed.entry.role, Role::Assistant | Role::Thinking | Role::ToolCall))
        .map(|placed| (placed.session, placed.first))
        .collect();
    let TokenUsage { input, output, cache_read, cache_write, cost } = session.usage;
    let total = session.usage.tokens();
    json!({
        "sessionId": name,
        "userMessages": typed,
        "assistantMessages": models.len(),
        "toolCalls": count(Role::ToolCall),
        "toolResults": count(Role::ToolResult),
        "totalMessages": messages.len(),
        "tokens": {
            "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write, "total": total,
        },
        "cost": if cost.is_zero() { json!(0) } else { json!(cost) },
    })
}

/// Whether a person said it to the agent: what a line of a shell gave, or an extension says, is told to the agent too.
pub(super) fn is_typed(placed: &TranscriptEntry) -> bool {
    placed.entry.role == Role::User && !placed.entry.metadata.contains_key("subtype")
}

fn role_name(role: Role) -> Option<&'static str> {
    match role {
        Role::User | Role::Input => Some("user"),
        Role::Assistant | Role::Thinking | Role::ToolCall => Some("assistant"),
        Role::ToolResult | Role::Output => Some("toolResult"),
        Role::System | Role::Summary => None,
    }
}

/// The session files in a folder.
fn files(folder: &Path) -> Vec<Value> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_one = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let paths = entries.flatten().map(|entry| entry.path()).filter(is_one);
    let file = |path: PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        json!({ "path": path.display().to_string(), "name": name })
    };
    paths.map(file).collect()
}

/// The session that a client means, for those who only listen.
pub(super) async fn session_of(client: &Client, name: &str) -> std::result::Result<Session, Error> {
    Ok(client.status(find(client, name).await?).await?.session)
}
