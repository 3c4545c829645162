//! Calls of tools as code: the name of a tool, perhaps its version, and what it is given as JSON. Sessions of tool workers run such code.

use serde_json::Value;

use crate::display::Bundle;
use crate::eval::EvalResult;

/// The type of a result that is JSON. No language has types of such a name.
pub const JSON_TYPE: &str = "application/json";

/// A call of a tool. As code it is `NAME JSON` or `NAME@VERSION JSON`; without JSON the tool is given nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The version of the tool; none where its default will do.
    pub version: Option<String>,
    /// What the tool is given.
    pub input: Value,
}

/// Why some code is no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCall {
    /// More of it would make it one.
    Unfinished,
    /// It is none, and more of it would not help.
    Invalid {
        /// What is wrong, for people.
        reason: String,
        /// Where that is, in characters from the beginning of the code.
        at: usize,
    },
}

impl ToolCall {
    /// Reads a call.
    ///
    /// # Errors
    /// [`NoCall`], also where there is nothing but blanks.
    pub fn read(code: &str) -> Result<Self, NoCall> {
        let begins = code.len() - code.trim_start().len();
        let text = code.trim();
        if text.is_empty() {
            return Err(NoCall::Unfinished);
        }
        let (tool, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (name, version) = match tool.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (tool, None),
        };
        if let Some(reason) = wrong_name(name).or_else(|| version.and_then(wrong_version)) {
            return Err(NoCall::Invalid { reason, at: code[..begins].chars().count() });
        }
        let input = match rest.trim() {
            "" => Value::Null,
            json => serde_json::from_str(json).map_err(|error| {
                let before = code.len() - code.trim_end().len() + json.len();
                let start = code.len() - before;
                match error.is_eof() {
                    true => NoCall::Unfinished,
                    false => not_json(&error, code, start),
                }
            })?,
        };
        Ok(Self { name: name.to_owned(), version: version.map(str::to_owned), input })
    }

    /// The call as code.
    pub fn code(&self) -> String {
        let Self { name, version, input } = self;
        let version = version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
        match input {
            Value::Null => format!("{name}{version}"),
            input => format!("{name}{version} {input}"),
        }
    }
}

impl EvalResult {
    /// What a tool gave, as the result of code.
    pub fn of_tool(value: &Value) -> Self {
        let text = value.to_string();
        Self {
            display: text.clone(),
            value: Some(text),
            value_type: Some(JSON_TYPE.to_owned()),
            touched: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// What a tool gave; none where the result is no tool's.
    pub fn tool_value(&self) -> Option<Value> {
        let value = self.value.as_ref().filter(|_| self.value_type.as_deref() == Some(JSON_TYPE))?;
        serde_json::from_str(value).ok()
    }
}

/// Under which type a display says how much of a job is done.
pub const PROGRESS: &str = "application/vnd.mainstay.progress+json";

/// How much of a job is done: what a display of the type [`PROGRESS`] has.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// How much is done.
    pub current: serde_json::Number,
    /// How much there is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<serde_json::Number>,
    /// The unit that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<String>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Progress {
    /// What a display says of it.
    pub fn of(bundle: &Bundle) -> Option<Self> {
        match bundle.form(PROGRESS)? {
            crate::Form::Json(value) => serde_json::from_value(value.clone()).ok(),
            crate::Form::Text(_) | crate::Form::Binary(_) => None,
        }
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.current)?;
        if let Some(total) = &self.total {
            write!(f, " of {total}")?;
        }
        if let Some(units) = &self.units {
            write!(f, " {units}")?;
        }
        self.message.as_ref().map_or(Ok(()), |message| write!(f, ": {message}"))
    }
}

fn wrong_name(name: &str) -> Option<String> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    (!is_name).then(|| {
        format!(
            "`{name}` names no tool: the code of a tool worker is NAME, then what the tool is given as JSON"
        )
    })
}

fn wrong_version(version: &str) -> Option<String> {
    let is_version = !version.is_empty()
        && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '_' | '-'));
    (!is_version).then(|| format!("`{version}` is no version: write NAME@VERSION, or NAME alone"))
}

/// What is wrong with JSON that begins at this byte of the code.
fn not_json(error: &serde_json::Error, code: &str, start: usize) -> NoCall {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let json = code.get(start..).unwrap_or_default();
    let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
    let lines_before: usize = lines.map(str::len).sum();
    let within = (lines_before + error.column().saturating_sub(1)).min(json.len());
    let at = code[..code.floor_char_boundary(start + within)].chars().count();
    NoCall::Invalid { reason: format!("what the tool is given is no JSON: {what}"), at }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| json!(number)),
            ".*".prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_call_is_read_back_as_it_was_written(
            name in "[a-z0-9][a-zA-Z0-9._-]{0,20}", version in prop::option::of("[0-9a-z.+-]{1,8}"), input in json_value(),
            before in "[ \n\t]{0,3}", after in "[ \n\t]{0,3}",
        ) {
            let call = ToolCall { name, version, input };
            prop_assert_eq!(ToolCall::read(&format!("{before}{}{after}", call.code())), Ok(call));
        }

        #[test]
        fn any_text_is_a_call_or_says_where_it_is_none(code in ".*") {
            if let Err(NoCall::Invalid { at, .. }) = ToolCall::read(&code) {
                prop_assert!(at <= code.chars().count());
            }
        }

        #[test]
        fn what_a_tool_gave_is_read_back(value in json_value()) {
            prop_assert_eq!(EvalResult::of_tool(&value).tool_value(), Some(value));
        }
    }

    #[test]
    fn what_is_not_whole_is_told_from_what_is_wrong() {
        for unfinished in ["", " \n", "quote {", "quote [1,", "quote {\"a\": \"b"] {
            assert_eq!(ToolCall::read(unfinished), Err(NoCall::Unfinished), "{unfinished}");
        }
        for (wrong, at) in [("6 * 7", 2), ("quote(1)", 0), ("quote@ 1", 0), (" é {}", 1), ("é", 0)] {
            match ToolCall::read(wrong) {
                Err(NoCall::Invalid { at: found, .. }) => assert_eq!(found, at, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
        let Err(NoCall::Invalid { reason, at }) = ToolCall::read("quote {\n  sku: 1}") else { panic!() };
        assert_eq!((reason.as_str(), at), ("what the tool is given is no JSON: key must be a string", 10));
    }
}
