//! Entries: what sessions said, made from their events.

use mainstay_log::Log;
use mainstay_model::transcribe::Transcriber;
use mainstay_model::{Bundle, Content, ObjectHash, Role, TranscriptEntry};

use super::{Store, begun, events};
use crate::support::{Line, kind};

pub async fn a_cell_is_two_entries_once_it_has_ended(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 3).await;
    log.append(line.request("1 + 1")).await.unwrap();
    log.append(line.print("hello\n")).await.unwrap();
    assert_eq!(log.count_own_entries(line.id).await, Ok(0));
    log.append(line.finish("val it : int = 2")).await.unwrap();
    let entries = own(&*log, &line).await;
    let said: Vec<_> = entries.iter().map(|placed| placed.entry.content.beginning()).collect();
    assert_eq!(said, ["1 + 1", "hello\nval it : int = 2"]);
    assert_eq!(log.count_own_entries(line.id).await, Ok(2));
    assert_eq!(log.own_entries(line.id, 1, 1).await.unwrap(), entries[1..]);
    assert_eq!(log.own_entries(line.id, 2, 9).await.unwrap(), []);
    drop(log);
    assert_eq!(own(&*store.open().await, &line).await, entries);
}

pub async fn a_display_is_an_entry_of_its_cell_and_its_text_is_found(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    log.append(line.request("chart")).await.unwrap();
    log.append(line.show("a peculiar table", 10)).await.unwrap();
    log.append(line.show("an enormous table", 20_000)).await.unwrap();
    log.append(line.finish("val it : unit = ()")).await.unwrap();
    let entries = own(&*log, &line).await;
    let roles: Vec<_> = entries.iter().map(|placed| placed.entry.role).collect();
    assert_eq!(roles, [Role::Input, Role::Output, Role::Output, Role::Output]);
    let shown: Vec<_> =
        entries[1..3].iter().map(|placed| placed.entry.shown(placed.entry.content.beginning())).collect();
    assert_eq!(shown, ["a peculiar table", "an enormous table"]);
    assert!(matches!(entries[1].entry.content, Content::Text(_)));
    let Content::Object { object, .. } = &entries[2].entry.content else { panic!("it is inline") };
    let whole: Bundle = serde_json::from_slice(&log.object(object).await.unwrap()).unwrap();
    assert_eq!((whole.text(), whole.form_bytes()), ("an enormous table", 20_000));
    for (words, numbers) in [("peculiar", vec![1]), ("table", vec![1, 2]), ("hhhh*", vec![])] {
        let found = log.search(super::search::words(words)).await.unwrap();
        assert_eq!(
            found.into_iter().map(|(_, placed)| placed.number).collect::<Vec<_>>(),
            numbers,
            "{words}"
        );
    }
}

pub async fn what_is_said_again_is_the_same_entry(store: &dyn Store) {
    let log = store.open().await;
    let mut hashes = Vec::new();
    for number in 1..=2 {
        let mut line = begun(&*log, number, 0).await;
        cell(&*log, &mut line, "let x = 1", "val x : int = 1").await;
        cell(&*log, &mut line, "let x = 1", "val x : int = 1").await;
        hashes.extend(own(&*log, &line).await.into_iter().map(|placed| placed.hash));
    }
    let cell = &hashes[..2];
    assert!(cell[0] != cell[1] && hashes.chunks(2).all(|pair| pair == cell));
}

pub async fn large_content_is_an_object_with_a_preview(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    for bytes in [11_000, 100_000] {
        let text = "é".repeat(bytes / 2);
        cell(&*log, &mut line, &text, "").await;
        let entries = own(&*log, &line).await;
        let content = &entries[entries.len() - 2].entry.content;
        let Content::Object { object, bytes: size, preview } = content else { panic!("it is inline") };
        assert_eq!((object, *size as usize), (&ObjectHash::of(text.as_bytes()), text.len()));
        assert!(text.starts_with(preview.as_str()));
        assert!(log.object(object).await.unwrap() == text.as_bytes());
    }
}

/// Cells of several sessions at once, some of them longer than what is looked at in one go.
pub async fn entries_are_those_that_the_events_come_to(store: &dyn Store) {
    let log = store.open().await;
    let mut lines = Vec::new();
    for number in 1..=4 {
        lines.push(begun(&*log, number, 0).await);
    }
    for round in 0..40 {
        for (index, line) in lines.iter_mut().enumerate() {
            log.append(line.request(&format!("cell {round} of {index}"))).await.unwrap();
        }
        let prints = if round % 13 == 5 { 700 } else { round % 5 };
        for print_number in 0..prints {
            for line in &mut lines {
                log.append(line.print(&format!("{print_number}\n"))).await.unwrap();
            }
        }
        for line in lines.iter_mut().skip(round % 2) {
            log.append(line.finish("")).await.unwrap();
        }
        if round % 10 == 0 {
            own(&*log, &lines[0]).await;
        }
    }
    drop(log);
    let log = store.open().await;
    for line in &lines {
        let mut transcriber = Transcriber::default();
        let expected: Vec<_> = events(&*log, line)
            .await
            .iter()
            .flat_map(|event| transcriber.push(&kind(), event))
            .map(|entry| (entry.entry, entry.at, entry.first, entry.last))
            .collect();
        let entries = own(&*log, line).await;
        assert!(entries.iter().zip(0..).all(|(placed, number)| placed.number == number));
        let found = entries.into_iter().map(|placed| (placed.entry, placed.at, placed.first, placed.last));
        assert!(found.eq(expected));
    }
}

pub async fn a_session_that_is_not_there_has_no_entries(store: &dyn Store) {
    let log = store.open().await;
    assert_eq!(log.own_entries(Line::new(1).id, 0, 9).await, Ok(Vec::new()));
    assert_eq!(log.count_own_entries(Line::new(1).id).await, Ok(0));
}

async fn own(log: &dyn Log, line: &Line) -> Vec<TranscriptEntry> {
    log.own_entries(line.id, 0, usize::MAX).await.unwrap()
}

async fn cell(log: &dyn Log, line: &mut Line, code: &str, display: &str) {
    log.append(line.request(code)).await.unwrap();
    log.append(line.finish(display)).await.unwrap();
}
