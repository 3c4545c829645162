//! Transcripts: ordered entries, as segments of sessions. Source: seed 004; protocols/transcripts.md.
//!
//! A session's own entries are numbered as they come to be, and never change. Its transcript is a list of segments of such
//! numbers, its own among them. So a fork is a list of segments, a merge puts some into the list, and neither copies an
//! entry or looks at one.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::entry::Role;
use crate::id::SessionId;

/// Entries of one session, in a row: the numbers `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The session they came to be in.
    pub session: SessionId,
    /// The first.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
}

impl Segment {
    /// How many entries it has.
    pub const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How many entries segments have together.
pub fn total(segments: &[Segment]) -> u64 {
    segments.iter().fold(0, |all, segment| all.saturating_add(segment.len()))
}

/// What a session's transcript consists of: `before`, then the session's own entries from `own_from` on, however many they
/// become.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transcript {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<Segment>,
    #[serde(default, skip_serializing_if = "is_zero")]
    own_from: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Transcript {
    /// That of a session which begins with these.
    pub fn beginning_with(segments: Vec<Segment>) -> Self {
        Self { before: joined(segments), own_from: 0 }
    }

    /// What comes before the session's own entries.
    pub fn inherited(&self) -> &[Segment] {
        &self.before
    }

    /// Whether it is nothing but the session's own entries.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// All of it, where `session` has so many entries of its own.
    pub fn segments(&self, session: SessionId, own: u64) -> Vec<Segment> {
        let last = Segment { session, from: self.own_from, to: own };
        let mut all = self.before.clone();
        all.push(last);
        joined(all)
    }

    /// How many entries it has.
    pub fn len(&self, own: u64) -> u64 {
        total(&self.before).saturating_add(own.saturating_sub(self.own_from))
    }

    /// The first index at which an entry of `session` stands in the transcript of `owner`; none where it does not stand there.
    pub fn index_of(&self, owner: SessionId, session: SessionId, number: u64) -> Option<u64> {
        let mut begins: u64 = 0;
        for segment in &self.before {
            if segment.session == session && (segment.from..segment.to).contains(&number) {
                return Some(begins.saturating_add(number - segment.from));
            }
            begins = begins.saturating_add(segment.len());
        }
        let nth_of_last = number.checked_sub(self.own_from).filter(|_| session == owner)?;
        Some(begins.saturating_add(nth_of_last))
    }

    /// Puts entries before the one with the index `at`, or at the end; what `session` says next comes at the end.
    pub fn insert(&mut self, session: SessionId, own: u64, at: u64, segments: &[Segment]) {
        let all = self.segments(session, own);
        let mut after = slice(&all, at..u64::MAX);
        let mut before = slice(&all, 0..at);
        before.extend_from_slice(segments);
        before.append(&mut after);
        (self.before, self.own_from) = (joined(before), own);
    }
}

/// The entries with these indices.
pub fn slice(segments: &[Segment], indices: Range<u64>) -> Vec<Segment> {
    let mut begins: u64 = 0;
    let mut found = Vec::new();
    for segment in segments {
        let ends = begins.saturating_add(segment.len());
        let (from, to) = (indices.start.max(begins), indices.end.min(ends));
        if from < to {
            let at = |index: u64| segment.from + (index - begins);
            found.push(Segment { session: segment.session, from: at(from), to: at(to) });
        }
        begins = ends;
    }
    found
}

/// The same entries in as few segments as there may be.
fn joined(segments: Vec<Segment>) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments.into_iter().filter(|segment| !segment.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.session == segment.session && last.to == segment.from => last.to = segment.to,
            Some(_) | None => joined.push(segment),
        }
    }
    joined
}

