//! The OpenAPI document of all endpoints, and the JSON Schemas of events and signals. Made of the types; `docs/schema` has them as files.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use mainstay_model::{CommandId, Event};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::bare::{self, Schema};
use super::daemon::HttpDaemon;
use super::endpoint::{Answer, Endpoint, Message, SchemaOf, schema_of};
use super::media::Media;
use super::portable;
use super::signals::{AnySignals, Frame};
use super::submission::Accepted;
use mainstay_gateway::problem::ProblemDocument;
use mainstay_protocol::view::SessionView;

/// Where OpenAPI has its schemas.
pub(super) const SCHEMAS: &str = "/components/schemas";

/// The port that a daemon has where nothing else is said.
const USUAL_PORT: u16 = 37749;

/// What may go wrong where a socket is asked for, besides.
const PROBLEMS_OF_SOCKETS: [(u16, &str); 2] =
    [(406, "`Accept` takes neither JSON nor BARE"), (426, "It is no request for a WebSocket")];

/// What may go wrong everywhere, with the statuses of `problem.rs`.
const PROBLEMS: [(u16, &str); 14] = [
    (400, "What was sent cannot be understood, or is not valid"),
    (401, "No token, or a wrong one"),
    (403, "Not permitted, or not from this machine"),
    (404, "There is no such thing for who asks"),
    (405, "The path takes other methods"),
    (408, "The body did not come in time"),
    (409, "The session's state, or another command, does not allow it; `offered` says what is possible"),
    (412, "The session has another version"),
    (413, "Larger than is read"),
    (415, "The body is neither JSON nor BARE"),
    (429, "More than is taken at once; `Retry-After` says when to try again, where that is known"),
    (500, "The store or the daemon failed"),
    (503, "What does the session's work is not there now"),
    (504, "It took longer than it may"),
];

/// Serves the OpenAPI document at `GET /openapi.json`.
pub(super) async fn get(State(daemon): State<HttpDaemon>) -> Json<Value> {
    Json(document(daemon.port))
}

/// Serves the BARE schema at `GET /mainstay.bare`.
pub(super) async fn bare_schema() -> String {
    bare::document()
}

/// The documents, by the names of their files in `docs/schema`.
pub fn schemas() -> BTreeMap<&'static str, Value> {
    let schema = |of: SchemaOf| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let root = of(&mut generator);
        let mut schema = root.to_value();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["$defs"] = Value::Object(generator.take_definitions(true));
        schema
    };
    BTreeMap::from([
        ("openapi.json", document(USUAL_PORT)),
        ("event.json", schema(schema_of::<Event>)),
        ("signals.json", schema(schema_of::<AnySignals<'static>>)),
    ])
}

/// The OpenAPI document of a daemon on this port.
fn document(port: u16) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = SCHEMAS.into();
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in super::routes::endpoints() {
        for path in endpoint.paths() {
            let operation = operation(&endpoint, &path, &mut generator);
            let methods = paths.entry(path).or_insert_with(|| json!({}));
            methods[endpoint.method.as_str().to_ascii_lowercase()] = operation;
        }
    }
    paths.insert("/openapi.json".to_owned(), json!({ "get": {
        "operationId": "get_openapi",
        "summary": "This document",
        "responses": { "200": { "description": "OpenAPI 3.1", "content": { "application/json": { "schema": { "type": "object" } } } } },
    } }));
    paths.insert("/mainstay.bare".to_owned(), json!({ "get": {
        "operationId": "get_bare",
        "summary": "The schema of what is said in BARE",
        "responses": { "200": { "description": "In BARE's own language", "content": { "text/plain": { "schema": { "type": "string" } } } } },
    } }));
    paths.insert("/metrics".to_owned(), json!({ "get": {
        "operationId": "get_metrics",
        "summary": "What the daemon is doing, in numbers, for Prometheus; for who may do everything",
        "responses": {
            "200": { "description": "In the text format of Prometheus", "content": { "text/plain": { "schema": { "type": "string" } } } },
            "401": { "$ref": "#/components/responses/problem401" },
            "403": { "$ref": "#/components/responses/problem403" },
        },
    } }));
    let problem = generator.subschema_for::<ProblemDocument>();
    let responses: Map<String, Value> = PROBLEMS
        .iter()
        .chain(&PROBLEMS_OF_SOCKETS)
        .map(|(status, description)| (format!("problem{status}"), problem_response(description, &problem)))
        .collect();
    let schemas = portable::portable(&generator.take_definitions(true));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mainstay",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Commands in, streams out. `mainstay explain CODE` says more of every error's code. What has `x-bare` is also said and answered as `application/bare`, as the type of that name in /mainstay.bare.",
        },
        "servers": [{ "url": format!("http://127.0.0.1:{port}") }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
            },
            "responses": responses,
            "schemas": schemas,
        },
    });
    portable::prune(&mut document);
    document
}

