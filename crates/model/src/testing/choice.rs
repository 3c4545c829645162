//! Which of the tests that are meant run: those that reach a change before the others, and each category by its policy.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

/// What a session's code was when a run of tests told it: another after each exchange of code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct CodeMark(pub String);

/// The part of the tests that runs, where not all that are meant do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestPart {
    /// Those that reach what has changed since the code was this.
    Reached(CodeMark),
    /// Those that do not reach it.
    Rest(CodeMark),
}

/// When tests of a category run by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestPolicy {
    /// Whenever something was saved.
    OnSave,
    /// Only where somebody asks for them.
    OnDemand,
    /// As long as all such tests of a run have taken no longer than so many milliseconds.
    Within(u32),
}

impl TestPolicy {
    /// The policy with this name: `save`, `demand`, or a number of milliseconds.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "save" => Some(Self::OnSave),
            "demand" => Some(Self::OnDemand),
            number => number
                .parse()
                .ok()
                .filter(|milliseconds| (1..=i32::MAX as u32).contains(milliseconds))
                .map(Self::Within),
        }
    }
}

impl TestPolicy {
    /// The policies of categories as code writes them: `slow=5000;web=demand`.
    pub fn written(policies: &BTreeMap<String, Self>) -> String {
        let all: Vec<_> = policies.iter().map(|(category, policy)| format!("{category}={policy}")).collect();
        all.join(";")
    }

    /// The code that sets it for a category in a session of F#.
    pub fn code(self, category: &str) -> String {
        format!("Mainstay.Tests.policy({}, \"{self}\")", super::literal(category))
    }
}

impl Display for TestPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OnSave => f.write_str("save"),
            Self::OnDemand => f.write_str("demand"),
            Self::Within(milliseconds) => write!(f, "{milliseconds}"),
        }
    }
}

/// How runs that nobody asked for one by one choose their tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTesting {
    /// The part that runs; all that are meant without it.
    pub part: Option<TestPart>,
    /// The policies of categories. A category without one runs always.
    pub policies: BTreeMap<String, TestPolicy>,
    /// The code that the run is for: it ends when that has changed. Without it, what is there when it begins.
    pub code: Option<CodeMark>,
}

/// The arguments that say so to the function that runs tests, by their names.
pub(super) fn arguments(live: &LiveTesting) -> Vec<(&'static str, String)> {
    let LiveTesting { part, policies, code } = live;
    let part = match part {
        None => None,
        Some(TestPart::Reached(CodeMark(since))) => Some(("reached", since)),
        Some(TestPart::Rest(CodeMark(since))) => Some(("rest", since)),
    };
    let part = part.map(|(part, since)| [("part", part.to_owned()), ("since", since.clone())]);
    let policies = (!policies.is_empty()).then(|| ("policies", TestPolicy::written(policies)));
    let code = code.clone().map_or_else(String::new, |CodeMark(code)| code);
    part.into_iter().flatten().chain([("code", code)]).chain(policies).collect()
}

/// What a run chose of the tests that it found, and what it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestChoice {
    /// Which of them it was for.
    pub part: ChosenPart,
    /// The declarations that had changed.
    #[serde(default)]
    pub changed: Vec<String>,
    /// How many tests were chosen and ran.
    pub chosen: u64,
    /// How many tests it found.
    pub found: u64,
    /// How many more would have been chosen, but run only on demand.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub on_demand: u64,
    /// How many more there was no time for.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub over_budget: u64,
    /// Whether it was ended because the code had changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overtaken: bool,
}

impl TestChoice {
    /// Whether it took all tests that were meant.
    pub fn is_whole(&self) -> bool {
        self.part == ChosenPart::All && self.on_demand == 0 && self.over_budget == 0 && !self.overtaken
    }
}

/// Which tests a run was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChosenPart {
    /// All that were meant.
    All,
    /// Those that reach what has changed.
    Reached,
    /// Those that do not.
    Rest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        for policy in [TestPolicy::OnSave, TestPolicy::OnDemand, TestPolicy::Within(5000)] {
            assert_eq!(TestPolicy::named(&policy.to_string()), Some(policy));
        }
        assert_eq!(TestPolicy::OnDemand.code("a \"b\""), r#"Mainstay.Tests.policy("a \"b\"", "demand")"#);
        for text in ["", "never", "0", "-1", "4294967295"] {
            assert_eq!(TestPolicy::named(text), None, "{text}");
        }
    }
}
