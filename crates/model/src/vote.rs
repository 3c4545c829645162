//! Votes: answers to an ask that needs the same answer of several principals. Each principal has one vote and may change it until the ask
//! ends. Equal values count together. Source: ARCP draft 01, 12.3 ("quorum").

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::PendingAsk;
use crate::error::Error;
use crate::event::Source;
use crate::grant::LeaseTerms;
use crate::id::{Channel, Principal};
use crate::limits::Limits;

/// The answer of one principal to an ask that needs the same answer of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vote {
    /// Who gave the answer.
    pub source: Source,
    /// The answer that was given.
    pub value: Value,
    /// By which way a person answered, where the client said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// For how long a permission is given, where the answer gives one for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseTerms>,
}

impl PendingAsk {
    /// The votes for a value, but for the one of this principal, which a new one replaces.
    fn agreeing<'a>(&'a self, voter: &'a Principal, value: &'a Value) -> impl Iterator<Item = &'a Vote> {
        self.votes.iter().filter(move |vote| vote.source.principal() != *voter && is_same(&vote.value, value))
    }

    /// Whether this principal has a vote among those that were given.
    pub fn has_voted(&self, principal: &Principal) -> bool {
        self.votes.iter().any(|vote| vote.source.principal() == *principal)
    }

    /// How many more principals must give the same answer once this one has.
    pub fn missing_with(&self, voter: &Principal, value: &Value) -> u32 {
        let others = u32::try_from(self.agreeing(voter, value).count()).unwrap_or(u32::MAX);
        self.ask.question.needed_answers().saturating_sub(others.saturating_add(1))
    }

    /// Counts a vote in place of an earlier one of the same principal.
    pub fn count_vote(&mut self, vote: Vote) {
        let voter = vote.source.principal();
        self.votes.retain(|earlier| earlier.source.principal() != voter);
        self.votes.push(vote);
    }

    /// What all who gave this answer allow for a time: the shortest time that one of them gives, and a pattern only where all give the same. None
    /// where one of them gives no time.
    pub(crate) fn common_lease(&self, last: &Vote) -> Option<LeaseTerms> {
        let voter = last.source.principal();
        self.agreeing(&voter, &last.value).try_fold(last.lease.clone()?, |common, vote| {
            let terms = vote.lease.as_ref()?;
            let pattern = common.pattern.filter(|pattern| terms.pattern.as_ref() == Some(pattern));
            Some(LeaseTerms { duration_ms: common.duration_ms.min(terms.duration_ms), pattern })
        })
    }
}

/// Checks how many principals are to give the same answer.
///
/// # Errors
/// [`Error::InvalidArgument`] for none at all, for more than the settings allow, and for more than there are.
pub fn validate_quorum(quorum: Option<u32>, limits: &Limits) -> Result<(), Error> {
    let invalid = |reason| Error::InvalidArgument { argument: "quorum".to_owned(), reason };
    match quorum {
        Some(0) => Err(invalid("it must be at least 1".to_owned())),
        Some(quorum) if quorum > limits.quorum => {
            Err(invalid(format!("it is {quorum}; `quorum` allows {}", limits.quorum)))
        }
        Some(quorum) if limits.answering_principals.is_some_and(|there| quorum > there) => {
            let there = match limits.answering_principals.unwrap_or_default() {
                1 => "there is 1 principal that may answer".to_owned(),
                there => format!("there are {there} principals that may answer"),
            };
            let more = "give others a token of their own in `[principals.NAME]` of `config.toml`";
            Err(invalid(format!("it is {quorum}, and {there}; {more}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether two values are the same for JSON: the order of members does not count, and `1` is `1.0`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || ((one.is_f64() || other.is_f64())
                    && one.as_f64().is_some_and(|number| Some(number) == other.as_f64()))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_same =
                |(name, value): (&String, &Value)| other.get(name).is_some_and(|it| is_same(value, it));
            one.len() == other.len() && one.iter().all(has_same)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quorum_that_the_principals_there_are_cannot_reach_is_refused() {
        let refusal = |there, quorum| {
            let limits = Limits { answering_principals: there, ..Limits::default() };
            validate_quorum(Some(quorum), &limits).err().map(|error| error.to_string())
        };
        assert_eq!([refusal(None, 16), refusal(Some(2), 2)], [None, None]);
        insta::assert_snapshot!(refusal(Some(1), 2).unwrap(), @"quorum is not valid: it is 2, and there is 1 principal that may answer; give others a token of their own in `[principals.NAME]` of `config.toml`");
        insta::assert_snapshot!(refusal(Some(2), 3).unwrap(), @"quorum is not valid: it is 3, and there are 2 principals that may answer; give others a token of their own in `[principals.NAME]` of `config.toml`");
    }

    #[test]
    fn values_are_the_same_whatever_their_form() {
        let same = |one: Value, other: Value| is_same(&one, &other) && is_same(&other, &one);
        assert!(same(json!({ "a": [1, 2], "b": null }), json!({ "b": null, "a": [1.0, 2] })));
        assert!(!same(json!([1, 2]), json!([1])) && !same(json!({ "a": 1 }), json!({ "b": 1 })));
        assert!(
            !same(json!(1), json!("1"))
                && !same(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64))
        );
    }
}