/// The smallest range around `wanted` that parts no answer from what it answers, in a transcript of these roles.
pub fn whole_units(roles: &[Role], wanted: Range<u64>) -> Range<u64> {
    let is_answer = |index: u64| {
        usize::try_from(index).ok().and_then(|index| roles.get(index)).is_some_and(|role| role.is_answer())
    };
    let Range { mut start, mut end } = wanted;
    while start > 0 && is_answer(start) {
        start -= 1;
    }
    while start < end && is_answer(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId::from_uuid(Uuid::from_u128(number))
    }

    /// What may happen to one of a few sessions.
    #[derive(Clone, Debug)]
    enum Step {
        Append { to: usize },
        Fork { of: usize, at: usize },
        Insert { into: usize, at: usize, from: usize, first: usize, count: usize },
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<usize>().prop_map(|to| Step::Append { to }),
            1 => (any::<usize>(), any::<usize>()).prop_map(|(of, at)| Step::Fork { of, at }),
            2 => (any::<usize>(), any::<usize>(), any::<usize>(), any::<usize>(), 0..5_usize)
                .prop_map(|(into, at, from, first, count)| Step::Insert { into, at, from, first, count }),
        ]
    }

    /// A session, and the naive model of it: a list that is copied.
    struct Line {
        id: SessionId,
        own: u64,
        transcript: Transcript,
        copied: Vec<(SessionId, u64)>,
    }

    impl Line {
        fn begin(number: usize) -> Self {
            let id = session(number as u128);
            Self { id, own: 0, transcript: Transcript::default(), copied: Vec::new() }
        }

        fn segments(&self) -> Vec<Segment> {
            self.transcript.segments(self.id, self.own)
        }

        fn append(&mut self) {
            self.copied.push((self.id, self.own));
            self.own += 1;
        }
    }

    fn listed(segments: &[Segment]) -> Vec<(SessionId, u64)> {
        segments
            .iter()
            .flat_map(|segment| (segment.from..segment.to).map(|at| (segment.session, at)))
            .collect()
    }

    proptest! {
        #[test]
        fn segments_say_what_lists_that_are_copied_would(steps in vec(any_step(), 0..60)) {
            let mut lines = vec![Line::begin(0), Line::begin(1)];
            for step in steps {
                let count = lines.len();
                match step {
                    Step::Append { to } => lines[to % count].append(),
                    Step::Fork { of, at } => {
                        let parent = &lines[of % count];
                        let at = at % (parent.copied.len() + 1);
                        let mut child = Line::begin(count);
                        child.transcript = Transcript::beginning_with(slice(&parent.segments(), 0..at as u64));
                        child.copied = parent.copied[..at].to_vec();
                        lines.push(child);
                    }
                    Step::Insert { into, at, from, first, count: wanted } => {
                        let (from, into) = (&lines[from % count], into % count);
                        let first = first % (from.copied.len() + 1);
                        let last = (first + wanted).min(from.copied.len());
                        let taken = slice(&from.segments(), first as u64..last as u64);
                        let copied = from.copied[first..last].to_vec();
                        let into = &mut lines[into];
                        let at = at % (into.copied.len() + 1);
                        into.transcript.insert(into.id, into.own, at as u64, &taken);
                        into.copied.splice(at..at, copied);
                    }
                }
                for line in &lines {
                    let segments = line.segments();
                    prop_assert_eq!(listed(&segments), line.copied.clone());
                    prop_assert_eq!(line.transcript.len(line.own), line.copied.len() as u64);
                    prop_assert!(segments.iter().all(|segment| !segment.is_empty()));
                    for own in 0..line.own {
                        let place = line.copied.iter().position(|copied| *copied == (line.id, own));
                        let index = line.transcript.index_of(line.id, line.id, own);
                        prop_assert_eq!(index, place.map(|place| place as u64));
                    }
                }
            }
        }

        #[test]
        fn a_cut_parts_no_answer_from_what_it_answers(
            answers in vec(any::<bool>(), 0..12), start in 0..12_u64, length in 0..12_u64,
        ) {
            let roles: Vec<Role> = answers
                .iter()
                .enumerate()
                .map(|(index, is_answer)| if *is_answer && index > 0 { Role::Output } else { Role::Input })
                .collect();
            let all = roles.len() as u64;
            let wanted = start.min(all)..(start + length).min(all);
            let Range { start, end } = whole_units(&roles, wanted.clone());
            prop_assert!(start <= wanted.start && end >= wanted.end && end <= all);
            let is_boundary = |index: u64| index == all || !roles[index as usize].is_answer();
            if !wanted.is_empty() {
                prop_assert!(is_boundary(start) && is_boundary(end));
                let smaller = (start + 1..=wanted.start).chain(wanted.end..end);
                prop_assert!(smaller.into_iter().all(|index| !is_boundary(index)), "it is the smallest");
            }
        }
    }
}
