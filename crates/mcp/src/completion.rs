//! Completion of what prompts and addresses of resources take: sessions, cells, names of types.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use mainstay_formats::exchange::Item;
use mainstay_log::SessionFilter;
use mainstay_model::{Action, Error, SessionState};
use mainstay_runner::query::{KernelQuery, Symbol};
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};

use super::call::Call;
use super::cells;
use super::prompts::{Argument, Named};

/// Among how many sessions is looked.
const SESSIONS: usize = 100;

/// What is to be completed.
enum CompletionTarget {
    Session,
    /// Only cells that failed, where it is to be repaired.
    Cell {
        failed: bool,
    },
    Type,
}

impl CompletionTarget {
    fn of(reference: &Reference, argument: &str) -> Option<Self> {
        match reference {
            Reference::Prompt(prompt) => match Named::read(&prompt.name)?.argument(argument)? {
                Argument::Session => Some(Self::Session),
                Argument::Cell => Some(Self::Cell { failed: true }),
                Argument::Type => Some(Self::Type),
                Argument::Goal => None,
            },
            Reference::Resource(template) if template.uri.starts_with("mainstay://session/{id}") => {
                match argument {
                    "id" => Some(Self::Session),
                    "number" | "from" => Some(Self::Cell { failed: false }),
                    _ => None,
                }
            }
            // What the protocol may yet have, and addresses that are not ours.
            _ => None,
        }
    }
}

/// Values, at least those that are shown, and how many there are at least.
type CompletionValues = (Vec<String>, usize);

/// What may stand for an argument; nothing where nothing is known.
pub(super) async fn complete(call: &Call, request: &CompleteRequestParams) -> Result<CompletionInfo, Error> {
    let begun = request.argument.value.as_str();
    let given = request.context.as_ref().and_then(|context| context.arguments.as_ref());
    let (values, total) = match CompletionTarget::of(&request.r#ref, &request.argument.name) {
        None => CompletionValues::default(),
        Some(CompletionTarget::Session) => sessions(call, begun).await?,
        Some(CompletionTarget::Cell { failed }) => numbers(call, session_of(given), begun, failed).await?,
        Some(CompletionTarget::Type) => types(call, begun).await?,
    };
    let shown: Vec<String> = values.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let has_more = total > shown.len();
    let mut info = CompletionInfo::default();
    (info.values, info.has_more) = (shown, Some(has_more));
    Ok(info)
}

/// The session that other arguments name.
fn session_of(given: Option<&HashMap<String, String>>) -> Option<&str> {
    let given = given?;
    given.get("session").or_else(|| given.get("id")).map(String::as_str).filter(|text| !text.is_empty())
}

/// Names first, each session's id behind its own.
async fn sessions(call: &Call, begun: &str) -> Result<CompletionValues, Error> {
    let filter = SessionFilter { limit: Some(SESSIONS), ..SessionFilter::default() };
    let sessions = call.client().sessions(filter).await?;
    let names = sessions.into_iter().flat_map(|session| [session.name.clone(), session.id.short()]);
    let names: Vec<String> = names.filter(|name| name.starts_with(begun)).collect();
    let total = names.len();
    Ok((names, total))
}

/// Lists the numbers of entries, newest first.
async fn numbers(
    call: &Call,
    session: Option<&str>,
    begun: &str,
    failed: bool,
) -> Result<CompletionValues, Error> {
    let Some(session) = call.find(session).await? else { return Ok(CompletionValues::default()) };
    let (mut newest, mut total) = (VecDeque::new(), 0);
    cells::visit(call.client(), session, |place, item| {
        let is_wanted = match &item {
            Item::Cell { .. } => !failed || cells::has_failed(&item),
            Item::Message { .. } => !failed,
            Item::Reset { .. } | Item::Label { .. } | Item::End { .. } => false,
        };
        let number = place.number.to_string();
        if is_wanted && number.starts_with(begun) {
            total += 1;
            newest.push_front(number);
            newest.truncate(CompletionInfo::MAX_VALUES);
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok((newest.into(), total))
}

/// Of what the session in use has and refers to. No session is created or started for it.
async fn types(call: &Call, begun: &str) -> Result<CompletionValues, Error> {
    let nothing = CompletionValues::default();
    if begun.is_empty() {
        return Ok(nothing);
    }
    let Some(session) = call.find(None).await? else { return Ok(nothing) };
    let stored = call.client().status(session).await?.session;
    if stored.state() == SessionState::Uninitialized || !stored.offered().contains(&Action::Explore) {
        return Ok(nothing);
    }
    let limit = u32::try_from(CompletionInfo::MAX_VALUES).unwrap_or(u32::MAX);
    let query = KernelQuery::Symbols { text: begun.to_owned(), limit };
    let symbols = call.client().query(session, query).await?.symbols()?;
    let is_all = usize::try_from(symbols.found).is_ok_and(|found| found == symbols.items.len());
    let is_type = |symbol: &Symbol| symbol.kind == "type";
    let types: Vec<String> =
        symbols.items.into_iter().filter(is_type).map(|symbol| symbol.full_name).collect();
    let total = types.len() + usize::from(!is_all);
    Ok((types, total))
}
