//! Which session a folder, a kind or a project means, and which is created where there is none.

use std::path::Path;

use mainstay_engine::{KindResolver, KindRules, SessionChoice};
use mainstay_log::SessionFilter;
use mainstay_model::{
    Access, CreateSession, Outcome, Principal, ProjectChoice, Response, Rights, SessionId, SessionKind,
    SessionSearch, SessionWork,
};
use mainstay_runner::Environment;

use crate::support::{Daemon, create, next_id};

/// A folder is for Python, which `python3` runs.
struct Snakes;

impl KindRules for Snakes {
    fn default_kind(&self, _: &Path, _: &Environment) -> SessionKind {
        python3()
    }

    fn same_kernel(
        &self,
        kind: &SessionKind,
        kinds: Vec<SessionKind>,
        _: Option<&Path>,
        _: &Environment,
    ) -> Vec<SessionKind> {
        let kernel = |kind: &SessionKind| kind.as_str().trim_end_matches('3').to_owned();
        kinds.into_iter().filter(|other| kernel(other) == kernel(kind)).collect()
    }
}

fn python3() -> SessionKind {
    SessionKind::new("python3").unwrap()
}

fn in_root() -> SessionSearch {
    let working_directory = Some("/".to_owned());
    SessionSearch { working_directory, work: SessionWork::Code, ..SessionSearch::default() }
}

async fn created(client: &mainstay_engine::Client, create: CreateSession) -> SessionId {
    match client.create(next_id(), create).await.unwrap() {
        Outcome::Done { response: Response::Created { session } } => session,
        other => panic!("{other:?}"),
    }
}

async fn found(client: &mainstay_engine::Client, search: SessionSearch) -> Option<SessionId> {
    let session = client.find_session(&search, &KindResolver::new(Snakes)).await.unwrap();
    session.map(|session| session.id)
}

#[tokio::test]
async fn the_session_that_is_meant_is_the_callers_own_that_was_active_last() {
    let daemon = Daemon::start().await;
    assert_eq!(found(&daemon.local, in_root()).await, None);
    let own = created(&daemon.local, create("own")).await;
    let access = Access { principal: Principal::new("eve").unwrap(), rights: Rights::All };
    let eve = daemon.engine.attach(access, "cli");
    let others = created(&eve, create("others")).await;
    assert_eq!(found(&daemon.local, in_root()).await, Some(own));
    assert_eq!(found(&eve, in_root()).await, Some(others));
    // A client that does not say where it works means any folder.
    assert_eq!(found(&eve, SessionSearch::default()).await, Some(others));
    let elsewhere = SessionSearch { working_directory: Some("/elsewhere".to_owned()), ..in_root() };
    assert_eq!(found(&eve, elsewhere).await, None);
}

#[tokio::test]
async fn a_kind_stands_for_every_kind_that_its_kernel_runs() {
    let daemon = Daemon::start().await;
    let snake = created(&daemon.local, CreateSession { kind: python3(), ..create("snake") }).await;
    let sharp = created(&daemon.local, create("sharp")).await;
    let of = |kind: &str| SessionSearch { kinds: vec![SessionKind::new(kind).unwrap()], ..in_root() };
    assert_eq!(found(&daemon.local, of("python")).await, Some(snake));
    assert_eq!(found(&daemon.local, of("fsharp")).await, Some(sharp));
    assert_eq!(found(&daemon.local, of("julia")).await, None);
}

#[tokio::test]
async fn where_none_is_meant_the_one_to_create_is_of_the_folders_kind_and_as_it_was_sought() {
    let daemon = Daemon::start().await;
    let kinds = KindResolver::new(Snakes);
    let choice = async |search| match daemon.local.choose_session(search, &kinds).await.unwrap() {
        SessionChoice::New(create) => create,
        SessionChoice::Found(found) => panic!("{found:?}"),
    };
    let plain = choice(in_root()).await;
    assert_eq!((plain.kind, plain.working_directory.as_str()), (python3(), "/"));
    let sought = SessionSearch {
        kinds: vec![SessionKind::fsharp()],
        project: ProjectChoice::Nothing,
        name: Some("mine".to_owned()),
        ..in_root()
    };
    let new =
        CreateSession { kind: SessionKind::fsharp(), project: ProjectChoice::Nothing, ..create("mine") };
    assert_eq!(choice(sought).await, new);
    let talk = SessionSearch { work: SessionWork::Conversation, ..in_root() };
    assert_eq!(choice(talk).await.kind, SessionKind::pi());
    assert_eq!(daemon.local.count_sessions(SessionFilter::default()).await, Ok(0));
}
