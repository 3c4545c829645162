//! The tools that create, list, reset and stop sessions.

use std::fmt::{Display, Formatter};
use std::path::Path;

use mainstay_log::SessionFilter;
use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Error, ProjectChoice, Session, SessionCommand, SessionId, SessionKind};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::eval::SendCode;
use super::needs::{Waits, Works};
use super::tool::{Answer, Effect, Tool};
use mainstay_gateway::command::arguments_in;
use mainstay_protocol::view::StartupView;

/// The most sessions in one answer.
const LISTED: usize = 30;

/// A session after what was done to it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionAnswer {
    session_id: String,
    name: String,
    kind: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl From<&Session> for SessionAnswer {
    fn from(session: &Session) -> Self {
        Self {
            session_id: session.id.short(),
            name: session.name.clone(),
            kind: session.kind.to_string(),
            state: session.state().name(),
            fault: session.fault().map(str::to_owned),
        }
    }
}

impl Answer for SessionAnswer {
    fn is_failure(&self) -> bool {
        self.fault.is_some()
    }
}

impl Display for SessionAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, name, kind, state, fault } = self;
        write!(f, "{name}: {kind}, {state}")?;
        if let Some(fault) = fault {
            write!(f, ": {fault}")?;
        }
        write!(f, " [session {session_id}]")
    }
}

/// A session that has just come to be, or begins afresh.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct CreatedAnswer {
    #[serde(flatten)]
    session: SessionAnswer,
    /// Which code it runs, in a sentence; absent of an agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<String>,
    /// What it has of its project, and what of that did not go as it was meant to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl From<&Session> for CreatedAnswer {
    fn from(session: &Session) -> Self {
        let StartupView { summary, faults, unbuilt } = match StartupView::of(session) {
            Some(startup) => startup,
            None => return Self { session: session.into(), runs: None, notes: Vec::new() },
        };
        let notes = std::iter::once(summary).chain(faults).chain(unbuilt).collect();
        Self { session: session.into(), runs: None, notes }
    }
}

impl CreatedAnswer {
    /// The same, which says what code runs there now.
    pub(super) fn saying_language(self, call: &Call, session: &Session) -> Self {
        Self { runs: runs(call, session), ..self }
    }

    /// The same, with what else is to be known.
    fn noting(mut self, note: Option<String>) -> Self {
        self.notes.extend(note);
        self
    }
}

/// Which code a session runs, in a sentence; none of an agent's.
pub(super) fn runs(call: &Call, session: &Session) -> Option<String> {
    let language = match session.language() {
        Some(language) => language.as_str().to_owned(),
        None if session.is_agent() => return None,
        None => session.kind.to_string(),
    };
    Some(format!("{} runs {language} now", call.names().of::<SendCode>()))
}

impl Answer for CreatedAnswer {
    fn is_failure(&self) -> bool {
        self.session.is_failure()
    }
}

impl Display for CreatedAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.notes.iter().chain(&self.runs).try_for_each(|note| writeln!(f, "{note}"))?;
        self.session.fmt(f)
    }
}

/// Creates a session; a name that another has in the folder is refused.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateSession {
    /// The absolute path of its folder.
    working_directory: Option<String>,
    /// A file, or a folder with one; by default that of the working directory.
    project: Option<String>,
    #[serde(default)]
    no_project: bool,
    /// Of the compiler: `--define:X --nowarn:25`.
    fsi_args: Option<String>,
    name: Option<String>,
    /// By default that of the folder's project.
    kind: Option<String>,
}

impl Tool for CreateSession {
    const NAME: &'static str = "create_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::CreateSession>()];
    const DESCRIPTION: &'static str = "Create a session (a REPL of F#, Python or another language), wait until it is Ready, and use it from now on.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: false };
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    const WAITS: Waits = Waits::AsAsked;
    const IS_BASIC: bool = true;
    const SAYS_ANSWER: bool = false;
    type Answer = CreatedAnswer;

    async fn carry_out(self, call: &Call) -> Result<CreatedAnswer, Error> {
        let meant = call.meant();
        let working_directory = self.working_directory.unwrap_or_else(|| meant.folder());
        // What is absolute already stays as it is.
        let in_folder = |project| Path::new(&working_directory).join::<String>(project).display().to_string();
        let create = mainstay_model::CreateSession {
            kind: match self.kind {
                Some(kind) => SessionKind::new(kind)?,
                None => meant.kinds.default_kind(&meant.client, &working_directory).await,
            },
            project: ProjectChoice::of(self.project.map(in_folder), self.no_project)?,
            arguments: arguments_in(self.fsi_args.as_deref()),
            working_directory,
            name: self.name,
            alias: None,
        };
        let before = call.server().last_used();
        let session = call.create(call.command_id(), create).await?;
        let ready = tokio::select! {
            biased;
            () = call.cancelled() => {
                withdraw(call, session, before).await?;
                return Err(Error::Cancelled);
            }
            ready = call.bring_up(session) => ready?,
        };
        let dropped = call.client().status(session).await?.dropped_environment;
        Ok(CreatedAnswer::from(&*ready).noting(dropped).saying_language(call, &ready))
    }
}

