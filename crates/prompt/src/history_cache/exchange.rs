//! The exchange with the daemon: what waits is sent, and what other terminals added is asked for.

use mainstay_client::Client;
use mainstay_model::{Error, HistoryPage, LineNumber};
use mainstay_protocol::operations::{AddHistory, ListHistory};
use mainstay_terminal_client::link::is_loss;

use super::lines::Line;
use super::{HistoryCache, Shared};

/// How many lines are sent at once.
const TOGETHER: usize = 256;

/// Sends and asks, whenever there is something to do.
pub(super) async fn keep_up(history: HistoryCache) {
    let shared = &history.shared;
    loop {
        shared.work.notified().await;
        let (asked, client) = {
            let known = shared.lock();
            (known.asked, known.client.clone())
        };
        if let Some(client) = client {
            // Where the daemon is lost, the next connection goes on.
            if let Ok(()) = send(shared, &client).await {
                drop(list(shared, &client).await);
            }
        }
        let mut known = shared.lock();
        known.answered = known.answered.max(asked);
        drop(known);
        shared.answered.notify_all();
        shared.round_ended.notify_waiters();
    }
}

/// Sends what waits, oldest first.
async fn send(shared: &Shared, client: &Client) -> Result<(), Error> {
    let mut together = TOGETHER;
    loop {
        let lines: Vec<_> =
            shared.lock().unsent.iter().take(together).map(|unsent| unsent.line.clone()).collect();
        if lines.is_empty() {
            break;
        }
        let count = lines.len();
        match client.call(AddHistory { lines }).await {
            Ok(added) => shared.lock().sent(&added.numbers),
            Err(error) if is_loss(&error) => return Err(error),
            Err(error @ Error::StoreFailed { .. }) => return Err(error),
            Err(_) if count > 1 => together = 1,
            // Its session may be gone since.
            Err(Error::SessionNotFound { .. }) => {
                if let Some(first) = shared.lock().unsent.front_mut() {
                    first.line.session = None;
                }
            }
            Err(_) => shared.lock().refused(),
        }
    }
    for (file, bytes) in shared.lock().done_files() {
        // Another client may have added to it.
        if std::fs::read(&file).is_ok_and(|found| found == bytes) {
            std::fs::remove_file(&file).ok();
        }
    }
    Ok(())
}

/// Asks for what is new; for all, where lines were removed.
async fn list(shared: &Shared, client: &Client) -> Result<(), Error> {
    let after = shared.lock().listed;
    let extent = list_after(shared, client, after).await?.extent;
    let has_all = {
        let mut known = shared.lock();
        let is_numbered = |line: &Line, number: fn(LineNumber, LineNumber) -> bool| {
            line.number.is_some_and(|found| number(found, extent.oldest))
        };
        known.lines.retain(|_, line| !is_numbered(line, |found, oldest| found < oldest));
        let numbered = known.lines.values().filter(|line| line.number.is_some()).count();
        let has_all = numbered as u64 == extent.lines;
        if !has_all {
            known.lines.retain(|_, line| line.number.is_none());
            known.listed = LineNumber::default();
        }
        has_all
    };
    if !has_all {
        list_after(shared, client, LineNumber::default()).await?;
    }
    Ok(())
}

/// Takes in all lines after one; gives the first page.
async fn list_after(shared: &Shared, client: &Client, after: LineNumber) -> Result<HistoryPage, Error> {
    let page = |before| {
        let after = Some(after);
        client.call(ListHistory {
            folder: None,
            session: None,
            words: Vec::new(),
            before,
            after,
            limit: None,
        })
    };
    let first = page(None).await?;
    let mut lines = first.lines.clone();
    while let Some(oldest) = lines.last().map(|line| line.number) {
        shared.lock().list(lines);
        lines = page(Some(oldest)).await?.lines;
    }
    Ok(first)
}
