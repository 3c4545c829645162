//! The completion of names of sessions.

use mainstay_model::{Error, SessionId};
use mainstay_protocol::operations::ListSessions;
use mainstay_protocol::view::SessionView;
use mainstay_terminal::ago;

use super::CompletionContext;
use super::proposal::{Choice, Proposal};

pub(super) async fn all_sessions(asked: &CompletionContext) -> Result<Vec<SessionView>, Error> {
    asked.client.call(ListSessions::default()).await
}

pub(super) fn sessions(
    sessions: &[SessionView],
    asked: &CompletionContext,
    begun: &str,
    end: usize,
) -> Proposal {
    let now = mainstay_model::Timestamp::now();
    let choices = sessions
        .iter()
        .filter(|session| session.name.starts_with(begun) && session.session != asked.session)
        .map(|session| {
            // A name that several sessions have names none of them.
            let is_shared = sessions.iter().filter(|other| other.name == session.name).count() > 1;
            let value = if is_shared { session.short_id.clone() } else { session.name.clone() };
            let shown = if is_shared { format!("{}  ", session.name) } else { String::new() };
            let note = format!(
                "{shown}{}  {}  {}",
                session.state,
                session.working_directory,
                ago(session.last_activity, now)
            );
            Choice { value, note, documentation: None }
        })
        .collect();
    Proposal::whole(end - begun.len(), choices)
}

/// The session whose name, or the end of whose id, stands before the numbers of entries, and what stands behind it. Its name may
/// have blanks in it: the longest that fits is meant.
pub(super) fn named_in<'a>(sessions: &[SessionView], text: &'a str) -> Option<(SessionId, &'a str)> {
    let behind = |session: &SessionView, name: &str| {
        let numbers = text.strip_prefix(name)?.strip_prefix(' ')?;
        let is_list = numbers.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '-' | ' '));
        is_list.then_some((session.session, numbers))
    };
    let named = sessions.iter().flat_map(|session| {
        let quoted = format!("\"{}\"", session.name);
        [&session.name, &quoted, &session.short_id]
            .into_iter()
            .filter_map(|name| behind(session, name))
            .collect::<Vec<_>>()
    });
    named.min_by_key(|(_, numbers)| numbers.len())
}
