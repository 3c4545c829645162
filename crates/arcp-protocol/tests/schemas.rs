//! The JSON schemas of all messages, which are checked in: `MAINSTAY_UPDATE_SCHEMAS=1` writes them anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::path::Path;

use mainstay_arcp_protocol::{a, b};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The schema of an envelope with any of these messages.
fn document(
    title: &str,
    version: &str,
    fields: &Value,
    schemas: impl Fn(&mut SchemaGenerator) -> Vec<(&'static str, Schema)>,
) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let of_type = |(kind, payload): (&str, Schema)| json!({ "properties": { "type": { "const": kind }, "payload": payload } });
    let messages: Vec<_> = schemas(&mut generator).into_iter().map(of_type).collect();
    let mut properties: Map<String, Value> = fields.as_object().unwrap().clone();
    properties.insert("arcp".to_owned(), json!({ "const": version }));
    properties.insert("id".to_owned(), json!({ "type": "string", "minLength": 1, "maxLength": 256 }));
    properties.insert("type".to_owned(), json!({ "type": "string" }));
    properties.insert("payload".to_owned(), json!({ "type": "object" }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "required": ["arcp", "id", "type", "payload"],
        "properties": properties,
        "oneOf": messages,
        "$defs": generator.take_definitions(true),
    })
}

/// Compares a schema with the one that is checked in, and tries it with each example.
fn checked(file: &str, schema: &Value, vectors: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(file);
    let text = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    if std::env::var_os("MAINSTAY_UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "MAINSTAY_UPDATE_SCHEMAS=1 renews {file}");
    let validator = jsonschema::validator_for(schema).unwrap();
    for line in vectors.lines() {
        let mut example: Value = serde_json::from_str(line).unwrap();
        validator.validate(&example).unwrap_or_else(|error| panic!("{error}: {line}"));
        example["payload"] = json!([]);
        assert!(!validator.is_valid(&example), "{line}");
    }
}

#[test]
fn the_schema_of_dialect_a_is_what_the_types_say() {
    let text = json!({ "type": "string" });
    let names = [
        "source",
        "target",
        "session_id",
        "job_id",
        "stream_id",
        "subscription_id",
        "trace_id",
        "span_id",
        "parent_span_id",
        "correlation_id",
        "causation_id",
        "idempotency_key",
    ];
    let mut fields: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
    fields.insert("timestamp".to_owned(), json!({ "type": "string", "format": "date-time" }));
    fields.insert("priority".to_owned(), json!({ "enum": ["low", "normal", "high", "critical"] }));
    fields.insert("extensions".to_owned(), json!({ "type": "object" }));
    let schema = document("ARCP, dialect A", a::VERSION, &Value::Object(fields), a::Message::schemas);
    checked("arcp-a.json", &schema, include_str!("../vectors/a.jsonl"));
}

#[test]
fn the_schema_of_dialect_b_is_what_the_types_say() {
    let fields = json!({
        "session_id": { "type": "string" },
        "trace_id": { "type": "string" },
        "job_id": { "type": "string" },
        "event_seq": { "type": "integer", "minimum": 0 },
    });
    let schema = document("ARCP, dialect B", b::VERSION, &fields, b::Message::schemas);
    checked("arcp-b.json", &schema, include_str!("../vectors/b.jsonl"));
}
