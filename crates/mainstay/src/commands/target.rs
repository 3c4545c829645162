//! Which session a command is for.

use std::path::{Path, PathBuf};

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_kernel::fsharp::project::named;
use mainstay_model::{Action, CommandId, Error, SessionKind, SessionWork};
use mainstay_protocol::operations::{CreateSession, FindSession, GetSession, OpenSession, Search};
use mainstay_protocol::view::SessionView;
use mainstay_terminal_client::paths::working_directory;
use mainstay_terminal_client::sessions::{
    OpenedSession, PATIENCE, create, milliseconds, open, until_settled,
};

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

    /// The session that is meant, or a new one; as `sessions::bring_into_use` brings it.
    pub(super) async fn in_use(&self, home: &Home, client: &Client) -> Result<SessionView, Error> {
        let opened = open(home, client, self.opening(Vec::new())?).await?;
        until_settled(client, opened.session, Some(PATIENCE)).await
    }

    /// The agent's conversation that is meant; one of this folder is created where there is none, or `new` names the command that creates
    /// another: of pi, where nothing says of which agent.
    pub(super) async fn find_or_create_agent(
        &self,
        home: &Home,
        client: &Client,
        new: Option<CommandId>,
    ) -> Result<SessionView, Error> {
        if self.session.is_some() {
            let session = self.find(client).await?;
            return must_be_agent(session.kind.clone()).map(|_| session);
        }
        let kind = must_be_agent(self.kind(SessionKind::pi())?)?;
        if new.is_some() {
            return self.create(home, client, kind, new).await;
        }
        let search = self.search(SessionWork::Conversation)?;
        let asked = OpenSession { session: None, search, even_unready: false, timeout_ms: None };
        open(home, client, asked).await.map(|opened| opened.session)
    }

    /// The agent's conversation that is meant, which must be there.
    pub(super) async fn find_agent(&self, client: &Client) -> Result<SessionView, Error> {
        must_be_agent(self.kind(SessionKind::pi())?)?;
        let session = match &self.session {
            Some(_) => self.find(client).await?,
            None => client.call(FindSession { search: self.search(SessionWork::Conversation)? }).await?,
        };
        must_be_agent(session.kind.clone()).map(|_| session)
    }

    async fn create(
        &self,
        home: &Home,
        client: &Client,
        kind: SessionKind,
        command: Option<CommandId>,
    ) -> Result<SessionView, Error> {
        let Search { working_directory, project, no_project, .. } = self.search(SessionWork::Any)?;
        let working_directory = working_directory.unwrap_or_default();
        let new = CreateSession {
            command,
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

fn must_be_agent(kind: SessionKind) -> Result<SessionKind, Error> {
    if kind.is_agent() { Ok(kind) } else { Err(Error::NotOfKind { action: Action::Prompt, kind }) }
}

/// The project that is meant by a path: the file, or that of the folder.
pub(super) fn project_at(path: &Path) -> Result<String, Error> {
    let found = std::fs::canonicalize(path).map_err(|error| Error::InvalidArgument {
        argument: "project".to_owned(),
        reason: format!("`{}`: {error}", path.display()),
    })?;
    Ok(named(&found)?.display().to_string())
}
