//! The tools that the suite calls by name, and what stands behind each.

use std::sync::Arc;

use mainstay_model::Question;
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

use crate::kernel::Step;

/// A picture of one red pixel, as Base64.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// How long work takes that is to become a task, in milliseconds: longer than [`crate::served::TASK_AFTER_MS`].
const LONG_MS: u64 = 1_500;

/// What stands behind a tool.
pub(crate) enum Behind {
    /// Code that the product runs in a session of its own: its answer is the product's.
    Code(Vec<Step>),
    /// Like code, only for clients that know tasks.
    Task(Vec<Step>),
    /// A task that fails behind the product's back.
    BrokenTask(Vec<Step>),
    /// The product makes a session, and starts it anew.
    Restart,
    /// The tool answers with this content.
    Content(Value),
    /// What the client's model says, asked over its session.
    Sampling,
    /// What the client is asked by an answer. The product asks people only, so this is the fixture's.
    Input(fn(&Value) -> Value),
    /// Nothing, for clients that let models be asked.
    NeedsSampling,
}

/// One tool of the fixtures.
pub(crate) struct Fixture {
    name: &'static str,
    schema: Value,
    behind: fn(&JsonObject) -> Behind,
}

impl Fixture {
    /// As clients see it.
    pub(crate) fn listed(&self) -> Tool {
        let Value::Object(schema) = self.schema.clone() else { panic!("{} takes an object", self.name) };
        Tool::new(self.name, "The conformance suite calls it.", Arc::new(schema))
    }

    /// What stands behind it, with these arguments.
    pub(crate) fn behind(&self, arguments: &JsonObject) -> Behind {
        (self.behind)(arguments)
    }
}

/// The tool with a name.
pub(crate) fn named(name: &str) -> Option<Fixture> {
    all().into_iter().find(|tool| tool.name == name)
}

/// Returns every tool of the fixtures.
pub(crate) fn all() -> Vec<Fixture> {
    let mut tools = contents();
    tools.extend(evals());
    tools.extend(inputs());
    tools.extend(tasks());
    tools
}

fn plain(name: &'static str, behind: fn(&JsonObject) -> Behind) -> Fixture {
    Fixture { name, schema: json!({ "type": "object" }), behind }
}

fn with(name: &'static str, properties: Value, behind: fn(&JsonObject) -> Behind) -> Fixture {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    Fixture {
        name,
        schema: json!({ "type": "object", "properties": properties, "required": required }),
        behind,
    }
}

fn contents() -> Vec<Fixture> {
    vec![
        plain("test_audio_content", |_| {
            Behind::Content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]))
        }),
        plain("test_embedded_resource", |_| {
            let resource = json!({
                "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
            });
            Behind::Content(json!([{ "type": "resource", "resource": resource }]))
        }),
        plain("test_multiple_content_types", |_| {
            let resource = json!({
                "uri": "test://mixed-content-resource", "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}",
            });
            Behind::Content(json!([
                { "type": "text", "text": "Multiple content types test:" },
                { "type": "image", "data": PNG, "mimeType": "image/png" },
                { "type": "resource", "resource": resource },
            ]))
        }),
        with("greet", json!({ "name": { "type": "string" } }), |arguments| {
            let name = arguments["name"].as_str().unwrap_or_default();
            Behind::Content(json!([{ "type": "text", "text": format!("Hello, {name}!") }]))
        }),
        with(
            "test_custom_headers",
            json!({ "region": { "type": "string", "x-mcp-header": "Region" } }),
            |_| Behind::Content(json!([{ "type": "text", "text": "done" }])),
        ),
        Fixture {
            name: "json_schema_2020_12_tool",
            schema: json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": { "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                } },
                "properties": {
                    "name": { "type": "string" },
                    "address": { "$ref": "#/$defs/address" },
                    "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                    "phone": { "type": "string" },
                    "email": { "type": "string" },
                },
                "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
                "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
                "then": { "required": ["phone"] },
                "else": { "required": ["email"] },
                "additionalProperties": false,
            }),
            behind: |_| Behind::Content(json!([])),
        },
    ]
}