/// Deletes a session whose creation its user cancelled, unless someone else uses it already. The connection goes on in the one that it used
/// before.
async fn withdraw(call: &Call, session: SessionId, before: Option<SessionId>) -> Result<(), Error> {
    call.server().use_instead(session, before);
    let stored = call.client().status(session).await?.session;
    if stored.evals > 0 || stored.running().is_some() || !stored.lane.is_empty() {
        return Ok(());
    }
    // Whoever began to use it meanwhile keeps it.
    call.delete_unchanged(session, stored.version).await
}

/// Drops all definitions of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ResetSession {
    session_id: Option<String>,
}

impl Tool for ResetSession {
    const NAME: &'static str = "reset_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ResetSession>()];
    const SEED_NAME: Option<&'static str> = Some("reset_fsi_session");
    const DESCRIPTION: &'static str =
        "Drop a session's definitions; keep its worker. fork_session with beforeReset undoes it.";
    const EFFECT: Effect = Effect::Changes { destructive: true, idempotent: true };
    const ACTION: Option<Action> = Some(Action::Reset);
    const WORKS: Works = Works::In(Action::Reset, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    type Answer = CreatedAnswer;

    async fn carry_out(self, call: &Call) -> Result<CreatedAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Reset).await?;
        call.submit(session, SessionCommand::Reset).await?;
        Ok(CreatedAnswer::from(&*call.settled(session).await?))
    }
}

/// Stops a session; its transcript stays.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StopSession {
    session_id: Option<String>,
}

impl Tool for StopSession {
    const NAME: &'static str = "stop_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::StopSession>()];
    const DESCRIPTION: &'static str =
        "End a session's worker. Running code in it again restores its definitions.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: true };
    const ACTION: Option<Action> = Some(Action::Stop);
    const WORKS: Works = Works::In(Action::Stop, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    type Answer = SessionAnswer;

    async fn carry_out(self, call: &Call) -> Result<SessionAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Stop).await?;
        call.submit(session, SessionCommand::Stop).await?;
        let status = call.client().status(session).await?;
        Ok(SessionAnswer::from(&status.session))
    }
}

/// Asks for the sessions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListSessions {
    /// Of all folders, not only of this one.
    #[serde(default)]
    pub(super) all: bool,
}

/// The sessions, most recently active first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct ListAnswer {
    sessions: Vec<SessionLine>,
    /// Whether there are older ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// How many there are in other folders.
    #[serde(skip_serializing_if = "is_none")]
    elsewhere: usize,
}

/// Whether there are no others.
const fn is_none(count: &usize) -> bool {
    *count == 0
}

/// One session in a list.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionLine {
    session_id: String,
    name: String,
    kind: String,
    state: &'static str,
    working_directory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

impl Tool for ListSessions {
    const NAME: &'static str = "list_sessions";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ListSessions>()];
    const DESCRIPTION: &'static str =
        "The sessions of this folder, most recently active first; with `all` those of every folder.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    type Answer = ListAnswer;

    async fn carry_out(self, call: &Call) -> Result<ListAnswer, Error> {
        // Without a folder there is no other one.
        let within = call.meant().folder.filter(|_| !self.all);
        let elsewhere = match &within {
            Some(_) => {
                let here = SessionFilter { within: within.clone(), ..SessionFilter::default() };
                let all = call.client().count_sessions(SessionFilter::default()).await?;
                all.saturating_sub(call.client().count_sessions(here).await?)
            }
            None => 0,
        };
        let filter = SessionFilter { within, limit: Some(LISTED + 1), ..SessionFilter::default() };
        let sessions = call.client().sessions(filter).await?;
        let more = sessions.len() > LISTED;
        let sessions = sessions.into_iter().take(LISTED).map(SessionLine::from).collect();
        Ok(ListAnswer { sessions, more, elsewhere })
    }
}

impl From<Session> for SessionLine {
    fn from(session: Session) -> Self {
        Self {
            session_id: session.id.short(),
            state: session.state().name(),
            name: session.name,
            kind: session.kind.to_string(),
            working_directory: session.working_directory,
            project: session.project,
        }
    }
}

impl Answer for ListAnswer {}

impl Display for ListAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for SessionLine { session_id, name, kind, state, working_directory, .. } in &self.sessions {
            writeln!(f, "{session_id} {name}: {kind}, {state}, in {working_directory}")?;
        }
        let more = if self.more { ", and older ones" } else { "" };
        write!(f, "sessions: {}{more}", self.sessions.len())?;
        match self.elsewhere {
            0 => Ok(()),
            elsewhere => write!(f, "; {elsewhere} more in other folders (list them with `all`: true)"),
        }
    }
}
