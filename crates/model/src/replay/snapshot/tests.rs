use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

/// What a cell of a small language does. Names are `a`, `b`, …
#[derive(Clone, Debug)]
enum Statement {
    /// A number is bound: `a = 1`.
    Number(u8, u8),
    /// A new list is bound: `a = []`.
    List(u8),
    /// Another name is given: `a = b`.
    Name(u8, u8),
    /// A length is bound: `a = len(b)`.
    Length(u8, u8),
    /// `a = connection(b)`, which nobody can keep, and which has its argument.
    Opaque(u8, u8),
    /// Something is appended to a list: `a.append(b)`.
    Append(u8, u8),
    /// The name is removed again: `del a`.
    Delete(u8),
}

fn name(index: u8) -> String {
    char::from(b'a' + index).to_string()
}

type Place = usize;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(usize),
    List(Place),
    Opaque(Place),
}

/// A session of that language.
#[derive(Clone, Debug, Default)]
struct World {
    names: BTreeMap<String, Value>,
    /// What lists and opaque values hold.
    held: Vec<Vec<Value>>,
}

impl World {
    /// Runs a cell; nothing happens, as in a cell that fails, where a name is not there.
    fn run(&mut self, statement: &Statement) -> Option<()> {
        let place = |world: &mut Self, held: Vec<Value>| {
            world.held.push(held);
            world.held.len() - 1
        };
        match statement {
            Statement::Number(a, number) => {
                self.names.insert(name(*a), Value::Number(usize::from(*number)));
            }
            Statement::List(a) => {
                let place = place(self, Vec::new());
                self.names.insert(name(*a), Value::List(place));
            }
            Statement::Name(a, b) => {
                let value = self.names.get(&name(*b))?.clone();
                self.names.insert(name(*a), value);
            }
            Statement::Length(a, b) => {
                let length = match self.names.get(&name(*b))? {
                    Value::Number(number) => *number,
                    Value::List(place) | Value::Opaque(place) => self.held[*place].len(),
                };
                self.names.insert(name(*a), Value::Number(length));
            }
            Statement::Opaque(a, b) => {
                let value = self.names.get(&name(*b))?.clone();
                let place = place(self, vec![value]);
                self.names.insert(name(*a), Value::Opaque(place));
            }
            Statement::Append(a, b) => {
                let value = self.names.get(&name(*b))?.clone();
                if let Value::List(place) | Value::Opaque(place) = self.names.get(&name(*a))? {
                    self.held[*place].push(value);
                }
            }
            Statement::Delete(a) => {
                self.names.remove(&name(*a))?;
            }
        }
        Some(())
    }

    /// The places that a value leads to, and whether one of them cannot be kept.
    fn reached(&self, value: &Value) -> (BTreeSet<Place>, bool) {
        let (mut places, mut is_opaque, mut waiting) = (BTreeSet::new(), false, vec![value.clone()]);
        while let Some(value) = waiting.pop() {
            if let Value::List(place) | Value::Opaque(place) = value {
                is_opaque |= matches!(value, Value::Opaque(_));
                if places.insert(place) {
                    waiting.extend(self.held[place].clone());
                }
            }
        }
        (places, is_opaque)
    }

    /// The names that lead to something that cannot be kept, or share a part with one that does.
    fn not_kept(&self) -> BTreeSet<String> {
        let reached: BTreeMap<&String, (BTreeSet<Place>, bool)> =
            self.names.iter().map(|(name, value)| (name, self.reached(value))).collect();
        let mut lost: BTreeSet<String> = reached
            .iter()
            .filter(|(_, (_, is_opaque))| *is_opaque)
            .map(|(name, _)| (*name).clone())
            .collect();
        loop {
            let shared: BTreeSet<Place> =
                lost.iter().flat_map(|name| reached[name].0.iter().copied()).collect();
            let more: Vec<_> =
                reached.iter().filter(|(_, (places, _))| !places.is_disjoint(&shared)).collect();
            let before = lost.len();
            lost.extend(more.into_iter().map(|(name, _)| (*name).clone()));
            if lost.len() == before {
                return lost;
            }
        }
    }