fn evals() -> Vec<Fixture> {
    vec![
        plain("test_simple_text", |_| {
            Behind::Code(vec![Step::Print("This is a simple text response for testing.".to_owned())])
        }),
        plain("test_image_content", |_| Behind::Code(vec![Step::Show(json!({ "image/png": PNG }))])),
        plain("test_error_handling", |_| {
            Behind::Code(vec![Step::Raise("This tool intentionally returns an error for testing".to_owned())])
        }),
        plain("test_tool_with_progress", |_| {
            let shown = |percent: u32| Step::Show(json!({ "text/plain": format!("{percent} %") }));
            Behind::Code([0, 50, 100].map(shown).into())
        }),
        plain("test_reconnection", |_| Behind::Code(vec![Step::Print("done".to_owned())])),
        plain("test_tool_with_logging", |_| Behind::Restart),
        plain("test_logging_tool", |_| Behind::Restart),
        plain("test_missing_capability", |_| Behind::NeedsSampling),
        with("test_sampling", json!({ "prompt": { "type": "string" } }), |_| Behind::Sampling),
        with("test_elicitation", json!({ "message": { "type": "string" } }), |arguments| {
            let prompt = arguments["message"].as_str().unwrap_or_default();
            let text = json!({ "type": "string" });
            asks(&[(prompt, json!({ "username": text, "email": text }))])
        }),
        plain("test_streaming_elicitation", |_| asks(&[("What is your name?", name())])),
        plain("test_elicitation_sep1034_defaults", |_| {
            asks(&[(
                "Who is it?",
                json!({
                    "name": { "type": "string", "default": "John Doe" },
                    "age": { "type": "integer", "default": 30 },
                    "score": { "type": "number", "default": 95.5 },
                    "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                    "verified": { "type": "boolean", "default": true },
                }),
            )])
        }),
        plain("test_elicitation_sep1330_enums", |_| {
            let titled = json!([
                { "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" },
                { "const": "value3", "title": "Third" },
            ]);
            let options = json!(["option1", "option2", "option3"]);
            asks(&[(
                "Which?",
                json!({
                    "untitledSingle": { "type": "string", "enum": options },
                    "titledSingle": { "type": "string", "oneOf": titled },
                    "legacyEnum": {
                        "type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"],
                    },
                    "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                    "titledMulti": { "type": "array", "items": { "anyOf": titled } },
                }),
            )])
        }),
        plain("test_input_required_result_request_state", |_| asks(&[("Please confirm", confirmed("ok"))])),
        plain("test_input_required_result_tampered_state", |_| asks(&[("Please confirm", confirmed("ok"))])),
        plain("test_input_required_result_multi_round", |_| {
            let color = json!({ "color": { "type": "string" } });
            asks(&[("Step 1: What is your name?", name()), ("Step 2: What is your favorite color?", color)])
        }),
    ]
}

fn inputs() -> Vec<Fixture> {
    vec![
        plain("test_input_required_result_elicitation", |_| {
            Behind::Input(|_| json!({ "user_name": asked_name() }))
        }),
        plain("test_input_required_result_sampling", |_| {
            Behind::Input(|_| json!({ "capital_question": sampling("What is the capital of France?") }))
        }),
        plain("test_input_required_result_list_roots", |_| {
            Behind::Input(|_| json!({ "client_roots": { "method": "roots/list", "params": {} } }))
        }),
        plain("test_input_required_result_multiple_inputs", |_| {
            Behind::Input(|_| {
                json!({
                    "user_name": asked_name(),
                    "greeting": sampling("Generate a greeting"),
                    "client_roots": { "method": "roots/list", "params": {} },
                })
            })
        }),
        plain("test_input_required_result_capabilities", |_| {
            Behind::Input(|capabilities| {
                let mut requests = JsonObject::new();
                for (capability, request) in
                    [("elicitation", asked_name()), ("sampling", sampling("Anything"))]
                {
                    if capabilities.get(capability).is_some() {
                        requests.insert(capability.to_owned(), request);
                    }
                }
                Value::Object(requests)
            })
        }),
    ]
}

fn tasks() -> Vec<Fixture> {
    let text = || json!({ "type": "string" });
    vec![
        Fixture {
            name: "slow_compute",
            schema: json!({ "type": "object", "properties": { "seconds": { "type": "integer" }, "label": text() } }),
            behind: |arguments| {
                let seconds = arguments.get("seconds").and_then(Value::as_u64).unwrap_or_default();
                Behind::Code(vec![Step::Take(seconds * 1_000), Step::Print("computed".to_owned())])
            },
        },
        plain("failing_job", |_| Behind::Task(vec![Step::Take(1_000), Step::Raise("it failed".to_owned())])),
        plain("protocol_error_job", |_| Behind::BrokenTask(vec![Step::Take(LONG_MS)])),
        with("confirm_delete", json!({ "filename": text() }), |_| {
            Behind::Task(vec![Step::Take(LONG_MS), ask(&[("Delete it?", confirmed("confirm"))])])
        }),
        plain("multi_input", |_| {
            let questions = [("Who?", name()), ("Sure?", confirmed("confirm"))];
            Behind::Task(vec![Step::Take(LONG_MS), ask(&questions)])
        }),
        plain("test_tool_with_task", |_| {
            Behind::Task(vec![ask(&[("What is your name?", name())]), Step::Take(LONG_MS)])
        }),
    ]
}

/// Code that asks one after the other.
fn asks(questions: &[(&str, Value)]) -> Behind {
    Behind::Code(questions.iter().map(|question| ask(std::slice::from_ref(question))).collect())
}

/// Asks all of this at once, each with these members.
fn ask(questions: &[(&str, Value)]) -> Step {
    let question = |(prompt, properties): &(&str, Value)| {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Question { schema, ..Question::text(*prompt) }
    };
    Step::Ask(questions.iter().map(question).collect())
}

fn name() -> Value {
    json!({ "name": { "type": "string" } })
}

fn confirmed(member: &str) -> Value {
    json!({ member: { "type": "boolean" } })
}

/// Asks a person for a name.
fn asked_name() -> Value {
    form("What is your name?", "name")
}

/// Asks a person for a text.
pub(crate) fn form(message: &str, member: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { member: { "type": "string" } }, "required": [member] });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

/// Asks the client's model for a completion.
pub(crate) fn sampling(prompt: &str) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } })
}
