//! Principals and clients: who sees and drives what, and who is there.

use mainstay_engine::Cursor;
use mainstay_log::SessionFilter;
use mainstay_model::command;
use mainstay_model::{
    Access, Command, CommandId, Content, Error, EventFilter, Limits, NewLine, Outcome, Position, Principal,
    Response, Rights, Seq, SessionCommand, SessionId, Timestamp,
};
use mainstay_runner::query::KernelQuery;

use uuid::Uuid;

use crate::support::{Daemon, create, eval, next_id, quick};

/// A client of a principal that may see and drive these besides its own.
fn of(daemon: &Daemon, principal: &str, see: &[&str], drive: &[&str]) -> mainstay_engine::Client {
    let patterns = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let rights = Rights::Some { see: patterns(see), drive: patterns(drive) };
    daemon.engine.attach(Access { principal: Principal::new(principal).unwrap(), rights }, "test")
}

async fn created(client: &mainstay_engine::Client, name: &str) -> SessionId {
    match client.create(next_id(), create(name)).await.unwrap() {
        Outcome::Done { response: Response::Created { session } } => session,
        other => panic!("{other:?}"),
    }
}

fn to(client: &mainstay_engine::Client, body: SessionCommand) -> Command {
    Command::new(next_id(), client.source(), body)
}

fn renamed() -> SessionCommand {
    SessionCommand::Rename(command::Rename { name: "taken".to_owned() })
}

#[tokio::test]
async fn another_principals_session_is_not_there() {
    let daemon = Daemon::start().await;
    let (ada, eve) = (of(&daemon, "ada", &[], &[]), of(&daemon, "eve", &[], &[]));
    let session = created(&ada, "hers").await;
    let not_found = Err(Error::SessionNotFound { reference: session.to_string() });
    let id = &session.to_string();
    assert_eq!(ada.resolve("hers").await, Ok(session));
    assert_eq!(eve.resolve(id).await.map(drop), not_found);
    assert_eq!(eve.resolve("hers").await, Err(Error::SessionNotFound { reference: "hers".to_owned() }));
    assert_eq!(eve.submit(session, to(&eve, renamed())).await.map(drop), not_found);
    assert_eq!(eve.status(session).await.map(drop), not_found);
    assert_eq!(eve.events(session, Seq::ZERO, 1).await.map(drop), not_found);
    assert_eq!(eve.subscribe(session, Seq::ZERO).await.map(drop), not_found);
    assert_eq!(eve.check(session, "1".to_owned(), None).await.map(drop), not_found);
    assert_eq!(
        eve.query(session, KernelQuery::Members { name: "List".to_owned() }).await.map(drop),
        not_found
    );
    assert_eq!(eve.settled(session, std::time::Duration::ZERO).await.map(drop), not_found);
    assert_eq!(eve.usage(session).await, None);
    assert_eq!(eve.sessions(SessionFilter::default()).await, Ok(Vec::new()));
    assert_eq!(eve.count_sessions(SessionFilter::default()).await, Ok(0));
    assert_eq!(eve.all_events(Position::ZERO, 1).await, Ok(Vec::new()));
    assert_eq!(eve.clients().len(), 1, "and neither is its client");
    assert_eq!(daemon.local.resolve("hers").await, Ok(session), "the local principal sees all");
}

#[tokio::test]
async fn a_reader_sees_what_is_named_and_changes_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await.leave();
    let reader = |see: &str| {
        let rights = Rights::ReadOnly { see: vec![see.parse().unwrap()] };
        daemon.engine.attach(Access { principal: Principal::new("guest").unwrap(), rights }, "test")
    };
    let refused = |what: &str| Error::NotPermitted {
        principal: Principal::new("guest").unwrap(),
        what: what.to_owned(),
    };
    let guest = reader("de*");
    assert_eq!(guest.resolve("demo").await, Ok(session));
    assert_eq!(guest.count_sessions(SessionFilter::default()).await, Ok(1));
    assert!(!guest.events(session, Seq::ZERO, 1).await.unwrap().is_empty());
    assert_eq!(guest.create(next_id(), create("own")).await.map(drop), Err(refused("create a session")));
    let drive = Err(refused("drive this session"));
    assert_eq!(guest.submit(session, to(&guest, renamed())).await.map(drop), drive);
    assert_eq!(guest.submit(session, to(&guest, SessionCommand::Delete)).await.map(drop), drive);
    assert_eq!(guest.check(session, "1".to_owned(), None).await.map(drop), drive);
    assert!(guest.require_all("stop the daemon").is_err());
    // A session that was its own when it could do more is not its own now.
    let own = created(&of(&daemon, "guest", &[], &[]), "own").await;
    assert_eq!(guest.status(own).await.map(drop), Err(Error::SessionNotFound { reference: own.to_string() }));
    assert_eq!(guest.count_sessions(SessionFilter::default()).await, Ok(1));
    assert_eq!(reader("x").count_sessions(SessionFilter::default()).await, Ok(0));
}

