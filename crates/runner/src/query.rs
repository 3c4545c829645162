//! What may be asked of what a kernel's session has: what a name stands for, what has a text in its name, what is bound, which tests
//! there are.

use std::collections::BTreeMap;

use mainstay_model::{
    Action, Binding, Bundle, CodeMark, CommId, Diagnostic, Error, ReachedLines, TextPosition,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many symbols are told of where nobody says how many.
pub const SYMBOLS: u32 = 50;

/// A question to a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum KernelQuery {
    /// What a namespace, module or type holds.
    Members {
        /// Its name, as code would write it.
        name: String,
    },
    /// What the session defined or refers to that has a text in its name.
    Symbols {
        /// The text, in any case; with a dot it is looked for in full names.
        text: String,
        /// How many at most.
        limit: u32,
    },
    /// What its code bound at the prompt.
    Values,
    /// The tests that its code defined, and those of the assemblies it refers to.
    Tests {
        /// Those with this in their names, in any case; with `*` it is the whole name.
        pattern: Option<String>,
        /// Those of this category, or with this trait, written `name=value`.
        category: Option<String>,
    },
    /// Which tests reach which lines of its project's files. Nothing runs.
    Coverage {
        /// The file that is meant, or the end of its path; all of them without it.
        file: Option<String>,
        /// The declaration that is meant, or the end of its name; all of them without it.
        name: Option<String>,
        /// What the code was at some times: the answer says which tests reach what has changed since.
        since: Vec<CodeMark>,
    },
    /// Which lines its project's tests run: they run one at a time. The kernel is for nothing else from then on.
    Measure {
        /// When tests of categories run, as [`mainstay_model::TestPolicy::written`] has it; those on demand do not.
        policies: String,
        /// After how many milliseconds no other test begins.
        limit_ms: u64,
        /// How long one test may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Take what another kernel of the session's project has measured.
    TakeMeasurement {
        /// What the session's code was when that kernel began.
        code: CodeMark,
        /// What it has measured; only kernels know what that is.
        measurement: Value,
    },
    /// What of some code could be written more plainly. Nothing of it runs.
    Review {
        /// The code to be reviewed.
        code: String,
    },
    /// Whether some code is finished. Nothing of it runs.
    Completeness {
        /// The code to be examined for completeness.
        code: String,
    },
    /// What the name at a place in some code stands for.
    Inspection {
        /// The code that holds the name.
        code: String,
        /// The place of the name in the code.
        cursor: TextPosition,
        /// Whether to tell all there is.
        in_detail: bool,
    },
    /// The comms that there are.
    Comms {
        /// Those of this target alone.
        target: Option<String>,
    },
}

impl KernelQuery {
    /// The code that it is about.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Review { code } | Self::Completeness { code } | Self::Inspection { code, .. } => Some(code),
            Self::Members { .. }
            | Self::Symbols { .. }
            | Self::Values
            | Self::Tests { .. }
            | Self::Coverage { .. }
            | Self::Measure { .. }
            | Self::TakeMeasurement { .. }
            | Self::Comms { .. } => None,
        }
    }

    /// What a session must know and permit for it.
    pub const fn action(&self) -> Action {
        match self {
            Self::Members { .. }
            | Self::Symbols { .. }
            | Self::Values
            | Self::Inspection { .. }
            | Self::Comms { .. } => Action::Explore,
            Self::Completeness { .. } => Action::Complete,
            Self::Tests { .. }
            | Self::Coverage { .. }
            | Self::Measure { .. }
            | Self::TakeMeasurement { .. } => Action::Test,
            Self::Review { .. } => Action::Review,
        }
    }
}

/// The answer to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum KernelAnswer {
    /// The answer to [`KernelQuery::Members`].
    Members(Members),
    /// The answer to [`KernelQuery::Symbols`].
    Symbols(Symbols),
    /// To [`KernelQuery::Values`]: the newest first.
    Values(Vec<Binding>),
    /// The answer to [`KernelQuery::Tests`].
    Tests(Tests),
    /// The answer to [`KernelQuery::Coverage`].
    Coverage(ReachedLines),
    /// The answer to [`KernelQuery::Measure`].
    Measured(Value),
    /// To [`KernelQuery::TakeMeasurement`]: whether it is of the kernel's own session and build.
    MeasurementTaken(bool),
    /// The answer to [`KernelQuery::Review`].
    Review(Review),
    /// The answer to [`KernelQuery::Completeness`].
    Completeness(Completeness),
    /// To [`KernelQuery::Inspection`]; none where the name is unknown.
    Inspection(Option<Bundle>),
    /// To [`KernelQuery::Comms`]: the target of each.
    Comms(BTreeMap<CommId, String>),
}

impl KernelAnswer {
    /// The answer to [`KernelQuery::Members`].
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it is one to something else.
    pub fn members(self) -> Result<Members, Error> {
        let Self::Members(members) = self else { return Err(beside_the_point()) };
        Ok(members)
    }

