//! The history of a principal's own prompt.

use super::call::Call;
use super::page::{PAGE_BYTES, PAGE_LIMIT};
use futures::future::try_join_all;
use mainstay_log::HistoryFilter;
use mainstay_model::{Error, HistoryPage};
use mainstay_protocol::operations::{
    AddHistory, GetHistory, HistoryAdded, HistoryRemoved, HistoryText, ListHistory, RemoveHistory,
};

pub(crate) async fn add(call: Call, add: AddHistory) -> Result<HistoryAdded, Error> {
    // Queued in this order, they are written together.
    let added = add.lines.into_iter().map(|line| call.client.add_history(line));
    Ok(HistoryAdded { numbers: try_join_all(added).await? })
}

pub(crate) async fn list(call: Call, list: ListHistory) -> Result<HistoryPage, Error> {
    let ListHistory { folder, session, words, before, after, limit } = list;
    let session = call.optional(session).await?;
    let limit = Some(limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT));
    let own = call.client.own_history();
    let filter = HistoryFilter { folder, session, words, before, after, limit, ..own };
    let mut page = call.client.history(filter).await?;
    page.lines.truncate(lines_of_a_page(&page));
    Ok(page)
}

pub(crate) async fn remove(call: Call, remove: RemoveHistory) -> Result<HistoryRemoved, Error> {
    let RemoveHistory { number, folder, session } = remove;
    let session = call.optional(session).await?;
    let filter = HistoryFilter { number, folder, session, ..call.client.own_history() };
    Ok(HistoryRemoved { removed: call.client.remove_history(filter).await? })
}

pub(crate) async fn get(call: Call, asked: GetHistory) -> Result<HistoryText, Error> {
    Ok(HistoryText { text: call.client.history_text(asked.number).await? })
}

/// How many lines of a history one message should hold.
fn lines_of_a_page(page: &HistoryPage) -> usize {
    let mut bytes = 0;
    let fits = |line: &&mainstay_model::HistoryLine| {
        bytes += line.content.beginning().len();
        bytes <= PAGE_BYTES
    };
    page.lines.iter().take_while(fits).count().max(1)
}