    /// Gives these names the values that they have in another world, with what they share.
    fn restore(&mut self, from: &Self, kept: &BTreeSet<String>) {
        let offset = self.held.len();
        let moved = |value: &Value| match value {
            Value::Number(number) => Value::Number(*number),
            Value::List(place) => Value::List(place + offset),
            Value::Opaque(place) => Value::Opaque(place + offset),
        };
        self.held.extend(from.held.iter().map(|held| held.iter().map(moved).collect()));
        self.names.retain(|name, _| from.names.contains_key(name));
        self.names.extend(kept.iter().map(|name| (name.clone(), moved(&from.names[name]))));
    }

    /// What can be told of it by looking: places are called by the order in which they are met.
    fn looks(&self) -> String {
        let mut met: Vec<Place> = Vec::new();
        let mut text = String::new();
        let mut waiting: Vec<(String, Value)> =
            self.names.iter().rev().map(|(name, value)| (name.clone(), value.clone())).collect();
        while let Some((way, value)) = waiting.pop() {
            let (kind, place) = match value {
                Value::Number(number) => {
                    text.push_str(&format!("{way}={number} "));
                    continue;
                }
                Value::List(place) => ("list", place),
                Value::Opaque(place) => ("opaque", place),
            };
            let index = met.iter().position(|known| *known == place).unwrap_or_else(|| {
                met.push(place);
                for (index, held) in self.held[place].iter().enumerate().rev() {
                    waiting.push((format!("{way}.{index}"), held.clone()));
                }
                met.len() - 1
            });
            text.push_str(&format!("{way}={kind}{index} "));
        }
        text
    }
}

/// What a worker would have noted of a cell.
fn cell_of(index: usize, statement: &Statement, after: &World) -> SnapshotCell {
    let (binds, mentions): (&[u8], &[u8]) = match statement {
        Statement::Number(a, _) | Statement::List(a) | Statement::Delete(a) => (&[*a], &[]),
        Statement::Name(a, b) | Statement::Length(a, b) | Statement::Opaque(a, b) => (&[*a], &[*b]),
        Statement::Append(a, b) => (&[], &[*a, *b]),
    };
    let names = |of: &[u8]| of.iter().map(|index| name(*index)).collect::<BTreeSet<_>>();
    let is_atom = |name: &String| matches!(after.names.get(name), Some(Value::Number(_)));
    let binds = names(binds);
    let atoms = binds.iter().filter(|name| is_atom(name)).cloned().collect();
    SnapshotCell { binds, mentions: names(mentions), atoms, ..cell(index) }
}

fn cell(index: usize) -> SnapshotCell {
    SnapshotCell {
        job: JobId::from_uuid(Uuid::from_u128(index as u128 + 1)),
        is_replayed: true,
        binds: BTreeSet::new(),
        mentions: BTreeSet::new(),
        declares: BTreeSet::new(),
        atoms: BTreeSet::new(),
        is_definition: false,
        is_dynamic: false,
        must_rerun: false,
    }
}

fn item(index: usize) -> ReplayItem {
    ReplayItem {
        job: cell(index).job,
        session: SessionId::from_uuid(Uuid::nil()),
        requested: Seq(index as u64 + 1),
        code: String::new(),
        file: None,
        command_line: None,
        asked: Vec::new(),
        succeeded: true,
        gave: None,
        was_silent: true,
    }
}

