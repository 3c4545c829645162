//! Mainstay's entry in a configuration, as its client reads it.

use std::collections::BTreeMap;

use jsonc_parser::cst::CstRootNode;
use serde_json::Value;

use crate::commands::mcp::edit::{EditError, Form, NAME};
use crate::commands::mcp::{json, toml};

/// What a client does with the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The file has no entry for Mainstay.
    Missing,
    /// It is switched off.
    Disabled,
    /// It is an address: the client connects to it over HTTP.
    Remote(String),
    /// It is a program, which the client starts.
    Local(Local),
    /// It says neither which program nor which address.
    Empty,
}

/// A program that a client starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Local {
    /// The program and its arguments; never empty.
    pub(super) command: Vec<String>,
    /// The variables that the entry sets.
    pub(super) environment: BTreeMap<String, String>,
    /// The variables that the entry has passed on.
    pub(super) passed: Vec<String>,
    /// Whether the client calls every tool without a question.
    pub(super) approved: bool,
    /// After how many seconds the client is told to give a call up, where that is too few for Mainstay.
    pub(super) short_limit: Option<serde_json::Number>,
}

/// Reads the entry of a configuration.
///
/// # Errors
/// [`EditError::Unreadable`] where the client cannot read it either.
pub(super) fn read(form: Form, text: &str) -> Result<Entry, EditError> {
    let (servers, whole) = match form {
        Form::Json { servers, .. } => (servers, json_value(text)?),
        Form::Toml { servers, .. } => (servers, toml_value(text)?),
    };
    Ok(whole.get(servers).and_then(|all| all.get(NAME)).map_or(Entry::Missing, |found| entry(form, found)))
}

fn json_value(text: &str) -> Result<Value, EditError> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let root = CstRootNode::parse(text, &json::OPTIONS)
        .map_err(|error| EditError::Unreadable { reason: error.to_string() })?;
    Ok(root.to_serde_value().unwrap_or_default())
}

fn toml_value(text: &str) -> Result<Value, EditError> {
    ::toml::from_str(text).map_err(|error| EditError::Unreadable { reason: error.message().to_owned() })
}

fn entry(form: Form, found: &Value) -> Entry {
    let says = |name: &str, truth: bool| found.get(name) == Some(&Value::Bool(truth));
    if json::SWITCHED_OFF.iter().any(|(name, off)| says(name, *off)) {
        return Entry::Disabled;
    }
    let command = [texts(found.get("command")), texts(found.get("args"))].concat();
    if !command.is_empty() {
        return Entry::Local(Local {
            command,
            environment: environment(form, found),
            passed: passed(found.get(toml::PASSED)),
            short_limit: match found.get(toml::TIME_LIMIT) {
                Some(Value::Number(seconds))
                    if matches!(form, Form::Toml { .. })
                        && seconds
                            .as_f64()
                            .is_some_and(|seconds| seconds < toml::LEAST_TIME_LIMIT as f64) =>
                {
                    Some(seconds.clone())
                }
                Some(_) | None => None,
            },
            approved: match form {
                Form::Json { trust, .. } => trust.is_some_and(|trust| says(trust, true)),
                Form::Toml { .. } => {
                    found.get(toml::APPROVAL).and_then(Value::as_str) == Some(toml::APPROVED)
                }
            },
        });
    }
    let address = ["url", "httpUrl"].into_iter().find_map(|name| found.get(name)?.as_str());
    address.map_or(Entry::Empty, |address| Entry::Remote(address.to_owned()))
}

fn environment(form: Form, found: &Value) -> BTreeMap<String, String> {
    let name = match form {
        Form::Json { layout, .. } => layout.environment(),
        Form::Toml { .. } => "env",
    };
    let members = found.get(name).and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// The texts of a value: itself, or those in a list.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => {
            items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

fn passed(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    let name = |item: &Value| Some(item.as_str().or_else(|| item.get("name")?.as_str())?.to_owned());
    items.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::clients::McpClient;
    use crate::commands::mcp::edit::{Change, edit};

    fn of(client: McpClient, text: &str) -> Entry {
        read(client.form(), text).unwrap()
    }

    #[test]
    fn what_install_writes_is_read_back() {
        let entry = crate::commands::mcp::edit::Entry {
            command: "/usr/bin/mainstay".to_owned(),
            home: Some("/srv".to_owned()),
            approved: true,
        };
        for client in <McpClient as clap::ValueEnum>::value_variants() {
            let form = client.form();
            let Entry::Local(found) = of(*client, &edit(form, "", Change::Set(&entry)).unwrap()) else {
                panic!("{client:?}");
            };
            assert_eq!(found.command, ["/usr/bin/mainstay", "mcp"], "{client:?}");
            assert_eq!(found.environment["MAINSTAY_HOME"], "/srv", "{client:?}");
            assert_eq!(found.approved, form.has_approval(), "{client:?}");
            assert_eq!(found.passed.is_empty(), *client != McpClient::Codex);
            assert_eq!(found.short_limit, None);
        }
    }

    #[test]
    fn what_starts_no_program_is_told_apart() {
        assert_eq!(of(McpClient::Cursor, ""), Entry::Missing);
        assert_eq!(of(McpClient::Cursor, "{\"mcpServers\": {\"other\": {}}} // mine"), Entry::Missing);
        assert_eq!(of(McpClient::Cursor, "{\"mcpServers\": {\"mainstay\": {}}}"), Entry::Empty);
        assert_eq!(
            of(McpClient::Gemini, "{\"mcpServers\": {\"mainstay\": {\"httpUrl\": \"http://x\"}}}"),
            Entry::Remote("http://x".to_owned())
        );
        assert_eq!(
            of(McpClient::Opencode, "{\"mcp\": {\"mainstay\": {\"command\": [\"m\"], \"enabled\": false}}}"),
            Entry::Disabled
        );
        assert!(read(McpClient::Codex.form(), "a = ").is_err());
    }
}
