//! Asks: questions to whoever is attached to a session. A running job raises one and waits for the answer, or a client's
//! command does, and the answer is its outcome. The first valid answer wins, unless more principals must give the same: see [`crate::vote`].
//! Source: seed 002, human in the loop.

use jsonschema::{PatternOptions, Retrieve, Uri, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Timestamp;
use crate::base64::Base64;
use crate::error::Error;
use crate::event::{Deadline, Source};
use crate::fingerprint::CommandFingerprint;
use crate::id::{AskId, CommandId, IdempotencyKey, JobId, Principal, Seq};
use crate::identity::Identity;
use crate::limits::Limits;
use crate::vote::{Vote, validate_quorum};

/// What is asked, and what an answer must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// What is asked, for people.
    pub prompt: String,
    /// The JSON schema of an answer.
    #[serde(default = "any_text")]
    pub schema: Value,
    /// What is taken where nobody answers in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// How many principals must give the same answer; one where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
}

/// The answer that stands for the end of the input, where code reads its input by asks: what Ctrl-D types. In front of base64 it stands for
/// these bytes and nothing else, where a question takes bytes.
pub const END_OF_INPUT: &str = "\u{4}";

/// What code reads of its input by an ask. The title of the schema says it, since an answer of any kind is a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRead {
    /// The next line of the input.
    Line,
    /// As many whole lines as there are, at least one: for code that reads ahead.
    Lines,
    /// All that is left of the input.
    Rest,
}

impl InputRead {
    /// The title of a schema whose answers are texts or bytes.
    pub const fn title_with_bytes(self) -> &'static str {
        match self {
            Self::Line => "a line of the input, or bytes",
            Self::Lines => "lines of the input, or bytes",
            Self::Rest => "the rest of the input, or bytes",
        }
    }
}

/// Checks that a value is not too large for the answer to any question.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is.
pub fn validate_answer(value: &Value, limits: &Limits) -> Result<(), Error> {
    match limits.input_bytes > limits.ask_bytes {
        true => within(value, "input-bytes", limits.input_bytes),
        false => within(value, "ask-bytes", limits.ask_bytes),
    }
}

fn within(value: &Value, name: &str, limit: usize) -> Result<(), Error> {
    let bytes = serde_json::to_vec(value).map_or(0, |written| written.len());
    if bytes > limit {
        let reason = format!("it has {bytes} bytes as JSON; `{name}` allows {limit}");
        return Err(Error::InvalidArgument { argument: "value".to_owned(), reason });
    }
    Ok(())
}

impl Question {
    /// Whether the answer is a secret, such as a password: `writeOnly` of the schema says so. It is shown to nobody, and only who asked is
    /// given it: it is in no event and in no outcome.
    pub fn is_secret(&self) -> bool {
        self.schema["writeOnly"] == Value::Bool(true)
    }

    /// How many principals must give the same answer.
    pub fn needed_answers(&self) -> u32 {
        self.quorum.unwrap_or(1)
    }

    /// What code reads of its input, where that is what it asks.
    pub fn input_read(&self) -> Option<InputRead> {
        match self.schema["title"].as_str()? {
            "a line of the input" => Some(InputRead::Line),
            "the rest of the input" => Some(InputRead::Rest),
            title => [InputRead::Line, InputRead::Lines, InputRead::Rest]
                .into_iter()
                .find(|read| read.title_with_bytes() == title),
        }
    }

    /// The answer to code that reads its input, of the bytes that were read for it. The end of a last line is not part of the answer, unless
    /// all that is left is wanted. What is no text, and a line without an end, are told exactly where the question takes bytes; elsewhere
    /// the code reads a line with an end, and U+FFFD for what is no text.
    pub fn input_answer(&self, read: InputRead, bytes: &[u8]) -> String {
        let takes_bytes = self.schema["title"] == read.title_with_bytes();
        let line = match read {
            InputRead::Line | InputRead::Lines => bytes.strip_suffix(b"\n"),
            InputRead::Rest => Some(bytes),
        };
        let text = line.and_then(|line| std::str::from_utf8(line).ok());
        match text.filter(|text| !text.starts_with(END_OF_INPUT)) {
            Some(text) if takes_bytes || read == InputRead::Rest => text.to_owned(),
            None if takes_bytes => END_OF_INPUT.to_owned() + &String::from(Base64::of(bytes)),
            Some(_) | None if read == InputRead::Rest => String::from_utf8_lossy(bytes).into_owned(),
            Some(_) | None => {
                String::from_utf8_lossy(line.unwrap_or(bytes)).trim_end_matches('\r').to_owned()
            }
        }
    }
}

