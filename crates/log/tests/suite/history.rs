//! The history of lines typed at the prompt.

use mainstay_log::{HistoryFilter, Log};
use mainstay_model::{Content, HistoryExtent, HistoryLine, LineNumber, NewLine, Principal, Timestamp};
use uuid::Uuid;

use super::Store;
use crate::support::session_id;

pub fn line(id: u128, text: &str) -> NewLine {
    let at = Timestamp::from_microsecond(1_000_000 + id as i64).unwrap();
    NewLine { id: Uuid::from_u128(id), at, folder: None, session: None, text: text.to_owned() }
}

fn mine() -> HistoryFilter {
    HistoryFilter::of(Principal::local())
}

async fn add(log: &dyn Log, line: NewLine) -> LineNumber {
    log.add_history(&Principal::local(), line, None).await.unwrap()
}

async fn texts(log: &dyn Log, filter: HistoryFilter) -> Vec<String> {
    let page = log.history(filter).await.unwrap();
    page.lines.iter().map(|line| line.content.beginning().to_owned()).collect()
}

pub async fn lines_are_each_principals_own_and_come_newest_first(store: &dyn Store) {
    let log = store.open().await;
    let ada = Principal::new("ada").unwrap();
    let first = NewLine { folder: Some("/lab".to_owned()), session: Some(session_id(1)), ..line(1, "1") };
    let number = add(&*log, first.clone()).await;
    add(&*log, line(2, "2")).await;
    log.add_history(&ada, line(1, "hers"), None).await.unwrap();
    drop(log);
    let log = store.open().await;
    assert_eq!(texts(&*log, mine()).await, ["2", "1"]);
    assert_eq!(texts(&*log, HistoryFilter::of(ada.clone())).await, ["hers"]);
    let page = log.history(mine()).await.unwrap();
    assert_eq!(page.extent, HistoryExtent { lines: 2, oldest: number });
    let NewLine { at, folder, session, text, .. } = first;
    let kept = HistoryLine { number, at, folder, session, content: Content::Text(text) };
    assert_eq!(page.lines[1], kept);
    assert_eq!(log.remove_history(mine()).await, Ok(2));
    assert_eq!(log.history(mine()).await.unwrap().extent, HistoryExtent::default());
    assert_eq!(texts(&*log, HistoryFilter::of(ada)).await, ["hers"]);
}

pub async fn lines_are_chosen_by_folder_session_words_and_place(store: &dyn Store) {
    let log = store.open().await;
    let of = |id, folder: &str, session, text| NewLine {
        folder: Some(folder.to_owned()),
        session: Some(session_id(session)),
        ..line(id, text)
    };
    add(&*log, line(1, "of before")).await;
    let second = add(&*log, of(2, "/a", 1, "let Rate = 10")).await;
    add(&*log, of(3, "/b", 2, "let rate_b = 100%")).await;
    let last = add(&*log, of(4, "/a", 3, "rate * 2")).await;
    let chosen = async |filter| texts(&*log, filter).await;
    let folder = || HistoryFilter { folder: Some("/a".to_owned()), ..mine() };
    assert_eq!(chosen(folder()).await, ["rate * 2", "let Rate = 10", "of before"]);
    assert_eq!(chosen(HistoryFilter { session: Some(session_id(2)), ..mine() }).await, ["let rate_b = 100%"]);
    let words = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        HistoryFilter { words, ..mine() }
    };
    assert_eq!(chosen(words(&["rate", "LET"])).await, ["let rate_b = 100%", "let Rate = 10"]);
    assert_eq!(chosen(words(&["e_b"])).await, ["let rate_b = 100%"], "no wildcard");
    assert_eq!(chosen(words(&["0%"])).await, ["let rate_b = 100%"]);
    assert_eq!(
        chosen(HistoryFilter { before: Some(last), limit: Some(1), ..mine() }).await,
        ["let rate_b = 100%"]
    );
    assert_eq!(
        chosen(HistoryFilter { after: Some(second), ..mine() }).await,
        ["rate * 2", "let rate_b = 100%"]
    );
    let one = HistoryFilter { number: Some(second), ..mine() };
    assert_eq!(log.remove_history(HistoryFilter { limit: Some(0), ..one.clone() }).await, Ok(1));
    assert_eq!(log.remove_history(one).await, Ok(0));
    assert_eq!(log.remove_history(folder()).await, Ok(2));
    assert_eq!(chosen(mine()).await, ["let rate_b = 100%"]);
}

pub async fn a_large_line_is_an_object_and_one_sent_again_is_kept_once(store: &dyn Store) {
    let log = store.open().await;
    for (id, size) in [(1, 10 * 1024 + 1), (2, 100_000)] {
        let text = "let x = 1\n".repeat(size / 10 + 1);
        let number = add(&*log, line(id, &text)).await;
        assert_eq!(add(&*log, line(id, &text)).await, number);
        let kept = log.history(HistoryFilter { number: Some(number), ..mine() }).await.unwrap();
        let Content::Object { object, bytes, preview } = &kept.lines[0].content else {
            panic!("it is inline")
        };
        assert_eq!(*bytes, text.len() as u64);
        assert!(text.starts_with(preview.as_str()));
        assert!(log.object(object).await.unwrap() == text.as_bytes());
    }
    assert_eq!(log.history(mine()).await.unwrap().extent.lines, 2);
}

pub async fn the_oldest_lines_go_and_their_numbers_are_not_given_again(store: &dyn Store) {
    let log = store.open().await;
    let ada = Principal::new("ada").unwrap();
    log.add_history(&ada, line(0, "hers"), Some(2)).await.unwrap();
    let mut numbers = Vec::new();
    for id in 1..=5 {
        let added = log.add_history(&Principal::local(), line(id, &id.to_string()), Some(2)).await;
        numbers.push(added.unwrap());
    }
    assert_eq!(texts(&*log, mine()).await, ["5", "4"]);
    assert_eq!(log.history(mine()).await.unwrap().extent, HistoryExtent { lines: 2, oldest: numbers[3] });
    assert_eq!(texts(&*log, HistoryFilter::of(ada)).await, ["hers"]);
    log.remove_history(mine()).await.unwrap();
    drop(log);
    let log = store.open().await;
    assert!(add(&*log, line(6, "6")).await > numbers[4]);
}
