//! How sessions are listed and found.

use mainstay_log::{Log, SessionFilter};
use mainstay_model::{
    Access, Ask, AskEnding, AskId, CommandFingerprint, CommandId, EventBody, Principal, Question, Raiser,
    Rights, SessionId, Source, Timestamp,
};
use uuid::Uuid;

use super::Store;
use crate::support::{Line, created, kind, output, session_id, warm_up};

pub async fn sessions_are_those_that_match_the_most_recent_first(store: &dyn Store) {
    let log = store.open().await;
    active(&*log, 1, "/a", 30, vec![]).await;
    active(&*log, 2, "/b", 10, vec![warm_up()]).await;
    active(&*log, 3, "/a", 20, vec![warm_up()]).await;
    active(&*log, 4, "/a", 40, vec![warm_up(), EventBody::SessionStopped]).await;

    let found = async |folder: Option<&str>, live: bool, limit: Option<usize>| -> Vec<SessionId> {
        let working_directory = folder.map(str::to_owned);
        let filter = SessionFilter { working_directory, live, limit, ..SessionFilter::default() };
        log.sessions(filter).await.unwrap().iter().map(|session| session.id).collect()
    };
    assert_eq!(found(None, false, None).await, [4, 1, 3, 2].map(session_id));
    assert_eq!(found(None, false, Some(2)).await, [4, 1].map(session_id));
    assert_eq!(found(None, true, None).await, [3, 2].map(session_id));
    assert_eq!(found(Some("/a"), false, None).await, [4, 1, 3].map(session_id));
    assert_eq!(found(Some("/a"), true, None).await, [3].map(session_id));
    assert_eq!(found(Some("/a"), true, Some(0)).await, [0; 0].map(session_id));
    assert_eq!(found(Some("/c"), false, None).await, [0; 0].map(session_id));
}

pub async fn a_limit_counts_the_sessions_of_the_owner_alone(store: &dyn Store) {
    let log = store.open().await;
    for (number, owner) in [(1, "ada"), (2, "eve"), (3, "eve")] {
        let source = Source::Client { principal: Principal::new(owner).unwrap(), name: String::new() };
        let at = Timestamp::from_second(i64::try_from(number).unwrap()).unwrap();
        let mut line = Line { source, at, ..Line::new(number) };
        log.append(line.append(vec![created("lab", "/lab")])).await.unwrap();
    }
    let owner = Some(Principal::new("ada").unwrap());
    let filter = SessionFilter { owner, limit: Some(1), ..SessionFilter::default() };
    let found = log.sessions(filter).await.unwrap();
    assert_eq!(found.iter().map(|session| session.id).collect::<Vec<_>>(), [session_id(1)]);
}

