//! Why a session is Faulted, and what helps: first what keeps its definitions, then what drops them.

use mainstay_client::Client;
use mainstay_model::{Error, SessionState};
use mainstay_protocol::operations::GetSession;
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{self as terminal, Paint, Tone, printable};

/// How a session's definitions are dropped with its worker.
#[derive(Clone, Copy, Debug)]
pub enum HardReset {
    /// The user typed a command in a shell.
    Command,
    /// The user typed it at Mainstay's prompt.
    Prompt,
}

/// The reason and the advice, a line each; nothing for a session that is not Faulted.
pub fn fault_text(session: &SessionView, hard_reset: HardReset, paint: Paint) -> Option<String> {
    let fault = session.fault.as_ref()?;
    let reason = paint.tone(Tone::Error, &printable(fault));
    Some(format!("  {reason}\n  {}\n", advice(session, hard_reset)))
}

/// Shows an error, with advice where a session refuses because it is Faulted.
pub async fn show_refusal(client: &Client, session: &str, hard_reset: HardReset, error: &Error) {
    if matches!(error, Error::NotOffered { state: SessionState::Faulted, .. })
        && let Ok(session) = client.call(GetSession { session: session.to_owned() }).await
    {
        return terminal::show_failure(&error.to_string(), error.code(), &advice(&session, hard_reset));
    }
    terminal::show_error(error);
}

fn advice(session: &SessionView, hard_reset: HardReset) -> String {
    let id = &session.short_id;
    let drop = match hard_reset {
        HardReset::Command => format!("mainstay session reset --hard {id}"),
        HardReset::Prompt => ":hard-reset".to_owned(),
    };
    format!(
        "Stop it with `mainstay session stop {id}` and use it again: its definitions are kept. Where they are what breaks it, \
         `{drop}` drops them."
    )
}
