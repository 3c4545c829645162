//! `explore_namespace`, `explore_type`, `find_symbols` and `get_values`: what a session has and refers to, without running anything.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Binding, Error, SessionId, SessionState};
use mainstay_protocol::{OperationId, operations};
use mainstay_runner::query::{KernelAnswer, KernelQuery, Member, Members, SYMBOLS, Symbol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Within;
use super::call::Call;
use super::needs::Works;
use super::text::beginning;
use super::tool::{Answer, Effect, Tool};

/// The most members or names in one answer.
const ITEMS: usize = 200;
/// The most of what an author says of one of many.
const REMARK_BYTES: usize = 160;

/// What is said where a session has been waited for long enough, and is not done.
const UNFINISHED: &str = "the session is still warming up: what its code defines may be missing yet";

/// What a session answered.
struct ExploreResult {
    session: SessionId,
    answer: KernelAnswer,
    /// What is to be known of the answer besides.
    note: Option<&'static str>,
}

/// Asks a session. One that still warms up does not say that it has not what may yet come.
async fn ask(call: &Call, session: Option<&str>, query: KernelQuery) -> Result<ExploreResult, Error> {
    let session = call.workplace(session, Action::Explore).await?;
    let ready = call.bring_up(session).await?;
    let is_warming_up = ready.state() == SessionState::WarmingUp;
    match call.client().query(session, query).await {
        Err(Error::InvalidArgument { .. }) if is_warming_up => Err(ready.refusal(Action::Explore)),
        answer => Ok(ExploreResult { session, answer: answer?, note: is_warming_up.then_some(UNFINISHED) }),
    }
}

/// Lists what a namespace or module holds.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExploreNamespace {
    session_id: Option<String>,
    name: String,
    /// Names with this in them.
    filter: Option<String>,
    /// The first member to list: goes on where an answer was cut.
    from: Option<Within<1, { u32::MAX }>>,
}

/// Lists the members of a type.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExploreType {
    session_id: Option<String>,
    name: String,
    /// Names with this in them.
    filter: Option<String>,
    /// The first member to list: goes on where an answer was cut.
    from: Option<Within<1, { u32::MAX }>>,
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
    /// How many more there are behind these.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// The `from` that lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// One member of a type or module.
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
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Explore>()];
    const DESCRIPTION: &'static str =
        "List the types, functions and modules of a namespace or module, loaded or referenced.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    const WORKS: Works = Works::InAny(Action::Explore, Reach::Started);
    type Answer = ExploreAnswer;

    async fn carry_out(self, call: &Call) -> Result<ExploreAnswer, Error> {
        explore(call, self.session_id.as_deref(), self.name, self.filter.as_deref(), self.from).await
    }
}

impl Tool for ExploreType {
    const NAME: &'static str = "explore_type";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Explore>()];
    const DESCRIPTION: &'static str =
        "Show a type: members with signatures, documentation, base types, interfaces.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    const WORKS: Works = Works::InAny(Action::Explore, Reach::Started);
    type Answer = ExploreAnswer;

    async fn carry_out(self, call: &Call) -> Result<ExploreAnswer, Error> {
        explore(call, self.session_id.as_deref(), self.name, self.filter.as_deref(), self.from).await
    }
}

async fn explore(
    call: &Call,
    session: Option<&str>,
    name: String,
    filter: Option<&str>,
    from: Option<Within<1, { u32::MAX }>>,
) -> Result<ExploreAnswer, Error> {
    let first = Within::given(from, "from", 1)? as usize;
    let ExploreResult { session, answer, note } = ask(call, session, KernelQuery::Members { name }).await?;
    let Members { name, kind, documentation, bases, interfaces, mut members } = answer.members()?;
    let filter = filter.map(str::to_lowercase);
    members.retain(|member| filter.as_ref().is_none_or(|part| member.name.to_lowercase().contains(part)));
    let (members, left_out) = page(members, first);
    let members = members.into_iter().map(MemberLine::from).collect();
    Ok(ExploreAnswer {
        session_id: session.short(),
        name,
        kind,
        documentation,
        bases,
        interfaces,
        members,
        left_out,
        next: left_out.map(|_| first + ITEMS),
        note,
    })
}