fn problem_response(description: &str, problem: &schemars::Schema) -> Value {
    json!({ "description": description, "content": { "application/problem+json": { "schema": problem } } })
}

fn operation(endpoint: &Endpoint, path: &str, generator: &mut SchemaGenerator) -> Value {
    let Endpoint { method, summary, query, body, answer, .. } = endpoint;
    let mut operation = json!({
        "operationId": operation_id(method.as_str(), path),
        "summary": summary,
        "parameters": parameters(endpoint, path, *query, generator),
        "responses": responses(*answer, generator),
    });
    if let Some(body) = body {
        let is_required = !required(&resolved(body.json, generator)).is_empty();
        operation["requestBody"] = with_content(json!({ "required": is_required }), *body, generator);
    }
    operation
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(['/', '-']).filter(|word| !word.is_empty());
    let words = words.map(|word| word.trim_matches(['{', '}']));
    std::iter::once(method.to_ascii_lowercase().as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(
    endpoint: &Endpoint,
    path: &str,
    query: Option<SchemaOf>,
    generator: &mut SchemaGenerator,
) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let parameter = |name: &str, place: &str, required: bool, schema: &Value, description: &str| json!({ "name": name, "in": place, "required": required, "schema": schema, "description": description });
    let mut parameters = Vec::new();
    for word in path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}')) {
        let (schema, what) = match word {
            "session" => (text.clone(), "Its id, the end of it, or its name"),
            "command" => (generator.subschema_for::<CommandId>().to_value(), "Its id"),
            "number" => (json!({ "type": "integer", "minimum": 0 }), "Its number"),
            _ => (text.clone(), "Its id, or the end of it"),
        };
        parameters.push(parameter(word, "path", true, &schema, what));
    }
    if endpoint.is_of_a_session && !path.starts_with("/sessions/") {
        let what = "The session: its id, the end of it, or its name; the most recent where it is left out";
        parameters.push(parameter("session", "query", false, &text, what));
    }
    if let Some(query) = query {
        parameters.extend(properties(query, generator).into_iter().map(|(name, schema, required)| {
            let description =
                schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            parameter(&name, "query", required, &schema, &description)
        }));
    }
    let cursor = json!({ "type": "integer", "minimum": 0 });
    match endpoint.answer {
        Answer::Command(_) | Answer::Session | Answer::Created(_) => {
            let wait =
                "`wait=N`: the outcome, where it comes within so many seconds; else it is answered at once";
            parameters.push(parameter("Prefer", "header", false, &text, wait));
            let key = "What the client calls what it wants done once";
            let schema = json!({ "type": "string", "maxLength": 256, "pattern": "^[!-~]+$" });
            parameters.push(parameter("Idempotency-Key", "header", false, &schema, key));
        }
        Answer::Stream(_) | Answer::Frames => {
            let what = "Goes on behind the event with this id";
            parameters.push(parameter("Last-Event-ID", "header", false, &cursor, what));
            parameters.push(parameter("after", "query", false, &cursor, what));
        }
        Answer::Json(_) | Answer::Text | Answer::Nothing => {}
    }
    parameters
}