/// An ask as it was raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The id of the ask.
    pub ask: AskId,
    /// Who waits for the answer.
    #[serde(flatten)]
    pub raiser: Raiser,
    /// The question for the clients.
    #[serde(flatten)]
    pub question: Question,
    /// When it must have been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// Who waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "raiser", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Raiser {
    /// A running job; the ask ends with it.
    Job {
        /// The job that asks.
        job: JobId,
    },
    /// A client's command; the answer is its outcome.
    Command {
        /// Which; its outcome is stored under (principal, command).
        command: CommandId,
        /// The fingerprint of the command's content.
        fingerprint: CommandFingerprint,
        /// The client's name for what it wants done once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<IdempotencyKey>,
    },
}

/// An ask that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingAsk {
    /// The ask that waits for an answer.
    #[serde(flatten)]
    pub ask: Ask,
    /// The event that raised it.
    pub raised: Seq,
    /// When the ask was raised.
    pub raised_at: Timestamp,
    /// The source that raised the ask.
    pub source: Source,
    /// The answers so far, where more principals must give the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
}

/// How an ask ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "ending", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AskEnding {
    /// Someone answered the ask.
    Answered {
        /// The answer that was accepted.
        value: Value,
    },
    /// Someone answered with a secret, which is not kept.
    Withheld,
    /// Nobody answered in time, and it had a default.
    Defaulted {
        /// The default that was taken as the answer.
        value: Value,
    },
    /// Nobody answered in time.
    TimedOut {
        /// How long there was, in milliseconds.
        limit_ms: u64,
    },
    /// It was taken back, or its job ended.
    Cancelled,
}

impl AskEnding {
    /// The answer that whoever raised it gets, as far as it is kept.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Cancelled`], [`Error::Withheld`].
    pub fn answer(&self) -> Result<Value, Error> {
        match self {
            Self::Answered { value } | Self::Defaulted { value } => Ok(value.clone()),
            Self::TimedOut { limit_ms } => Err(Error::TimedOut { limit_ms: *limit_ms }),
            Self::Cancelled => Err(Error::Cancelled),
            Self::Withheld => Err(Error::Withheld { what: "ask for a secret again".to_owned() }),
        }
    }
}

impl PendingAsk {
    /// Whether this command raised it.
    pub fn answers(&self, principal: &Principal, command: &CommandId) -> bool {
        match &self.ask.raiser {
            Raiser::Command { command: raiser, .. } => {
                raiser == command && self.source.principal() == *principal
            }
            Raiser::Job { .. } => false,
        }
    }

    /// The command that raised it; none where a job did.
    pub fn identity(&self) -> Option<Identity> {
        match &self.ask.raiser {
            Raiser::Command { command, fingerprint, key } => Some(Identity {
                principal: self.source.principal(),
                command: command.clone(),
                key: key.clone(),
                fingerprint: fingerprint.clone(),
            }),
            Raiser::Job { .. } => None,
        }
    }

    /// Whether this job raised it.
    pub fn is_of_job(&self, job: JobId) -> bool {
        match &self.ask.raiser {
            Raiser::Job { job: raiser } => *raiser == job,
            Raiser::Command { .. } => false,
        }
    }
}