#[tokio::test]
async fn who_may_only_see_a_session_does_not_drive_it() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await.leave();
    let guest = of(&daemon, "guest", &["de*"], &[]);
    let driver = of(&daemon, "driver", &[], &["demo"]);
    let refused = Error::NotPermitted {
        principal: Principal::new("guest").unwrap(),
        what: "drive this session".to_owned(),
    };
    assert_eq!(guest.resolve("demo").await, Ok(session));
    assert!(!guest.events(session, Seq::ZERO, 10).await.unwrap().is_empty());
    assert_eq!(guest.submit(session, to(&guest, eval("pure 1"))).await.map(drop), Err(refused.clone()));
    assert_eq!(
        guest
            .complete(session, String::new(), mainstay_model::TextPosition { line: 1, column: 1 })
            .await
            .map(drop),
        Err(refused)
    );
    let done = driver.submit(session, to(&driver, eval("pure 1"))).await.unwrap();
    assert!(matches!(done.outcome, Outcome::Done { .. }));
    let last = driver.events(session, Seq::ZERO, 100).await.unwrap();
    assert!(last.iter().any(|event| event.metadata.source == driver.source()), "and its name is on it");
}

#[tokio::test]
async fn a_command_is_its_principals_own_whatever_it_says() {
    let daemon = Daemon::start().await;
    let ada = of(&daemon, "ada", &[], &[]);
    let session = created(&ada, "hers").await;
    let forged = Command { id: CommandId::new("same").unwrap(), ..to(&daemon.local, renamed()) };
    ada.submit(session, forged.clone()).await.unwrap();
    let same = CommandId::new("same").unwrap();
    assert!(ada.command(&same).await.is_ok());
    assert_eq!(daemon.local.command(&same).await.map(drop), Err(Error::CommandNotFound { command: same }));
    assert!(!daemon.local.submit(session, forged).await.unwrap().is_replay, "ids are each principal's own");
}

#[tokio::test]
async fn who_follows_all_sessions_gets_the_events_of_those_it_sees() {
    let daemon = Daemon::start().await;
    let ada = of(&daemon, "ada", &["shown*"], &[]);
    let mut all = ada.follow(Cursor::Log { after: Position::ZERO }, EventFilter::default()).await.unwrap();
    let hidden = daemon.session().await;
    let hers = created(&ada, "hers").await;
    let rename = |name: &str| SessionCommand::Rename(command::Rename { name: name.to_owned() });
    hidden.submit(rename("shown")).await.unwrap();
    hidden.submit(rename("hidden again")).await.unwrap();
    ada.submit(hers, to(&ada, rename("done"))).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let event = all.next().await.unwrap();
        let kind = event.body.kind();
        seen.push((event.session, kind));
        if (event.session, kind) == (hers, "sessionRenamed") {
            break;
        }
    }
    assert!(seen.iter().all(|(session, _)| *session == hers), "what is hidden now is not shown: {seen:?}");
    let paged = ada.all_events(Position::ZERO, 3).await.unwrap();
    assert!(!paged.is_empty() && paged.iter().all(|event| event.session == hers));
}

#[tokio::test]
async fn who_follows_a_session_that_it_may_see_no_more_is_told_so() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let guest = of(&daemon, "guest", &["demo"], &[]);
    let cursor = Cursor::Session { session: session.id, after: session.now().await };
    let only_evals =
        EventFilter { kinds: ["evalRequested".parse().unwrap()].into(), ..EventFilter::default() };
    let mut followed = [
        guest.follow(cursor, EventFilter::default()).await.unwrap(),
        guest.follow(cursor, only_evals).await.unwrap(),
    ];
    session.submit(renamed()).await.unwrap();
    session.submit(eval("pure 1")).await.unwrap();
    let not_found = Error::SessionNotFound { reference: session.id.to_string() };
    for events in &mut followed {
        assert_eq!(events.next().await.map(drop), Err(not_found.clone()));
    }
}

#[tokio::test]
async fn what_others_call_theirs_hides_none_of_ones_own() {
    let daemon = Daemon::start().await;
    let ada = of(&daemon, "ada", &[], &[]);
    let (hers, mine) = (created(&ada, "same").await, created(&daemon.local, "same").await);
    assert_eq!(daemon.local.resolve("same").await, Ok(mine));
    assert_eq!(ada.resolve("same").await, Ok(hers));
    let theirs = created(&ada, "twice").await;
    assert_eq!(daemon.local.resolve("twice").await, Ok(theirs));
}

