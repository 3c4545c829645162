//! Queries about code, which a kernel answers. Nothing runs.

use serde::{Deserialize, Serialize};

operations! {
    /// Checks code without running it.
    "session/check" Check {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be checked.
        code: String,
        /// The file whose text it is, absolute.
        #[serde(default)]
        file: Option<String>,
    } -> Vec<mainstay_model::Diagnostic>;

    /// Says what of F# code could be written more plainly, by its syntax. Nothing of it runs.
    "session/review" ReviewCode {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be reviewed.
        code: String,
    } -> mainstay_runner::query::Review;

    /// Writes property-based tests of an F# function from its type. Nothing runs.
    "session/scaffold" ScaffoldTest {
        /// Its id, the end of it, or its name.
        session: String,
        /// The function, as code names it.
        name: String,
        /// Its type, where the session does not know it.
        #[serde(default)]
        signature: Option<String>,
        /// What they are written for: `plain`, where it is not said, `fscheck-xunit`, `expecto`.
        #[serde(default)]
        framework: Option<String>,
        /// A function that undoes it.
        #[serde(default)]
        inverse: Option<String>,
    } -> Scaffolded;

    /// Completes at a cursor.
    "session/complete" Complete {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be completed.
        code: String,
        /// Where the cursor is.
        cursor: mainstay_model::TextPosition,
    } -> mainstay_runner::Completions;

    /// Says whether code is finished, as for the Enter of a prompt. Nothing of it runs.
    "session/isComplete" IsComplete {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code to be examined for completeness.
        code: String,
    } -> mainstay_runner::query::Completeness;

    /// Tells what the name at a place in some code stands for; nothing where that is unknown.
    "session/inspect" Inspect {
        /// Its id, the end of it, or its name.
        session: String,
        /// The code that holds the name.
        code: String,
        /// The place of the name in the code.
        cursor: mainstay_model::TextPosition,
        /// Whether to tell all there is.
        #[serde(default)]
        in_detail: bool,
    } -> Option<mainstay_model::Bundle>;

    /// Lists the comms of a Jupyter kernel, each with its target: the lines between it and its front ends beside code. What one says there is
    /// work for the session.
    "session/comms" ListComms {
        /// Its id, the end of it, or its name.
        session: String,
        /// Those of this target alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    } -> std::collections::BTreeMap<mainstay_model::CommId, String>;

    /// Lists what a namespace, module or type holds.
    "session/explore" Explore {
        /// Its id, the end of it, or its name.
        session: String,
        /// The name of a type, module or namespace.
        name: String,
    } -> mainstay_runner::query::Members;

    /// Finds what the session defined or refers to by a text in its name.
    "session/symbols" FindSymbols {
        /// Its id, the end of it, or its name.
        session: String,
        /// The text, in any case; with a dot it is looked for in full names.
        text: String,
        /// How many at most.
        #[serde(default)]
        limit: Option<u32>,
    } -> mainstay_runner::query::Symbols;

    /// Lists what the session's code bound at the prompt, the newest first.
    "session/values" ListValues {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<mainstay_model::Binding>;

    /// Lists the tests that the session's code defined, and those of the assemblies it refers to. Nothing runs.
    "session/tests" ListTests {
        /// Its id, the end of it, or its name.
        session: String,
        /// Those with this in their names, in any case; with `*` it is the whole name.
        #[serde(default)]
        pattern: Option<String>,
        /// Those of this category, or with this trait, written `name=value`.
        #[serde(default)]
        category: Option<String>,
    } -> mainstay_runner::query::Tests;

    /// Tells which lines of a session's project tests reach, and how these tests ended when they last ran; of one declaration also what calls it
    /// and what it calls. Nothing runs in the session.
    "session/coverage" GetCoverage {
        /// Its id, the end of it, or its name.
        session: String,
        /// The file, or the end of its path: its lines are told.
        #[serde(default)]
        file: Option<String>,
        /// A function, value or member, as `Module.name`: its lines are told.
        #[serde(default)]
        name: Option<String>,
        /// Whether the lines that the tests run are to be measured first, in a process beside the session's.
        #[serde(default)]
        measure: bool,
    } -> mainstay_model::Coverage;
}

/// Tests to begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scaffolded {
    /// The type that they were written from.
    pub signature: String,
    /// The tests as F# code.
    pub code: String,
}
