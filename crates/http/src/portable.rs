//! Schemas as generators of clients take them. What is derived from the types is valid, and more than many generators read. Here a choice
//! between constants is an enumeration, each variant of a choice has all of its properties, and every object has a name of its own, by which
//! generated classes are called.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::openapi::SCHEMAS;

/// The same schemas, with more of them named.
pub(super) fn portable(schemas: &Map<String, Value>) -> Map<String, Value> {
    let simple = schemas.iter().map(|(name, schema)| (name.clone(), simplified(schema, schemas)));
    let mut named = Named { schemas: simple.collect() };
    for name in schemas.keys() {
        let Some(mut schema) = named.schemas.get(name).cloned() else { continue };
        named.name_children(&mut schema, name);
        named.schemas.insert(name.clone(), schema);
    }
    named.schemas
}

/// The schema of a parameter. It never allows null: a parameter without a value is left out.
pub(super) fn of_parameter(schema: &Value, schemas: &Map<String, Value>) -> Value {
    let mut schema = simplified(schema, schemas);
    let is_null = |value: &Value| value["type"] == "null";
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array)
        && let [one] = choices.iter().filter(|choice| !is_null(choice)).collect::<Vec<_>>()[..]
        && choices.len() > 1
    {
        let (one, description) = (one.clone(), schema.get("description").cloned());
        schema = one;
        if let Some(description) = description {
            schema["description"] = description;
        }
    }
    if let Some(types) = schema.get("type").and_then(Value::as_array)
        && let [one] = types.iter().filter(|one| *one != "null").collect::<Vec<_>>()[..]
    {
        schema["type"] = one.clone();
    }
    schema
}

/// Removes the schemas of a document that are not referenced.
pub(super) fn prune(document: &mut Value) {
    let mut reached = BTreeSet::new();
    let mut open = references(&document["paths"]);
    open.extend(references(&document["components"]["responses"]));
    while let Some(name) = open.pop() {
        if reached.insert(name.clone()) {
            open.extend(references(&document["components"]["schemas"][&name]));
        }
    }
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.retain(|name, _| reached.contains(name));
    }
}

/// The names of the schemas that something refers to.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).and_then(named_by).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The name of the schema that a reference is to.
fn named_by(reference: &str) -> Option<&str> {
    reference.strip_prefix('#')?.strip_prefix(SCHEMAS)?.strip_prefix('/')
}

/// A schema with enumerations, and without choices that share properties.
fn simplified(schema: &Value, all: &Map<String, Value>) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = with_own_properties(fields, all);
            let fields = fields.into_iter().map(|(name, field)| {
                // What a property is called says nothing of what it is.
                let is_map = ["properties", "$defs"].contains(&name.as_str());
                let simple = match field {
                    Value::Object(inner) if is_map => inner
                        .into_iter()
                        .map(|(name, schema)| (name, simplified(&schema, all)))
                        .collect::<Map<_, _>>()
                        .into(),
                    field => simplified(&field, all),
                };
                (name, simple)
            });
            Value::Object(with_null_apart(with_enumeration(without_default(fields.collect()))))
        }
        Value::Array(items) => items.iter().map(|item| simplified(item, all)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// Moves a default into the description: some generators make a property that has the keyword `default` a required one.
fn without_default(mut fields: Map<String, Value>) -> Map<String, Value> {
    let default = fields.remove("default").filter(|default| !default.is_null());
    if let Some(default) = default {
        let words = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        fields.insert("description".to_owned(), format!("{words} By default `{default}`.").trim().into());
    }
    fields
}

/// A choice beside properties, as a choice between objects that have them.
fn with_own_properties(fields: &Map<String, Value>, all: &Map<String, Value>) -> Map<String, Value> {
    let is_choice = fields.contains_key("oneOf") || fields.contains_key("$ref");
    if !is_choice || !fields.contains_key("properties") {
        return fields.clone();
    }
    let variants = variants(fields, all);
    if let [only] = &variants[..] {
        return only.clone();
    }
    let mut choice = Map::new();
    choice.insert("oneOf".to_owned(), variants.into_iter().map(Value::Object).collect());
    choice.extend(fields.get("description").map(|words| ("description".to_owned(), words.clone())));
    choice
}

/// The objects that a schema lets one choose from, each with all of its properties.
fn variants(fields: &Map<String, Value>, all: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let referred =
        fields.get("$ref").and_then(Value::as_str).and_then(named_by).and_then(|name| all.get(name));
    let choices = match (fields.get("oneOf").and_then(Value::as_array), referred) {
        (Some(choices), _) => choices.iter().collect(),
        (None, Some(referred)) => vec![referred],
        (None, None) => return vec![fields.clone()],
    };
    let inner = choices.into_iter().filter_map(Value::as_object).flat_map(|choice| variants(choice, all));
    inner.map(|variant| merged(variant, fields)).collect()
}

/// A variant with the properties that stand beside the choice.
fn merged(mut variant: Map<String, Value>, beside: &Map<String, Value>) -> Map<String, Value> {
    let is_closed = |fields: &Map<String, Value>| {
        ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|name| fields.get(*name) == Some(&Value::Bool(false)))
    };
    if is_closed(&variant) || is_closed(beside) {
        variant.remove("unevaluatedProperties");
        variant.insert("additionalProperties".to_owned(), false.into());
    }
    let empty = Map::new();
    let properties = beside.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if let Some(own) = variant.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
        for (name, schema) in properties {
            own.entry(name).or_insert_with(|| schema.clone());
        }
    }
    let required = beside.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(own) = variant.entry("required").or_insert_with(|| json!([])).as_array_mut() {
        let more: Vec<Value> = required.into_iter().filter(|name| !own.contains(name)).collect();
        own.extend(more);
    }
    variant.insert("type".to_owned(), "object".into());
    variant
}