fn statement() -> impl Strategy<Value = Statement> {
    let names = 0_u8..5;
    let two = (names.clone(), names.clone());
    prop_oneof![
        2 => (names.clone(), 0_u8..9).prop_map(|(a, number)| Statement::Number(a, number)),
        3 => names.clone().prop_map(Statement::List),
        2 => two.clone().prop_map(|(a, b)| Statement::Name(a, b)),
        2 => two.clone().prop_map(|(a, b)| Statement::Length(a, b)),
        1 => two.clone().prop_map(|(a, b)| Statement::Opaque(a, b)),
        3 => two.prop_map(|(a, b)| Statement::Append(a, b)),
        1 => names.prop_map(Statement::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_session_looks_like_one_that_ran_all(statements in prop::collection::vec(statement(), 1..16)) {
        let mut live = World::default();
        let mut cells = Vec::new();
        let mut ran = Vec::new();
        for statement in statements {
            // A cell that fails is none here.
            if live.run(&statement).is_some() {
                cells.push(cell_of(ran.len(), &statement, &live));
                ran.push(statement);
            }
        }
        if ran.is_empty() {
            return Ok(());
        }
        let lost = live.not_kept();
        let kept: BTreeSet<String> = live.names.keys().filter(|name| !lost.contains(*name)).cloned().collect();
        let not_kept = lost.into_iter().map(|name| (name, "it is opaque".to_owned())).collect();
        let inert = (0..5).map(name).collect();
        let snapshot = Snapshot { cells, kept: kept.clone(), not_kept, inert };
        let jobs: Vec<_> = (0..ran.len()).map(|index| cell(index).job).collect();
        let plan = snapshot.plan(&jobs).unwrap();
        let mut rebuilt = World::default();
        for (statement, reason) in ran.iter().zip(&plan.before) {
            if reason.is_some() {
                prop_assert!(rebuilt.run(statement).is_some(), "{statement:?} of {ran:?} by {plan:?}");
            }
        }
        rebuilt.restore(&live, &kept);
        prop_assert_eq!(rebuilt.looks(), live.looks(), "{:?} by {:?}", ran, plan);
    }
}

/// Cells by what they bind and mention, as in `df conn < pd.read`; `!` is a definition, `*` has to run again, `?` may look at any name.
fn snapshot_of(cells: &[&str], not_kept: &[&str]) -> Snapshot {
    let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    let cells = cells.iter().enumerate().map(|(index, text)| {
        let (binds, mentions) = text.trim_end_matches(['!', '*', '?']).split_once('<').unwrap();
        let (is_definition, must_rerun) = (text.contains('!'), text.ends_with('*'));
        let (binds, mentions, is_dynamic) = (names(binds), names(mentions), text.ends_with('?'));
        SnapshotCell { binds, mentions, is_definition, must_rerun, is_dynamic, ..cell(index) }
    });
    let cells: Vec<_> = cells.collect();
    let not_kept: BTreeMap<String, String> =
        not_kept.iter().map(|name| ((*name).to_owned(), "why".to_owned())).collect();
    let bound = cells.iter().filter(|cell| !cell.is_definition).flat_map(|cell| cell.binds.clone());
    let kept: BTreeSet<_> = bound.filter(|name| !not_kept.contains_key(name)).collect();
    // What is called `f` is a function.
    let inert = kept.iter().chain(not_kept.keys()).filter(|name| !name.starts_with('f')).cloned().collect();
    Snapshot { cells, kept, not_kept, inert }
}

/// For each cell how it is rebuilt: by a value (`.`), or by running it as a definition, by its mark, for what is not kept, or for another.
fn rebuilt(cells: &[&str], not_kept: &[&str]) -> String {
    let jobs: Vec<_> = (0..cells.len()).map(|index| cell(index).job).collect();
    let letter = |reason: &Option<RerunReason>| match reason {
        None => '.',
        Some(RerunReason::Definition) => 'd',
        Some(RerunReason::Marked) => 'm',
        Some(RerunReason::NotKept(_)) => 'n',
        Some(RerunReason::Needed) => 'o',
    };
    snapshot_of(cells, not_kept).plan(&jobs).unwrap().before.iter().map(letter).collect()
}

#[test]
fn only_what_cannot_be_restored_runs_again() {
    let notebook = ["pd <!", "load < pd!", "df < load", "model < df", "plot < model df"];
    assert_eq!(rebuilt(&notebook, &[]), "dd...");
    // Imports and functions run again anyway, so nothing is lost with them.
    assert_eq!(rebuilt(&notebook, &["pd", "load"]), "dd...");
    assert_eq!(rebuilt(&notebook, &["plot"]), "ddoon");
    let query = ["sql <!", "path <", "conn < sql path", "df < sql conn", "total < df", "< conn"];
    assert_eq!(rebuilt(&query, &["conn"]), "donnon");
    assert_eq!(rebuilt(&["a <", "b < a*", "c < b"], &[]), "om.");
    // Two that print have nothing in common.
    assert_eq!(rebuilt(&["a < print", "b < print open", "c < open"], &["b"]), ".n.");
    // Who may look at any name needs all that came before.
    assert_eq!(rebuilt(&["a <", "b <", "<?", "c <"], &["c"]), "...n");
    assert_eq!(rebuilt(&["a <", "b <", "c <?", "d <"], &["c"]), "oon.");
}

#[test]
fn what_a_function_mentions_counts_where_it_is_called() {
    let calls = ["state <", "push < state!", "< push", "other <", "handle < push"];
    assert_eq!(rebuilt(&calls, &["handle"]), "odo.n");
    // Also of one that is defined beside other code, and kept.
    let calls = ["conn <", "f a < conn", "b < f", "c < a"];
    assert_eq!(rebuilt(&calls, &["conn"]), "nnn.");
    assert_eq!(rebuilt(&["a <", "f <!?", "c <", "b < f"], &["c"]), "odnn");
}

#[test]
fn the_last_value_is_that_of_the_last_expression_alone() {
    assert_eq!(rebuilt(&["_ a <", "_ <", "b <", "_ <"], &["_"]), "...n");
    assert_eq!(rebuilt(&["_ a <", "_ <", "b < _", "_ <"], &["b"]), ".on.");
}

#[test]
fn a_snapshot_of_something_else_is_of_no_use() {
    let snapshot = snapshot_of(&["a <", "b <", "c <"], &[]);
    let jobs = |cells: &[usize]| cells.iter().map(|index| cell(*index).job).collect::<Vec<_>>();
    let plan = |cells: &[usize]| snapshot.plan(&jobs(cells));
    assert!(plan(&[0, 1, 2]).is_some());
    assert_eq!(plan(&[0, 1, 2, 7]).unwrap().before.len(), 3, "what came after it runs again");
    assert_eq!(plan(&[]), None, "the session was reset");
    assert_eq!(plan(&[7, 8]), None);
    assert_eq!(plan(&[0, 1]), None, "it has effects that the session is not to have");
    assert_eq!(plan(&[0, 7, 1, 2]), None, "something was put in between");
    let valued = snapshot_of(&["a <", "_ < a", "c <"], &[]);
    assert!(
        valued.plan(&jobs(&[0, 2])).is_some(),
        "it ran again for its value alone, and another took its place"
    );
    let mut cut = snapshot.clone();
    cut.cells[2].is_replayed = false;
    assert!(
        cut.plan(&jobs(&[0, 1])).is_some(),
        "what was cancelled does not run again, and left what it left"
    );
}

#[test]
fn what_was_restored_is_told_in_a_line() {
    let (cells, not_kept) = (["pd <!", "conn < pd", "df < conn", "total < df"], ["conn"]);
    let snapshot = snapshot_of(&cells, &not_kept);
    let items: Vec<_> = (0..4).map(item).collect();
    let told = |restored: &Restored| restored.to_string();
    let jobs: Vec<_> = items.iter().map(|item| item.job).collect();
    let restored = snapshot.plan(&jobs).unwrap().restored(&snapshot, &items, items[0].session);
    insta::assert_snapshot!(told(&restored), @"1 restored by the values of 2 names; `conn` was not kept: why; ran again: #2, #3");
    let failed = Restored { failed: Some("numpy was 2.1, and is 2.3".to_owned()), ..Restored::default() };
    insta::assert_snapshot!(told(&failed), @"since the values that were kept are of no use: numpy was 2.1, and is 2.3");
}
