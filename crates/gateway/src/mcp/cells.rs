//! The cells and messages of a session's transcript, each by its number: how many there are up to it.

use std::ops::ControlFlow;

use mainstay_engine::{Client, ExportCursor};
use mainstay_model::exchange::{Header, Item};
use mainstay_model::{Error, JobEnd, SessionId};

/// Bytes that are held at once.
const PART_BYTES: usize = 256 * 1024;

/// Visits the cells and messages with their numbers, first to last, until the visitor breaks off. A reset comes with the number of
/// what is before it.
///
/// # Errors
/// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
pub(super) async fn visit(
    client: &Client,
    session: SessionId,
    mut visitor: impl FnMut(u64, Item) -> ControlFlow<()> + Send,
) -> Result<Header, Error> {
    let (mut cursor, mut number) = (ExportCursor::default(), 0);
    loop {
        let page = client.export(session, cursor, PART_BYTES).await?;
        for item in page.items {
            match &item {
                Item::Cell { .. } | Item::Message { .. } => number += 1,
                Item::Reset { .. } => {}
                Item::Label { .. } | Item::End { .. } => continue,
            }
            if visitor(number, item).is_break() {
                return Ok(page.header);
            }
        }
        match page.next {
            Some(next) => cursor = next,
            None => return Ok(page.header),
        }
    }
}

/// The cell or message with a number.
///
/// # Errors
/// Those of [`visit`].
pub(super) async fn find(
    client: &Client,
    session: SessionId,
    number: u64,
) -> Result<(Header, Option<Item>), Error> {
    let mut found = None;
    let header = visit(client, session, |at, item| match item {
        Item::Cell { .. } | Item::Message { .. } if at == number => {
            found = Some(item);
            ControlFlow::Break(())
        }
        Item::Cell { .. }
        | Item::Message { .. }
        | Item::Reset { .. }
        | Item::Label { .. }
        | Item::End { .. } => ControlFlow::Continue(()),
    })
    .await?;
    Ok((header, found))
}

/// Whether it is a cell that did not run to its end for want of better code.
pub(super) fn has_failed(item: &Item) -> bool {
    match item {
        Item::Cell { events, .. } => {
            let mut ends = events.iter().filter_map(|said| said.body.job_end());
            ends.next_back().is_some_and(|(_, end)| end == JobEnd::Failed)
        }
        Item::Message { .. } | Item::Reset { .. } | Item::Label { .. } | Item::End { .. } => false,
    }
}
