//! Transcripts: ordered entries, as segments of sessions. Source: seed 004; protocols/transcripts.md.
//!
//! A session's own entries are numbered as they come to be, and never change. Its transcript is a list of segments of such
//! numbers, its own among them. So a fork is a list of segments, a merge puts some into the list, and neither copies an
//! entry or looks at one.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::entry::{Role, TranscriptEntry};
use crate::id::SessionId;

/// Entries of one session, in a row: the numbers `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Segment {
    /// The session they came to be in.
    pub session: SessionId,
    /// The index of the first entry.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
    /// Whether its entries count whatever their session dropped: those that a merge brought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl Segment {
    /// Entries that are in a transcript as they came to be.
    pub const fn new(session: SessionId, from: u64, to: u64) -> Self {
        Self { session, from, to, kept: false }
    }

    /// How many entries it has.
    pub const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it has the entry with this number of this session's own.
    pub fn has(&self, session: SessionId, number: u64) -> bool {
        self.session == session && (self.from..self.to).contains(&number)
    }

    /// Whether another begins where it ends.
    fn goes_on_with(&self, other: &Self) -> bool {
        self.session == other.session && self.to == other.from && self.kept == other.kept
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

    /// The session's own entries at its end, where it has so many entries in all.
    pub fn own(&self, session: SessionId, entries: u64) -> Segment {
        let own = entries.saturating_sub(total(&self.before));
        Segment::new(session, self.own_from, self.own_from.saturating_add(own))
    }

    /// Whether it is nothing but the session's own entries.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// All of it, where `session` has so many entries of its own.
    pub fn segments(&self, session: SessionId, own: u64) -> Vec<Segment> {
        let last = Segment::new(session, self.own_from, own);
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
            if segment.has(session, number) {
                return Some(begins.saturating_add(number - segment.from));
            }
            begins = begins.saturating_add(segment.len());
        }
        let nth_of_last = number.checked_sub(self.own_from).filter(|_| session == owner)?;
        Some(begins.saturating_add(nth_of_last))
    }

    /// Puts entries of others before the one with the index `at`, or at the end; what `session` says next comes at the end.
    pub fn insert(&mut self, session: SessionId, own: u64, at: u64, segments: &[Segment]) {
        let all = self.segments(session, own);
        let mut after = slice(&all, at..u64::MAX);
        let mut before = slice(&all, 0..at);
        before.extend(kept(segments));
        before.append(&mut after);
        (self.before, self.own_from) = (joined(before), own);
    }
}

/// The same, whatever their sessions dropped.
pub fn kept(segments: &[Segment]) -> impl Iterator<Item = Segment> {
    segments.iter().map(|segment| Segment { kept: true, ..*segment })
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
            found.push(Segment { from: at(from), to: at(to), ..*segment });
        }
        begins = ends;
    }
    found
}

/// Returns the same entries in as few segments as possible.
pub fn joined(segments: Vec<Segment>) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments.into_iter().filter(|segment| !segment.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.goes_on_with(&segment) => last.to = segment.to,
            Some(_) | None => joined.push(segment),
        }
    }
    joined
}

/// What of an entry binds it to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bond<'a> {
    /// What part it plays.
    pub role: Role,
    /// The tool's call that it is, or answers.
    pub call: Option<&'a str>,
}

/// The smallest range around `wanted` that parts nothing that belongs together, in a transcript of these entries.
pub fn whole_units(entries: &[Bond<'_>], wanted: Range<u64>) -> Range<u64> {
    let is_cut = |index: u64| usize::try_from(index).is_ok_and(|index| is_cut(entries, index));
    let Range { mut start, mut end } = wanted;
    while !is_cut(start) {
        start -= 1;
    }
    while start < end && !is_cut(end) {
        end += 1;
    }
    start..end
}

/// Whether a call of the first so many of these entries has no result among them: it may have one among those behind.
pub fn leaves_open(entries: &[Bond<'_>], count: u64) -> bool {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    !open_calls(entries.get(..count).unwrap_or(entries)).is_empty()
}

/// How many of these entries, at most `wanted` from the first, can be taken away so that nothing which stays, or is yet to
/// come, belongs to them: a call that has no result yet stays.
pub fn whole_beginning(entries: &[Bond<'_>], wanted: usize) -> usize {
    let is_asked =
        |entry: &Bond<'_>| matches!(entry.role, Role::User | Role::Input | Role::Output | Role::Summary);
    // Calls from before someone else spoke were given up.
    let turn = entries.iter().rposition(is_asked).map_or(0, |asked| asked + 1);
    let open = open_calls(&entries[turn..]);
    let is_pending = |entry: &Bond<'_>| {
        entry.role == Role::ToolCall && entry.call.is_some_and(|call| open.contains(&call))
    };
    let pending = entries[turn..].iter().position(is_pending).map_or(entries.len(), |at| turn + at);
    (0..=wanted.min(pending)).rev().find(|count| is_cut(entries, *count)).unwrap_or(0)
}

/// Whether a transcript may be cut before the entry with this index. An output stays with its input, a tool's result with its
/// call, calls that were made together stay together, and thoughts with what was said after them.
fn is_cut(entries: &[Bond<'_>], index: usize) -> bool {
    let Some((before, after)) = entries.split_at_checked(index) else { return true };
    let (Some(last), Some(next)) = (before.last(), after.first()) else { return true };
    let is_answer = matches!(next.role, Role::Output | Role::ToolResult);
    let goes_on = last.role.is_a_models() && next.role.is_a_models();
    if is_answer || goes_on && last.role == Role::Thinking {
        return false;
    }
    let open = open_calls(before);
    let is_answered = |call: &&str| {
        let used_next = after.iter().find(|entry| entry.call == Some(call));
        used_next.is_some_and(|entry| entry.role == Role::ToolResult)
    };
    open.is_empty() || !goes_on && !open.iter().any(is_answered)
}

/// The calls of these that have no result among them.
fn open_calls<'a>(entries: &[Bond<'a>]) -> Vec<&'a str> {
    let mut open = Vec::new();
    for entry in entries {
        let Some(call) = entry.call else { continue };
        // A call under an id that was used before is another one.
        open.retain(|made| *made != call);
        if entry.role == Role::ToolCall {
            open.push(call);
        }
    }
    open
}

