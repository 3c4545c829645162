//! Which of the things that were said in sessions may be no longer true. What the sessions' events say of it is kept between two
//! questions, so that each reads only what is new.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::sync::{Arc, PoisonError};

use mainstay_model::validity::Records;
use mainstay_model::{
    Environment, Error, Notice, References, Role, Seq, Session, SessionId, TranscriptEntry, Validity,
    ValidityCounts,
};

use crate::client::Client;
use crate::engine::Engine;
use crate::session::Request;

/// How many events are read from the log at once.
const PAGE: usize = 512;
/// The records of how many sessions are kept.
const KEPT: usize = 64;

/// A session's evals, and what its code would run against now.
struct KnownSession {
    records: Arc<Records>,
    present: Environment,
}

/// What a refresh of a session would be for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshOutlook {
    /// Whether something would run again that has changed since it last ran.
    pub is_outdated: bool,
    /// The names of what its worker has otherwise than it is now.
    pub changed: Vec<String>,
    /// The names of what its worker has, and what is not there any more: code that uses it would fail.
    pub gone: Vec<String>,
}

impl RefreshOutlook {
    /// Whether running the definitions again could bring anything up to date.
    pub fn is_due(&self) -> bool {
        !self.changed.is_empty() || self.is_outdated
    }
}

impl Client {
    /// What a refresh of a session would be for.
    ///
    /// # Errors
    /// As [`Client::validity`].
    pub async fn outlook(&self, session: SessionId) -> Result<RefreshOutlook, Error> {
        let session = self.visible_session(session).await?;
        let Some(KnownSession { records, present }) = self.engine().known(&session).await? else {
            return Ok(RefreshOutlook::default());
        };
        let loaded = session.surroundings.map(|known| known.loaded).unwrap_or_default();
        let now = |name: &String| present.references.get(name).and_then(|now| now.hash.clone());
        let (gone, there): (Vec<_>, Vec<_>) = loaded.into_iter().partition(|(name, _)| now(name).is_none());
        let changed = there.into_iter().filter(|(name, had)| now(name) != had.hash);
        Ok(RefreshOutlook {
            is_outdated: records.is_outdated(&present),
            changed: changed.map(|(name, _)| name).collect(),
            gone: gone.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// How many evals of a session do not surely hold any more; none where its code rests on nothing that could change.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
    pub async fn validity(&self, session: SessionId) -> Result<Option<ValidityCounts>, Error> {
        let session = self.visible_session(session).await?;
        let known = self.engine().known(&session).await?;
        Ok(known.map(|known| known.records.counts(&known.present)))
    }

    /// How far what came of the evals still holds that ended with these events of a session, for those that are ends of evals.
    ///
    /// # Errors
    /// As [`Client::validity`].
    pub async fn validities(
        &self,
        session: SessionId,
        ended: &[Seq],
    ) -> Result<Vec<Option<Validity>>, Error> {
        let session = self.visible_session(session).await?;
        let known = self.engine().known(&session).await?;
        let of = |seq: &Seq| known.as_ref().and_then(|known| known.records.of(*seq, &known.present));
        Ok(ended.iter().map(of).collect())
    }

    /// How far these entries of transcripts still hold, each by what is known in the session that it came to be in; none of what
    /// is no cell's, and where nothing could change.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn validities_of_entries(
        &self,
        entries: &[TranscriptEntry],
    ) -> Result<Vec<Option<Validity>>, Error> {
        let mut known: HashMap<SessionId, Option<KnownSession>> = HashMap::new();
        let mut validities = Vec::with_capacity(entries.len());
        for placed in entries {
            let known = match known.entry(placed.session) {
                MapEntry::Occupied(known) => known.into_mut(),
                MapEntry::Vacant(place) => {
                    let session = self.engine().session(placed.session).await?;
                    place.insert(match session {
                        Some(session) => self.engine().known(&session).await?,
                        None => None,
                    })
                }
            };
            let is_cell = matches!(placed.entry.role, Role::Input | Role::Output);
            let known = known.as_ref().filter(|_| is_cell);
            validities.push(known.and_then(|known| known.records.of(placed.last, &known.present)));
        }
        Ok(validities)
    }
}

impl Engine {
    /// None where a session's code rests on nothing that could change.
    async fn known(&self, session: &Session) -> Result<Option<KnownSession>, Error> {
        let Some(present) = self.present(session).await else { return Ok(None) };
        Ok(Some(KnownSession { records: self.records(session.id).await?, present }))
    }

    /// What a session's code would run against now. Where that is news, its session is told.
    async fn present(&self, session: &Session) -> Option<Environment> {
        let surroundings = session.surroundings.as_ref().filter(|known| !known.present.is_empty())?;
        let mut present = surroundings.present();
        let found = self.shared.watch.look_at(present.references.clone()).await;
        if differs(&present.references, &found) && session.deleted_at.is_none() {
            // One that goes down hears no news; the next daemon looks again.
            if let Ok(handle) = self.handle(session.id).await {
                handle.send(Request::Hear { notice: Notice::LookedAt { found: found.clone() } }).await;
            }
        }
        present.references.extend(found);
        Some(present)
    }

    async fn records(&self, session: SessionId) -> Result<Arc<Records>, Error> {
        let kept = self.shared.records.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        let (mut after, mut records) = kept.unwrap_or_default();
        loop {
            let page = self.shared.log.events(session, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            let records = Arc::make_mut(&mut records);
            page.iter().for_each(|event| records.push(event));
        }
        let mut kept = self.shared.records.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(session, (after, Arc::clone(&records)));
        Ok(records)
    }
}

/// Whether something was found to be otherwise than it was known to be.
pub(crate) fn differs(known: &References, found: &References) -> bool {
    found.iter().any(|(name, found)| known.get(name).is_some_and(|known| known.hash != found.hash))
}
