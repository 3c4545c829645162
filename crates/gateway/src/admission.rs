//! Whom a client stands for, and until when its credentials are good.

use std::time::Duration;

use mainstay_model::{Access, Timestamp};

/// How long to wait at most before the clock is looked at again: it may have been set, or the machine have slept.
const STEP: Duration = Duration::from_secs(30);

/// A client whose credentials are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The principal that the client stands for, and what it may do.
    pub access: Access,
    /// When its credentials are good no longer; none where they do not expire.
    pub expires_at: Option<Timestamp>,
}

impl Admission {
    /// Waits until the credentials are good no longer; for ever where they do not expire.
    pub async fn expired(&self) {
        match self.expires_at {
            Some(at) => wait_until(at).await,
            None => std::future::pending().await,
        }
    }
}

impl From<Access> for Admission {
    /// An admission by credentials that do not expire.
    fn from(access: Access) -> Self {
        Self { access, expires_at: None }
    }
}

/// Waits until the clock shows this time.
pub async fn wait_until(at: Timestamp) {
    while let Ok(left) = Duration::try_from(at.duration_since(Timestamp::now())) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(STEP)).await;
    }
}
