//! Commands as clients name them, whatever the protocol.

use mainstay_engine::{Client, CommandStatus};
use mainstay_model::{AskId, CommandId, Error, SessionId};
use uuid::Uuid;

/// The id of a command: the client's own, or one of ours where it gave none.
///
/// # Errors
/// [`Error::InvalidArgument`] where the client's looks like one of ours.
pub fn id_of(given: Option<CommandId>) -> Result<CommandId, Error> {
    match given {
        Some(id) => id.check_given().map(|()| id),
        None => Ok(anonymous()),
    }
}

/// The id of a command whose client gives none.
pub fn anonymous() -> CommandId {
    CommandId::anonymous(Uuid::now_v7())
}

/// Where an ask is that was answered under this command id before: it waits no more, and the answer is the stored one.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn answered_before(
    client: &Client,
    reference: &str,
    command: Option<&CommandId>,
) -> Result<Option<(SessionId, AskId)>, Error> {
    let (Some(command), Ok(ask)) = (command, reference.parse()) else { return Ok(None) };
    match client.command(command).await {
        Ok(CommandStatus::Ended(stored)) => Ok(stored.session.map(|session| (session, ask))),
        Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => Ok(Some((session, ask))),
        Err(Error::CommandNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The options of a compiler in what a client says: parted by spaces.
pub fn arguments_in(said: Option<&str>) -> Vec<String> {
    said.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
