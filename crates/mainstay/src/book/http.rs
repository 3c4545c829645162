//! `docs/reference/http.md`, generated from the document of the HTTP API.

use serde_json::Value;

use super::{GENERATED, assert_is_page, escaped};

/// The path below which all endpoints of one session are.
const OF_SESSION: &str = "/sessions/{session}";

#[test]
fn the_reference_of_http_is_what_its_document_says() {
    let documents = mainstay_http::schemas();
    let (_, document) = documents.into_iter().find(|(name, _)| *name == "openapi.json").unwrap();
    let mut page = format!("{GENERATED}# HTTP endpoints\n\n{INTRODUCTION}");
    let paths = document["paths"].as_object().unwrap();
    for (path, methods) in paths {
        let is_repeated = path.strip_prefix(OF_SESSION).is_some_and(|short| paths.contains_key(short));
        if !is_repeated {
            for (method, operation) in methods.as_object().unwrap() {
                page.push_str(&row(&document, &method.to_uppercase(), path, operation));
            }
        }
    }
    assert_is_page("reference/http.md", &page);
}

const INTRODUCTION: &str = "\
[HTTP: editors and scripts](../how-to/http.md) says how requests, streams and errors work. The types of bodies and answers are in
[openapi.json](../schema/openapi.json), which the daemon also serves.

Every path that concerns one session also exists below `/sessions/{session}`: `/exec` is `/sessions/{session}/exec`. In the short form, the query parameter
`session` names the session; without it, the most recent one is meant. A parameter or member with `?` is optional. Every command also takes the headers `Prefer` and `Idempotency-Key`.

| request | what it does | query | body |
|---|---|---|---|
";

fn row(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let query =
        parameters.iter().filter(|parameter| parameter["in"] == "query" && parameter["name"] != "session");
    let query: Vec<String> =
        query.map(|parameter| member(&parameter["name"], parameter["required"] == true)).collect();
    let body = resolved(document, &operation["requestBody"]["content"]["application/json"]["schema"]);
    let members = body.map(|body| members(document, body)).unwrap_or_default();
    let summary = escaped(operation["summary"].as_str().unwrap()).replace('|', "\\|");
    format!("| `{method} {path}` | {summary} | {} | {} |\n", query.join(", "), members.join(", "))
}

/// The members of a body, those of each of its forms.
fn members(document: &Value, schema: &Value) -> Vec<String> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<String> = own
        .map(|(name, _)| {
            let name = Value::from(name.as_str());
            member(&name, required.contains(&name))
        })
        .collect();
    for forms in ["allOf", "oneOf", "anyOf"].iter().filter_map(|forms| schema[forms].as_array()) {
        for form in forms.iter().filter_map(|form| resolved(document, form)) {
            for member in members(document, form) {
                if !all.contains(&member) {
                    all.push(member);
                }
            }
        }
    }
    all
}

fn member(name: &Value, is_required: bool) -> String {
    format!("`{}{}`", name.as_str().unwrap(), if is_required { "" } else { "?" })
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    match schema["$ref"].as_str() {
        Some(path) => document.pointer(path.trim_start_matches('#')),
        None => schema.is_object().then_some(schema),
    }
}
