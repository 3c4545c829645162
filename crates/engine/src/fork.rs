//! Forks: what a session begins with that is forked off another. Nothing is copied: it gets the other's segments.

use std::ops::Range;

use mainstay_model::transcript::{leaves_open, slice, total, whole_units};
use mainstay_model::{
    CreateSession, Error, Event, EventBody, ForkPoint, ForkSession, Principal, ProjectChoice, Segment, Seq,
    Session, SessionId,
};

use crate::engine::Engine;
use crate::entries::{end_of, events_of};
use crate::naming::Numbering;
use crate::units::{UNIT, bonds};

impl Engine {
    /// What a fork is created as for this owner, and what it begins with.
    pub(crate) async fn plan_fork(
        &self,
        fork: ForkSession,
        owner: &Principal,
    ) -> Result<(CreateSession, ForkPoint), Error> {
        let ForkSession { from, entries: asked, name, before_reset } = fork;
        let parent = self.stored(from).await?;
        let segments = self.segments_of(&parent).await?;
        let all = total(&segments);
        let asked = match before_reset {
            true if asked.is_some() => {
                let reason = "it says how many, and `beforeReset` too".to_owned();
                return Err(Error::InvalidArgument { argument: "entries".to_owned(), reason });
            }
            true => Some(self.entries_before_reset(&parent, all).await?),
            false => asked,
        };
        let wanted = asked.unwrap_or(all);
        if wanted > all {
            let reason = format!("it has {all} entries, and {wanted} of them are asked for");
            return Err(Error::InvalidArgument { argument: "entries".to_owned(), reason });
        }
        // No transcript ends between an input and its output, or a call and its result.
        let entries = if wanted == all { all } else { self.whole_end(&segments, wanted).await? };
        let replay = match entries == all && !before_reset {
            true => self.definitions_of(&parent, &segments).await?,
            false => replay_of(&parent, &segments, entries),
        };
        let name = match name {
            Some(name) => name,
            None => {
                let place = (owner, parent.working_directory.as_str());
                self.free_name(&parent.name, place, Numbering::GoesOn).await?
            }
        };
        let create = CreateSession {
            kind: parent.kind,
            working_directory: parent.working_directory,
            project: ProjectChoice::exactly(parent.project),
            arguments: parent.arguments,
            name: Some(name),
            alias: None,
        };
        let asked = asked.filter(|asked| *asked != entries);
        let segments = slice(&segments, 0..entries);
        let labels = parent.labels.within(&segments);
        Ok((create, ForkPoint { from, entries, asked, segments, replay, labels }))
    }

    /// How many entries a session's transcript had when it was reset last.
    async fn entries_before_reset(&self, session: &Session, all: u64) -> Result<u64, Error> {
        let log = self.shared.log.as_ref();
        let since = session.definitions_since;
        let after = Seq(since.0.saturating_sub(1));
        let event = log.events(session.id, after, 1).await?.pop();
        let is_reset = |event: &Event| {
            matches!(event.body, EventBody::SessionReset | EventBody::SessionHardReset) && event.seq == since
        };
        if !event.as_ref().is_some_and(is_reset) {
            let reason = "it was not reset".to_owned();
            return Err(Error::InvalidArgument { argument: "beforeReset".to_owned(), reason });
        }
        let own = session.transcript.own(session.id, all);
        let (mut first, mut last) = (own.from, own.to);
        while first < last {
            let middle = first + (last - first) / 2;
            if end_of(log, session.id, middle + 1).await? < since {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        Ok(total(session.transcript.inherited()) + first - own.from)
    }

    /// What a session's definitions are made of now.
    pub(crate) async fn definitions_of(
        &self,
        session: &Session,
        segments: &[Segment],
    ) -> Result<Vec<Segment>, Error> {
        let mut definitions = session.inherited();
        let own = session.transcript.own(session.id, total(segments));
        if !own.is_empty() {
            let (_, last) = events_of(self.shared.log.as_ref(), own).await?;
            // A reset before its last entry is among the events that are replayed.
            if session.definitions_since < last {
                definitions.push(own);
            }
        }
        Ok(definitions)
    }

    /// The session as the log has it, where it was not deleted.
    pub(crate) async fn stored(&self, session: SessionId) -> Result<Session, Error> {
        let found = match self.known_as_stored(session) {
            Some(known) => Some(Session::clone(&known)),
            None => self.shared.log.session(session).await?,
        };
        found
            .filter(|found| found.deleted_at.is_none())
            .ok_or_else(|| Error::SessionNotFound { reference: session.to_string() })
    }

    /// How many entries there are from the first, where `wanted` are wanted and no answer is to lose what it answers.
    pub(crate) async fn whole_end(&self, segments: &[Segment], wanted: u64) -> Result<u64, Error> {
        self.whole_around(segments, wanted..wanted).await.map(|whole| whole.end)
    }

    /// The entries around these that part nothing which belongs together. It looks at those around them, and at more where that is not
    /// enough.
    pub(crate) async fn whole_around(
        &self,
        segments: &[Segment],
        wanted: Range<u64>,
    ) -> Result<Range<u64>, Error> {
        let all = total(segments);
        let is_place = wanted.is_empty();
        let mut reach = UNIT;
        loop {
            let first = wanted.start.saturating_sub(reach);
            let last = wanted.end.saturating_add(reach).min(all);
            let around = self.entries_of(&slice(segments, first..last)).await?;
            let bonds = bonds(&around);
            // A place is where what comes before it ends.
            let start = if is_place { 0 } else { wanted.start - first };
            let whole = whole_units(&bonds, start..wanted.end - first);
            let begins_here = is_place || first == 0 || whole.start > 0;
            let ends_here = last == all || whole.end < last - first && !leaves_open(&bonds, whole.end);
            if begins_here && ends_here {
                return Ok(first + whole.start..first + whole.end);
            }
            reach = reach.saturating_mul(2);
        }
    }
}

/// What the first entries of a transcript are made of, as it was when the last of them was said.
fn replay_of(session: &Session, segments: &[Segment], entries: u64) -> Vec<Segment> {
    let inherited = total(session.transcript.inherited());
    if entries <= inherited {
        let dropped = inherited.saturating_sub(total(&session.begins_with));
        return match session.merged_at {
            // What the merge found there is the end of what stood there.
            Some(_) if entries > dropped => slice(&session.begins_with, 0..entries - dropped),
            Some(_) | None => slice(segments, 0..entries),
        };
    }
    // What had been dropped before its first own entry stays dropped.
    let mut replay = session.begins_with.clone();
    replay.extend(slice(segments, inherited..entries));
    replay
}
