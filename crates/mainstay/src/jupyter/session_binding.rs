//! The session that a kernel stands for: which it is, and calls to it, also after the daemon has gone and come again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mainstay_client::Client;
use mainstay_formats::exchange::Kernel;
use mainstay_home::environment::NOTEBOOK;
use mainstay_home::{Home, VERSION};
use mainstay_model::command::validate_session_name;
use mainstay_model::{Error, Event, Seq, SessionKind};
use mainstay_protocol::json_rpc::Method;
use mainstay_protocol::operations::{CreateSession, GetSession, OpenSession, Search};
use mainstay_protocol::view::SessionView;
use mainstay_terminal_client::connect::{Connection, connect_again, connect_or_start};
use mainstay_terminal_client::link::{Link, is_loss};
use mainstay_terminal_client::paths::working_directory;
use mainstay_terminal_client::sessions::{create, open, settle};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::language::language_info;

/// What the daemon knows this client as.
pub(super) const CLIENT: &str = "jupyter";
/// Names the session for whoever starts a kernel without a notebook's name.
const SESSION: &str = "MAINSTAY_JUPYTER_SESSION";
/// So much of a notebook's name is its session's.
const NAME_CHARACTERS: usize = 120;
/// How often another daemon is looked for where one is lost, and the pause between two looks.
const LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// Which session a kernel is to stand for.
pub(crate) enum BindingTarget {
    /// A session by its name or id.
    Session(String),
    /// The one that is named, as a notebook is; of a client that names none, one of its own. Created where there is none.
    Kind(SessionKind),
}

/// A session, and the way to it.
pub(super) struct SessionBinding {
    home: Home,
    link: Link,
    is_of_client: bool,
}

impl SessionBinding {
    /// Finds the session, or creates it, and starts it.
    pub(super) async fn take(
        home: &Home,
        wanted: BindingTarget,
        connection_file: &Path,
    ) -> Result<Self, Error> {
        let connection = connect_or_start(home, CLIENT).await?;
        let client = &connection.client;
        let (session, is_of_client) = match wanted {
            BindingTarget::Session(session) => (client.call(GetSession { session }).await?, false),
            BindingTarget::Kind(kind) => {
                let named = named()?;
                let is_of_client = named.is_none();
                let name = named.or_else(|| session_name(connection_file));
                (find_or_create(home, client, kind, name).await?, is_of_client)
            }
        };
        if session.is_agent() {
            let reason = format!("it is of kind {}, which runs no code", session.kind);
            return Err(Error::InvalidArgument { argument: "--session".to_owned(), reason });
        }
        let session = settle(client, session).await?;
        Ok(Self { home: home.clone(), link: Link::open(connection, session).await?, is_of_client })
    }

    /// How the session is named in calls.
    pub(super) fn session(&self) -> String {
        self.link.reference()
    }

    /// Whether the session is one client's own: nobody named it, and nobody else finds it.
    pub(super) const fn is_of_client(&self) -> bool {
        self.is_of_client
    }

    pub(super) const fn kind(&self) -> &SessionKind {
        &self.link.session.kind
    }

    /// What runs its code, as notebooks name it.
    pub(super) fn kernel(&self) -> Kernel {
        Kernel::of(self.kind(), self.link.session.language.as_ref())
    }

    /// How often code ran in the session.
    pub(super) fn evals(&self) -> u64 {
        self.link.session.evals
    }

    pub(super) fn client(&self) -> Arc<Client> {
        Arc::clone(&self.link.client)
    }

    pub(super) fn seen(&self) -> Seq {
        self.link.seen()
    }

    /// The next event; none once the connection is lost.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.link.next().await
    }

    pub(super) fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Asks the daemon something; again where that has gone meanwhile.
    ///
    /// # Errors
    /// What the daemon says, and that there is none.
    pub(super) async fn call<M: Method + Clone>(&mut self, method: M) -> Result<M::Answer, Error> {
        match self.link.client.call(method.clone()).await {
            Err(error) if is_loss(&error) => {
                self.reconnect().await?;
                self.link.client.call(method).await
            }
            answered => answered,
        }
    }

    /// Finds the daemon that runs now, or starts one, and goes on with the session.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(super) async fn reconnect(&mut self) -> Result<(), Error> {
        let mut looks = 0;
        loop {
            match self.resume().await {
                Err(error) if is_loss(&error) && looks < LOOKS => looks += 1,
                resumed => return resumed,
            }
            sleep(PAUSE).await;
        }
    }

    async fn resume(&mut self) -> Result<(), Error> {
        let connection: Connection = connect_again(&self.home, CLIENT).await?;
        let session = connection.client.call(GetSession { session: self.session() }).await?;
        let session = settle(&connection.client, session).await?;
        self.link = Link::resume(connection, session, self.link.seen()).await?;
        Ok(())
    }

    /// Writes the content of a `kernel_info_reply`.
    pub(super) fn info(&self) -> Value {
        let SessionView { kind, language, worker, name, short_id, .. } = &self.link.session;
        let runtime = worker.as_ref().map(|worker| worker.runtime.as_str());
        let runs = worker.as_ref().map_or_else(|| kind.to_string(), |worker| worker.kernel.clone());
        json!({
            "status": "ok",
            "protocol_version": mainstay_kernel::jupyter::wire::PROTOCOL,
            "implementation": "mainstay",
            "implementation_version": VERSION,
            "language_info": language_info(kind, language.as_ref(), runtime),
            "banner": format!("Mainstay {VERSION}: {runs} in session {name} ({short_id}), which stays when the notebook is closed"),
            "help_links": [],
            "debugger": false,
        })
    }
}

/// The name of the session that whoever starts this kernel has named, by itself or as a notebook.
fn named() -> Result<Option<String>, Error> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(name) = variable(SESSION) {
        validate_session_name(&name)?;
        return Ok(Some(name));
    }
    Ok(variable(NOTEBOOK).and_then(|notebook| session_name(Path::new(&notebook))))
}

/// How the session of a notebook is called: like its file. Where there is none, the connection file has a name that no other client's has, and
/// that stays when this client starts its kernel again.
fn session_name(file: &Path) -> Option<String> {
    let name = file.file_stem()?.to_str()?;
    let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARACTERS).collect();
    validate_session_name(&name).is_ok().then_some(name)
}

/// A session is found again by its name, as a person would find it by `mainstay attach`.
async fn find_or_create(
    home: &Home,
    client: &Client,
    kind: SessionKind,
    name: Option<String>,
) -> Result<SessionView, Error> {
    let working_directory = working_directory()?.display().to_string();
    let Some(name) = name else {
        let new = CreateSession {
            command: None,
            kind,
            working_directory,
            project: None,
            no_project: false,
            fsi_args: None,
            name: None,
        };
        return create(home, client, new).await;
    };
    let search = Search {
        working_directory: Some(working_directory),
        kinds: vec![kind],
        name: Some(name),
        ..Search::default()
    };
    let asked = OpenSession { session: None, search, even_unready: false, timeout_ms: None };
    open(home, client, asked).await.map(|opened| opened.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_called_like_the_file_of_its_notebook() {
        let name = |file: &str| session_name(Path::new(file));
        assert_eq!(name("/home/ada/Prices of 2026.ipynb").as_deref(), Some("Prices of 2026"));
        assert_eq!(name(&format!("{}.ipynb", "é".repeat(200))), Some("é".repeat(NAME_CHARACTERS)));
        assert_eq!(name("/"), None);
    }
}
