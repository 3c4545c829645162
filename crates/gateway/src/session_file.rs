//! A session as what a file of it has, whole, for every protocol that exports.

use mainstay_engine::Client;
use mainstay_formats::exchange::{ExportCursor, Header, Item};
use mainstay_model::{Error, SessionId};

/// Bytes of a part of an export.
const PART_BYTES: usize = 1024 * 1024;

/// All that an export of a session has.
///
/// # Errors
/// As [`Client::export`].
pub async fn exported(client: &Client, session: SessionId) -> Result<(Header, Vec<Item>), Error> {
    let mut part = client.export(session, ExportCursor::default(), PART_BYTES).await?;
    let mut items = std::mem::take(&mut part.items);
    while let Some(cursor) = part.next {
        part = client.export(session, cursor, PART_BYTES).await?;
        items.append(&mut part.items);
    }
    Ok((part.header, items))
}
