//! Comparing what a submission gives when it runs again with what it gave before.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::ReplayItem;
use super::divergence::{Divergence, DivergenceKind, NAMES_KEPT};
use crate::diagnostic::Severity;
use crate::eval::EvalResult;
use crate::id::SessionId;
use crate::limits::Limits;
use crate::reload::ValueChange;
use crate::runner_notice::{JobEnding, JobReport};

impl ReplayItem {
    /// How its second run, in `session`, differs from the first.
    pub fn divergence(&self, session: SessionId, report: JobReport, limits: &Limits) -> Option<Divergence> {
        self.compare(session, report, limits, None).divergence
    }

    /// What came of a run, in `session`, beside the first one, and beside what the session had of it until now (`had`; without it, what
    /// the first run gave).
    pub fn compare(
        &self,
        session: SessionId,
        report: JobReport,
        limits: &Limits,
        had: Option<&EvalValues>,
    ) -> ReplayComparison {
        let succeeded = report.ending == JobEnding::Completed;
        let result = report.result.cut(limits.value_bytes);
        let gives = EvalValues::of(&result);
        let kind = if succeeded == self.succeeded {
            let names = self.gave.as_ref().map(|gave| gave.differing(&gives)).unwrap_or_default();
            let now = values_of(&names, &result);
            (!names.is_empty()).then_some(DivergenceKind::Values { names, now })
        } else {
            Some(DivergenceKind::Ending { error: error_of(&report.ending, &result) })
        };
        let changes = match (succeeded, had.or(self.gave.as_ref())) {
            (true, Some(had)) => self.changes(had, &gives, &result),
            (true, None) | (false, _) => Vec::new(),
        };
        let divergence = kind.map(|kind| Divergence::of(session, self.session, self.requested, kind));
        ReplayComparison { divergence, changes, gives, succeeded }
    }

    /// Whether it ran to its end the first time, and did not now.
    pub fn fails_now(&self, compared: &ReplayComparison) -> bool {
        self.succeeded && !compared.succeeded
    }

    fn changes(&self, had: &EvalValues, gives: &EvalValues, result: &EvalResult) -> Vec<ValueChange> {
        let names: Vec<String> =
            had.differing(gives).into_iter().filter(|name| gives.0.contains_key(name)).collect();
        let mut now = values_of(&names, result);
        let change = |name: String| ValueChange {
            requested: self.requested,
            now: now.remove(&name),
            was: had.0.get(&name).and_then(|had| had.shown.clone()),
            name,
        };
        names.into_iter().map(change).collect()
    }
}

/// What came of a submission that ran again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayComparison {
    /// How that differs from its first run.
    pub divergence: Option<Divergence>,
    /// What of it is another than the session had.
    pub changes: Vec<ValueChange>,
    /// The result of the replayed code.
    pub gives: EvalValues,
    succeeded: bool,
}

/// How many characters of a value a divergence has at most.
const VALUE_CHARACTERS: usize = 80;

/// How many characters of an error a divergence has at most.
const ERROR_CHARACTERS: usize = 200;

/// How what a submission failed with begins, on one line.
fn error_of(ending: &JobEnding, result: &EvalResult) -> Option<String> {
    match ending {
        JobEnding::Raised(raised) => {
            Some(beginning(&format!("{}: {}", raised.kind, raised.message), ERROR_CHARACTERS))
        }
        JobEnding::Rejected => {
            let error = result.diagnostics.iter().find(|one| one.severity == Severity::Error)?;
            Some(beginning(&format!("{} {}", error.code, error.message), ERROR_CHARACTERS))
        }
        _ => None,
    }
}

/// How a text begins, on one line.
pub(crate) fn beginning(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(characters).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// What these names have in a result, on one line.
fn values_of(names: &[String], result: &EvalResult) -> BTreeMap<String, String> {
    let value_of = |name: &String| match name.as_str() {
        "it" => result.value.as_ref(),
        _ => result.bindings.iter().rfind(|binding| binding.name == *name)?.value.as_ref(),
    };
    names
        .iter()
        .filter_map(|name| Some((name.clone(), beginning(value_of(name)?, VALUE_CHARACTERS))))
        .collect()
}

/// What a submission gave, by name, reduced to what it is compared by and how it begins. Nothing here leaves the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalValues(BTreeMap<String, ValueDigest>);

impl EvalValues {
    /// Returns the names that have a value.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether the value of an expression is among it.
    pub fn has_last_value(&self) -> bool {
        self.0.contains_key("it")
    }
}

/// What a submission gave under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ValueDigest {
    digest: u64,
    /// How the value begins, as it is printed.
    shown: Option<String>,
}

impl EvalValues {
    pub(super) fn of(result: &EvalResult) -> Self {
        let bindings =
            result.bindings.iter().map(|binding| (&*binding.name, &binding.value, Some(&binding.value_type)));
        let last = ("it", &result.value, result.value_type.as_ref());
        let digest = |value: &Option<String>, value_type: Option<&String>| {
            let mut hasher = DefaultHasher::new();
            (value.as_deref().map(unnumbered), value_type.map(|text| unnumbered(text))).hash(&mut hasher);
            hasher.finish()
        };
        let given = bindings.chain(last.2.is_some().then_some(last)).map(|(name, value, value_type)| {
            let shown = value.as_deref().map(|value| beginning(value, VALUE_CHARACTERS));
            (name.to_owned(), ValueDigest { digest: digest(value, value_type), shown })
        });
        Self(given.collect())
    }

    /// The names that have something else there, or nothing.
    fn differing(&self, other: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let digest = |given: &Self, name: &String| given.0.get(name).map(|gave| gave.digest);
        let differ = |name: &&&String| digest(self, name) != digest(other, name);
        names.iter().filter(differ).take(NAMES_KEPT).map(|name| (*name).clone()).collect()
    }
}

/// A printed value without the numbers that compilers give to what has no name of its own (`FSI_0004`, `f@12-1`): they
/// count submissions, of which a rebuilt session has fewer.
fn unnumbered(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some(at) =
        [rest.find("FSI_").map(|at| at + 4), rest.find('@').map(|at| at + 1)].into_iter().flatten().min()
    {
        let (before, numbered) = rest.split_at(at);
        plain.push_str(before);
        rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    }
    plain.push_str(rest);
    plain
}
