//! The OpenRPC document of the local socket's methods, made of their types. `rpc.discover` answers with it, and `docs/schema/openrpc.json` is
//! a copy. Source: OpenRPC 1.3, "OpenRPC Object" and "Service Discovery Method".

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::operation::OperationDescription;
use crate::operations;

/// Where the document has the schemas that several methods share.
const SCHEMAS: &str = "/components/schemas";

/// The document of all methods.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.definitions_path = SCHEMAS.into();
    let mut generator = settings.into_generator();
    let methods: Vec<Value> = operations::all().map(|operation| method(operation, &mut generator)).collect();
    let schemas = generator.take_definitions(true);
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "Mainstay",
            "description": "What a client can ask the daemon on the local socket, as JSON-RPC 2.0. `client/attach` comes first.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "methods": methods,
        "components": { "schemas": schemas },
    })
}

fn method(operation: &OperationDescription, generator: &mut SchemaGenerator) -> Value {
    let params = (operation.request)(generator);
    let result = (operation.answer)(generator);
    json!({
        "name": operation.id.as_str(),
        "description": params.get("description"),
        "paramStructure": "by-name",
        "params": parameters(&params),
        "result": { "name": "result", "schema": result },
    })
}

/// The fields of an object, each as a parameter.
fn parameters(params: &Schema) -> Vec<Value> {
    let required: BTreeSet<&str> = params
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields = params.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(name, schema)| {
            json!({ "name": name, "required": required.contains(name.as_str()), "schema": schema })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set to write the file anew.
    const UPDATE: &str = "MAINSTAY_UPDATE_SCHEMAS";

    #[test]
    fn the_document_is_the_one_in_docs() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/openrpc.json");
        let written = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(path, &written).unwrap();
        }
        let hint = format!("`{UPDATE}=1 cargo xtask test -- -p mainstay-protocol` writes it");
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == written,
            "docs/schema/openrpc.json is out of date; {hint}"
        );
    }

    #[test]
    fn every_method_is_described_once_and_every_reference_leads_to_a_schema() {
        let document = document();
        let names: Vec<&str> = document["methods"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|method| method["name"].as_str())
            .collect();
        assert_eq!(names, operations::all().map(|operation| operation.id.as_str()).collect::<Vec<_>>());
        assert!(
            document["methods"].as_array().unwrap().iter().all(|method| method["description"].is_string())
        );
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let pointer = reference.split('"').next().unwrap().strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
        }
    }
}