/// What an agent is shown of a transcript: the newest summary, then what it does not stand for. Older summaries are among what
/// the newest stands for, wherever they are.
pub fn context(entries: &[TranscriptEntry]) -> Vec<&TranscriptEntry> {
    let is_summary = |placed: &TranscriptEntry| placed.entry.role == Role::Summary;
    let Some(newest) = entries.iter().rposition(is_summary) else { return entries.iter().collect() };
    let (before, behind) = entries.split_at(newest);
    let covers = entries[newest].entry.covers();
    let mut covered = CompactedEntries::of(&covers);
    let mut is_shown = |placed: &&TranscriptEntry| !covered.take(placed.session, placed.number);
    let before: Vec<&TranscriptEntry> = before.iter().filter(&mut is_shown).collect();
    let rest = before.into_iter().chain(behind).filter(|placed| !is_summary(placed));
    std::iter::once(&entries[newest]).chain(rest).collect()
}

/// The entries that a summary stands for, each as often as it stood in the transcript. One that is merged back later stands there once more,
/// and the summary knows nothing of it.
#[derive(Debug)]
pub struct CompactedEntries<'a> {
    segments: &'a [Segment],
    taken: HashMap<(SessionId, u64), usize>,
}

impl<'a> CompactedEntries<'a> {
    /// Starts with no occurrence taken. The segments are those that the summary stands for.
    pub fn of(segments: &'a [Segment]) -> Self {
        Self { segments, taken: HashMap::new() }
    }

    /// Whether the summary stands for the next occurrence of an entry. Asked in the order of the transcript, up to the summary.
    pub fn take(&mut self, session: SessionId, number: u64) -> bool {
        let times = self.segments.iter().filter(|segment| segment.has(session, number)).count();
        if times == 0 {
            return false;
        }
        let taken = self.taken.entry((session, number)).or_default();
        let is_covered = *taken < times;
        *taken += 1;
        is_covered
    }
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
        fn a_cut_parts_nothing_that_belongs_together(
            entries in vec(any_bond(), 0..14), start in 0..14_u64, length in 0..14_u64,
        ) {
            let all = entries.len() as u64;
            let wanted = start.min(all)..(start + length).min(all);
            let Range { start, end } = whole_units(&entries, wanted.clone());
            prop_assert!(start <= wanted.start && end >= wanted.end && end <= all);
            let is_boundary = |index: u64| is_boundary(&entries, index as usize);
            if !wanted.is_empty() {
                prop_assert!(is_boundary(start) && is_boundary(end));
                let smaller = (start + 1..=wanted.start).chain(wanted.end..end);
                prop_assert!(smaller.into_iter().all(|index| !is_boundary(index)), "it is the smallest");
            }
        }

