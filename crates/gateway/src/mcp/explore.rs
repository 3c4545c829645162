//! `explore_namespace`, `explore_type`, `find_symbols` and `get_values`: what a session has and refers to, without running anything.

use std::fmt::{Display, Formatter};

use mainstay_engine::query::{KernelAnswer, KernelQuery, Member, Members, SYMBOLS, Symbol};
use mainstay_model::{Action, Binding, Error, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Within;
use super::call::Call;
use super::text::beginning;
use super::tool::{Answer, Effect, Tool};

/// The most members or names in one answer.
const ITEMS: usize = 200;
/// The most of what an author says of one of many.
const REMARK_BYTES: usize = 160;

async fn ask(
    call: &Call<'_>,
    session: Option<&str>,
    query: KernelQuery,
) -> Result<(SessionId, KernelAnswer), Error> {
    let session = call.workplace(session, Action::Explore).await?;
    call.bring_up(session).await?;
    Ok((session, call.client().query(session, query).await?))
}

/// Lists what a namespace or module holds.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExploreNamespace {
    session_id: Option<String>,
    name: String,
    /// Only names with this in them.
    filter: Option<String>,
}

/// Lists the members of a type.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExploreType {
    session_id: Option<String>,
    name: String,
    /// Only names with this in them.
    filter: Option<String>,
}

/// What a name stands for.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExploreAnswer {
    session_id: String,
    name: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<String>,
    /// What the type inherits from, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bases: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<String>,
    members: Vec<MemberLine>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// One member.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct MemberLine {
    name: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<String>,
}

impl Tool for ExploreNamespace {
    const NAME: &'static str = "explore_namespace";
    const DESCRIPTION: &'static str =
        "List the types, functions and modules of a namespace or module, loaded or referenced.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    type Answer = ExploreAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<ExploreAnswer, Error> {
        explore(call, self.session_id.as_deref(), self.name, self.filter.as_deref()).await
    }
}

impl Tool for ExploreType {
    const NAME: &'static str = "explore_type";
    const DESCRIPTION: &'static str =
        "Show a type: members with signatures, documentation, base types, interfaces.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    type Answer = ExploreAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<ExploreAnswer, Error> {
        explore(call, self.session_id.as_deref(), self.name, self.filter.as_deref()).await
    }
}

async fn explore(
    call: &Call<'_>,
    session: Option<&str>,
    name: String,
    filter: Option<&str>,
) -> Result<ExploreAnswer, Error> {
    let (session, answer) = ask(call, session, KernelQuery::Members { name }).await?;
    let Members { name, kind, documentation, bases, interfaces, mut members } = answer.members()?;
    let filter = filter.map(str::to_lowercase);
    members.retain(|member| filter.as_ref().is_none_or(|part| member.name.to_lowercase().contains(part)));
    let left_out = left_out(members.len());
    let members = members.into_iter().take(ITEMS).map(MemberLine::from).collect();
    Ok(ExploreAnswer {
        session_id: session.short(),
        name,
        kind,
        documentation,
        bases,
        interfaces,
        members,
        left_out,
    })
}

fn left_out(all: usize) -> Option<usize> {
    all.checked_sub(ITEMS).filter(|count| *count > 0)
}

fn remark(documentation: Option<String>) -> Option<String> {
    documentation.map(|text| beginning(&text, REMARK_BYTES))
}

impl From<Member> for MemberLine {
    fn from(member: Member) -> Self {
        let Member { name, kind, signature, documentation } = member;
        Self { name, kind, signature, documentation: remark(documentation) }
    }
}

impl Answer for ExploreAnswer {}

impl Display for ExploreAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} {}", self.kind, self.name)?;
        if let Some(text) = &self.documentation {
            writeln!(f, "{text}")?;
        }
        for (label, names) in [("inherits", &self.bases), ("implements", &self.interfaces)] {
            if !names.is_empty() {
                writeln!(f, "{label} {}", names.join(", "))?;
            }
        }
        for MemberLine { name, kind, signature, documentation } in &self.members {
            named(f, name, kind, signature.as_deref(), documentation.as_deref())?;
        }
        more(f, self.left_out)?;
        write!(f, "members: {} [session {}]", self.members.len(), self.session_id)
    }
}

