//! What is said of a reset before and after it.

use mainstay_client::Client;
use mainstay_protocol::operations::ListValues;
use mainstay_protocol::reset_warning;
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{Enter, confirm, printable};
use tokio::time::timeout;

/// Asks whoever is at the terminal, where there is anything to lose.
pub async fn confirm_reset(client: &Client, session: &SessionView) -> bool {
    match what_is_lost(client, session).await {
        Some(lost) => confirm(&format!("this drops {lost}. Go on?"), Enter::Yes),
        None => true,
    }
}

/// Whether anything was said in the session that a reset could drop.
pub fn has_begun(session: &SessionView) -> bool {
    reset_warning::has_begun(session.evals, session.title.as_deref())
}

/// How a reset is undone, by this command.
pub fn how_to_undo(command: &str) -> String {
    format!("`{command}` makes a session of what was there")
}

/// What a reset of the session would drop, in words; none where that is nothing.
async fn what_is_lost(client: &Client, session: &SessionView) -> Option<String> {
    if !has_begun(session) {
        return None;
    }
    let is_agent = session.is_agent();
    // One that is idle, or Faulted, cannot be asked, and has its definitions all the same.
    let values = match is_agent {
        true => None,
        false => {
            let asked = client.call(ListValues { session: session.session.to_string() });
            timeout(reset_warning::NAMING, asked).await.ok().and_then(Result::ok)
        }
    };
    let names: Vec<_> = values.iter().flatten().map(|value| printable(&value.name)).collect();
    Some(reset_warning::what_is_lost(&format!("`{}`", printable(&session.name)), is_agent, &names))
}
