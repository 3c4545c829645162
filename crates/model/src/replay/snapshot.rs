//! Snapshots: what a worker kept of the values of a session's names, and which submissions have to run again all the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ReplayItem;
use super::divergence::NAMES_KEPT;
use crate::id::{JobId, Seq, SessionId};

/// What a worker has kept of a session, as far as it matters to what runs again. The values themselves are the worker's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The submissions whose effects are in the values, in the order in which they ran.
    pub cells: Vec<SnapshotCell>,
    /// The names whose values are kept.
    pub kept: BTreeSet<String>,
    /// The names whose values are not kept, and why.
    pub not_kept: BTreeMap<String, String>,
    /// The names that never had a value with code of the session's in it. Who uses another one may use all that the code mentions.
    pub inert: BTreeSet<String>,
}

/// What is known of a submission: mostly what its text says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotCell {
    /// The job that ran it.
    pub job: JobId,
    /// Whether a replay runs it: it came to its end, and changed the session.
    pub is_replayed: bool,
    /// The names that it gave a value, or took it.
    #[serde(default)]
    pub binds: BTreeSet<String>,
    /// The names that it mentions, also in the functions that it defines.
    #[serde(default)]
    pub mentions: BTreeSet<String>,
    /// The names of the session that its functions give a value.
    #[serde(default)]
    pub declares: BTreeSet<String>,
    /// Of the names that it gave a value, those whose value nobody can change.
    #[serde(default)]
    pub atoms: BTreeSet<String>,
    /// Whether it only gives names a meaning, the same whenever it runs: imports, functions, classes.
    #[serde(default)]
    pub is_definition: bool,
    /// Whether it may look at names that its text does not mention.
    #[serde(default)]
    pub is_dynamic: bool,
    /// Whether it has to run again whatever is kept of it.
    #[serde(default)]
    pub must_rerun: bool,
}

/// Why a submission runs again though there is a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RerunReason {
    /// It only gives names a meaning.
    Definition,
    /// It says so itself, or changes a library.
    Marked,
    /// It used this name, whose value is not kept.
    NotKept(String),
    /// One that runs again uses what it did.
    Needed,
}

/// What a session is rebuilt by where there is a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePlan {
    /// For each of the first submissions of the replay, whether it runs again before the values are restored, and why. All after these run
    /// again afterwards.
    pub before: Vec<Option<RerunReason>>,
}

/// What a rebuilt session has by its snapshot, and what ran again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// How many submissions did not run again, since what they gave was kept.
    pub submissions: u32,
    /// How many names have the values that were kept.
    pub names: u32,
    /// The names whose values were not kept, and why not; at most [`NAMES_KEPT`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_kept: BTreeMap<String, String>,
    /// The submissions that ran again for one of these, or for what they did to a library; at most [`NAMES_KEPT`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran_again: Vec<RanAgain>,
    /// Why the snapshot was of no use, so that all ran again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A submission that ran again though there was a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RanAgain {
    /// The event that accepted it.
    pub requested: Seq,
    /// The session in which it ran at first, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Snapshot {
    /// Which of these jobs of a replay have to run again before the values are restored; none where the snapshot is not one of their
    /// beginning.
    ///
    /// A submission runs again where it binds or mentions a name whose value is not kept, and with it all that was done before to what it
    /// mentions. Two names may have had a part in common once one submission mentioned both.
    pub fn plan(&self, jobs: &[JobId]) -> Option<RestorePlan> {
        let wanted: BTreeSet<&JobId> = jobs.iter().collect();
        let (cells, others): (Vec<_>, Vec<_>) =
            self.cells.iter().partition(|cell| wanted.contains(&cell.job));
        let is_beginning = cells.iter().map(|cell| &cell.job).eq(jobs.iter().take(cells.len()));
        // What only gave the last value once ran again for that alone, and may have been less sure to change nothing then.
        let gave_last_value = |cell: &SnapshotCell| cell.binds.iter().eq([LAST_VALUE]);
        let has_other = others.iter().any(|cell| cell.is_replayed && !gave_last_value(cell));
        if cells.is_empty() || !is_beginning || has_other {
            return None;
        }
        let told_apart = self.told_apart(cells);
        let cells: Vec<_> = told_apart.cells.iter().collect();
        let dependencies = Dependencies::of(&cells, &told_apart.inert);
        Some(RestorePlan { before: dependencies.rerun(&told_apart.kept, &told_apart.not_kept) })
    }

    /// The same with a name of its own for each value that `_` stood for: one takes the place of the other, and that is no use of it.
    fn told_apart(&self, cells: Vec<&SnapshotCell>) -> Self {
        let mut last = LAST_VALUE.to_owned();
        let renamed = |names: &BTreeSet<String>, to: &str| -> BTreeSet<String> {
            let other = |name: &String| if name == LAST_VALUE { to.to_owned() } else { name.clone() };
            names.iter().map(other).collect()
        };
        let cells = cells.into_iter().enumerate().map(|(index, cell)| {
            let mentions = renamed(&cell.mentions, &last);
            if cell.binds.contains(LAST_VALUE) {
                last = format!("{LAST_VALUE} {index}");
            }
            let (binds, atoms) = (renamed(&cell.binds, &last), renamed(&cell.atoms, &last));
            SnapshotCell { binds, mentions, atoms, ..cell.clone() }
        });
        let cells = cells.collect();
        let mut not_kept = self.not_kept.clone();
        if let Some(reason) = not_kept.remove(LAST_VALUE) {
            not_kept.insert(last.clone(), reason);
        }
        Self { cells, kept: renamed(&self.kept, &last), not_kept, inert: renamed(&self.inert, &last) }
    }
}

