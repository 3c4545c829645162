//! The errors of the store.

use mainstay_model::{Error, SessionId};

/// Returns the reason that an error of the store has.
pub(super) fn reason_of(error: Error) -> String {
    if let Error::StoreFailed { reason } = error { reason } else { error.to_string() }
}

/// Returns the error for what a library below refused.
pub(super) fn failed(error: impl std::fmt::Display) -> Error {
    // SQLite says that it cannot open a file, and not that no more can be opened.
    let cause = std::fs::File::open("/dev/null").err().filter(|cause| {
        let number = cause.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
        matches!(number, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
    });
    let cause = cause.map_or_else(String::new, |cause| format!("; no file can be opened: {cause}"));
    Error::StoreFailed { reason: format!("{error}{cause}") }
}

/// Returns the error for a session that the store does not have.
pub(super) fn not_found(session: SessionId) -> Error {
    Error::SessionNotFound { reference: session.to_string() }
}