/// So many as an answer has, from the one with this number, and how many there are behind them.
fn page<T>(all: Vec<T>, first: usize) -> (Vec<T>, Option<usize>) {
    let skipped = first.saturating_sub(1);
    let left_out = left_out(all.len().saturating_sub(skipped));
    (all.into_iter().skip(skipped).take(ITEMS).collect(), left_out)
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

impl Answer for ExploreAnswer {
    const IS_MARKED: bool = true;
}

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
        if let (Some(count), Some(next)) = (self.left_out, self.next) {
            writeln!(f, "… {count} more: from {next}")?;
        }
        noted(f, self.note)?;
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

fn noted(f: &mut Formatter<'_>, note: Option<&str>) -> std::fmt::Result {
    note.map_or(Ok(()), |note| writeln!(f, "note: {note}"))
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

/// The symbols that were found.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SymbolsAnswer {
    session_id: String,
    symbols: Vec<SymbolLine>,
    /// How many there are in all.
    found: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
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
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::FindSymbols>()];
    const DESCRIPTION: &'static str =
        "Find types, modules and functions by part of their name in everything loaded or referenced.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    const WORKS: Works = Works::InAny(Action::Explore, Reach::Started);
    type Answer = SymbolsAnswer;

    async fn carry_out(self, call: &Call) -> Result<SymbolsAnswer, Error> {
        let Self { session_id, text, limit } = self;
        let limit = Within::given(limit, "limit", SYMBOLS)?;
        let query = KernelQuery::Symbols { text, limit };
        let ExploreResult { session, answer, note } = ask(call, session_id.as_deref(), query).await?;
        let found = answer.symbols()?;
        let symbols = found.items.into_iter().map(SymbolLine::from).collect();
        Ok(SymbolsAnswer { session_id: session.short(), symbols, found: found.found, note })
    }
}

impl Answer for SymbolsAnswer {
    const IS_MARKED: bool = true;
}

impl Display for SymbolsAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for SymbolLine { full_name, kind, signature, documentation, assembly } in &self.symbols {
            let kind = match assembly {
                Some(assembly) => format!("{kind} in {assembly}"),
                None => kind.clone(),
            };
            named(f, full_name, &kind, signature.as_deref(), documentation.as_deref())?;
        }
        noted(f, self.note)?;
        write!(f, "found: {} of {} [session {}]", self.symbols.len(), self.found, self.session_id)
    }
}

/// Lists what is bound.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetValues {
    session_id: Option<String>,
    /// Names with this in them.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// One name with its value.
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
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ListValues>()];
    const DESCRIPTION: &'static str =
        "List the variables and functions that a session's code bound, newest first, with types and values.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Explore);
    const WORKS: Works = Works::InAny(Action::Explore, Reach::Started);
    type Answer = ValuesAnswer;

    async fn carry_out(self, call: &Call) -> Result<ValuesAnswer, Error> {
        let Self { session_id, filter } = self;
        let ExploreResult { session, answer, note } =
            ask(call, session_id.as_deref(), KernelQuery::Values).await?;
        let mut values = answer.values()?;
        values.retain(|binding| filter.as_ref().is_none_or(|part| binding.name.contains(part)));
        let left_out = left_out(values.len());
        let line = |Binding { name, value_type, value }| ValueLine { name, value_type, value };
        let values = values.into_iter().take(ITEMS).map(line).collect();
        Ok(ValuesAnswer { session_id: session.short(), values, left_out, note })
    }
}

impl Answer for ValuesAnswer {
    const IS_MARKED: bool = true;
}

impl Display for ValuesAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for ValueLine { name, value_type, value } in &self.values {
            match value {
                Some(value) => writeln!(f, "{name} : {value_type} = {value}")?,
                None => writeln!(f, "{name} : {value_type}")?,
            }
        }
        more(f, self.left_out)?;
        noted(f, self.note)?;
        write!(f, "values: {} [session {}]", self.values.len(), self.session_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_where_an_answer_was_cut_sees_each_member_once() {
        let all: Vec<usize> = (1..=ITEMS * 2 + 50).collect();
        let (mut first, mut seen, mut left) = (1, Vec::new(), Vec::new());
        loop {
            let (members, left_out) = page(all.clone(), first);
            (first, seen) = (first + ITEMS, [seen, members].concat());
            left.extend(left_out);
            if left_out.is_none() {
                break;
            }
        }
        assert_eq!((seen, left), (all, vec![ITEMS + 50, 50]));
        assert_eq!(page(vec![1, 2], 3), (Vec::new(), None));
    }

    #[test]
    fn a_cut_answer_says_how_to_go_on() {
        let member = MemberLine {
            name: "Append".to_owned(),
            kind: "method".to_owned(),
            signature: Some("string -> unit".to_owned()),
            documentation: None,
        };
        let answer = ExploreAnswer {
            session_id: "1a2b3c4d".to_owned(),
            name: "Text".to_owned(),
            kind: "type".to_owned(),
            documentation: None,
            bases: Vec::new(),
            interfaces: Vec::new(),
            members: vec![member],
            left_out: Some(57),
            next: Some(201),
            note: Some(UNFINISHED),
        };
        insta::assert_snapshot!(answer, @"
        type Text
        Append : string -> unit (method)
        … 57 more: from 201
        note: the session is still warming up: what its code defines may be missing yet
        members: 1 [session 1a2b3c4d]
        ");
    }
}