/// Constants that may be chosen, as an enumeration; beside it stands what else may be.
fn with_enumeration(mut fields: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(choices)) = fields.remove("oneOf") else { return fields };
    // A choice among choices is one between all of them.
    let choices: Vec<Value> = choices
        .into_iter()
        .flat_map(|choice| match choice.get("oneOf") {
            Some(Value::Array(inner)) => inner.clone(),
            Some(_) | None => vec![choice],
        })
        .collect();
    let (constants, others): (Vec<_>, Vec<_>) =
        choices.into_iter().partition(|choice| choice["const"].is_string());
    if constants.is_empty() {
        fields.insert("oneOf".to_owned(), others.into());
        return fields;
    }
    let lines = constants.iter().filter_map(|constant| {
        Some(format!("- `{}`: {}", constant["const"].as_str()?, constant["description"].as_str()?))
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    let values: Value = constants.iter().map(|constant| constant["const"].clone()).collect();
    if others.is_empty() {
        let words = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        let words =
            [words, &lines].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        fields.insert("description".to_owned(), words.into());
        fields.insert("type".to_owned(), "string".into());
        fields.insert("enum".to_owned(), values);
        return fields;
    }
    let enumeration = json!({ "type": "string", "enum": values, "description": lines });
    fields.insert("oneOf".to_owned(), std::iter::once(enumeration).chain(others).collect());
    fields
}

/// An object or none, as a choice between the two.
fn with_null_apart(mut fields: Map<String, Value>) -> Map<String, Value> {
    if fields.get("type") != Some(&json!(["object", "null"])) {
        return fields;
    }
    let description = fields.remove("description");
    fields.insert("type".to_owned(), "object".into());
    let mut choice = Map::new();
    choice.insert("anyOf".to_owned(), json!([fields, { "type": "null" }]));
    choice.extend(description.map(|words| ("description".to_owned(), words)));
    choice
}

/// The schemas of a document, to which those are added that had no name.
struct Named {
    schemas: Map<String, Value>,
}

impl Named {
    /// Names the objects in a schema of this name.
    fn name_children(&mut self, schema: &mut Value, name: &str) {
        let Some(fields) = schema.as_object_mut() else { return };
        if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
            for (property, schema) in properties {
                self.name(schema, &format!("{name}{}", capitalised(property)));
            }
        }
        for (keyword, role) in [("items", "Item"), ("additionalProperties", "Value")] {
            if let Some(schema) = fields.get_mut(keyword) {
                self.name(schema, &format!("{name}{role}"));
            }
        }
        for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
            for variant in fields.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
                let words = variant_words(variant);
                let is_taken = words.is_empty() && self.schemas.contains_key(name);
                let ending = match (is_taken, variant["enum"].is_array()) {
                    (false, _) => "",
                    (true, true) => "Name",
                    (true, false) => "Object",
                };
                let name = format!("{words}{name}{ending}");
                self.name(variant, &name);
            }
        }
    }

    /// Names the objects in a schema, and it itself where it is one; what stands there refers to it then.
    fn name(&mut self, schema: &mut Value, name: &str) {
        self.name_children(schema, name);
        let is_named = schema["type"] == "object" || schema["enum"].is_array();
        if !is_named {
            return;
        }
        let mut free = name.to_owned();
        let mut number = 2;
        while self.schemas.get(&free).is_some_and(|other| other != schema) {
            free = format!("{name}{number}");
            number += 1;
        }
        let reference = json!({ "$ref": format!("#{SCHEMAS}/{free}") });
        self.schemas.insert(free, std::mem::replace(schema, reference));
    }
}