impl Question {
    /// One that any text answers.
    pub fn text(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), schema: any_text(), default: None, quorum: None }
    }

    /// Checks that it can be asked.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is too large, its schema is none, its default is no answer to it, or it needs the same answer of too
    /// many principals.
    pub fn validate(&self, limits: &Limits) -> Result<(), Error> {
        let invalid =
            |argument: &str, reason| Error::InvalidArgument { argument: argument.to_owned(), reason };
        let bytes = serde_json::to_vec(self).map_or(0, |written| written.len());
        if bytes > limits.ask_bytes {
            let reason = format!("it has {bytes} bytes as JSON; `ask-bytes` allows {}", limits.ask_bytes);
            return Err(invalid("question", reason));
        }
        if self.prompt.trim().is_empty() {
            return Err(invalid("prompt", "it is empty".to_owned()));
        }
        validate_quorum(self.quorum, limits)?;
        if self.is_secret() && self.needed_answers() > 1 {
            // Answers of several would have to be stored to be compared.
            return Err(invalid("quorum", "a secret has none".to_owned()));
        }
        bounded(&self.schema)
            .and_then(|()| compiled(&self.schema))
            .map_err(|reason| invalid("schema", reason))?;
        match &self.default {
            Some(_) if self.is_secret() => Err(invalid("default", "a secret has none".to_owned())),
            Some(default) => self.check(default).map_err(|reason| invalid("default", reason)),
            None => Ok(()),
        }
    }

    /// Checks that an answer is not too large.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is.
    pub fn check_size(&self, value: &Value, limits: &Limits) -> Result<(), Error> {
        match self.input_read() {
            Some(_) if self.needed_answers() <= 1 => within(value, "input-bytes", limits.input_bytes),
            _ => within(value, "ask-bytes", limits.ask_bytes),
        }
    }

    /// Whether a value is an answer; else what is wrong with it, for people.
    ///
    /// # Errors
    /// The first few complaints of the schema, as text.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        /// How many complaints are passed on.
        const COMPLAINTS: usize = 3;
        let validator = compiled(&self.schema)?;
        let complaint = |error: ValidationError<'_>| match self.is_secret() {
            true => error.masked().to_string(),
            false => error.to_string(),
        };
        let complaints: Vec<String> = validator.iter_errors(value).take(COMPLAINTS).map(complaint).collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }

    /// What a person meant who typed this: the text itself, a yes or no, or JSON, whichever is an answer first.
    pub fn value_of(&self, text: &str) -> Value {
        let typed = Value::String(text.to_owned());
        let yes_or_no = match text.trim().to_lowercase().as_str() {
            "y" | "yes" => Some(Value::Bool(true)),
            "n" | "no" => Some(Value::Bool(false)),
            _ => None,
        };
        let parsed = serde_json::from_str::<Value>(text).ok();
        let meant = [Some(&typed), yes_or_no.as_ref(), parsed.as_ref()];
        let fits = meant.into_iter().flatten().find(|value| self.check(value).is_ok()).cloned();
        fits.or(parsed).unwrap_or(typed)
    }
}

fn any_text() -> Value {
    json!({ "type": "string" })
}

/// How many patterns a schema may have.
const PATTERNS: usize = 16;
/// How large the machine of one pattern may become, in bytes.
const PATTERN_BYTES: usize = 64 * 1024;

/// Whether a schema takes little time, whoever wrote it: what is checked against it is checked in the session's own task. A
/// schema that refers to itself may multiply, and each pattern is a machine of its own.
fn bounded(schema: &Value) -> Result<(), String> {
    let mut patterns = 0;
    let mut left = vec![schema];
    while let Some(part) = left.pop() {
        let Value::Object(members) = part else {
            left.extend(part.as_array().into_iter().flatten());
            continue;
        };
        for (name, member) in members {
            match name.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    return Err(format!("`{name}` is not taken here"));
                }
                "pattern" => patterns += 1,
                "patternProperties" => patterns += member.as_object().map_or(0, serde_json::Map::len),
                _ => {}
            }
            left.push(member);
        }
    }
    if patterns > PATTERNS {
        return Err(format!("it has {patterns} patterns; {PATTERNS} are taken"));
    }
    Ok(())
}