/// The properties of an object's schema, and which of them must be there.
fn properties(of: SchemaOf, generator: &mut SchemaGenerator) -> Vec<(String, Value, bool)> {
    let schema = resolved(of, generator);
    let required = required(&schema);
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|required| required == name.as_str());
    let all = generator.definitions();
    let properties = properties.into_iter().map(|(name, schema)| {
        let is_required = is_required(&name);
        (name, portable::of_parameter(&schema, all), is_required)
    });
    properties.collect()
}

/// The schema of a type itself, where there is a reference to it.
fn resolved(of: SchemaOf, generator: &mut SchemaGenerator) -> Value {
    let schema = of(generator).to_value();
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    name.and_then(|name| generator.definitions().get(name)).cloned().unwrap_or(schema)
}

/// The names of the properties that must be there, of an object or of every variant of one.
fn required(schema: &Value) -> Vec<Value> {
    let own = schema["required"].as_array().cloned().unwrap_or_default();
    let variants = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    variants.iter().flat_map(required).chain(own).collect()
}

/// A request body or a response with the JSON schema of its message, and with `x-bare`, the name of its type in BARE. With BARE as a second
/// media type, generated clients would type each body and answer as a union with `unknown`.
fn with_content(
    mut holder: Value,
    Message { json, bare }: Message,
    generator: &mut SchemaGenerator,
) -> Value {
    holder["content"] = json!({ Media::JSON: { "schema": json(generator) } });
    if let Some(bare) = bare {
        holder["x-bare"] = bare(&mut Schema::default()).into();
    }
    holder
}

fn responses(answer: Answer, generator: &mut SchemaGenerator) -> Value {
    let mut said = |message: Message, description: &str| {
        with_content(json!({ "description": description }), message, generator)
    };
    let accepted = "Accepted; the events of the session behind `seq` tell of it";
    let more = if matches!(answer, Answer::Frames) { PROBLEMS_OF_SOCKETS.as_slice() } else { &[] };
    let mut responses: Map<String, Value> = PROBLEMS
        .iter()
        .chain(more)
        .map(|(status, _)| {
            (status.to_string(), json!({ "$ref": format!("#/components/responses/problem{status}") }))
        })
        .collect();
    match answer {
        Answer::Command(outcome) => {
            responses.insert("202".to_owned(), said(Message::of::<Accepted>(), accepted));
            responses.insert("200".to_owned(), said(outcome, "What came of it"));
        }
        Answer::Session => {
            responses.insert("202".to_owned(), said(Message::of::<Accepted>(), accepted));
            responses.insert("201".to_owned(), said(Message::of::<SessionView>(), "The session, ready"));
        }
        Answer::Json(schema) => {
            let content = json!({ Media::JSON: { "schema": schema(generator) } });
            let read = json!({ "description": "What was asked for", "content": content });
            responses.insert("200".to_owned(), read);
        }
        Answer::Created(schema) => {
            let content = json!({ Media::JSON: { "schema": schema(generator) } });
            responses.insert("201".to_owned(), json!({ "description": "It is there", "content": content }));
        }
        Answer::Text => {
            let content = json!({ "text/plain": { "schema": { "type": "string" } } });
            let read = json!({ "description": "What was asked for", "content": content });
            responses.insert("200".to_owned(), read);
        }
        Answer::Stream(schema) => {
            let schema = schema(generator);
            let described = "Events `datastar-patch-signals`, each with `signals` of this schema as its data";
            let stream = json!({
                "description": described,
                "content": { "text/event-stream": { "schema": { "type": "string" }, "x-signals": schema } },
            });
            responses.insert("200".to_owned(), stream);
        }
        Answer::Frames => {
            let frame = Message::of::<Frame<'static>>();
            let socket = json!({
                "description": "A WebSocket: text frames in JSON, or binary ones in BARE for who accepts that",
                "headers": { "Upgrade": { "schema": { "const": "websocket" } } },
                "x-frames": with_content(json!({}), frame, generator),
            });
            responses.insert("101".to_owned(), socket);
        }
        Answer::Nothing => {
            responses.insert("202".to_owned(), json!({ "description": "It is done" }));
        }
    }
    Value::Object(responses)
}
