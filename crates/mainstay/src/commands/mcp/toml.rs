//! Changes of a configuration in TOML, comments and layout kept.

use mainstay_home::HOME_VARIABLE;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::edit::{ARGUMENTS, Change, EditError, Entry, NAME};

/// The key of a server that says when Codex asks before it calls a tool.
pub(super) const APPROVAL: &str = "default_tools_approval_mode";
/// What it says where Codex never asks.
pub(super) const APPROVED: &str = "approve";
/// The key of a server that says after how many seconds Codex gives a call of it up.
pub(super) const TIME_LIMIT: &str = "tool_timeout_sec";
/// The least that it may say: at a smaller one Codex cancels calls that Mainstay would still answer, in the words with which it cancels for its
/// user, and their code is stopped.
pub(super) const LEAST_TIME_LIMIT: i64 = 300;
/// What it says where it said nothing, or less than that. No call takes so long.
const LONG_TIME_LIMIT: i64 = 3600;
/// The key of a server that Codex does not start when it is false.
const ENABLED: &str = "enabled";
/// The key of a server that names the variables which Codex passes on to it.
pub(super) const PASSED: &str = "env_vars";

/// Edits a TOML file as [`super::edit::edit`] asks.
pub(super) fn edit(
    servers: &str,
    passed: &[&str],
    text: &str,
    change: Change<'_>,
) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse().map_err(|error| unreadable(text, &error))?;
    if document.to_string() != text {
        return Err(EditError::Lossy);
    }
    match change {
        Change::Set(entry) => {
            let mut all = Table::new();
            all.set_implicit(true);
            let all = table(document.as_table_mut(), servers, all)?;
            set(table(all, NAME, Table::new())?, passed, entry)?;
        }
        Change::Remove if !document.contains_key(servers) => {}
        Change::Remove => {
            table(document.as_table_mut(), servers, Table::new())?.remove(NAME);
        }
    }
    Ok(document.to_string())
}

fn unreadable(text: &str, error: &toml_edit::TomlError) -> EditError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    EditError::Unreadable { reason: format!("{} on line {line}", error.message()) }
}

/// Has the entry say how Mainstay is started. What else it says stays, such as how long its start may take.
fn set(found: &mut dyn TableLike, passed: &[&str], entry: &Entry) -> Result<(), EditError> {
    say(found, "command", entry.command.as_str().into());
    say(found, "args", Value::Array(ARGUMENTS.into_iter().collect()));
    match &entry.home {
        Some(home) if !found.contains_key("env") => {
            let only = toml_edit::InlineTable::from_iter([(HOME_VARIABLE, home.as_str())]);
            say(found, "env", Value::InlineTable(only));
        }
        Some(home) => say(table(found, "env", Table::new())?, HOME_VARIABLE, home.as_str().into()),
        None if !found.contains_key("env") => {}
        None => drop(table(found, "env", Table::new())?.remove(HOME_VARIABLE)),
    }
    pass_on(found, passed)?;
    if time_limit(found).is_none_or(|seconds| seconds < LEAST_TIME_LIMIT as f64) {
        say(found, TIME_LIMIT, LONG_TIME_LIMIT.into());
    }
    if found.get(ENABLED).and_then(Item::as_bool) == Some(false) {
        say(found, ENABLED, true.into());
    }
    if entry.approved {
        say(found, APPROVAL, APPROVED.into());
    }
    Ok(())
}

/// After how many seconds a call is given up.
fn time_limit(of: &dyn TableLike) -> Option<f64> {
    let said = of.get(TIME_LIMIT)?;
    said.as_float().or_else(|| said.as_integer().map(|seconds| seconds as f64))
}

/// Has these variables be passed on, beside those that are already.
fn pass_on(found: &mut dyn TableLike, passed: &[&str]) -> Result<(), EditError> {
    let Some(listed) = found.get_mut(PASSED) else {
        let mut listed: Array = passed.iter().copied().collect();
        // One on a line, since they are many.
        listed.iter_mut().for_each(|name| name.decor_mut().set_prefix("\n    "));
        listed.set_trailing("\n");
        listed.set_trailing_comma(true);
        found.insert(PASSED, Item::Value(Value::Array(listed)));
        return Ok(());
    };
    let listed = listed.as_array_mut().ok_or_else(|| EditError::NotAList { name: format!("`{PASSED}`") })?;
    for name in passed {
        if !listed.iter().any(|item| passed_name(item) == Some(name)) {
            listed.push(*name);
        }
    }
    Ok(())
}

/// The variable that an item of the list names: Codex takes a text, or a table that says where it comes from.
fn passed_name(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| item.as_inline_table()?.get("name")?.as_str())
}

/// Has a key say this, where it does not yet. What stands around the value stays.
fn say(of: &mut dyn TableLike, key: &str, value: Value) {
    match of.get_mut(key).and_then(Item::as_value_mut) {
        None => drop(of.insert(key, Item::Value(value))),
        Some(found) if is_same(found, &value) => {}
        Some(found) => {
            let around = found.decor().clone();
            *found = value;
            *found.decor_mut() = around;
        }
    }
}

/// Whether two values are the same text, or the same list of texts.
fn is_same(left: &Value, right: &Value) -> bool {
    let texts = |list: &Array| list.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Vec<_>>();
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.value() == right.value(),
        (Value::Array(left), Value::Array(right)) => texts(left) == texts(right),
        _ => false,
    }
}

/// A table's key that is a table itself, this one where it is not there.
fn table<'a>(of: &'a mut dyn TableLike, key: &str, new: Table) -> Result<&'a mut dyn TableLike, EditError> {
    of.entry(key)
        .or_insert(Item::Table(new))
        .as_table_like_mut()
        .ok_or_else(|| EditError::NotAnObject { name: format!("`{key}`") })
}
