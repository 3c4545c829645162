//! Who may see and drive which sessions. Source: design.md, invariant 12.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::Principal;

/// What a principal must have to take an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// The right to see the session.
    See,
    /// The right to drive the session.
    Drive,
    /// The session itself, or the right to everything. The words name what is refused otherwise, as in `delete a session of another`.
    Own(&'static str),
}

/// A principal, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The principal that has the rights.
    pub principal: Principal,
    /// What the principal may do.
    pub rights: Rights,
}

/// What a principal may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rights {
    /// Everything, with every session and the daemon itself.
    All,
    /// To create sessions, and to see and drive those it has created and those that are named here.
    Some {
        /// Whom it may see.
        see: Vec<NamePattern>,
        /// Whom it may drive, and see.
        drive: Vec<NamePattern>,
    },
    /// To see the sessions that are named here, and nothing else.
    ReadOnly {
        /// Whom it may see.
        see: Vec<NamePattern>,
    },
}

impl Access {
    /// The user the daemon runs as, who may do everything.
    pub fn local() -> Self {
        Self { principal: Principal::local(), rights: Rights::All }
    }
}

/// Names of sessions: a text in which each `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct NamePattern(String);

impl NamePattern {
    /// Whether it is the pattern of this name.
    pub fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            let Some(at) = rest.find(piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for NamePattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for NamePattern {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        /// The longest one, in characters; a session's name has at most 120.
        const LONGEST: usize = 200;
        if text.is_empty() || text.chars().count() > LONGEST {
            let reason = format!("it must have 1 to {LONGEST} characters");
            return Err(Error::InvalidArgument { argument: "pattern of session names".to_owned(), reason });
        }
        Ok(Self(text))
    }
}

impl From<NamePattern> for String {
    fn from(NamePattern(text): NamePattern) -> Self {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> NamePattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_stands_for_any_run_and_all_else_for_itself() {
        let fits = |text, name| pattern(text).matches(name);
        assert!(fits("*", "") && fits("*", "demo") && fits("demo", "demo") && fits("build-*", "build-"));
        assert!(fits("a*b*c", "a--b--c") && fits("a*b*c", "abbc") && fits("*.fsx", "x.fsx"));
        assert!(
            !fits("demo", "demos") && !fits("demo", "a demo") && !fits("a*a", "a") && !fits("?emo", "demo")
        );
    }

    /// The long way round: a piece at a time, every length.
    fn fits(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', rest @ ..] => (0..=name.len()).any(|skip| fits(rest, &name[skip..])),
            [first, rest @ ..] => name.split_first().is_some_and(|(c, name)| c == first && fits(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_trying_every_length_matches(text in "[ab*]{1,6}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(pattern(&text).matches(&name), fits(&chars(&text), &chars(&name)));
        }
    }
}
