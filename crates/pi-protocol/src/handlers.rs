//! Commands of the protocol as the engine's commands: each is handed over in the order in which it came, and what comes of it is told
//! when it has ended.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use mainstay_engine::{Client, ClientSubscription, CommandStatus, Cursor};
use mainstay_log::{SessionFilter, StoredOutcome};
use mainstay_model::agent::{QueuedPrompt, WorkOutcome};
use mainstay_model::command;
use mainstay_model::{
    Admission, Answered, Command, CommandId, Delivery, Error, EventBody, EventFilter, JobKind, JobSpec,
    Outcome, Prompt, Response as Done, Seq, SessionCommand, SessionId, SessionKind, Version, WorkEnding,
};
use serde_json::{Value, json};

use super::command::{AbortTarget, Body, Cost, PiCommand, Streaming};
use super::daemon::PiDaemon;
use super::info::find;

/// What came of a command.
#[derive(Debug, Default)]
pub(super) struct CommandResult {
    pub(super) data: Option<Value>,
    /// The session's version then.
    pub(super) version: Option<Version>,
    pub(super) is_replay: bool,
    /// What others are told of a session that came, or went.
    pub(super) told: Option<Value>,
    /// Whether there was nothing to do: the log has nothing of it.
    pub(super) is_nothing: bool,
}

/// Why nothing came of it.
#[derive(Debug)]
pub(super) enum Failed {
    /// It was not accepted.
    Refused(Error),
    /// It was, and failed.
    Error { error: Error, is_replay: bool },
    /// It was, and its agent says why it failed.
    Said { message: String, is_replay: bool, is_stored: bool },
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

pub(super) type Result<T = CommandResult> = std::result::Result<T, Failed>;

/// A command that was handed over.
pub(super) struct SubmittedCommand {
    /// What happens to it meanwhile, where it may take long.
    pub(super) followed: Option<ClientSubscription>,
    /// What comes of it.
    pub(super) ended: BoxFuture<'static, Result>,
    /// The event that ends it, once it has ended.
    pub(super) completed: Arc<OnceLock<Seq>>,
}

impl SubmittedCommand {
    /// One whose end is waited for.
    pub(super) fn of(ended: BoxFuture<'static, Result>) -> Self {
        Self { followed: None, ended, completed: Arc::default() }
    }

    /// One that has ended.
    pub(super) fn at_once(ended: Result) -> Self {
        Self::of(futures::future::ready(ended).boxed())
    }
}

/// Who asks, and what.
pub(super) struct Call<'a> {
    pub(super) daemon: &'a PiDaemon,
    pub(super) client: &'a Client,
    pub(super) command: &'a PiCommand,
    pub(super) id: &'a CommandId,
    /// Where sessions work whose creator does not say.
    pub(super) folder: &'a str,
}

