//! Results for a text that an editor has not saved: which of a session's tests reach what is otherwise in it, and how these ended.

use serde::{Deserialize, Serialize};

use super::{TestChoice, TestProgress, TestResult, TestRun};
use crate::swap::SwapObstacle;

/// A text of a source file that is not saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnsavedBuffer {
    /// The path of the file, absolute, as the project names it.
    pub path: String,
    /// The version of the text, as its editor counts.
    pub version: u64,
    /// How many bytes the text has.
    pub bytes: u64,
}

/// What came of an unsaved text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BufferRun {
    /// The path of the file.
    pub path: String,
    /// The version of the text that the results are of.
    pub version: u64,
    /// Always true: nothing of this is of what is saved.
    pub unsaved: bool,
    /// How the work on it ended.
    pub ending: BufferEnding,
    /// Why the text cannot run, each with its line; then no test ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<SwapObstacle>,
    /// The tests that reach what is otherwise than in the saved files, in the order in which they ran.
    pub tests: Vec<TestResult>,
    /// How many more ran and are not told one by one.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub left_out: u64,
    /// What is otherwise, and how many tests were chosen for it; none where the run was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<TestChoice>,
    /// How long it took since the text came, in milliseconds.
    pub duration_ms: u64,
    /// What could not be looked at, or why the process of the tests ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How the work on an unsaved text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BufferEnding {
    /// All tests ran that reach it.
    Ran,
    /// The text cannot run.
    Obstacles,
    /// A newer text, or a save, came before all tests had run.
    Overtaken,
    /// There was no time for all tests.
    OutOfTime,
    /// The process of the tests ended.
    Lost,
    /// The text was thrown away.
    Discarded,
}

impl BufferRun {
    /// Of a text of which nothing ran.
    pub fn without_tests(path: String, version: u64, ending: BufferEnding) -> Self {
        Self {
            path,
            version,
            unsaved: true,
            ending,
            obstacles: Vec::new(),
            tests: Vec::new(),
            left_out: 0,
            choice: None,
            duration_ms: 0,
            notes: Vec::new(),
        }
    }

    /// Takes in how far the run is.
    pub fn progress(&mut self, progress: TestProgress) {
        self.tests.extend(progress.tests);
        self.left_out += progress.left_out;
    }

    /// Takes in the report of the run, which has all that was told before.
    pub fn report(&mut self, run: TestRun) {
        if run.choice.as_ref().is_some_and(|choice| choice.overtaken) {
            self.ending = BufferEnding::Overtaken;
        }
        self.tests = run.tests;
        self.left_out = run.left_out;
        self.choice = run.choice;
        self.notes = run.notes;
    }
}
