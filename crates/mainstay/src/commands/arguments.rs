//! What arguments of several commands name: a session that is there, a file or folder that is there.

use mainstay_client::Client;
use mainstay_model::Error;
use mainstay_protocol::view::SessionView;

use super::target::Target;

/// The session that is named; the one used last where none is.
pub(super) async fn named(client: &Client, session: Option<String>) -> Result<SessionView, Error> {
    Target { session, ..Target::default() }.find(client).await
}
