//! Property-based tests to begin with, written from what is known of a function: its name and its type.
//!
//! All of it is pure, except that [`request`] asks a session for a type. [`signature`] reads types, [`candidates`] says what may hold of a function of such a type, [`plain`] and [`library`] write that as F#.
//! Nothing here knows whether a candidate holds: who reads the code decides, and deletes what is not so.

mod candidates;
mod library;
mod plain;
mod request;
mod signature;
#[cfg(test)]
mod tests;

use std::str::FromStr;

pub use request::{ScaffoldRequest, scaffolded};

pub use signature::{Signature, SignatureError, Type};

/// What the tests are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framework {
    /// Nothing: the code makes its own values, and raises.
    #[default]
    Plain,
    /// `FsCheck` with `[<Property>]` of xUnit.
    FscheckXunit,
    /// Expecto with its `FsCheck`.
    Expecto,
}

impl Framework {
    /// All frameworks for which tests can be written.
    pub const ALL: [Self; 3] = [Self::Plain, Self::FscheckXunit, Self::Expecto];

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::FscheckXunit => "fscheck-xunit",
            Self::Expecto => "expecto",
        }
    }
}

impl FromStr for Framework {
    type Err = ScaffoldError;

    fn from_str(name: &str) -> Result<Self, ScaffoldError> {
        let known = Self::ALL.into_iter().find(|framework| framework.name() == name);
        known.ok_or_else(|| ScaffoldError::Framework(name.to_owned()))
    }
}

/// Why no test was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaffoldError {
    /// The name is none.
    #[error("`{0}` cannot be written as one name or expression on one line")]
    Name(String),
    /// There is no such framework.
    #[error("there is no framework `{0}`: there are plain, fscheck-xunit and expecto")]
    Framework(String),
    /// An inverse of a function that takes several arguments.
    #[error("an inverse takes back one argument, and this function takes {0}: give it a tuple")]
    Inverse(usize),
}

/// What is to be tested.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// How code names it.
    pub name: &'a str,
    /// The type of the function.
    pub signature: &'a Signature,
    /// How code names what undoes it.
    pub inverse: Option<&'a str>,
}

/// The F# code of the tests.
///
/// # Errors
/// A name is none, or there is an inverse of several arguments.
pub fn scaffold(subject: Subject<'_>, framework: Framework) -> Result<String, ScaffoldError> {
    for name in std::iter::once(subject.name).chain(subject.inverse) {
        let is_one_line = !name.trim().is_empty() && !name.chars().any(char::is_control);
        if !is_one_line || name.contains("//") || name.contains("(*") {
            return Err(ScaffoldError::Name(name.to_owned()));
        }
    }
    let arguments = subject.signature.arguments().len();
    if subject.inverse.is_some() && arguments != 1 {
        return Err(ScaffoldError::Inverse(arguments));
    }
    let candidates = candidates::candidates(subject.signature, subject.inverse.is_some());
    Ok(match framework {
        Framework::Plain => plain::written(&subject, &candidates),
        Framework::FscheckXunit => library::for_xunit(&subject, &candidates),
        Framework::Expecto => library::for_expecto(&subject, &candidates),
    })
}

/// The last part of a name, as a word of a test's name.
fn word(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { ' ' }).collect();
    plain.split_whitespace().last().unwrap_or("it").to_owned()
}

/// What the tests' module is called.
fn module_name(name: &str) -> String {
    let mut letters = word(name).chars().collect::<Vec<_>>();
    if let Some(first) = letters.first_mut() {
        *first = first.to_uppercase().next().unwrap_or(*first);
    }
    format!("CandidatesOf{}", String::from_iter(letters))
}

/// What is bound before anything else, so that no helper stands in front of what the session has.
fn subjects(subject: &Subject<'_>) -> Vec<String> {
    let grounded = subject.signature.grounded();
    let mut lines = vec![format!("let subject : {grounded} = {}", subject.name)];
    if let (Some(inverse), [argument]) = (subject.inverse, grounded.arguments()) {
        let back = Signature::of(grounded.result().clone(), argument.clone());
        lines.push(format!("let inverse : {back} = {inverse}"));
    }
    lines
}

/// What the checks of candidates are written with, as far as they are.
fn helpers(candidates: &[candidates::Candidate]) -> Vec<String> {
    let uses = |word: &str| candidates.iter().any(|candidate| candidate.check.contains(word));
    let mut lines = Vec::new();
    if uses("same") {
        // Other than `=`, this has a NaN equal to itself.
        lines.push("let same left right = LanguagePrimitives.GenericEqualityER left right".to_owned());
    }
    if uses("sameItems") {
        lines.push("let sameItems left right =".to_owned());
        lines.push("    let count item items = items |> List.filter (same item) |> List.length".to_owned());
        lines.push("    List.length left = List.length right".to_owned());
        lines.push("    && left |> List.forall (fun item -> count item left = count item right)".to_owned());
    }
    lines
}
