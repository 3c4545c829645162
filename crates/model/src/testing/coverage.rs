//! Which lines of a session's project tests reach, and how these tests ended when they last ran: what a worker knows of the calls in its code,
//! joined with the results that the log has. Where tests were measured, the lines that they ran take the place of those that they may reach.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CodeMark, LastEnding, TestEnding, TestHistory};

/// How many names of tests are told of one range of lines.
const COVERING_NAMES: usize = 20;

/// Which tests reach which lines, as a worker knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReachedLines {
    /// What the code is at present.
    #[serde(default)]
    pub code: CodeMark,
    /// The policies of tests that the session's code has set, by category. They count before those of the settings.
    #[serde(default)]
    pub policies: BTreeMap<String, String>,
    /// The tests of which it is known what they reach.
    pub tests: Vec<CoveringTests>,
    /// How many tests there are besides.
    pub unknown: u64,
    /// What each assembly with tests, and all that it needs, is now.
    pub assemblies: BTreeMap<String, String>,
    /// The tests that reach what has changed since; nothing for the code of another process.
    pub changed: Vec<ChangedSince>,
    /// The sets of tests that reach the same lines.
    pub sets: Vec<TestSet>,
    /// The files of the project.
    pub files: Vec<ReachedFile>,
    /// The declarations that call what was asked for.
    pub callers: Vec<CallingDeclaration>,
    /// The declarations that it calls.
    pub callees: Vec<CallingDeclaration>,
    /// What could not be looked at.
    pub notes: Vec<String>,
}

/// Tests that begin at the same code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CoveringTests {
    /// The assembly they are in; none where the session's code defined them.
    pub assembly: Option<String>,
    /// The full name of each.
    pub names: Vec<String>,
    /// Whether the lines are those that they ran, and not those that they may reach.
    #[serde(default)]
    pub is_measured: bool,
}

/// The tests that reach what has changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedSince {
    /// What the code was.
    pub since: CodeMark,
    /// The tests, by their places in the list of tests.
    pub tests: Vec<u32>,
}

/// A set of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestSet {
    /// The tests, by their places in the list of tests.
    pub tests: Vec<u32>,
}

/// A file with the lines that have code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReachedFile {
    /// The path of the file.
    pub path: String,
    /// Its lines, in their order.
    pub lines: Vec<ReachedRange>,
}

/// Lines that the same tests reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReachedRange {
    /// The first line, counted from 1.
    pub first: u32,
    /// The last line, which is one of them.
    pub last: u32,
    /// How many of them have code.
    pub count: u32,
    /// The declaration that they are of.
    pub name: String,
    /// The set of tests that reaches them.
    pub set: usize,
    /// Whether the saved lines are not those that run.
    #[serde(default)]
    pub is_moved: bool,
}

/// A declaration that calls another, or is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallingDeclaration {
    /// The full name of the declaration.
    pub name: String,
    /// The file that it is in, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The first line of its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// How the tests that reach a line ended when they last ran.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum LineState {
    /// All that ran passed, with the code as it is.
    Passing,
    /// One failed or ran longer than it may, with the code as it is.
    Failing,
    /// None ran since code that it reaches has changed, or not all that had run.
    NotRun,
    /// No test reaches it.
    Unreached,
}

/// Which lines of a project's files tests reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// The lines of all files that were asked for together.
    pub lines: LineCounts,
    /// The files, in the order of the build.
    pub files: Vec<FileCoverage>,
    /// The declarations that call the one that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<CallingDeclaration>,
    /// The declarations that it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callees: Vec<CallingDeclaration>,
    /// How many tests there are of which it is known what they reach.
    pub tests: u64,
    /// How many tests there are besides. No line counts as reached by them.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unknown: u64,
    /// For how many of the tests the lines are those that they ran; for the others they are those that they may reach by the calls in the code.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub measured: u64,
    /// Whether the lines that tests run are being measured in the background: a later answer has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measuring: bool,
    /// What could not be looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How many lines there are that have code, and how many in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineCounts {
    /// How many lines have code.
    pub total: u64,
    /// How many are reached by tests that pass.
    pub passing: u64,
    /// How many are reached by a test that fails.
    pub failing: u64,
    /// How many are reached by tests that have not run since a change.
    pub not_run: u64,
    /// How many no test reaches.
    pub unreached: u64,
}

/// The lines of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCoverage {
    /// The path of the file.
    pub path: String,
    /// How many lines are in which state.
    pub lines: LineCounts,
    /// The lines with what is known of them, where a file or a declaration was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<CoveredRange>,
}

/// Lines of one declaration that the same tests reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoveredRange {
    /// The first line, counted from 1.
    pub first: u32,
    /// The last line, which is one of them.
    pub last: u32,
    /// The full name of the declaration.
    pub name: String,
    /// How the tests that reach it ended.
    pub state: LineState,
    /// How many tests reach it.
    pub tests: u64,
    /// How many of them failed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub failing: u64,
    /// The tests that reach it, at most 20, those that failed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<CoveringTest>,
    /// Whether the lines are those of code that runs, and not those of the saved file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
}

/// A test that reaches some lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoveringTest {
    /// The full name of the test.
    pub name: String,
    /// How it ended when it last ran; none where it did not run since the code that it reaches changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<TestEnding>,
}

/// How a test stands, in the order in which tests are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Failed,
    /// It ran with other code than there is.
    Old,
    Passed,
    /// It never ran, or is skipped.
    None,
}