impl RestorePlan {
    /// What can be told once it is carried out.
    pub fn restored(&self, snapshot: &Snapshot, items: &[ReplayItem], session: SessionId) -> Restored {
        let again = |(item, reason): (&ReplayItem, &Option<RerunReason>)| match reason {
            None | Some(RerunReason::Definition) => None,
            Some(RerunReason::Marked | RerunReason::NotKept(_) | RerunReason::Needed) => Some(RanAgain {
                requested: item.requested,
                session: (item.session != session).then_some(item.session),
            }),
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Restored {
            submissions: count(self.before.iter().filter(|reason| reason.is_none()).count()),
            names: count(snapshot.kept.len()),
            not_kept: snapshot.not_kept.clone().into_iter().take(NAMES_KEPT).collect(),
            ran_again: items.iter().zip(&self.before).filter_map(again).take(NAMES_KEPT).collect(),
            failed: None,
        }
    }
}

impl std::fmt::Display for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { submissions, names, not_kept, ran_again, failed } = self;
        if let Some(reason) = failed {
            return write!(f, "since the values that were kept are of no use: {reason}");
        }
        let names_word = if *names == 1 { "name" } else { "names" };
        write!(f, "{submissions} restored by the values of {names} {names_word}")?;
        for (name, reason) in not_kept {
            write!(f, "; `{name}` was not kept: {reason}")?;
        }
        for (index, RanAgain { requested, session }) in ran_again.iter().enumerate() {
            f.write_str(if index == 0 { "; ran again: " } else { ", " })?;
            session.map_or(Ok(()), |session| write!(f, "{}", session.short()))?;
            write!(f, "#{requested}")?;
        }
        Ok(())
    }
}

/// What stands for the value of the last expression.
const LAST_VALUE: &str = "_";

/// Which submissions had to do with which names.
struct Dependencies<'a> {
    cells: &'a [&'a SnapshotCell],
    /// For each submission, the names that it may have to do with, but for those that only definitions bind.
    touched: Vec<BTreeSet<&'a str>>,
    /// For each of these names, the submissions that may have to do with it, in order.
    by_name: BTreeMap<&'a str, Vec<usize>>,
    /// The names whose values nobody can change.
    plain: BTreeSet<&'a str>,
}

