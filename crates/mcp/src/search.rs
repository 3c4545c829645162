//! `search_sessions`: what was said in sessions, by the words in it.

use std::fmt::{Display, Formatter};

use mainstay_engine::SearchHit;
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::search::Words;
use mainstay_model::{Action, Error, Validity};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// How many hits an answer has.
const HITS: usize = 10;

/// Searches sessions for words.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SearchSessions {
    /// All must be there: `word "in a row" begin*`.
    words: String,
    /// Only in this one; in all by default.
    session_id: Option<String>,
    /// Not the first so many hits.
    offset: Option<usize>,
}

/// What was found, the best first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct SearchAnswer {
    hits: Vec<Hit>,
}

/// An entry that matches the search.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Hit {
    session_id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<u64>,
    role: &'static str,
    text: String,
    /// Where it may hold no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    validity: Option<&'static str>,
}

impl Tool for SearchSessions {
    const NAME: &'static str = "search_sessions";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::SearchEntries>()];
    const DESCRIPTION: &'static str = "Find inputs and outputs of all sessions by the words in them.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    type Answer = SearchAnswer;

    async fn carry_out(self, call: &Call) -> Result<SearchAnswer, Error> {
        let words = Words::parse(&self.words)?;
        let id = match self.session_id {
            Some(reference) => call.find(Some(&reference)).await?,
            None => None,
        };
        let found = call
            .client()
            .search(EntryFilter {
                words,
                roles: Vec::new(),
                sessions: SessionFilter { id, ..SessionFilter::default() },
                since: None,
                until: None,
                offset: self.offset.unwrap_or_default(),
                limit: HITS,
            })
            .await?;
        Ok(SearchAnswer { hits: found.into_iter().map(Hit::from).collect() })
    }
}

impl From<SearchHit> for Hit {
    fn from(SearchHit { session, index, placed, snippet, validity }: SearchHit) -> Self {
        Self {
            session_id: session.id.short(),
            name: session.name,
            entry: index.map(|index| index + 1),
            role: placed.entry.role.name(),
            text: snippet,
            validity: validity.filter(|validity| validity.mark().is_some()).map(Validity::name),
        }
    }
}

impl Answer for SearchAnswer {}

impl Display for SearchAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for Hit { session_id, name, entry, role, text, validity } in &self.hits {
            let entry = entry.map_or_else(String::new, |entry| format!(" {entry}"));
            let validity = validity.map_or_else(String::new, |validity| format!(" ({validity})"));
            writeln!(f, "{session_id} {name}{entry} {role}{validity}: {text}")?;
        }
        write!(f, "hits: {}", self.hits.len())
    }
}
