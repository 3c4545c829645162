//! The cells and messages of a session's transcript, each by its number: how many there are up to it.

use std::ops::ControlFlow;

use mainstay_engine::Client;
use mainstay_formats::exchange::{ExportCursor, Header, Item};
use mainstay_model::{Error, JobEnd, SessionId, Validity};

/// Bytes that are held at once.
const PART_BYTES: usize = 256 * 1024;

/// Where a cell or a message stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// How many there are up to it. A reset has that of what is before it.
    pub(super) number: u64,
    /// The index of its last entry in the transcript, where it has any: of a cell that of its output.
    pub(super) entry: Option<u64>,
}

/// How far what cells in these places gave still holds; none of what is no cell, and where nothing could change.
///
/// # Errors
/// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
pub(super) async fn validities(
    client: &Client,
    session: SessionId,
    places: &[Place],
) -> Result<Vec<Option<Validity>>, Error> {
    let mut entries = Vec::new();
    for entry in places.iter().filter_map(|place| place.entry) {
        entries.extend(client.entries(session, entry, 1).await?);
    }
    let mut known = client.validities_of_entries(&entries).await?.into_iter();
    Ok(places.iter().map(|place| place.entry.and_then(|_| known.next().flatten())).collect())
}

/// Visits the cells, messages and resets, first to last, until the visitor breaks off.
///
/// # Errors
/// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
pub(super) async fn visit(
    client: &Client,
    session: SessionId,
    mut visitor: impl FnMut(Place, Item) -> ControlFlow<()> + Send,
) -> Result<Header, Error> {
    let (mut cursor, mut number, mut before) = (ExportCursor::default(), 0, 0);
    loop {
        let page = client.export(session, cursor, PART_BYTES).await?;
        for item in page.items {
            let entries = match &item {
                Item::Cell { entries, .. } | Item::Message { entries, .. } => {
                    number += 1;
                    entries.len() as u64
                }
                Item::Reset { .. } => 0,
                Item::Label { .. } | Item::End { .. } => continue,
            };
            before += entries;
            let entry = (entries > 0).then(|| before - 1);
            if visitor(Place { number, entry }, item).is_break() {
                return Ok(page.header);
            }
        }
        match page.next {
            Some(next) => cursor = next,
            None => return Ok(page.header),
        }
    }
}

/// The cell or message with a number, and where it stands.
///
/// # Errors
/// Those of [`visit`].
pub(super) async fn find(
    client: &Client,
    session: SessionId,
    number: u64,
) -> Result<(Header, Option<(Place, Item)>), Error> {
    let mut found = None;
    let header = visit(client, session, |place, item| match item {
        Item::Cell { .. } | Item::Message { .. } if place.number == number => {
            found = Some((place, item));
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