impl Call<'_> {
    /// Hands over what changes something.
    pub(super) async fn hand_over(&self) -> Result<SubmittedCommand> {
        match &self.command.body {
            Body::CreateSession { cwd } => self.create(cwd.as_deref()).await,
            Body::LoadSession { path } => self.load(path).await,
            Body::DeleteSession => self.delete().await,
            Body::Fork { entry } => self.fork(entry).await,
            Body::Prompt { prompt, streaming } => self.prompt(prompt, *streaming).await,
            Body::Steer(prompt) => self.steer(prompt, Delivery::Steer).await,
            Body::FollowUp(prompt) => self.steer(prompt, Delivery::FollowUp).await,
            Body::Abort(aborted) => self.abort(*aborted).await,
            Body::Set(setting) => self.work(JobSpec::Setting(setting.clone())).await,
            Body::Compact { instructions } => {
                self.work(JobSpec::Compaction { instructions: instructions.clone() }).await
            }
            Body::Bash { line, is_private } => {
                self.work(JobSpec::Shell { line: line.clone(), is_private: *is_private }).await
            }
            Body::SetSessionName { name } => {
                self.give(SessionCommand::Rename(command::Rename { name: name.clone() })).await
            }
            Body::NewSession => self.give(SessionCommand::Reset).await,
            Body::Answer { request, response } => self.answer(request, response).await,
            Body::NavigateTree { .. } => Err(unsupported(
                "navigate_tree",
                "a transcript is never rewound; fork at the entry, and go on in the fork",
            )),
            Body::SwitchSessionFile { .. } => Err(unsupported(
                "switch_session_file",
                "a session keeps its own transcript; load_session opens the file as a session of its own",
            )),
            Body::ListSessions
            | Body::SwitchSession { .. }
            | Body::GetMetrics
            | Body::HealthCheck
            | Body::GetStartupRecovery
            | Body::GetCommandHistory(_)
            | Body::ListStoredSessions
            | Body::ExportHtml { .. }
            | Body::Read(_) => Err(unsupported(&self.command.kind, "it changes nothing")),
        }
    }

    /// Whether it is for a session that is not there.
    pub(super) async fn session_is_missing(&self) -> bool {
        let is_for_one = !matches!(self.command.body, Body::CreateSession { .. } | Body::LoadSession { .. });
        is_for_one && matches!(self.session().await, Err(Error::SessionNotFound { .. }))
    }

    /// The session that is meant.
    pub(super) async fn session(&self) -> std::result::Result<SessionId, Error> {
        find(self.client, self.command.session.as_deref().unwrap_or_default()).await
    }

    /// Unloads a session: its id is free for another, and `load_session` has it back. Source: PROTOCOL.md of pi-server, 17.1.
    async fn delete(&self) -> Result<SubmittedCommand> {
        let name = self.command.session.clone().unwrap_or_default();
        // An alias is never a whole id.
        let alias = name.parse::<SessionId>().is_err().then(|| name.clone());
        let mut unload = self.engines(SessionCommand::Unload(command::Unload { alias }));
        let session = match self.ended_before().await {
            // Another may be called so by now.
            Some(StoredOutcome { session: Some(session), fingerprint, .. }) => {
                // Stores from before sessions were unloaded have outcomes of deletions.
                let deletion = self.engines(SessionCommand::Delete);
                if fingerprint == deletion.fingerprint(session) {
                    unload = deletion;
                }
                session
            }
            Some(_) | None => match self.ended_with_key(&unload).await? {
                Some(session) => session,
                None => self.session().await?,
            },
        };
        let begun = self.client.begin(session, unload).await?;
        let ended = async move {
            let told = super::frames::session_frame("session_deleted", &name, None);
            let ended = ended_of(begun.ended().await?, None)?;
            let told = (!ended.is_replay).then_some(told);
            Ok(CommandResult { data: Some(json!({ "deleted": true })), version: None, told, ..ended })
        };
        Ok(SubmittedCommand::of(ended.boxed()))
    }

    /// A turn; words for the one that runs, where the client says so. One that is sent again is what it was the first time.
    async fn prompt(&self, prompt: &Prompt, streaming: Option<Streaming>) -> Result<SubmittedCommand> {
        let hears = match streaming {
            None => return self.work(JobSpec::Turn { prompt: prompt.clone() }).await,
            Some(Streaming::Steer) => Delivery::Steer,
            Some(Streaming::FollowUp) => Delivery::FollowUp,
        };
        let is_turn = match self.before().await {
            Some(CommandStatus::Ended(stored)) => {
                !matches!(stored.outcome, Outcome::Done { response: Done::Recorded { .. } })
            }
            Some(CommandStatus::Waits { .. } | CommandStatus::Runs { .. }) => true,
            None => {
                let session = self.client.status(self.session().await?).await?.session;
                session.running().is_none_or(|running| running.kind != JobKind::Turn)
            }
        };
        match is_turn {
            true => self.work(JobSpec::Turn { prompt: prompt.clone() }).await,
            false => self.steer(prompt, hears).await,
        }
    }

    /// What is known of the command, where it has come before.
    async fn before(&self) -> Option<CommandStatus> {
        self.client.command(self.command.id.as_ref()?).await.ok()
    }

    /// What came of the command, where it has come before and has ended.
    pub(super) async fn ended_before(&self) -> Option<StoredOutcome> {
        match self.before().await? {
            CommandStatus::Ended(stored) => Some(*stored),
            CommandStatus::Waits { .. } | CommandStatus::Runs { .. } => None,
        }
    }

    /// The session in which the command has ended under another id with the same key: another may be called as it was by now.
    async fn ended_with_key(&self, command: &Command) -> std::result::Result<Option<SessionId>, Error> {
        let Some(key) = &command.key else { return Ok(None) };
        for session in self.client.sessions(SessionFilter::default()).await? {
            let ended = self.client.ended_with_key(session.id, key).await?;
            if ended.is_some_and(|ended| ended.fingerprint == command.fingerprint(session.id)) {
                return Ok(Some(session.id));
            }
        }
        Ok(None)
    }

    async fn steer(&self, prompt: &Prompt, hears: Delivery) -> Result<SubmittedCommand> {
        self.give(SessionCommand::Steer(QueuedPrompt { prompt: prompt.clone(), hears })).await
    }

    /// Ends the job of this kind, where one runs. Where none does there is nothing to abort, and that is no failure.
    async fn abort(&self, aborted: AbortTarget) -> Result<SubmittedCommand> {
        let session = self.session().await?;
        let status = self.client.status(session).await?.session;
        let (version, running) = (status.version, status.running().map(|running| running.kind));
        let is_meant = match (aborted, running) {
            (AbortTarget::Turn, Some(JobKind::Turn | JobKind::Setting)) => true,
            (AbortTarget::Retry, Some(JobKind::Turn)) => true,
            (AbortTarget::Compaction, Some(JobKind::Compaction)) => true,
            (AbortTarget::Bash, Some(JobKind::Shell)) => true,
            (AbortTarget::Turn | AbortTarget::Retry | AbortTarget::Compaction | AbortTarget::Bash, _) => {
                false
            }
        };
        // One that was just handed over may not run yet; the session knows.
        let is_open = aborted == AbortTarget::Turn && running.is_none();
        let nothing = move || {
            Ok(CommandResult { version: Some(version), is_nothing: true, ..CommandResult::default() })
        };
        if !is_meant && !is_open {
            return Ok(SubmittedCommand::at_once(nothing()));
        }
        let begun = self
            .client
            .begin(
                session,
                self.engines(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })),
            )
            .await?;
        let ended = async move {
            match begun.ended().await {
                Ok(answered) => ended_of(answered, None),
                // It has ended meanwhile.
                Err(Error::NotOffered { .. }) => nothing(),
                Err(error) => Err(error.into()),
            }
        };
        Ok(SubmittedCommand::of(ended.boxed()))
    }

    async fn answer(&self, request: &str, response: &Value) -> Result<SubmittedCommand> {
        let session = self.session().await?;
        let not_pending = || Error::AskNotPending { reference: request.to_owned() };
        let ask = request.parse().map_err(|_| not_pending())?;
        // What was answered is no longer asked.
        if let Some(CommandStatus::Ended(stored)) = self.before().await {
            let StoredOutcome { outcome, version, .. } = *stored;
            return Ok(SubmittedCommand::at_once(ended_of(
                Answered { outcome, version, is_replay: true },
                None,
            )));
        }
        let pending = self.client.status(session).await?.session;
        let pending = pending.ask(ask).ok_or_else(not_pending)?;
        let field = match response["method"].as_str() {
            Some("confirm") => "confirmed",
            Some("interview") => "responses",
            Some("cancelled") | None => "",
            Some(_) => "value",
        };
        let body = match response.get(field) {
            Some(value) => SessionCommand::Answer(command::Answer::new(ask, value.clone())),
            // Who is asked whether it may, and does not say, says no.
            None if pending.ask.question.schema["type"] == "boolean" => {
                SessionCommand::Answer(command::Answer::new(ask, false.into()))
            }
            None => SessionCommand::Decline(command::Decline { ask }),
        };
        let begun = self.client.begin(session, self.engines(body)).await?;
        let ended = async move { ended_of(begun.ended().await?, None) };
        Ok(SubmittedCommand::of(ended.boxed()))
    }

    /// A command that is answered when it is carried out.
    async fn give(&self, body: SessionCommand) -> Result<SubmittedCommand> {
        let session = self.session().await?;
        let kind = self.command.kind.clone();
        let begun = self.client.begin(session, self.engines(body)).await?;
        let ended = async move { ended_of(begun.ended().await?, Some(&kind)) };
        Ok(SubmittedCommand::of(ended.boxed()))
    }

    /// A job, which is followed.
    async fn work(&self, work: JobSpec) -> Result<SubmittedCommand> {
        let session = self.session().await?;
        let after = self.client.status(session).await?.session.last_seq;
        let filter = EventFilter { correlation: Some(self.id.clone()), ..EventFilter::default() };
        let followed = self.client.follow(Cursor::Session { session, after }, filter).await?;
        let kind = self.command.kind.clone();
        let begun = self.client.begin(session, self.engines(SessionCommand::Work(work))).await?;
        let completed = Arc::<OnceLock<Seq>>::default();
        let end = Arc::clone(&completed);
        let ended = async move {
            let answered = begun.ended().await?;
            if let Outcome::Done { response: Done::Worked(work) } = &answered.outcome {
                end.get_or_init(|| work.completed);
            }
            ended_of(answered, Some(&kind))
        };
        Ok(SubmittedCommand { followed: Some(followed), ended: ended.boxed(), completed })
    }

    /// The command as the engine has it: it waits for its turn.
    pub(super) fn engines(&self, body: SessionCommand) -> Command {
        let PiCommand { key, depends_on, if_version, body: asked, .. } = self.command;
        let limits = self.daemon.engine.limits();
        let timeout_ms = if asked.cost() == Cost::Work { limits.pi_turn_ms } else { limits.query_ms };
        Command {
            key: key.clone(),
            admission: Admission::Queue,
            depends_on: depends_on.clone(),
            if_version: *if_version,
            timeout_ms: (timeout_ms > 0).then_some(timeout_ms),
            ..Command::new(self.id.clone(), self.client.source(), body)
        }
    }
}

