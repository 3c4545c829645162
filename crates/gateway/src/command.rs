//! Commands as clients name them, whatever the protocol.

use mainstay_model::{CommandId, Error};
use uuid::Uuid;

/// The id of a command: the client's own, or one of ours where it gave none.
///
/// # Errors
/// [`Error::InvalidArgument`] where the client's looks like one of ours.
pub(crate) fn id_of(given: Option<CommandId>) -> Result<CommandId, Error> {
    match given {
        Some(id) => id.check_given().map(|()| id),
        None => Ok(anonymous()),
    }
}

/// The id of a command whose client gives none.
pub(crate) fn anonymous() -> CommandId {
    CommandId::anonymous(Uuid::now_v7())
}