pub async fn sessions_are_found_by_a_folder_that_theirs_lies_in(store: &dyn Store) {
    let log = store.open().await;
    for (number, folder) in [(1, "/lab"), (2, "/lab/src/b"), (3, "/lab2"), (4, "/lab-old/src"), (5, "/lab.x")]
    {
        active(&*log, number, folder, 10, vec![]).await;
    }
    let project = |name: &str, project: &str| EventBody::SessionCreated {
        kind: kind(),
        name: name.to_owned(),
        working_directory: "/elsewhere".to_owned(),
        project: Some(project.to_owned()),
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    };
    for (number, file) in [(6, "/lab/src/A.fsproj"), (7, "/lab2/A.fsproj")] {
        let mut line = Line::new(number);
        log.append(line.append(vec![project(file, file)])).await.unwrap();
    }
    let found = async |folder: &str| {
        let filter = SessionFilter { within: Some(folder.to_owned()), ..SessionFilter::default() };
        let mut found: Vec<_> =
            log.sessions(filter).await.unwrap().iter().map(|session| session.id).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(found("/lab").await, [1, 2, 6].map(session_id));
    assert_eq!(found("/lab/").await, [1, 2, 6].map(session_id));
    assert_eq!(found("/lab/src").await, [2, 6].map(session_id));
    assert_eq!(found("/la").await, [0; 0].map(session_id));
    assert_eq!(found("/").await, [1, 2, 3, 4, 5, 6, 7].map(session_id));
}

pub async fn an_alias_that_is_released_is_another_sessions(store: &dyn Store) {
    let alias = || Some("main".to_owned());
    let named = |name: &str, alias| match created(name, "/work") {
        EventBody::SessionCreated { kind, name, working_directory, .. } => EventBody::SessionCreated {
            kind,
            name,
            working_directory,
            project: None,
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias,
            capabilities: None,
        },
        other => other,
    };
    let (mut first, mut second) = (Line::new(1), Line::new(2));
    {
        let log = store.open().await;
        log.append(first.append(vec![named("one", alias())])).await.unwrap();
        log.append(first.append(vec![EventBody::SessionUnloaded { alias: alias() }])).await.unwrap();
        log.append(second.append(vec![named("two", alias())])).await.unwrap();
    }
    let log = store.open().await;
    let found = async |filter: SessionFilter| {
        let mut found: Vec<_> =
            log.sessions(filter).await.unwrap().iter().map(|session| session.id).collect();
        found.sort_unstable();
        found
    };
    let by_alias = |alias: &str| SessionFilter { alias: Some(alias.to_owned()), ..SessionFilter::default() };
    let loaded = || SessionFilter { loaded: true, ..SessionFilter::default() };
    assert_eq!(found(by_alias("main")).await, [second.id]);
    assert_eq!(log.resolve("main").await.unwrap(), [second.id]);
    assert_eq!(found(loaded()).await, [second.id]);
    assert_eq!(log.count_sessions(loaded()).await, Ok(1));
    let again = EventBody::SessionLoaded { alias: Some("again".to_owned()) };
    log.append(first.append(vec![again])).await.unwrap();
    assert_eq!(found(by_alias("again")).await, [first.id]);
    assert_eq!(found(loaded()).await, [first.id, second.id]);
}

pub async fn sessions_are_found_by_their_asks_and_by_who_sees_them(store: &dyn Store) {
    let log = store.open().await;
    let ada = Principal::new("ada").unwrap();
    let question = |ask: u128| {
        let (command, fingerprint) = (CommandId::new("a").unwrap(), CommandFingerprint::of("s", &()));
        let raiser = Raiser::Command { command, fingerprint, key: None };
        let ask = AskId::from_uuid(Uuid::from_u128(ask));
        EventBody::AskRaised(Box::new(Ask { ask, raiser, question: Question::text("?"), deadline: None }))
    };
    let ended = |ask: u128| EventBody::AskEnded {
        ask: AskId::from_uuid(Uuid::from_u128(ask)),
        ending: AskEnding::Cancelled,
        channel: None,
    };
    active(&*log, 1, "one", 10, vec![question(1), question(2), ended(1)]).await;
    active(&*log, 2, "a[b]?c", 20, vec![question(1), ended(1)]).await;
    let mut line =
        Line { source: Source::Client { principal: ada.clone(), name: String::new() }, ..Line::new(3) };
    log.append(line.append(vec![created("three", "/three"), question(1)])).await.unwrap();

    let found = async |filter: SessionFilter| -> Vec<SessionId> {
        let found: Vec<_> =
            log.sessions(filter.clone()).await.unwrap().iter().map(|found| found.id).collect();
        assert_eq!(log.count_sessions(filter).await.unwrap(), found.len());
        found
    };
    let seen = async |principal: &str, patterns: &[&str], asks: bool| {
        let principal = Principal::new(principal).unwrap();
        let drive = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
        let rights = Rights::Some { see: Vec::new(), drive };
        found(SessionFilter { asks, seen_by: Some(Access { principal, rights }), ..SessionFilter::default() })
            .await
    };
    let read = async |principal: &str, pattern: &str| {
        let principal = Principal::new(principal).unwrap();
        let rights = Rights::ReadOnly { see: vec![pattern.parse().unwrap()] };
        found(SessionFilter { seen_by: Some(Access { principal, rights }), ..SessionFilter::default() }).await
    };
    assert_eq!(read("ada", "/one").await, [1].map(session_id), "not what it owns");
    assert_eq!(read("eve", "*").await, [3, 2, 1].map(session_id));
    assert_eq!(found(SessionFilter { asks: true, ..SessionFilter::default() }).await, [3, 1].map(session_id));
    assert_eq!(seen("ada", &[], false).await, [3].map(session_id));
    assert_eq!(seen("eve", &[], false).await, [0; 0].map(session_id));
    assert_eq!(seen("eve", &["t*e"], false).await, [3].map(session_id));
    assert_eq!(seen("ada", &["/one", "/a[b]?c"], false).await, [3, 2, 1].map(session_id));
    assert_eq!(seen("ada", &["*"], true).await, [3, 1].map(session_id));
    assert_eq!(seen("eve", &["/a?b*", "b"], false).await, [0; 0].map(session_id), "only the star is special");
}

pub async fn a_session_is_found_by_its_id_the_end_of_it_or_its_name(store: &dyn Store) {
    let log = store.open().await;
    for (number, name) in [(0xabcd_1234, "one"), (0x5678_1234, "two"), (0x9999, "two"), (0x7777, "1234")] {
        active(&*log, number, name, 0, vec![]).await;
    }
    let renamed = session_id(0x7777);
    let found = async |reference: &str| log.resolve(reference).await.unwrap();
    let [one, two, other] = [0xabcd_1234, 0x5678_1234, 0x9999].map(session_id);
    assert_eq!(found(&one.to_string()).await, [one]);
    assert_eq!(found(&one.to_string().to_uppercase()).await, [one]);
    assert_eq!(found("ABCD1234").await, [one]);
    assert_eq!(found("9999").await, [other]);
    assert_eq!(found("999").await, []);
    assert_eq!(found("/one").await, [one]);
    assert_eq!(found("/two").await, [other, two]);
    assert_eq!(found("/TWO").await, []);
    assert_eq!(found("1234").await, [two, one]);
    assert_eq!(found("/1234").await, [renamed]);
    assert_eq!(found("%").await, []);
    assert_eq!(found("").await, []);
}

/// A session, named after its folder, that was last active at this second.
async fn active(log: &dyn Log, number: u128, folder: &str, second: i64, then: Vec<EventBody>) {
    let folder = if folder.starts_with('/') { folder.to_owned() } else { format!("/{folder}") };
    let mut line = Line { at: Timestamp::from_second(second).unwrap(), ..Line::new(number) };
    log.append(line.append(vec![created(&folder, &folder)])).await.unwrap();
    log.append(line.append(then)).await.unwrap();
    log.append(line.append(vec![output("and more")])).await.unwrap();
}
