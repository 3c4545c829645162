//! The session that a folder means: found, or created where there is none.

use mainstay_model::{Error, SessionWork};
use mainstay_protocol::operations::{FindSession, OpenSession, Opened, Search};

use crate::support::Home;

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
