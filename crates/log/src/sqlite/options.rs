//! How a store is opened, and who else may use it meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crate::ownership::{Clock, LeaseTerms, OwnerId, SystemClock};

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    /// The largest the database may become, in bytes, whole pages of 4 KiB; as large as the disk allows where absent.
    /// Large objects and the write-ahead log are not counted.
    pub max_bytes: Option<u64>,
    /// Who else may use the store meanwhile.
    pub sharing: Sharing,
}

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
    pub(super) fn owner(&self) -> OwnerId {
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
    pub(super) fn times(&self) -> (i64, i64) {
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
pub(super) const RELEASED: i64 = 0;
