//! Which session a command is for.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_kernel::fsharp::project::named;
use mainstay_model::{Action, Error, SessionKind, SessionState, SessionWork};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{
    CreateSession, FindSession, GetSession, OpenSession, Opened, Search, SettleSession, StartSession,
};
use mainstay_protocol::view::SessionView;
use mainstay_runner::WarmUpPhase;
use mainstay_terminal as terminal;
use mainstay_terminal::ProgressLine;

use crate::kernels;

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

/// A session that was found or created for a command.
pub(crate) struct OpenedSession {
    /// The session that was found or created.
    pub(crate) session: SessionView,
    /// Whether it was created, had to be started, or was still warming up.
    pub(super) was_idle: bool,
}

impl Target {
    /// The session that is meant, which must be there.
    pub(crate) async fn find(&self, client: &Client) -> Result<SessionView, Error> {
        match &self.session {
            Some(session) => client.call(GetSession { session: session.clone() }).await,
            None => client.call(FindSession { search: self.search(SessionWork::Any)? }).await,
        }
    }

    /// The session that is meant; one of this folder is created where there is none. It is not started.
    pub(super) async fn find_or_create(&self, home: &Home, client: &Client) -> Result<SessionView, Error> {
        let asked = OpenSession { timeout_ms: None, ..self.opening(Vec::new())? };
        open(home, client, asked).await.map(|opened| opened.session)
    }

    /// The session that is meant, or a new one, once it takes commands, or cannot be brought to.
    pub(super) async fn settled(&self, home: &Home, client: &Client) -> Result<OpenedSession, Error> {
        self.settled_of(home, client, Vec::new()).await
    }

    /// The same for what is of one of these kinds, the preferred one first, unless another session is named or asked for. With no kinds any
    /// session that runs code will do.
    pub(super) async fn settled_of(
        &self,
        home: &Home,
        client: &Client,
        kinds: Vec<SessionKind>,
    ) -> Result<OpenedSession, Error> {
        let opened = open(home, client, self.opening(kinds)?).await?;
        let session = until_settled(client, opened.session, None).await?;
        Ok(OpenedSession { session, ..opened })
    }

    /// The session that is meant, or a new one; as [`bring_into_use`] brings it.
    pub(super) async fn in_use(&self, home: &Home, client: &Client) -> Result<SessionView, Error> {
        let opened = open(home, client, self.opening(Vec::new())?).await?;
        until_settled(client, opened.session, Some(PATIENCE)).await
    }

    /// The agent's conversation that is meant; one of this folder is created where there is none, or another is wanted: of pi, where
    /// nothing says of which agent.
    pub(super) async fn find_or_create_agent(
        &self,
        home: &Home,
        client: &Client,
        is_new: bool,
    ) -> Result<SessionView, Error> {
        let must_be_agent = |kind: SessionKind| match kind.is_agent() {
            true => Ok(kind),
            false => Err(Error::NotOfKind { action: Action::Prompt, kind }),
        };
        if self.session.is_some() {
            let session = self.find(client).await?;
            return must_be_agent(session.kind.clone()).map(|_| session);
        }
        let kind = must_be_agent(self.kind(SessionKind::pi())?)?;
        if is_new {
            return self.create(home, client, kind).await;
        }
        let search = self.search(SessionWork::Conversation)?;
        let asked = OpenSession { session: None, search, even_unready: false, timeout_ms: None };
        open(home, client, asked).await.map(|opened| opened.session)
    }

    async fn create(&self, home: &Home, client: &Client, kind: SessionKind) -> Result<SessionView, Error> {
        let Search { working_directory, project, no_project, .. } = self.search(SessionWork::Any)?;
        let working_directory = working_directory.unwrap_or_default();
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

    /// The request for the session that is meant, brought into use. Of these kinds, where there are any and no other is asked for.
    fn opening(&self, kinds: Vec<SessionKind>) -> Result<OpenSession, Error> {
        let mut search = match &self.session {
            Some(_) => Search::default(),
            None => self.search(SessionWork::Code)?,
        };
        if self.session.is_none() && self.kind.is_none() {
            search.kinds = kinds;
        }
        let timeout_ms = Some(milliseconds(PATIENCE));
        Ok(OpenSession { session: self.session.clone(), search, even_unready: false, timeout_ms })
    }

    /// What to look for in this folder.
    fn search(&self, work: SessionWork) -> Result<Search, Error> {
        Ok(Search {
            working_directory: Some(working_directory()?.display().to_string()),
            work,
            kinds: self.kind.iter().map(SessionKind::new).collect::<Result<_, _>>()?,
            project: self.project.as_deref().map(project_at).transpose()?,
            no_project: self.no_project,
            name: None,
        })
    }
}

/// Asks the daemon to find or create a session. Where what runs its kind is missing, that is made ready in view of the user first.
pub(crate) async fn open(home: &Home, client: &Client, asked: OpenSession) -> Result<OpenedSession, Error> {
    let mut opened = client.call(asked.clone()).await?;
    if let Opened::Unready { kind, working_directory } = &opened {
        kernels::ready(home, kind, Path::new(working_directory)).await?;
        opened = client.call(OpenSession { even_unready: true, ..asked }).await?;
    }
    match opened {
        Opened::Found { session, was_idle } => Ok(OpenedSession { session: *session, was_idle }),
        Opened::Created { session } => {
            kernels::tell_passed_over(home, &session.kind, Path::new(&session.working_directory));
            tell_dropped(&session);
            Ok(OpenedSession { session: *session, was_idle: true })
        }
        Opened::Unready { kind, .. } => Err(Error::KernelUnknown { kind }),
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

/// Creates a session. What its kind needs is made ready first, in view of the user.
pub(crate) async fn create(
    home: &Home,
    client: &Client,
    create: CreateSession,
) -> Result<SessionView, Error> {
    let folder = Path::new(&create.working_directory);
    kernels::tell_passed_over(home, &create.kind, folder);
    kernels::ready(home, &create.kind, folder).await?;
    let created = client.call(create).await?;
    tell_dropped(&created);
    Ok(created)
}

/// Says what of its creator's environment a new session does not have.
fn tell_dropped(created: &SessionView) {
    if let Some(dropped) = &created.dropped_environment {
        terminal::note(&format!("warning: {dropped}"));
    }
}

/// Starts an idle session, and waits until it takes commands; says how far it is where that takes longer than a moment. An
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
    let view = client.call(SettleSession { session: reference, timeout_ms: milliseconds(PATIENCE) }).await?;
    until_settled(client, view, replay).await
}

/// Waits until a session that was started takes commands, and says how far it is.
async fn until_settled(
    client: &Client,
    mut view: SessionView,
    replay: Option<Duration>,
) -> Result<SessionView, Error> {
    if view.is_agent() || has_settled(&view) {
        return Ok(view);
    }
    let reference = view.session.to_string();
    let wait = |limit: Duration| {
        client.call(SettleSession { session: reference.clone(), timeout_ms: milliseconds(limit) })
    };
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

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The folder the command was given in.
pub(crate) fn working_directory() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(|error| Error::InvalidArgument {
        argument: "working directory".to_owned(),
        reason: error.to_string(),
    })
}