impl Coverage {
    /// Joins what a worker knows with how tests ended. The ranges of lines are told only `in_detail`.
    pub fn of(reached: ReachedLines, history: &TestHistory, in_detail: bool) -> Self {
        let standings = Standings::of(&reached, history);
        let count = |tests: &CoveringTests| tests.names.len() as u64;
        let mut coverage = Self {
            tests: reached.tests.iter().map(count).sum(),
            measured: reached.tests.iter().filter(|tests| tests.is_measured).map(count).sum(),
            unknown: reached.unknown,
            callers: reached.callers,
            callees: reached.callees,
            notes: reached.notes,
            ..Self::default()
        };
        for ReachedFile { path, lines } in reached.files {
            let mut counts = LineCounts::default();
            for range in &lines {
                counts.add(standings.state(range.set), u64::from(range.count));
            }
            let ranges = match in_detail {
                true => lines.into_iter().map(|range| standings.range(&reached.tests, range)).collect(),
                false => Vec::new(),
            };
            coverage.lines.add_all(counts);
            coverage.files.push(FileCoverage { path, lines: counts, ranges });
        }
        coverage
    }
}

impl LineCounts {
    fn add(&mut self, state: LineState, count: u64) {
        self.total += count;
        match state {
            LineState::Passing => self.passing += count,
            LineState::Failing => self.failing += count,
            LineState::NotRun => self.not_run += count,
            LineState::Unreached => self.unreached += count,
        }
    }

    fn add_all(&mut self, others: Self) {
        let Self { total, passing, failing, not_run, unreached } = others;
        self.total += total;
        self.passing += passing;
        self.failing += failing;
        self.not_run += not_run;
        self.unreached += unreached;
    }
}

/// How the tests of a worker's answer stand, and those of its sets.
struct Standings {
    /// For each of its tests that of each name.
    tests: Vec<Vec<Standing>>,
    sets: Vec<Vec<usize>>,
    states: Vec<LineState>,
}

impl Standings {
    fn of(reached: &ReachedLines, history: &TestHistory) -> Self {
        let changed: BTreeMap<&str, &[u32]> =
            reached.changed.iter().map(|one| (one.since.0.as_str(), &one.tests[..])).collect();
        let standing = |index: usize, assembly: Option<&str>, name: &str| {
            let is_present = |last: &LastEnding<'_>| {
                let now = assembly.and_then(|assembly| reached.assemblies.get(assembly));
                let is_same = now.is_some() && last.fingerprint == now.map(String::as_str);
                let reaches = last.code.and_then(|CodeMark(mark)| changed.get(mark.as_str()));
                is_same || reaches.is_some_and(|tests| !tests.iter().any(|test| *test as usize == index))
            };
            let each = history.last(assembly, name).map(|last| match last.ending {
                TestEnding::Skipped => Standing::None,
                _ if !is_present(&last) => Standing::Old,
                TestEnding::Failed => Standing::Failed,
                TestEnding::Passed => Standing::Passed,
            });
            each.min().unwrap_or(Standing::None)
        };
        let tests: Vec<Vec<Standing>> = reached
            .tests
            .iter()
            .enumerate()
            .map(|(index, CoveringTests { assembly, names, .. })| {
                names.iter().map(|name| standing(index, assembly.as_deref(), name)).collect()
            })
            .collect();
        let sets: Vec<Vec<usize>> = reached
            .sets
            .iter()
            .map(|set| {
                set.tests.iter().map(|test| *test as usize).filter(|test| *test < tests.len()).collect()
            })
            .collect();
        let states = sets.iter().map(|set| state_of(set.iter().flat_map(|test| &tests[*test]))).collect();
        Self { tests, sets, states }
    }

    fn state(&self, set: usize) -> LineState {
        self.states.get(set).copied().unwrap_or(LineState::Unreached)
    }

    fn range(&self, tests: &[CoveringTests], range: ReachedRange) -> CoveredRange {
        let set = self.sets.get(range.set).map_or(&[][..], Vec::as_slice);
        let mut all: Vec<(Standing, &str)> = set
            .iter()
            .flat_map(|test| {
                let names = tests[*test].names.iter().map(String::as_str);
                self.tests[*test].iter().copied().zip(names)
            })
            .collect();
        all.sort_unstable();
        let ReachedRange { first, last, count: _, name, set, is_moved } = range;
        CoveredRange {
            first,
            last,
            name,
            state: self.state(set),
            tests: all.len() as u64,
            failing: all.iter().filter(|(standing, _)| *standing == Standing::Failed).count() as u64,
            names: all.into_iter().take(COVERING_NAMES).map(CoveringTest::from).collect(),
            moved: is_moved,
        }
    }
}

impl From<(Standing, &str)> for CoveringTest {
    fn from((standing, name): (Standing, &str)) -> Self {
        let ending = match standing {
            Standing::Failed => Some(TestEnding::Failed),
            Standing::Passed => Some(TestEnding::Passed),
            Standing::Old | Standing::None => None,
        };
        Self { name: name.to_owned(), ending }
    }
}

/// A test that was never run, such as one that runs on demand, does not keep a line from passing.
fn state_of<'a>(standings: impl Iterator<Item = &'a Standing>) -> LineState {
    let all: std::collections::BTreeSet<_> = standings.copied().collect();
    match all.first() {
        None => LineState::Unreached,
        Some(Standing::Failed) => LineState::Failing,
        Some(Standing::Passed) => LineState::Passing,
        Some(Standing::Old | Standing::None) => LineState::NotRun,
    }
}

#[cfg(test)]
mod tests;
