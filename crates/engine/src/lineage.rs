//! Lineage: which sessions were forked off which.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use mainstay_log::SessionFilter;
use mainstay_model::transcript::total;
use mainstay_model::{Error, Session, SessionId};

use crate::client::Client;

/// How many sessions a lineage has at most.
const LARGEST: usize = 1000;

/// A session among those it is related to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relative {
    /// A session with a common ancestor, itself included.
    pub session: Session,
    /// How many entries its transcript has.
    pub entries: u64,
    /// How many of them were merged, by the sessions in which they came to be; a fork has those of its parent.
    pub merged: BTreeMap<SessionId, u64>,
}

/// How many entries of others were merged into a session's transcript.
fn merged_into(session: &Session) -> BTreeMap<SessionId, u64> {
    let mut merged: BTreeMap<SessionId, u64> = BTreeMap::new();
    for segment in session.transcript.inherited().iter().filter(|segment| segment.kept) {
        *merged.entry(segment.session).or_default() += segment.len();
    }
    merged
}

impl Client {
    /// All sessions that have an ancestor with this one in common, as far as they may be seen and not more than a thousand; of
    /// those that were deleted the ones that others come from: each after the one it was forked off, the children of one in the order in which they came to be.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
    pub async fn lineage(&self, session: SessionId) -> Result<Vec<Relative>, Error> {
        let mut next = vec![self.first_ancestor(session).await?];
        let mut relatives = Vec::new();
        while let Some(session) = next.pop() {
            let children = SessionFilter {
                forked_from: Some(session.id),
                with_deleted: true,
                ..SessionFilter::default()
            };
            let mut children = self.sessions(children).await?;
            // The last of them is taken next.
            children.sort_by_key(|child| Reverse((child.created_at, child.id)));
            next.append(&mut children);
            let entries = total(&self.engine().segments_of(&session).await?);
            let merged = merged_into(&session);
            relatives.push(Relative { session, entries, merged });
            if relatives.len() == LARGEST {
                break;
            }
        }
        Ok(with_descendants(relatives))
    }

    /// The first of those it comes from that may be seen, without one between that may not.
    async fn first_ancestor(&self, session: SessionId) -> Result<Session, Error> {
        let mut first = self.visible_session(session).await?;
        while let Some(parent) = &first.forked_from {
            match self.seen_session(parent.session).await? {
                Some(parent) => first = parent,
                None => break,
            }
        }
        Ok(first)
    }
}

/// Without those that were deleted and from which nobody comes who is there.
fn with_descendants(relatives: Vec<Relative>) -> Vec<Relative> {
    let mut parents = HashSet::new();
    let mut kept: Vec<Relative> = relatives
        .into_iter()
        .rev()
        .filter(|Relative { session, .. }| {
            let is_kept = session.deleted_at.is_none() || parents.contains(&session.id);
            if is_kept {
                parents.extend(session.forked_from.as_ref().map(|parent| parent.session));
            }
            is_kept
        })
        .collect();
    kept.reverse();
    kept
}