/// Why it cannot be done here.
fn unsupported(kind: &str, instead: &str) -> Failed {
    Failed::Said {
        message: format!("{kind} is not supported: {instead}"),
        is_replay: false,
        is_stored: false,
    }
}

/// What an outcome tells a client.
fn ended_of(answered: Answered, kind: Option<&str>) -> Result {
    let Answered { outcome, version, is_replay } = answered;
    let response = match outcome {
        Outcome::Done { response } => response,
        Outcome::Failed { error } => return Err(Failed::Error { error, is_replay }),
    };
    let data = match response {
        Done::Worked(WorkOutcome { ending, .. }) => worked(ending, kind, is_replay)?,
        Done::Recorded { .. } if kind == Some("new_session") => Some(json!({ "cancelled": false })),
        Done::Recorded { .. }
        | Done::Created { .. }
        | Done::Forked { .. }
        | Done::Compacted { .. }
        | Done::Merged { .. }
        | Done::Evaluated(_)
        | Done::Cancelling { .. }
        | Done::Withdrawn { .. }
        | Done::Answered { .. }
        | Done::Voted { .. } => None,
    };
    Ok(CommandResult { data, version: Some(version), is_replay, ..CommandResult::default() })
}

/// What an agent gave. An abort is what was wanted, and no failure of the turn it ends.
fn worked(ending: WorkEnding, kind: Option<&str>, is_replay: bool) -> Result<Option<Value>> {
    let failed = |message: String| Err(Failed::Said { message, is_replay, is_stored: true });
    match ending {
        WorkEnding::Done { value, .. } => Ok(match kind {
            Some("set_model") => Some(json!({ "model": value })),
            Some("cycle_model" | "cycle_thinking_level" | "compact") => Some(value),
            Some("bash") => Some(json!({
                "exitCode": value.get("exitCode"),
                "output": value.get("output").and_then(Value::as_str).unwrap_or_default(),
                "cancelled": value.get("cancelled").and_then(Value::as_bool).unwrap_or_default(),
            })),
            Some(_) | None => None,
        }),
        WorkEnding::Failed { message, .. } => failed(message),
        WorkEnding::Cancelled { .. } => match kind {
            Some("bash") => Ok(Some(json!({ "exitCode": null, "output": "", "cancelled": true }))),
            Some("compact") => failed("Compaction cancelled".to_owned()),
            Some(_) | None => Ok(None),
        },
        ending @ WorkEnding::Interrupted => failed(ending.to_string()),
    }
}

/// The first event of a job that has begun, and not only waits.
pub(super) fn has_begun(body: &EventBody) -> bool {
    !matches!(body, EventBody::CommandQueued(_))
}

/// How many sessions of agents are loaded.
pub(super) async fn count(client: &Client) -> std::result::Result<usize, Error> {
    let of = |kind| SessionFilter { kind: Some(kind), loaded: true, ..SessionFilter::default() };
    let pis = client.count_sessions(of(SessionKind::pi())).await?;
    Ok(pis + client.count_sessions(of(SessionKind::agent())).await?)
}