/// A line for one name.
fn named(
    f: &mut Formatter<'_>,
    name: &str,
    kind: &str,
    signature: Option<&str>,
    documentation: Option<&str>,
) -> std::fmt::Result {
    write!(f, "{name}")?;
    if let Some(signature) = signature {
        write!(f, " : {signature}")?;
    }
    write!(f, " ({kind})")?;
    match documentation {
        Some(text) => writeln!(f, " // {text}"),
        None => writeln!(f),
    }
}

fn more(f: &mut Formatter<'_>, left_out: Option<usize>) -> std::fmt::Result {
    match left_out {
        Some(count) => writeln!(f, "… {count} more"),
        None => Ok(()),
    }
}

/// Finds what has a text in its name.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FindSymbols {
    session_id: Option<String>,
    /// Part of a name; with a dot, of a full name.
    text: String,
    limit: Option<Within<1, { ITEMS as u32 }>>,
}

/// What was found.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SymbolsAnswer {
    session_id: String,
    symbols: Vec<SymbolLine>,
    /// How many there are in all.
    found: u64,
}

/// Something that has a name.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SymbolLine {
    full_name: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<String>,
    /// None for what the session defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    assembly: Option<String>,
}

impl From<Symbol> for SymbolLine {
    fn from(symbol: Symbol) -> Self {
        let Symbol { name: _, full_name, kind, signature, documentation, assembly } = symbol;
        Self { full_name, kind, signature, documentation: remark(documentation), assembly }
    }
}

impl Tool for FindSymbols {
    const NAME: &'static str = "find_symbols";
    const DESCRIPTION: &'static str =
        "Find types, modules and functions by part of their name in everything loaded or referenced.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    type Answer = SymbolsAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<SymbolsAnswer, Error> {
        let Self { session_id, text, limit } = self;
        let limit = Within::given(limit, "limit", SYMBOLS)?;
        let (session, answer) =
            ask(call, session_id.as_deref(), KernelQuery::Symbols { text, limit }).await?;
        let found = answer.symbols()?;
        let symbols = found.items.into_iter().map(SymbolLine::from).collect();
        Ok(SymbolsAnswer { session_id: session.short(), symbols, found: found.found })
    }
}

impl Answer for SymbolsAnswer {}

impl Display for SymbolsAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for SymbolLine { full_name, kind, signature, documentation, assembly } in &self.symbols {
            let kind = match assembly {
                Some(assembly) => format!("{kind} in {assembly}"),
                None => kind.clone(),
            };
            named(f, full_name, &kind, signature.as_deref(), documentation.as_deref())?;
        }
        write!(f, "found: {} of {} [session {}]", self.symbols.len(), self.found, self.session_id)
    }
}

/// Lists what is bound.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetValues {
    session_id: Option<String>,
    /// Only names with this in them.
    filter: Option<String>,
}

/// What is bound, the newest first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ValuesAnswer {
    session_id: String,
    values: Vec<ValueLine>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// One name.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ValueLine {
    name: String,
    #[serde(rename = "type")]
    value_type: String,
    /// None for a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

impl Tool for GetValues {
    const NAME: &'static str = "get_values";
    const DESCRIPTION: &'static str =
        "List what a session's code bound, newest first, with types and present values (cut where long).";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    type Answer = ValuesAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<ValuesAnswer, Error> {
        let Self { session_id, filter } = self;
        let (session, answer) = ask(call, session_id.as_deref(), KernelQuery::Values).await?;
        let mut values = answer.values()?;
        values.retain(|binding| filter.as_ref().is_none_or(|part| binding.name.contains(part)));
        let left_out = left_out(values.len());
        let line = |Binding { name, value_type, value }| ValueLine { name, value_type, value };
        let values = values.into_iter().take(ITEMS).map(line).collect();
        Ok(ValuesAnswer { session_id: session.short(), values, left_out })
    }
}

impl Answer for ValuesAnswer {}

impl Display for ValuesAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for ValueLine { name, value_type, value } in &self.values {
            match value {
                Some(value) => writeln!(f, "{name} : {value_type} = {value}")?,
                None => writeln!(f, "{name} : {value_type}")?,
            }
        }
        more(f, self.left_out)?;
        write!(f, "values: {} [session {}]", self.values.len(), self.session_id)
    }
}
