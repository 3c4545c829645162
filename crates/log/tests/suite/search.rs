//! Full-text search over what sessions said.

use mainstay_log::{EntryFilter, Log, SessionFilter};
use mainstay_model::search::Words;
use mainstay_model::{Access, Principal, Rights, Role, SessionKind, Timestamp};

use super::{Store, begun};
use crate::support::{Line, session_id};

async fn say(log: &dyn Log, line: &mut Line, code: &str, prints: &str, display: &str) {
    log.append(line.request(code)).await.unwrap();
    log.append(line.print(prints)).await.unwrap();
    log.append(line.finish(display)).await.unwrap();
}

pub(super) fn words(text: &str) -> EntryFilter {
    EntryFilter {
        words: Words::parse(text).unwrap(),
        roles: Vec::new(),
        sessions: SessionFilter::default(),
        since: None,
        until: None,
        offset: 0,
        limit: 100,
    }
}

/// Where the entries are that match: session and number.
async fn found(log: &dyn Log, filter: EntryFilter) -> Vec<(u128, u64)> {
    let found = log.search(filter).await.unwrap();
    let number = |id| (1..9).find(|number| session_id(*number) == id).unwrap();
    found
        .iter()
        .map(|(session, placed)| {
            assert_eq!(session.id, placed.session);
            (number(session.id), placed.number)
        })
        .collect()
}

pub async fn entries_are_found_by_every_word_in_them(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    say(&*log, &mut line, "List.map square dogs", "Rex barks\n", "val it : int list = [4]").await;
    let long = format!("{} needle", "hay ".repeat(50_000));
    say(&*log, &mut line, "printfn haystack", &long, "").await;
    for (text, expected) in [
        ("square", vec![(1, 0)]),
        ("SQUARE list", vec![(1, 0)]),
        ("\"square dogs\"", vec![(1, 0)]),
        ("\"dogs square\"", vec![]),
        ("squ*", vec![(1, 0)]),
        ("squ", vec![]),
        ("List.map", vec![(1, 0)]),
        ("rex", vec![(1, 1)]),
        ("list", vec![(1, 0), (1, 1)]),
        ("needle", vec![(1, 3)]),
        ("hay needle", vec![(1, 3)]),
        ("nothing", vec![]),
    ] {
        let mut hits = found(&*log, words(text)).await;
        hits.sort_unstable();
        assert_eq!(hits, expected, "{text}");
    }
    drop(log);
    assert_eq!(found(&*store.open().await, words("needle")).await, [(1, 3)]);
}

pub async fn what_is_found_is_chosen_by_session_role_and_time(store: &dyn Store) {
    let log = store.open().await;
    let day = |day: i64| Timestamp::from_second(day * 86_400).unwrap();
    for number in 1..=3 {
        let mut line = Line::new(number);
        line.at = day(100 + number as i64);
        log.append(line.create()).await.unwrap();
        log.append(line.request("dog")).await.unwrap();
        log.append(line.finish("a dog")).await.unwrap();
    }
    let all = found(&*log, words("dog")).await;
    assert_eq!(all.len(), 6);
    assert_eq!(found(&*log, EntryFilter { limit: 2, offset: 3, ..words("dog") }).await, all[3..5]);
    let inputs = found(&*log, EntryFilter { roles: vec![Role::Input], ..words("dog") }).await;
    assert_eq!(inputs, [(3, 0), (2, 0), (1, 0)], "of equals the newest is the first");
    let in_time = EntryFilter { since: Some(day(102)), until: Some(day(103)), ..words("dog") };
    let mut hits = found(&*log, in_time).await;
    hits.sort_unstable();
    assert_eq!(hits, [(2, 0), (2, 1)]);
    let of = async |sessions| found(&*log, EntryFilter { sessions, ..words("dog") }).await.len();
    let folder =
        |folder: &str| SessionFilter { working_directory: Some(folder.to_owned()), ..Default::default() };
    assert_eq!((of(folder("/work")).await, of(folder("/elsewhere")).await), (6, 0));
    let kind =
        |kind: &str| SessionFilter { kind: Some(SessionKind::new(kind).unwrap()), ..Default::default() };
    assert_eq!((of(kind("fsharp")).await, of(kind("python")).await), (6, 0));
    let name =
        SessionFilter { name: Some(format!("session-{}", session_id(2).short())), ..Default::default() };
    assert_eq!(of(name).await, 2);
    let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
    let eve = Access { principal: Principal::new("eve").unwrap(), rights };
    assert_eq!(of(SessionFilter { seen_by: Some(eve), ..Default::default() }).await, 0);
}

/// More equals than are looked up at once, and a role that none of the best has.
pub async fn what_is_found_is_in_one_order_however_it_is_paged(store: &dyn Store) {
    let log = store.open().await;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for session in 1..=2 {
        let mut line = begun(&*log, session, 0).await;
        for cell in 0..60 {
            let nth = u128::from(cell) + 100 * session;
            log.append(line.request(&format!("dog cat {nth}"))).await.unwrap();
            log.append(line.finish(&format!("dog dog dog {nth}"))).await.unwrap();
            inputs.push((session, 2 * cell));
            outputs.push((session, 2 * cell + 1));
        }
    }
    for (roles, expected) in [
        (vec![], [outputs.clone(), inputs.clone()].concat()),
        (vec![Role::Input], inputs),
        (vec![Role::Output], outputs),
    ] {
        for limit in [7, 100, 1000] {
            let mut pages = Vec::new();
            for offset in (0..).step_by(limit) {
                let page = EntryFilter { roles: roles.clone(), offset, limit, ..words("dog") };
                let page = found(&*log, page).await;
                pages.extend_from_slice(&page);
                if page.len() < limit {
                    break;
                }
            }
            assert_eq!(pages, expected, "{roles:?}, {limit} at a time");
        }
    }
}