impl<'a> Dependencies<'a> {
    fn of(cells: &'a [&'a SnapshotCell], inert: &BTreeSet<String>) -> Self {
        // What definitions alone bind runs again anyway.
        let others = cells.iter().filter(|cell| !cell.is_definition);
        let bound: BTreeSet<&str> = others.flat_map(|cell| cell.binds.iter().map(String::as_str)).collect();
        let declared: BTreeSet<&str> =
            cells.iter().flat_map(|cell| cell.declares.iter().map(String::as_str)).collect();
        let is_plain = |name: &&str| {
            let of_name = cells.iter().filter(|cell| cell.binds.contains(*name));
            !declared.contains(name) && of_name.clone().all(|cell| cell.atoms.contains(*name))
        };
        let plain = bound.iter().copied().filter(is_plain).collect();
        let touched = cells.iter().enumerate().map(|(index, cell)| {
            let so_far = || cells[..=index].iter().flat_map(|cell| names_of(cell)).collect();
            expanded(cell, cells, inert).unwrap_or_else(so_far)
        });
        // What no submission binds, such as `print`, has nothing of the session's.
        let touched: Vec<BTreeSet<&str>> = touched.map(|names| &names & &bound).collect();
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, names) in touched.iter().enumerate() {
            names.iter().for_each(|name| by_name.entry(name).or_default().push(index));
        }
        Self { cells, touched, by_name, plain }
    }

    /// For each submission why it has to run again, where it has to.
    fn rerun(
        &self,
        kept: &BTreeSet<String>,
        not_kept: &'a BTreeMap<String, String>,
    ) -> Vec<Option<RerunReason>> {
        let definition = |cell: &&SnapshotCell| cell.is_definition.then_some(RerunReason::Definition);
        let mut rerun: Vec<Option<RerunReason>> = self.cells.iter().map(definition).collect();
        let mut lost: BTreeSet<&str> = not_kept.keys().map(String::as_str).collect();
        loop {
            let before = lost.len();
            for index in self.not_definitions() {
                let touches = self.touched[index].intersection(&lost).next();
                let reason = match touches {
                    Some(name) => RerunReason::NotKept((*name).to_owned()),
                    None if self.cells[index].must_rerun => RerunReason::Marked,
                    None => continue,
                };
                rerun[index].get_or_insert(reason);
                self.needed_by(index, &mut rerun);
            }
            // What others did to a value under a name that has another one by now belongs to it all the same.
            for index in self.not_definitions().filter(|index| rerun[*index].is_some()) {
                let is_replaced = |name: &&&str| {
                    let later = &self.cells[index + 1..];
                    !kept.contains(**name) || later.iter().any(|later| later.binds.contains(**name))
                };
                let shared = self.touched[index].difference(&self.plain);
                lost.extend(shared.filter(is_replaced));
            }
            if lost.len() == before {
                return rerun;
            }
        }
    }

    fn not_definitions(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|index| !self.cells[*index].is_definition)
    }

    /// Adds all that was done before one that runs again to what it has to do with.
    fn needed_by(&self, index: usize, rerun: &mut [Option<RerunReason>]) {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let mut is_in = vec![false; index];
        let mut waiting = vec![index];
        while let Some(current) = waiting.pop() {
            rerun[current].get_or_insert(RerunReason::Needed);
            for name in self.touched[current].iter().filter(|name| known.insert(name)) {
                let of_name = self.by_name.get(name).into_iter().flatten().copied();
                for earlier in of_name.take_while(|earlier| *earlier < index) {
                    // A value that nobody can change is there once it was given.
                    let matters = !self.plain.contains(name) || self.cells[earlier].binds.contains(*name);
                    if matters
                        && !self.cells[earlier].is_definition
                        && !std::mem::replace(&mut is_in[earlier], true)
                    {
                        waiting.push(earlier);
                    }
                }
            }
        }
    }
}

fn names_of(cell: &SnapshotCell) -> impl Iterator<Item = &str> {
    cell.binds.iter().chain(&cell.mentions).map(String::as_str)
}

/// The names that a submission has to do with: those of its own text, and those that the code mentions which it uses; none where it may
/// have to do with any.
fn expanded<'a>(
    cell: &'a SnapshotCell,
    cells: &'a [&'a SnapshotCell],
    inert: &BTreeSet<String>,
) -> Option<BTreeSet<&'a str>> {
    if cell.is_dynamic {
        return None;
    }
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: Vec<&str> = names_of(cell).collect();
    while let Some(name) = waiting.pop() {
        if !found.insert(name) || inert.contains(name) {
            continue;
        }
        for code in cells.iter().filter(|cell| cell.binds.contains(name)) {
            if code.is_dynamic {
                return None;
            }
            waiting.extend(code.mentions.iter().map(String::as_str));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests;
