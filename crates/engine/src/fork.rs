//! Forks: what a session begins with that is forked off another. Nothing is copied: it gets the other's segments.

use mainstay_log::SessionFilter;
use mainstay_model::transcript::{slice, total, whole_units};
use mainstay_model::{CreateSession, Error, ForkPoint, ForkSession, Role, Segment, Session, SessionId};

use crate::engine::Engine;

/// How far an answer may be from what it answers, in entries.
const UNIT: u64 = 64;

impl Engine {
    /// What a fork is created as, and what it begins with.
    pub(crate) async fn plan_fork(&self, fork: ForkSession) -> Result<(CreateSession, ForkPoint), Error> {
        let ForkSession { from, entries: asked, name } = fork;
        let parent = self.stored(from).await?;
        let segments = self.segments_of(&parent).await?;
        let all = total(&segments);
        let wanted = asked.unwrap_or(all);
        if wanted > all {
            let reason = format!("it has {all} entries, and {wanted} of them are asked for");
            return Err(Error::InvalidArgument { argument: "entries".to_owned(), reason });
        }
        // No transcript ends between an input and its output.
        let entries = if wanted == all { all } else { self.whole_end(&segments, wanted).await? };
        let name = match name {
            Some(name) => name,
            None => self.free_name(&parent.name).await?,
        };
        let create = CreateSession {
            kind: parent.kind,
            working_directory: parent.working_directory,
            project: parent.project,
            name: Some(name),
        };
        let asked = asked.filter(|asked| *asked != entries);
        Ok((create, ForkPoint { from, entries, asked, segments: slice(&segments, 0..entries) }))
    }

    /// The session as the log has it.
    pub(crate) async fn stored(&self, session: SessionId) -> Result<Session, Error> {
        let found = self.shared.log.session(session).await?;
        found.ok_or_else(|| Error::SessionNotFound { reference: session.to_string() })
    }

    /// What a session's transcript consists of now.
    pub(crate) async fn segments_of(&self, session: &Session) -> Result<Vec<Segment>, Error> {
        let own = self.shared.log.count_own_entries(session.id).await?;
        Ok(session.transcript.segments(session.id, own))
    }

    /// How many entries there are from the first, where `wanted` are wanted and no answer is to lose what it answers.
    async fn whole_end(&self, segments: &[Segment], wanted: u64) -> Result<u64, Error> {
        let before = wanted.saturating_sub(1);
        let around = self.entries_of(&slice(segments, before..wanted.saturating_add(UNIT))).await?;
        let roles: Vec<Role> = around.iter().map(|placed| placed.entry.role).collect();
        Ok(before + whole_units(&roles, 0..wanted - before).end)
    }

    /// A name that no session has: this one, or this one numbered.
    pub(crate) async fn free_name(&self, name: &str) -> Result<String, Error> {
        let stem = name.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
        let stem = stem.map_or(name, |(stem, _)| stem);
        let (mut candidate, mut number) = (name.to_owned(), 1_u32);
        loop {
            let named = SessionFilter { name: Some(candidate.clone()), ..SessionFilter::default() };
            if self.shared.log.count_sessions(named).await? == 0 {
                return Ok(candidate);
            }
            number += 1;
            candidate = format!("{stem}-{number}");
        }
    }
}