/// The words that tell a variant from the others: its constants, or the name of its only required property.
fn variant_words(variant: &Value) -> String {
    let Some(properties) = variant["properties"].as_object() else { return String::new() };
    let constants = properties.values().filter_map(|property| property["const"].as_str());
    let words: String = constants.map(capitalised).collect();
    match variant["required"].as_array().map(Vec::as_slice) {
        Some([only]) if words.is_empty() => only.as_str().map(capitalised).unwrap_or_default(),
        Some(_) | None => words,
    }
}

/// Words as the name of a type has them.
fn capitalised(words: &str) -> String {
    let parts = words.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (first, rest) = part.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schemas: Value) -> Value {
        Value::Object(portable(schemas.as_object().unwrap()))
    }

    #[test]
    fn constants_are_an_enumeration_also_beside_objects() {
        let constants = json!([
            { "const": "ready", "type": "string", "description": "Waits." },
            { "const": "off", "type": "string" },
        ]);
        let mixed = json!([constants[0], { "type": "object", "required": ["waiting"], "properties": { "waiting": {} } }]);
        let made = of(json!({
            "State": { "description": "How it is.", "oneOf": constants },
            "Mixed": { "oneOf": mixed },
        }));
        let state = json!({ "description": "How it is.\n\n- `ready`: Waits.", "type": "string", "enum": ["ready", "off"] });
        assert_eq!(made["State"], state);
        let choices = json!([{ "$ref": "#/components/schemas/MixedName" }, { "$ref": "#/components/schemas/WaitingMixed" }]);
        assert_eq!(made["Mixed"]["oneOf"], choices);
        assert_eq!(made["MixedName"]["enum"], json!(["ready"]));
    }

    #[test]
    fn variants_have_the_properties_beside_them_and_names_of_their_own() {
        let tagged = |tag: &str| json!({ "type": "object", "required": ["by"], "properties": { "by": { "type": "string", "const": tag } } });
        let made = of(json!({
            "Work": { "oneOf": [tagged("turn"), tagged("shell-run")] },
            "Command": {
                "description": "What is asked.",
                "$ref": "#/components/schemas/Work",
                "properties": { "command": { "const": "work" } },
                "required": ["command"],
                "unevaluatedProperties": false,
            },
        }));
        let names = [
            json!({ "$ref": "#/components/schemas/TurnWorkCommand" }),
            json!({ "$ref": "#/components/schemas/ShellRunWorkCommand" }),
        ];
        assert_eq!(made["Command"], json!({ "description": "What is asked.", "oneOf": names }));
        let turn = json!({
            "type": "object", "required": ["by", "command"], "additionalProperties": false,
            "properties": { "by": { "type": "string", "const": "turn" }, "command": { "const": "work" } },
        });
        assert_eq!(made["TurnWorkCommand"], turn);
    }

    #[test]
    fn objects_within_have_names_and_those_that_nothing_leads_to_are_left_out() {
        let made = of(json!({
            "Page": { "type": "object", "properties": {
                "head": { "type": ["object", "null"], "description": "Its head.", "properties": { "title": { "type": "string" } } },
                "type": { "type": "array", "items": { "type": "object", "additionalProperties": { "type": "string" } } },
            } },
        }));
        let head = json!({ "anyOf": [{ "$ref": "#/components/schemas/PageHead" }, { "type": "null" }], "description": "Its head." });
        assert_eq!(made["Page"]["properties"]["head"], head);
        assert_eq!(made["Page"]["properties"]["type"]["items"]["$ref"], "#/components/schemas/PageTypeItem");
        let mut document = json!({ "paths": { "/": { "$ref": "#/components/schemas/PageHead" } }, "components": { "schemas": made } });
        prune(&mut document);
        let left: Vec<_> = document["components"]["schemas"].as_object().unwrap().keys().collect();
        assert_eq!(left, ["PageHead"]);
    }

    #[test]
    fn a_default_is_said_in_words() {
        let made = of(json!({
            "Fork": { "type": "object", "properties": {
                "name": { "type": ["string", "null"], "default": null },
                "deep": { "type": "boolean", "default": false, "description": "With all." },
                "default": { "type": "string" },
            } },
        }));
        let properties = json!({
            "name": { "type": ["string", "null"] },
            "deep": { "type": "boolean", "description": "With all. By default `false`." },
            "default": { "type": "string" },
        });
        assert_eq!(made["Fork"]["properties"], properties);
    }

    #[test]
    fn a_parameter_is_left_out_and_never_null() {
        let none = Map::new();
        let of = |schema: Value| of_parameter(&schema, &none);
        assert_eq!(of(json!({ "type": ["string", "null"] })), json!({ "type": "string" }));
        let choice = json!({ "anyOf": [{ "$ref": "#/a" }, { "type": "null" }], "description": "Which." });
        assert_eq!(of(choice), json!({ "$ref": "#/a", "description": "Which." }));
    }
}
