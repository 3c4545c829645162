//! Reads the arguments of a call, and says what is wrong with them so that a model can correct it.
//!
//! The tool's own schema names the argument; serde alone says only what it found where.

use mainstay_model::Error;
use rmcp::model::JsonObject;
use serde_json::Value;

use strsim::normalized_levenshtein;

use super::schema;
use super::tool::Tool;

/// Arguments that a client adds to every call for its own sake; they are passed over. Gemini CLI's says that other calls come first.
const PASSED_OVER: [&str; 1] = ["wait_for_previous"];
/// How alike two names must be, from 0 to 1, for the one to be taken for a slip of the other.
const ALIKE: f64 = 0.5;

/// The arguments of a call of the tool that the client called by this name.
///
/// # Errors
/// [`Error::InvalidArgument`], which names the first argument that is wrong, and what the tool takes.
pub(super) fn read<T: Tool>(name: &str, mut arguments: JsonObject) -> Result<T, Error> {
    arguments.retain(|argument, _| !PASSED_OVER.contains(&argument.as_str()));
    // They are needed where something is wrong alone, and then the tool has taken them.
    let given = arguments.clone();
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let schema = schema::of_tool::<T>();
        let (argument, reason) = fault(&schema, &given)
            .unwrap_or_else(|| (format!("what {name} was called with"), error.to_string()));
        Error::InvalidArgument { argument, reason: format!("{reason}; {name} takes {}", form(&schema)) }
    })
}

/// The first argument that does not fit the schema, and why.
fn fault(schema: &JsonObject, given: &JsonObject) -> Option<(String, String)> {
    let known = schema.get("properties")?.as_object()?;
    let unknown = given.keys().find(|name| !known.contains_key(*name));
    if let Some(unknown) = unknown {
        let reason = match nearest(unknown, known.keys().map(String::as_str)) {
            Some(meant) if plain(meant) == plain(unknown) => {
                format!("there is no such argument, it is called `{meant}`")
            }
            Some(meant) => format!("there is no such argument; did you mean `{meant}`?"),
            None => "there is no such argument".to_owned(),
        };
        return Some((unknown.clone(), reason));
    }
    let is_absent = |name: &&str| given.get(*name).is_none_or(Value::is_null);
    if let Some(missing) = required(schema).into_iter().find(is_absent) {
        return Some((missing.to_owned(), "it is missing".to_owned()));
    }
    given.iter().find_map(|(name, value)| {
        let schema = known.get(name)?;
        let wanted = schema.get("type")?.as_str()?;
        let most = schema.get("maximum").and_then(Value::as_u64).unwrap_or(u32::MAX.into());
        let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or(0);
        let reason = match value {
            Value::Null => return None,
            value if !is_of(wanted, value) => format!("must be of type {wanted}"),
            value if value.as_u64().is_some_and(|number| number > most) => format!("may be {most} at most"),
            value if value.as_u64().is_some_and(|number| number < least) => {
                format!("must be {least} at least")
            }
            _ => return None,
        };
        Some((name.clone(), format!("it is {}, and {reason}", short(value))))
    })
}

/// What a tool takes, as a model reads it.
fn form(schema: &JsonObject) -> String {
    let required = required(schema);
    let known = schema.get("properties").and_then(Value::as_object);
    let argument = |(name, schema): (&String, &Value)| {
        let kind = schema["type"].as_str().unwrap_or("any");
        let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
        format!("`{name}` ({kind}{optional})")
    };
    let arguments: Vec<String> = known.into_iter().flatten().map(argument).collect();
    if arguments.is_empty() { "no arguments".to_owned() } else { arguments.join(", ") }
}

fn required(schema: &JsonObject) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The name that another is most like, where one is like it: a name that is the beginning of the other, or differs in few letters.
fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = plain(unknown);
    let likeness = |name: &str| {
        let name = plain(name);
        let is_part = unknown.len() > 2 && (name.starts_with(&unknown) || unknown.starts_with(&name));
        normalized_levenshtein(&unknown, &name).max(if is_part { ALIKE } else { 0.0 })
    };
    let rated = known.map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness >= ALIKE);
    rated.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

/// A name without what models write differently.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a value is of a type of JSON Schema, and one that Mainstay takes: its integers are from nought on.
fn is_of(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// A value in an error: what is long is named only.
fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(_) => "a string".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_by_its_letters_or_its_beginning() {
        let known = ["code", "sessionId", "idempotencyKey", "wait", "agentName"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("session_id"), Some("sessionId"));
        assert_eq!(near("session"), Some("sessionId"));
        assert_eq!(near("cod"), Some("code"));
        assert_eq!(near("waits"), Some("wait"));
        assert_eq!(near("idempotency"), Some("idempotencyKey"));
        assert_eq!(near("timeout"), None);
        assert_eq!(near("x"), None);
    }
}
