//! Whom a client stands for, and until when its credentials are good.

use mainstay_model::{Access, Timestamp};

/// A client whose credentials are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The principal that the client stands for, and what it may do.
    pub access: Access,
    /// When its credentials are good no longer; none where they do not expire.
    pub expires_at: Option<Timestamp>,
}

impl Admission {
    /// An admission of credentials that do not expire.
    pub const fn unlimited(access: Access) -> Self {
        Self { access, expires_at: None }
    }
}