    /// The answer to [`KernelQuery::Symbols`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn symbols(self) -> Result<Symbols, Error> {
        let Self::Symbols(symbols) = self else { return Err(beside_the_point()) };
        Ok(symbols)
    }

    /// The answer to [`KernelQuery::Values`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn values(self) -> Result<Vec<Binding>, Error> {
        let Self::Values(values) = self else { return Err(beside_the_point()) };
        Ok(values)
    }

    /// The answer to [`KernelQuery::Tests`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn tests(self) -> Result<Tests, Error> {
        let Self::Tests(tests) = self else { return Err(beside_the_point()) };
        Ok(tests)
    }

    /// The answer to [`KernelQuery::Coverage`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn coverage(self) -> Result<ReachedLines, Error> {
        let Self::Coverage(lines) = self else { return Err(beside_the_point()) };
        Ok(lines)
    }

    /// The answer to [`KernelQuery::Measure`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn measured(self) -> Result<Value, Error> {
        let Self::Measured(measurement) = self else { return Err(beside_the_point()) };
        Ok(measurement)
    }

    /// The answer to [`KernelQuery::TakeMeasurement`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn measurement_taken(self) -> Result<bool, Error> {
        let Self::MeasurementTaken(is_taken) = self else { return Err(beside_the_point()) };
        Ok(is_taken)
    }

    /// The answer to [`KernelQuery::Review`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn review(self) -> Result<Review, Error> {
        let Self::Review(review) = self else { return Err(beside_the_point()) };
        Ok(review)
    }

    /// The answer to [`KernelQuery::Completeness`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn completeness(self) -> Result<Completeness, Error> {
        let Self::Completeness(completeness) = self else { return Err(beside_the_point()) };
        Ok(completeness)
    }

    /// The answer to [`KernelQuery::Inspection`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn inspection(self) -> Result<Option<Bundle>, Error> {
        let Self::Inspection(inspection) = self else { return Err(beside_the_point()) };
        Ok(inspection)
    }

    /// The answer to [`KernelQuery::Comms`].
    ///
    /// # Errors
    /// As [`KernelAnswer::members`].
    pub fn comms(self) -> Result<BTreeMap<CommId, String>, Error> {
        let Self::Comms(comms) = self else { return Err(beside_the_point()) };
        Ok(comms)
    }
}

fn beside_the_point() -> Error {
    Error::WorkerFailed { reason: "it answered something else than it was asked".to_owned() }
}

/// Whether code is finished, so that Enter runs it. Source: Jupyter's `is_complete_reply`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "status", rename_all = "camelCase")]
pub enum Completeness {
    /// The code can be run as it is.
    Complete,
    /// The code needs further lines.
    Incomplete {
        /// What the next line begins with.
        indent: String,
    },
    /// It is none, and more of it would not help.
    Invalid,
    /// The kernel cannot tell.
    Unknown,
}

/// What could be written more plainly in some code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Whether the code could be read; where not, the remarks are what the compiler says of it.
    pub is_parsed: bool,
    /// What is suggested, in the order of the places.
    pub remarks: Vec<Diagnostic>,
    /// How many suggestions more there are.
    #[serde(default)]
    pub left_out: u64,
}

/// What a name stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
// Of a class with the name of its own property some generators make code that does not compile.
#[schemars(rename = "MemberList")]
pub struct Members {
    /// The name of the type, module or namespace.
    pub name: String,
    /// What it is: `namespace`, `module`, `type`.
    pub kind: String,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// The types that a type inherits from, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<String>,
    /// The interfaces that a type implements, also by what it inherits from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// The members, in the kernel's order.
    pub members: Vec<Member>,
}

/// One member of a type, module or namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The name of the member.
    pub name: String,
    /// The kind of the member, such as `method`.
    pub kind: String,
    /// The type of the member, as the language writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
}

/// What was found by a text in its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Symbols {
    /// What fits best, first.
    pub items: Vec<Symbol>,
    /// How many there are in all.
    pub found: u64,
}

/// Something that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Symbol {
    /// The name of the symbol.
    pub name: String,
    /// The name with what it stands in.
    pub full_name: String,
    /// What it is: `type`, `module`, `function`, `value`.
    pub kind: String,
    /// The type of the symbol, as the language writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// The assembly it is in; none where the session defined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembly: Option<String>,
}

/// Tests that could be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tests {
    /// The tests that were found.
    pub items: Vec<Test>,
    /// How many there are in all.
    pub found: u64,
    /// What could not be looked at; where none was found, what would make some be found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A test that could be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Test {
    /// The full name of the test.
    pub name: String,
    /// Whose test it is: `xUnit`, `NUnit`, `MSTest`, `Expecto`.
    pub framework: String,
    /// The assembly it is in; none where the session's code defined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembly: Option<String>,
    /// Its categories, and its traits as `name=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Why it would not be run, where it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// How many cases it has; none where only running it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<u64>,
}
