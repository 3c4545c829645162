//! The views of entries of transcripts.

use mainstay_engine::SearchHit;
use mainstay_protocol::view::FoundView;

/// The view of an entry that was found.
pub fn found_view(SearchHit { session, index, placed, snippet, validity }: SearchHit) -> FoundView {
    FoundView {
        session: session.id,
        short_id: session.id.short(),
        name: session.name,
        kind: session.kind,
        working_directory: session.working_directory,
        index,
        role: placed.entry.role,
        at: placed.at,
        snippet,
        validity,
    }
}
