//! What can be done at the prompt about what changed outside of the session.

use mainstay_model::{ApplicationEnding, EventBody};

/// The command that brings the session up to date after an event, with what it does; none where nothing is to be done.
pub(crate) fn remedy(body: &EventBody) -> Option<&'static str> {
    match body {
        EventBody::AssembliesChanged { .. } => Some(":refresh runs it again"),
        EventBody::SourcesSwapped(swap) if swap.is_applied() => None,
        EventBody::SourcesSwapped(_) | EventBody::SourcesChanged { in_build: false, .. } => {
            Some(":rebuild builds the project and begins afresh with it")
        }
        EventBody::ApplicationEnded(ended) if ended.ending == ApplicationEnding::Stopped => None,
        EventBody::ApplicationEnded(_) => Some(":run-app starts it again"),
        _ => None,
    }
}
