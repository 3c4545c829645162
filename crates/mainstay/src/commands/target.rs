//! Which session a command is for.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use mainstay_gateway::view::SessionView;
use mainstay_kernel::fsharp::project::named;
use mainstay_kernel::jupyter::install::is_installable;
use mainstay_model::{Action, Error, SessionKind, SessionState};
use mainstay_rpc::api::{CreateSession, GetSession, ListSessions, Sent, SettleSession, StartSession};
use mainstay_rpc::client::Client;
use mainstay_runner::{Environment, WarmUpPhase};

use crate::default_kind::default_kind;
use crate::home::Home;
use crate::kernels;
use mainstay_terminal as terminal;
use mainstay_terminal::ProgressLine;

/// How long a session may warm up while a client waits.
const WARM_UP: Duration = Duration::from_secs(600);
/// So long it may without a word of it.
const PATIENCE: Duration = Duration::from_secs(1);
/// From then on it is said this often how far it is.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// What `--kind` means to a command that creates nothing.
pub(super) const KIND_SOUGHT: &str =
    "The kind of session to look for: fsharp, python or another Jupyter kernel, or an agent: pi";
/// What `--project` means to a command that creates nothing.
pub(super) const PROJECT_SOUGHT: &str = "The project whose session to look for, or its folder";
/// What `--no-project` means to a command that creates nothing.
pub(super) const NO_PROJECT_SOUGHT: &str = "Look for a session without a project";

/// Names a session, or says which to create.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Target {
    /// The session: its id, the end of its id, or its name. Without it the most recently active one of this folder
    #[arg(short, long, value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// The kind of session to look for or create: fsharp, python or another Jupyter kernel, or an agent: pi. Without it what the project here is written in
    #[arg(short, long)]
    pub(crate) kind: Option<String>,

    /// The project to look for or create a session for, or its folder. A new session is for the project of this folder, where it has one
    #[arg(short, long, value_name = "PATH", conflicts_with = "session")]
    pub(crate) project: Option<PathBuf>,

    /// Look for or create a session without a project
    #[arg(long, conflicts_with_all = ["session", "project"])]
    pub(crate) no_project: bool,
}

impl Target {
    /// The session that is meant, which must be there.
    pub(crate) async fn find(&self, home: &Home, client: &Client) -> Result<SessionView, Error> {
        if let Some(session) = &self.session {
            return client.call(GetSession { session: session.clone() }).await;
        }
        let folder = working_directory()?;
        self.most_recent(home, client, &folder, |_| true).await?.ok_or_else(|| none_in(&folder))
    }

    /// The session that is meant; one of this folder is created where there is none.
    pub(crate) async fn find_or_create(&self, home: &Home, client: &Client) -> Result<SessionView, Error> {
        if let Some(session) = &self.session {
            return client.call(GetSession { session: session.clone() }).await;
        }
        // What is to run does not go into an agent's conversation unasked.
        let runs = |session: &SessionView| self.kind.is_some() || !session.is_agent();
        match self.most_recent(home, client, &working_directory()?, runs).await? {
            Some(session) => Ok(session),
            None => {
                self.create(home, client, default_kind(home, &working_directory()?, &Environment::default())?)
                    .await
            }
        }
    }

    /// The session for what is of one of these kinds, which nothing may be. Unless another is named or asked for, it is one that the same kernel
    /// runs as would run a new one: that of the first kind for which there is one, or could be.
    pub(super) async fn find_or_create_of(
        &self,
        home: &Home,
        client: &Client,
        kinds: &[SessionKind],
    ) -> Result<SessionView, Error> {
        let Some(first) = kinds.first().filter(|_| self.session.is_none() && self.kind.is_none()) else {
            return self.find_or_create(home, client).await;
        };
        let folder = working_directory()?;
        let kernelspecs = kernels::places(home, Some(&folder)).kernelspecs();
        let spec = |kind: &SessionKind| kernelspecs.choose(kind).ok().map(|spec| &spec.name);
        let is_there = |kind: &&SessionKind| kind.is_fsharp() || spec(kind).is_some();
        let could_be = |kind: &&SessionKind| is_installable(kind);
        let kind = kinds.iter().find(is_there).or_else(|| kinds.iter().find(could_be)).unwrap_or(first);
        let is_meant = |session: &SessionView| kernels::is_same(&kernelspecs, kind, &session.kind);
        match self.most_recent(home, client, &folder, is_meant).await? {
            Some(session) => Ok(session),
            None => self.create(home, client, kind.clone()).await,
        }
    }

