//! Permissions, and the leases that they grant. Source: draft-arcp-01, 15.

use jiff::Timestamp;

use super::error::ErrorCode;
use super::payload::payloads;

payloads! {
    /// A job wants to be allowed something. Source: draft-arcp-01, 15.4.
    PermissionRequest {
        /// The permission that it wants.
        permission: String,
    } optional {
        /// What it wants to act on.
        resource: String,
        /// What it wants to do with that.
        operation: String,
        /// Why it wants to, for people.
        reason: String,
        /// For how long it wants to, in seconds.
        requested_lease_seconds: u64,
        /// When it must have been answered.
        expires_at: Timestamp,
    }

    /// A client allows what was asked for. Source: draft-arcp-01, 15.4.
    PermissionGrant {} optional {
        /// The permission that is given.
        permission: String,
        /// What may be acted on.
        resource: String,
        /// What may be done with that.
        operation: String,
        /// For how long it may, in seconds.
        lease_seconds: u64,
        /// Until when it may.
        expires_at: Timestamp,
    }

    /// A client does not allow what was asked for. Source: draft-arcp-01, 15.4.
    PermissionDeny {} optional {
        /// Why it is not allowed.
        reason: String,
    }

    /// A permission is held as a lease. Source: draft-arcp-01, 15.5.
    LeaseGranted {
        /// The name of the lease.
        lease_id: String,
        /// The permission that is held.
        permission: String,
        /// Until when it is held.
        expires_at: Timestamp,
    } optional {
        /// What may be acted on.
        resource: String,
        /// What may be done with that.
        operation: String,
    }

    /// A lease is held for longer. Source: draft-arcp-01, 15.5.
    LeaseExtended {
        /// The name of the lease.
        lease_id: String,
        /// Until when it is held now.
        expires_at: Timestamp,
    } optional {}

    /// A lease is held no more. Source: draft-arcp-01, 15.5.
    LeaseRevoked {
        /// The name of the lease.
        lease_id: String,
        /// Why it was taken away.
        reason: String,
    } optional {
        /// Why, as a code of the protocol.
        code: ErrorCode,
    }

    /// The holder of a lease wants to hold it for longer. Source: draft-arcp-01, 15.5.
    LeaseRefresh {
        /// The name of the lease.
        lease_id: String,
    } optional {
        /// For how much longer, in seconds.
        requested_lease_seconds: u64,
    }
}
