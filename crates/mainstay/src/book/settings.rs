//! `docs/reference/settings.md`, generated from the settings' types and their doc comments.

use mainstay_home::config::Config;
use mainstay_home::config::bounds::range_of;
use serde_json::Value;

use super::{GENERATED, assert_is_page, escaped};

#[test]
fn the_reference_of_the_settings_is_what_their_types_say() {
    let schema = serde_json::to_value(schemars::schema_for!(Config)).unwrap();
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let mut page = format!("{GENERATED}# Settings\n\n{INTRODUCTION}");
    for (name, section) in members(&schema) {
        let of = Section { root: &schema, defaults: &defaults[name] };
        page.push_str(&of.written(name, section));
    }
    assert_is_page("reference/settings.md", &page);
}

const INTRODUCTION: &str = "\
The settings are in `config.toml` in Mainstay's home: `~/.mainstay`, or the folder that `MAINSTAY_HOME` names. Every setting has a default, and the file may be
missing. The daemon reads it when it starts: run `mainstay restart` after a change. A name that does not exist, or a number outside of its
range, stops the daemon from starting, and the error names it. `mainstay status --limits` shows the limits that apply.

```toml
[daemon]
port = 37800

[fsharp]
watch = \"reload\"

[limits]
ask-ms = 3600000
```

Environment variables:

| variable | meaning |
|---|---|
| `MAINSTAY_HOME` | The folder for everything that Mainstay stores. It must belong to you; a folder that others can write to is rejected. |
| `MAINSTAY_TOKEN` | The token that a client presents instead of the one in `MAINSTAY_HOME`, for [principals](../how-to/principals.md). |
| `MAINSTAY_LOG` | What the daemon writes to `logs/daemon.log` in its home: `info`, `debug`, or a filter such as `mainstay_engine=trace`. |
| `MAINSTAY_ENVIRONMENT` | `login-shell` or `inherited`, overrides `environment` in `[daemon]`. |
| `MAINSTAY_IMAGES` | How a terminal shows pictures: `kitty`, `iterm` or `off`. Without it Mainstay detects it. |
| `MAINSTAY_JUPYTER_SESSION` | The session that a [Jupyter front end](../how-to/notebooks.md#run-jupyter-notebooks-in-mainstay-sessions) joins. |

";

/// A section of the settings, and the values that its settings have by default.
struct Section<'a> {
    root: &'a Value,
    defaults: &'a Value,
}

impl Section<'_> {
    fn written(&self, name: &str, schema: &Value) -> String {
        let mut text = format!("## `[{name}]`\n\n{}\n\n", description(schema));
        let table = self.resolved(schema);
        let entries = self.resolved(entry_of(table).unwrap_or(table));
        text.push_str("| setting | type | default | range | meaning |\n|---|---|---|---|---|\n");
        for (name, schema) in members(entries) {
            text.push_str(&self.row(name, schema));
        }
        text.push('\n');
        text
    }

    fn row(&self, name: &str, schema: &Value) -> String {
        let default = self.defaults.get(name).unwrap_or(&Value::Null);
        let (kind, values) = self.kind(schema);
        let range = match (kind.as_str(), name) {
            ("integer", "port" | "pi-port") => "0 to 65535".to_owned(),
            ("integer", "wait") => String::new(),
            ("integer", _) => range(name),
            _ => String::new(),
        };
        let meaning = [description(schema), values].join(" ");
        format!(
            "| `{name}` | {kind} | {} | {range} | {} |\n",
            shown(name, default),
            escaped(meaning.trim()).replace('|', "\\|")
        )
    }

    /// The type of a setting, and what each of its values means where it has names for them.
    fn kind(&self, schema: &Value) -> (String, String) {
        let schema = self.resolved(schema);
        if let Some(values) = schema["oneOf"].as_array() {
            let value = |value: &Value| {
                let name = value["const"].as_str().unwrap_or_default();
                format!("`\"{name}\"`: {}", description(value))
            };
            return ("one of".to_owned(), values.iter().map(value).collect::<Vec<_>>().join(" "));
        }
        let named = schema["type"].as_array().map_or(&schema["type"], |types| &types[0]);
        let kind = match named.as_str() {
            Some("string") => "text",
            Some("object") => "table of texts",
            Some("array") => "list of texts",
            Some(other) => other,
            None => panic!("a setting of an unknown type: {schema}"),
        };
        (kind.to_owned(), String::new())
    }

    /// What a schema is, where it refers to another or may be null.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(options) = schema["anyOf"].as_array() {
            return self.resolved(options.iter().find(|option| option["type"] != "null").unwrap());
        }
        match schema["$ref"].as_str() {
            Some(path) => self.resolved(self.root.pointer(path.trim_start_matches('#')).unwrap()),
            None => schema,
        }
    }
}

/// What each entry of a table is, where its names are free.
fn entry_of(table: &Value) -> Option<&Value> {
    let patterns = table["patternProperties"].as_object();
    let entry = patterns.and_then(|patterns| patterns.values().next());
    entry.or(table.get("additionalProperties")).filter(|entry| entry.is_object())
}

fn members(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"].as_object().unwrap().iter().map(|(name, schema)| (name.as_str(), schema))
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

fn range(name: &str) -> String {
    let range = range_of(name);
    match *range.end() {
        u64::MAX => format!("from {}", range.start()),
        end => format!("{} to {end}", range.start()),
    }
}

/// A default as the file has it, and in larger units where it is a round number of them.
fn shown(name: &str, default: &Value) -> String {
    let value = match default {
        Value::Null => return "not set".to_owned(),
        Value::Object(_) => return "empty".to_owned(),
        value => format!("`{value}`"),
    };
    let units: &[(u64, &str)] = match name {
        _ if name.contains("-bytes") => &[(1 << 20, "MiB"), (1 << 10, "KiB")],
        _ if name.ends_with("-ms") => &[(86_400_000, "days"), (60_000, "min"), (1_000, "s")],
        _ => &[],
    };
    let round = |number: u64| units.iter().find(|(unit, _)| number >= *unit && number.is_multiple_of(*unit));
    match default.as_u64().and_then(|number| Some((number, round(number)?))) {
        Some((number, (unit, word))) => format!("{value} ({} {word})", number / unit),
        None => value,
    }
}
