//! Who owns sessions, in the tables: each owner's lease, and each session's lease and epoch.

use std::sync::Arc;
use std::time::Duration;

use mainstay_model::{SessionId, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::append::not_found;
use super::statements::Statements;
use super::writer::WriteFailure;
use crate::ownership::{ClaimError, Clock, Epoch, LeaseTerms, OwnerId, SystemClock};

/// Who else may use a store while it is open.
#[derive(Clone, Debug, Default)]
pub enum Sharing {
    /// Nobody: the store's lock is held alone. It is the lease, and ends with the process, so whoever opens the store next
    /// takes every session over at once, and nothing is renewed.
    #[default]
    Alone,
    /// Others that share it too, each as an owner of its own.
    Shared {
        /// The owner that this handle stands for.
        owner: OwnerId,
        /// How long its lease lasts.
        lease: LeaseTerms,
        /// What tells the time by which leases lapse.
        clock: Arc<dyn Clock>,
    },
}

impl Sharing {
    /// Shared, under a lease of the default length by this machine's clock.
    pub fn by(owner: OwnerId) -> Self {
        Self::Shared { owner, lease: LeaseTerms::default(), clock: Arc::new(SystemClock) }
    }

    /// Returns the owner of the sessions that are claimed or created here.
    fn owner(&self) -> OwnerId {
        match self {
            Self::Alone => OwnerId::home(),
            Self::Shared { owner, .. } => owner.clone(),
        }
    }

    /// After how long the lease is renewed; none where it does not lapse.
    pub(super) fn renewed_after(&self) -> Option<Duration> {
        match self {
            Self::Alone => None,
            Self::Shared { lease, .. } => Some(lease.renewed_after()),
        }
    }

    /// The store's time, and when a lease that is renewed now ends. Nobody asks whether the lease of who is alone is live.
    fn times(&self) -> (i64, i64) {
        match self {
            Self::Alone => (0, RELEASED),
            Self::Shared { lease, clock, .. } => {
                let now = clock.now().as_microsecond();
                let lasts = i64::try_from(lease.lasts.as_micros()).unwrap_or(i64::MAX);
                (now, now.saturating_add(lasts))
            }
        }
    }
}

/// In place of the end of a lease: it was given up, or there is none.
const RELEASED: i64 = 0;

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
