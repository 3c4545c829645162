//! Who owns sessions, in the tables: each owner's lease, and each session's lease and epoch.

use mainstay_model::{SessionId, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::failure::not_found;
use super::options::{RELEASED, Sharing};
use super::statements::Statements;
use super::writer::WriteFailure;
use crate::Epoch;
use crate::ownership::{ClaimError, OwnerId};

/// The number of the owner's lease, which is live afterwards.
pub(super) fn lease_number(statements: &mut Statements<'_>, sharing: &Sharing) -> rusqlite::Result<i64> {
    let owner = sharing.owner();
    let (now, end) = sharing.times();
    let known: Option<(i64, i64)> = statements
        .get("SELECT number, expires_at FROM lease WHERE owner = ?1")?
        .query_row([owner.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match known {
        Some((number, expires_at)) if expires_at > now || end == RELEASED => Ok(number),
        Some(_) | None => renew(statements, &owner, end),
    }
}

/// Renews the owner's lease.
pub(super) fn renew_lease(statements: &mut Statements<'_>, sharing: &Sharing) -> Result<(), WriteFailure> {
    renew(statements, &sharing.owner(), sharing.times().1)?;
    Ok(())
}

/// Gives the owner's lease up, and with it all of its sessions.
pub(super) fn release_lease(statements: &mut Statements<'_>, sharing: &Sharing) -> Result<(), WriteFailure> {
    renew(statements, &sharing.owner(), RELEASED)?;
    Ok(())
}

fn renew(statements: &mut Statements<'_>, owner: &OwnerId, end: i64) -> rusqlite::Result<i64> {
    statements
        .get(
            "INSERT INTO lease (owner, expires_at) VALUES (?1, ?2)
             ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at RETURNING number",
        )?
        .query_row(params![owner.as_str(), end], |row| row.get(0))
}

/// Takes a session's ownership, where nobody else has it.
pub(super) fn claim(
    statements: &mut Statements<'_>,
    session: SessionId,
    sharing: &Sharing,
) -> Result<Result<Epoch, ClaimError>, WriteFailure> {
    let id = session.as_uuid().into_bytes();
    let holder = statements
        .get(
            "SELECT lease.owner, coalesce(expires_at, 0)
             FROM session JOIN head ON head.session = session.number LEFT JOIN lease ON lease.number = head.lease
             WHERE session.id = ?1 AND deleted_at IS NULL",
        )?
        .query_row([id], |row| Ok((row.get::<_, Option<String>>(0)?, row.get(1)?)))
        .optional()?;
    let Some((holder, expires_at)) = holder else {
        return Ok(Err(ClaimError::Failed(not_found(session))));
    };
    let owner = sharing.owner();
    if let Some(holder) = holder.map(OwnerId::new)
        && holder != owner
        && expires_at > sharing.times().0
        && matches!(sharing, Sharing::Shared { .. })
    {
        let expires_at = Timestamp::from_microsecond(expires_at).unwrap_or(Timestamp::MAX);
        return Ok(Err(ClaimError::Held { owner: holder, expires_at }));
    }
    let number = lease_number(statements, sharing)?;
    let epoch: i64 = statements
        .get(
            "UPDATE head SET epoch = epoch + 1, lease = ?2
             WHERE session = (SELECT number FROM session WHERE id = ?1) RETURNING epoch",
        )?
        .query_row(params![id, number], |row| row.get(0))?;
    Ok(Ok(Epoch(epoch.unsigned_abs())))
}