        /// However the conversation goes on: what was taken away stays whole.
        #[test]
        fn what_is_taken_away_is_whole_also_when_more_is_said(
            entries in vec(any_bond(), 0..14), wanted in 0..14_usize, more in vec(any_bond(), 0..6),
        ) {
            let count = whole_beginning(&entries, wanted);
            prop_assert!(count <= wanted.min(entries.len()));
            prop_assert!(count == entries.len() || is_boundary(&entries, count));
            let turn = entries.iter().rposition(|bond| bond.role == Role::User).map_or(0, |user| user + 1);
            let is_open = |call: &str| open_calls(&entries[turn..]).contains(&call);
            let results = more.into_iter().filter(|bond| bond.role == Role::ToolResult);
            let mut later = entries.clone();
            later.extend(results.filter(|bond| bond.call.is_some_and(is_open)));
            let conversation = entries.iter().all(|bond| {
                !matches!(bond.role, Role::Input | Role::Output | Role::Summary)
            });
            prop_assert!(!conversation || is_boundary(&later, count));
        }
    }

    const ROLES: [Role; 9] = Role::ALL;
    const CALLS: [&str; 3] = ["a", "b", "c"];

    fn any_bond() -> impl Strategy<Value = Bond<'static>> {
        let role = prop_oneof![
            1 => (0..ROLES.len()).prop_map(|role| ROLES[role]),
            2 => Just(Role::ToolCall),
            2 => Just(Role::ToolResult),
        ];
        (role, 0..CALLS.len()).prop_map(|(role, call)| {
            let is_tools = matches!(role, Role::ToolCall | Role::ToolResult);
            Bond { role, call: is_tools.then_some(CALLS[call]) }
        })
    }

    /// Whether no two entries that belong together lie on both sides, by looking at every pair.
    fn is_boundary(entries: &[Bond<'_>], index: usize) -> bool {
        let pairs = (0..entries.len()).flat_map(|i| (i + 1..entries.len()).map(move |j| (i, j)));
        pairs.into_iter().filter(|(i, j)| *i < index && index <= *j).all(|(i, j)| !belong(entries, i, j))
    }

    fn belong(entries: &[Bond<'_>], i: usize, j: usize) -> bool {
        let (one, other) = (entries[i], entries[j]);
        let is_result_of = |call: Bond<'_>, result: &Bond<'_>| {
            call.role == Role::ToolCall && result.role == Role::ToolResult && call.call == result.call
        };
        let is_used_again =
            |at: usize| entries[at + 1..=i].iter().any(|later| later.call == entries[at].call);
        let is_next = i + 1 == j;
        let turn_goes_on = one.role.is_a_models() && other.role.is_a_models();
        let waits = (0..=i).any(|at| entries[at].role == Role::ToolCall && !is_used_again(at));
        let is_used_between = entries[i + 1..j].iter().any(|between| between.call == one.call);
        is_next && matches!(other.role, Role::Output | Role::ToolResult)
            || is_next && turn_goes_on && (one.role == Role::Thinking || waits)
            || is_result_of(one, &other) && !is_used_between
    }

    fn bonds(said: &[&'static str]) -> Vec<Bond<'static>> {
        let bond = |said: &&'static str| match said.split_once(' ') {
            Some(("call", call)) => Bond { role: Role::ToolCall, call: Some(call) },
            Some((_, call)) => Bond { role: Role::ToolResult, call: Some(call) },
            None => Bond { role: ROLES.into_iter().find(|role| role.name() == *said).unwrap(), call: None },
        };
        said.iter().map(bond).collect()
    }

    #[test]
    fn calls_that_were_made_together_stay_with_all_their_results() {
        let entries = bonds(&["user", "thinking", "call a", "call b", "result a", "result b", "assistant"]);
        for (wanted, whole) in
            [(0..1, 0..1), (0..2, 0..6), (0..3, 0..6), (0..5, 0..6), (5..7, 1..7), (6..7, 6..7)]
        {
            assert_eq!(whole_units(&entries, wanted.clone()), whole, "{wanted:?}");
        }
        let pending = bonds(&["user", "assistant", "call a", "call b"]);
        assert_eq!(whole_units(&pending, 0..3), 0..4);
        assert_eq!(whole_beginning(&pending, 4), 2, "their results are yet to come");
        let interrupted = bonds(&["user", "call a", "user"]);
        assert_eq!(whole_units(&interrupted, 0..2), 0..2);
        assert_eq!(whole_beginning(&interrupted, 2), 2);
        let between = bonds(&["call a", "system", "result a", "user"]);
        assert_eq!(whole_units(&between, 0..1), 0..3);
        assert_eq!(whole_beginning(&between, 2), 0);
    }

    fn placed(number: u64, role: Role, covers: &[Segment]) -> TranscriptEntry {
        let metadata = [("covers".to_owned(), serde_json::json!(covers))].into();
        let entry =
            crate::entry::Entry { role, content: crate::entry::Content::Text(String::new()), metadata };
        let (at, first, last) = (Default::default(), crate::id::Seq(1), crate::id::Seq(1));
        TranscriptEntry {
            session: session(1),
            number,
            hash: entry.hash(),
            entry,
            at,
            first,
            last,
            origin: None,
        }
    }

    #[test]
    fn an_agent_is_shown_the_newest_summary_and_what_it_does_not_stand_for() {
        let said = |number| placed(number, Role::User, &[]);
        let covers = |to| Segment::new(session(1), 0, to);
        let entries = [
            said(0),
            said(1),
            placed(2, Role::Summary, &[covers(1)]),
            said(3),
            placed(4, Role::Summary, &[covers(3)]),
            said(5),
        ];
        let shown = |entries: &[TranscriptEntry]| {
            context(entries).iter().map(|placed| placed.number).collect::<Vec<_>>()
        };
        assert_eq!(shown(&entries), [4, 3, 5]);
        assert_eq!(shown(&entries[..4]), [2, 1, 3], "before the second");
        assert_eq!(shown(&entries[..2]), [0, 1]);
    }
}
