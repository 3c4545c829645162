//! Segments, whole units of entries, and compacted entries.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use super::units::open_calls;
use super::*;
use crate::entry::{Role, TranscriptEntry};

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
    segments.iter().flat_map(|segment| (segment.from..segment.to).map(|at| (segment.session, at))).collect()
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
    let is_used_again = |at: usize| entries[at + 1..=i].iter().any(|later| later.call == entries[at].call);
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
    let entry = crate::entry::Entry { role, content: crate::entry::Content::Text(String::new()), metadata };
    let (at, first, last) = (Default::default(), crate::id::Seq(1), crate::id::Seq(1));
    TranscriptEntry { session: session(1), number, hash: entry.hash(), entry, at, first, last, origin: None }
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
    let shown =
        |entries: &[TranscriptEntry]| context(entries).iter().map(|placed| placed.number).collect::<Vec<_>>();
    assert_eq!(shown(&entries), [4, 3, 5]);
    assert_eq!(shown(&entries[..4]), [2, 1, 3], "before the second");
    assert_eq!(shown(&entries[..2]), [0, 1]);
}
