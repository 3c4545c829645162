//! Changes of a configuration in JSON, comments and trailing commas included.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use mainstay_home::HOME_VARIABLE;

use super::edit::{ARGUMENTS, Change, EditError, Entry, Layout, NAME};

/// What agents read: comments and trailing commas, and nothing else that is no JSON.
pub(super) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// What a server says that its client does not start: of opencode the first, of others the second.
pub(super) const SWITCHED_OFF: [(&str, bool); 2] = [("enabled", false), ("disabled", true)];

/// Edits a JSON file as [`super::edit::edit`] asks.
pub(super) fn edit(
    servers: &str,
    layout: Layout,
    trust: Option<&str>,
    text: &str,
    change: Change<'_>,
) -> Result<String, EditError> {
    let is_empty = text.trim().is_empty();
    let root = read(if is_empty { "{}\n" } else { text })?;
    let all = root.object_value().ok_or_else(|| EditError::NotAnObject { name: "the whole".to_owned() })?;
    match change {
        Change::Set(entry) => set(&object(&all, servers)?, layout, trust, entry)?,
        Change::Remove if member(&all, servers)?.is_none() => return Ok(text.to_owned()),
        Change::Remove => {
            if let Some(found) = member(&object(&all, servers)?, NAME)? {
                found.remove();
            }
        }
    }
    Ok(root.to_string())
}

fn read(text: &str) -> Result<CstRootNode, EditError> {
    let root = CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| EditError::Unreadable { reason: error.to_string() })?;
    if root.to_string() == text { Ok(root) } else { Err(EditError::Lossy) }
}

/// Has the entry say how Mainstay is started. What else it says stays, such as which tools need no permission.
fn set(servers: &CstObject, layout: Layout, trust: Option<&str>, entry: &Entry) -> Result<(), EditError> {
    let found = object(servers, NAME)?;
    match layout {
        Layout::Typed => say(&found, "type", &text("stdio"))?,
        Layout::Untyped => {}
        Layout::Local => say(&found, "type", &text("local"))?,
    }
    match layout {
        Layout::Typed | Layout::Untyped => {
            say(&found, "command", &text(&entry.command))?;
            say(&found, "args", &texts(&ARGUMENTS))?;
        }
        Layout::Local => {
            let whole = [&[entry.command.as_str()], ARGUMENTS.as_slice()].concat();
            say(&found, "command", &texts(&whole))?;
        }
    }
    let environment = layout.environment();
    match &entry.home {
        Some(home) => say(&object(&found, environment)?, HOME_VARIABLE, &text(home))?,
        None if member(&found, environment)?.is_none() => {}
        None => {
            if let Some(stale) = member(&object(&found, environment)?, HOME_VARIABLE)? {
                stale.remove();
            }
        }
    }
    // Whoever installs it wants it to be started.
    for (name, off) in SWITCHED_OFF {
        if member(&found, name)?.is_some_and(|switch| switch.to_serde_value() == Some(off.into())) {
            say(&found, name, &CstInputValue::Bool(!off))?;
        }
    }
    match trust.filter(|_| entry.approved) {
        Some(trust) => say(&found, trust, &CstInputValue::Bool(true)),
        None => Ok(()),
    }
}

/// Has a member say this, where it does not yet.
fn say(of: &CstObject, name: &str, value: &CstInputValue) -> Result<(), EditError> {
    match member(of, name)? {
        None => drop(of.append(name, value.clone())),
        Some(found) if found.to_serde_value() == Some(plain(value)) => {}
        Some(found) => found.set_value(value.clone()),
    }
    Ok(())
}

/// An object's member that is an object itself, made where it is not there.
fn object(of: &CstObject, name: &str) -> Result<CstObject, EditError> {
    let found = match member(of, name)? {
        Some(found) => found,
        None => of.append(name, CstInputValue::Object(Vec::new())),
    };
    found.object_value().ok_or_else(|| EditError::NotAnObject { name: format!("`{name}`") })
}

fn member(of: &CstObject, name: &str) -> Result<Option<jsonc_parser::cst::CstObjectProp>, EditError> {
    let is_meant = |found: &jsonc_parser::cst::CstObjectProp| found.decoded_name().as_deref() == Some(name);
    let mut found = of.properties().into_iter().filter(is_meant);
    let first = found.next();
    if found.next().is_some() {
        return Err(EditError::Twice { name: format!("`{name}`") });
    }
    Ok(first)
}

fn text(text: &str) -> CstInputValue {
    CstInputValue::String(text.to_owned())
}

fn texts(texts: &[&str]) -> CstInputValue {
    CstInputValue::Array(texts.iter().copied().map(text).collect())
}

/// What a text, a list of texts or a truth value is to whoever reads it.
fn plain(value: &CstInputValue) -> serde_json::Value {
    match value {
        CstInputValue::String(text) => text.as_str().into(),
        CstInputValue::Array(items) => items.iter().map(plain).collect(),
        CstInputValue::Bool(truth) => (*truth).into(),
        CstInputValue::Null | CstInputValue::Number(_) | CstInputValue::Object(_) => serde_json::Value::Null,
    }
}