    /// The agent's conversation that is meant; one of this folder is created where there is none, or another is wanted: of pi, where
    /// nothing says of which agent.
    pub(super) async fn find_or_create_agent(
        &self,
        home: &Home,
        client: &Client,
        is_new: bool,
    ) -> Result<SessionView, Error> {
        let kind = self.kind(SessionKind::pi())?;
        let found = match (&self.session, is_new) {
            (Some(session), _) => Some(client.call(GetSession { session: session.clone() }).await?),
            (None, true) => None,
            (None, false) => {
                self.most_recent(home, client, &working_directory()?, |session| session.is_agent()).await?
            }
        };
        let kind = found.as_ref().map_or(kind, |session| session.kind.clone());
        if !kind.is_agent() {
            return Err(Error::NotOfKind { action: Action::Prompt, kind });
        }
        match found {
            Some(session) => Ok(session),
            None => self.create(home, client, kind).await,
        }
    }

    async fn create(&self, home: &Home, client: &Client, default: SessionKind) -> Result<SessionView, Error> {
        let (kind, project) = (self.kind(default)?, self.project()?);
        let working_directory = working_directory()?.display().to_string();
        let no_project = self.no_project;
        let new = CreateSession {
            command: None,
            kind,
            working_directory,
            project,
            no_project,
            fsi_args: None,
            name: None,
        };
        create(home, client, new).await
    }

    /// Whether an agent's conversation is asked for by its kind.
    pub(super) fn is_agent(&self) -> Result<bool, Error> {
        Ok(self.kind(SessionKind::fsharp())?.is_agent())
    }

    /// The kind asked for, else this one.
    fn kind(&self, default: SessionKind) -> Result<SessionKind, Error> {
        self.kind.as_ref().map_or(Ok(default), SessionKind::new)
    }

    fn project(&self) -> Result<Option<String>, Error> {
        self.project.as_deref().map(project_at).transpose()
    }

    async fn most_recent(
        &self,
        home: &Home,
        client: &Client,
        folder: &Path,
        is_meant: impl Fn(&SessionView) -> bool,
    ) -> Result<Option<SessionView>, Error> {
        let (kind, project) = (self.kind.as_ref().map(SessionKind::new).transpose()?, self.project()?);
        let sessions = own_in(client, folder).await?;
        let is_jupyter = kind.as_ref().is_some_and(|kind| !kind.is_fsharp() && !kind.is_agent());
        let kernelspecs = is_jupyter.then(|| kernels::places(home, Some(folder)).kernelspecs());
        let is_of = |session: &SessionView, kind: &SessionKind| {
            session.kind == *kind
                || kernelspecs.as_ref().is_some_and(|known| kernels::is_same(known, kind, &session.kind))
        };
        Ok(sessions.into_iter().find(|session| {
            is_meant(session)
                && kind.as_ref().is_none_or(|kind| is_of(session, kind))
                && project.as_ref().is_none_or(|project| session.project.as_ref() == Some(project))
                && !(self.no_project && session.project.is_some())
        }))
    }
}

/// The project that is meant by a path: the file, or that of the folder.
pub(super) fn project_at(path: &Path) -> Result<String, Error> {
    let found = std::fs::canonicalize(path).map_err(|error| Error::InvalidArgument {
        argument: "project".to_owned(),
        reason: format!("`{}`: {error}", path.display()),
    })?;
    Ok(named(&found)?.display().to_string())
}