#[tokio::test]
async fn only_who_may_do_everything_may_stop_the_daemon() {
    let daemon = Daemon::start().await;
    let ada = of(&daemon, "ada", &["*"], &["*"]);
    let refused =
        Error::NotPermitted { principal: Principal::new("ada").unwrap(), what: "stop the daemon".to_owned() };
    assert_eq!(ada.require_all("stop the daemon"), Err(refused));
    assert_eq!(daemon.local.require_all("stop the daemon"), Ok(()));
}

#[tokio::test]
async fn a_client_is_there_until_it_goes_and_so_is_what_it_follows() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let ada = of(&daemon, "ada", &["demo"], &[]);
    let who = || {
        let clients = daemon.local.clients().into_iter();
        clients.map(|client| (client.principal.to_string(), client.follows)).collect::<Vec<_>>()
    };
    let local = ("local".to_owned(), Vec::new());
    let followed = ada.subscribe(session.id, Seq::ZERO).await.unwrap();
    assert_eq!(who(), [local.clone(), ("ada".to_owned(), vec![session.id])]);
    drop(followed);
    assert_eq!(who(), [local.clone(), ("ada".to_owned(), Vec::new())]);
    drop(ada);
    assert_eq!(who(), [local]);
}

#[tokio::test]
async fn code_is_of_the_client_whose_command_was_taken_and_not_of_one_that_was_refused() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let connection = || daemon.engine.attach(Access::local(), "agent").as_connection();
    let (one, other) = (connection(), connection());
    let code = |client: &mainstay_engine::Client, code: &str| Command {
        id: CommandId::new("same").unwrap(),
        ..to(client, eval(code))
    };
    let running = one.begin(session.id, code(&one, "loop")).await.unwrap();
    session.until("evalRequested").await;
    let refused = other.submit(session.id, code(&other, "pure 1")).await;
    assert!(matches!(refused, Err(Error::CommandConflict { .. })), "{refused:?}");
    other.leave();
    assert!(!daemon.local.status(session.id).await.unwrap().is_orphaned, "its client is there");
    // One that sends the same again goes on with it, as a bridge does over its next connection.
    let again = connection();
    let joined = again.begin(session.id, code(&again, "loop")).await.unwrap();
    one.leave();
    assert!(!daemon.local.status(session.id).await.unwrap().is_orphaned, "the next connection is there");
    again.leave();
    assert!(daemon.local.status(session.id).await.unwrap().is_orphaned);
    session.submit(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })).await.unwrap();
    running.ended().await.unwrap();
    joined.ended().await.unwrap();
}

#[tokio::test]
async fn each_principal_has_its_own_history_and_names_no_session_that_it_does_not_see() {
    let daemon = Daemon::with(Limits { history_lines: 2, code_bytes: 20_000, ..quick() }).await;
    let (ada, eve) = (of(&daemon, "ada", &[], &[]), of(&daemon, "eve", &[], &[]));
    let session = created(&ada, "hers").await;
    let line = |text: &str| NewLine {
        id: Uuid::now_v7(),
        at: Timestamp::UNIX_EPOCH,
        folder: Some("/lab".to_owned()),
        session: Some(session),
        text: text.to_owned(),
    };
    let large = "x".repeat(20_000);
    for text in ["gone", "1 + 1", &large] {
        ada.add_history(line(text)).await.unwrap();
    }
    let not_found = Err(Error::SessionNotFound { reference: session.to_string() });
    assert_eq!(eve.add_history(line("2")).await, not_found);
    let too_large = Error::CodeTooLarge { bytes: 20_001, limit: 20_000 };
    assert_eq!(ada.add_history(line(&format!("{large}x"))).await, Err(too_large));
    let hers = ada.history(ada.own_history()).await.unwrap();
    assert_eq!(hers.extent.lines, 2, "the oldest went");
    assert_eq!(hers.lines[1].content, Content::Text("1 + 1".to_owned()));
    assert!(ada.history_text(hers.lines[0].number).await.unwrap() == large);
    let others = [&eve, &daemon.local];
    for other in others {
        assert_eq!(other.history(ada.own_history()).await.unwrap().lines, []);
        assert_eq!(other.remove_history(ada.own_history()).await, Ok(0));
        let none = other.history_text(hers.lines[0].number).await.unwrap_err();
        assert!(matches!(none, Error::InvalidArgument { .. }), "{none}");
    }
    assert_eq!(ada.remove_history(ada.own_history()).await, Ok(2));
}