/// Patterns are matched in linear time, and nothing is fetched.
fn compiled(schema: &Value) -> Result<jsonschema::Validator, String> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    jsonschema::options()
        .with_pattern_options(patterns)
        .with_retriever(Nowhere)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Nothing is fetched: a schema must have all that it refers to.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("a schema may refer only to what is in it".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(schema: Value) -> Question {
        Question { schema, ..Question::text("?") }
    }

    fn refusal(question: &Question) -> String {
        question.validate(&Limits { ask_bytes: 400, ..Limits::default() }).unwrap_err().to_string()
    }

    #[test]
    fn what_a_person_types_is_read_as_the_schema_wants_it() {
        let read = |schema, text| question(schema).value_of(text);
        assert_eq!(read(json!({ "type": "string" }), "5"), json!("5"));
        assert_eq!(read(json!({ "type": "integer" }), "5"), json!(5));
        assert_eq!(read(json!({ "type": "boolean" }), "Yes"), json!(true));
        assert_eq!(read(json!({ "type": "boolean" }), "false"), json!(false));
        assert_eq!(read(json!({ "enum": ["no", "never"] }), "no"), json!("no"));
        assert_eq!(read(json!({ "type": "array" }), "[1, 2]"), json!([1, 2]));
        assert_eq!(read(json!({ "type": "integer" }), "five"), json!("five"), "and is refused later");
    }

    #[test]
    fn what_is_read_of_the_input_is_told_exactly_where_bytes_are_taken() {
        let told = |title: &str, bytes: &[u8]| {
            let question = question(json!({ "type": "string", "title": title }));
            question.input_answer(question.input_read().unwrap(), bytes)
        };
        let (line, rest) = (InputRead::Line.title_with_bytes(), InputRead::Rest.title_with_bytes());
        let lines = InputRead::Lines.title_with_bytes();
        for (title, bytes, expected) in [
            ("a line of the input", &b"a\r\n"[..], "a"),
            ("a line of the input", b"a", "a"),
            ("a line of the input", b"\xff\n", "\u{fffd}"),
            ("the rest of the input", b"a\nb\n", "a\nb\n"),
            (line, b"a\r\n", "a\r"),
            (line, b"\n", ""),
            (line, b"a", "\u{4}YQ=="),
            (line, b"\xff\n", "\u{4}/wo="),
            (line, b"\x04\n", "\u{4}BAo="),
            (lines, b"a\nb\n", "a\nb"),
            (lines, b"a\nb", "\u{4}YQpi"),
            (rest, b"a\nb", "a\nb"),
            (rest, b"", ""),
            (rest, b"\xff", "\u{4}/w=="),
        ] {
            assert_eq!(told(title, bytes), expected, "{title} {bytes:?}");
        }
    }

    #[test]
    fn a_question_that_nobody_could_answer_is_refused() {
        insta::assert_snapshot!(refusal(&Question::text(" ")), @"prompt is not valid: it is empty");
        insta::assert_snapshot!(refusal(&Question::text("x".repeat(400))), @"question is not valid: it has 440 bytes as JSON; `ask-bytes` allows 400");
        insta::assert_snapshot!(refusal(&question(json!({ "type": "text" }))), @r#"schema is not valid: "text" is not valid under any of the schemas listed in the 'anyOf' keyword"#);
        insta::assert_snapshot!(refusal(&question(json!({ "$ref": "https://example.org/s.json" }))), @"schema is not valid: `$ref` is not taken here");
        insta::assert_snapshot!(refusal(&question(json!({ "pattern": "(a{900}){900}" }))), @r#"schema is not valid: "(a{900}){900}" is not a "regex""#);
        insta::assert_snapshot!(refusal(&question(json!({ "allOf": vec![json!({ "pattern": "" }); 17] }))), @"schema is not valid: it has 17 patterns; 16 are taken");
        insta::assert_snapshot!(refusal(&question(json!({ "pattern": "(a" }))), @r#"schema is not valid: "(a" is not a "regex""#);
        let default = Question { default: Some(json!(5)), ..Question::text("?") };
        insta::assert_snapshot!(refusal(&default), @r#"default is not valid: 5 is not of type "string""#);
    }

    #[test]
    fn a_value_that_is_no_answer_is_told_why() {
        let question = question(json!({ "type": "object", "required": ["a", "b"] }));
        assert_eq!(question.check(&json!({ "a": 1, "b": 2 })), Ok(()));
        insta::assert_snapshot!(question.check(&json!({})).unwrap_err(), @r#""a" is a required property; "b" is a required property"#);
    }
}