/// The session of this folder that was used last.
pub(super) async fn most_recent(client: &Client) -> Result<SessionView, Error> {
    let folder = working_directory()?;
    own_in(client, &folder).await?.into_iter().next().ok_or_else(|| none_in(&folder))
}

/// The sessions of a folder, the one that was used last first. What others have there is not taken by mistake: it has to be named.
async fn own_in(client: &Client, folder: &Path) -> Result<Vec<SessionView>, Error> {
    let here =
        ListSessions { working_directory: Some(folder.display().to_string()), ..ListSessions::default() };
    let mut sessions = client.call(here).await?;
    sessions.retain(|session| session.owner == client.daemon.principal);
    Ok(sessions)
}

fn none_in(folder: &Path) -> Error {
    Error::SessionNotFound { reference: format!("folder {}", folder.display()) }
}

/// Creates a session. What its kind needs is made ready first, in view of the user.
pub(crate) async fn create(
    home: &Home,
    client: &Client,
    create: CreateSession,
) -> Result<SessionView, Error> {
    kernels::ready(home, &create.kind, Path::new(&create.working_directory)).await?;
    let created = client.call(create).await?;
    if let Some(dropped) = &created.dropped_environment {
        terminal::note(&format!("warning: {dropped}"));
    }
    Ok(created)
}

/// Starts a session at rest, and waits until it takes commands; says how far it is where that takes longer than a moment. An
/// agent rests until it has something to do.
pub(crate) async fn settle(client: &Client, session: SessionView) -> Result<SessionView, Error> {
    bring_up(client, session, None).await
}

/// The same, and waits no longer than another moment where a worker is there already and is only given its definitions back: all
/// but running code can be done meanwhile.
pub(crate) async fn bring_into_use(client: &Client, session: SessionView) -> Result<SessionView, Error> {
    bring_up(client, session, Some(PATIENCE)).await
}

async fn bring_up(
    client: &Client,
    session: SessionView,
    replay: Option<Duration>,
) -> Result<SessionView, Error> {
    if session.is_agent() {
        return Ok(session);
    }
    let reference = session.session.to_string();
    if session.state == SessionState::Uninitialized.name() {
        match client.call(StartSession { session: reference.clone(), sent: Sent::default() }).await {
            // Someone else has started it just now.
            Err(Error::NotOffered { .. }) => {}
            started => drop(started?),
        }
    }
    let wait = |limit: Duration| {
        let timeout_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        client.call(SettleSession { session: reference.clone(), timeout_ms })
    };
    let mut view = wait(PATIENCE).await?;
    if has_settled(&view) {
        return Ok(view);
    }
    terminal::note(&format!("{} warms up …", view.name));
    let (line, until) = (ProgressLine::default(), Instant::now() + WARM_UP);
    let (mut replays_since, mut builds) = (None, false);
    while !has_settled(&view) && Instant::now() < until {
        if let Some(progress) = view.warm_up {
            line.show(&progress.to_string());
            // Off a terminal nobody sees that line, and a build may take minutes.
            if progress.phase == WarmUpPhase::Build && !std::mem::replace(&mut builds, true) {
                line.note(&format!("{progress}, which was not built yet …"));
            }
            // What comes before the replay, as reading a project, is done without a worker that could be asked.
            if progress.phase == WarmUpPhase::Replay {
                let since = replays_since.get_or_insert_with(Instant::now);
                if replay.is_some_and(|patience| since.elapsed() >= patience) {
                    break;
                }
            }
        }
        view = wait(BETWEEN_LOOKS).await?;
    }
    Ok(view)
}

/// Whether a session takes code, or cannot be brought to.
pub(super) fn has_settled(session: &SessionView) -> bool {
    session.state != SessionState::WarmingUp.name() && session.state != SessionState::Uninitialized.name()
}

/// The folder the command was given in.
pub(crate) fn working_directory() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(|error| Error::InvalidArgument {
        argument: "working directory".to_owned(),
        reason: error.to_string(),
    })
}
