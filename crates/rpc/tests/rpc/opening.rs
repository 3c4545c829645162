//! The session that a folder means: found, or created where there is none.

use std::path::Path;

use mainstay_engine::{KindResolver, KindRules};
use mainstay_model::{Error, SessionKind, SessionWork};
use mainstay_protocol::operations::{FindSession, ListSessions, OpenSession, Opened, Search};
use mainstay_runner::Environment;

use crate::support::Home;

/// Rules by which what runs a kind must be installed first.
struct NothingIsInstalled;

impl KindRules for NothingIsInstalled {
    fn default_kind(&self, _folder: &Path, _environment: &Environment) -> SessionKind {
        SessionKind::pi()
    }

    fn is_ready(&self, _kind: &SessionKind, _folder: &Path, _environment: &Environment) -> bool {
        false
    }
}

fn conversation_in(folder: &str) -> Search {
    Search {
        working_directory: Some(folder.to_owned()),
        work: SessionWork::Conversation,
        ..Search::default()
    }
}

fn open(search: Search) -> OpenSession {
    OpenSession { session: None, search, even_unready: false, timeout_ms: None }
}

#[tokio::test]
async fn a_session_is_created_once_and_found_from_then_on() {
    let (home, _script) = Home::new().await;
    let find = || FindSession { search: conversation_in("/") };
    assert!(matches!(home.client.call(find()).await, Err(Error::SessionNotFound { .. })));
    let created = match home.client.call(open(conversation_in("/"))).await.unwrap() {
        Opened::Created { session } => session.session,
        opened => panic!("{opened:?}"),
    };
    match home.client.call(open(conversation_in("/"))).await.unwrap() {
        Opened::Found { session, was_idle } => assert_eq!((session.session, was_idle), (created, true)),
        opened => panic!("{opened:?}"),
    }
    assert_eq!(home.client.call(find()).await.unwrap().session, created);
}

#[tokio::test]
async fn clients_that_mean_the_same_session_at_once_get_the_same() {
    let (home, _script) = Home::new().await;
    let clients = [home.other().await, home.other().await, home.other().await, home.other().await];
    let opened =
        futures::future::join_all(clients.iter().map(|client| client.call(open(conversation_in("/"))))).await;
    let sessions: Vec<_> = opened
        .into_iter()
        .map(|opened| match opened.unwrap() {
            Opened::Created { session } | Opened::Found { session, .. } => session.session,
            Opened::Unready { kind, .. } => panic!("{kind} is not ready"),
        })
        .collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
}

#[tokio::test]
async fn no_session_is_created_whose_kind_must_be_installed_first_unless_that_is_wanted() {
    let (home, _script) = Home::with_kinds(KindResolver::new(NothingIsInstalled)).await;
    let count = async || home.client.call(ListSessions::default()).await.unwrap().len();
    let before = count().await;
    let search = || Search { kinds: vec![SessionKind::pi()], ..conversation_in("/") };
    match home.client.call(open(search())).await.unwrap() {
        Opened::Unready { kind, working_directory } => {
            assert_eq!((kind, working_directory.as_str()), (SessionKind::pi(), "/"));
        }
        opened => panic!("{opened:?}"),
    }
    assert_eq!(count().await, before);
    let wanted = OpenSession { even_unready: true, ..open(search()) };
    assert!(matches!(home.client.call(wanted).await.unwrap(), Opened::Created { .. }));
    // One that is there is found, whatever its kind lacks.
    assert!(matches!(home.client.call(open(search())).await.unwrap(), Opened::Found { .. }));
}
