//! The schemas of arguments and answers, without what a model has to pay for and learns nothing from.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::bounds::LONGEST_WAIT;
use super::needs::{WAIT, Waits};
use super::tool::Tool;

/// Keywords that only matter to code generators.
const NOISE: [&str; 4] = ["$schema", "title", "format", "default"];

/// The schema of a tool's arguments.
pub(super) fn of_arguments<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = root::<T>(SchemaSettings::draft2020_12());
    schema.remove("description");
    // Some clients refuse a call by it themselves, in words that name nothing; here it is refused with the nearest name.
    schema.remove("additionalProperties");
    each(&mut schema, &say_bounds);
    // Some models' vendors refuse a schema without it.
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    Arc::new(schema)
}

/// The schema of a tool's arguments, with the one that its server takes.
pub(super) fn of_tool<T: Tool>() -> Arc<JsonObject> {
    let mut schema = of_arguments::<T>();
    if T::WAITS == Waits::AsAsked
        && let Some(Value::Object(known)) = Arc::make_mut(&mut schema).get_mut("properties")
    {
        let wait = json!({
            "type": "integer",
            "maximum": LONGEST_WAIT,
            "description": "Seconds; then get_result waits on.",
        });
        known.insert(WAIT.to_owned(), wait);
    }
    schema
}

/// The schema of a tool's answers. Nothing in it is required: clients hold an answer that is an error to it too.
pub(super) fn of_answer<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = root::<T>(SchemaSettings::draft2020_12().for_serialize());
    each(&mut schema, &|schema| {
        schema.remove("required");
        schema.remove("description");
    });
    Arc::new(schema)
}

fn root<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
    let mut schema = match generator.into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    each(&mut schema, &|schema| {
        schema.retain(|keyword, _| !NOISE.contains(&keyword.as_str()));
        leave_out_null(schema);
        // Every number here is from nought on.
        if schema.get("minimum").is_some_and(|least| *least == 0) {
            schema.remove("minimum");
        }
    });
    schema
}

/// Says in the description of a number what its bounds are: some clients show models no others.
fn say_bounds(schema: &mut JsonObject) {
    let bound = |keyword| schema.get(keyword).and_then(Value::as_u64);
    let words = match (bound("minimum"), bound("maximum")) {
        (_, None) => return,
        (None, Some(most)) => format!("At most {most}."),
        (Some(least), Some(most)) => format!("{least} to {most}."),
    };
    let described = match schema.get("description").and_then(Value::as_str) {
        Some(description) => format!("{description} {words}"),
        None => words,
    };
    schema.insert("description".to_owned(), described.into());
}

/// An absent member and a null one are the same here, and only the first is advertised.
fn leave_out_null(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [kind] = types.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(choice)] = choices.as_slice() {
            let choice = choice.clone();
            schema.remove("anyOf");
            schema.extend(choice);
        }
    }
}

/// Changes a schema and those of its members and items, and of members with any name.
fn each(schema: &mut JsonObject, change: &impl Fn(&mut JsonObject)) {
    change(schema);
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        members.values_mut().for_each(without_true);
        members.values_mut().filter_map(Value::as_object_mut).for_each(|member| each(member, change));
    }
    for further in ["items", "additionalProperties"] {
        if let Some(Value::Object(further)) = schema.get_mut(further) {
            each(further, change);
        }
    }
}

/// What takes anything is `true` or empty, and the protocol's own schema knows members of an answer as objects only.
fn without_true(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = Value::Object(JsonObject::new());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An example whose words are not for models.
    #[derive(JsonSchema)]
    #[schemars(rename_all = "camelCase")]
    #[expect(dead_code)]
    struct Example {
        session_id: Option<String>,
        /// How many there are of it.
        title: u32,
        inner: Option<Vec<Inner>>,
        one: Option<Inner>,
        any: Value,
        counts: BTreeMap<String, u64>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code)]
    struct Inner {
        /// The name of the inner value.
        name: String,
    }

    #[test]
    fn bounds_stand_in_descriptions_and_further_members_are_not_forbidden() {
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[expect(dead_code)]
        struct Bounded {
            /// How many events to return.
            #[schemars(range(min = 1, max = 9))]
            count: u32,
            #[schemars(range(min = 0, max = 7))]
            wait: u32,
        }
        let expected = json!({
            "type": "object",
            "required": ["count", "wait"],
            "properties": {
                "count": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many events to return. 1 to 9."},
                "wait": {"type": "integer", "maximum": 7, "description": "At most 7."},
            },
        });
        assert_eq!(Value::Object((*of_arguments::<Bounded>()).clone()), expected);
    }

    #[test]
    fn arguments_keep_what_says_how_to_call() {
        let inner = json!({"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "description": "The name of the inner value."}}});
        let expected = json!({
            "type": "object",
            "required": ["title", "any", "counts"],
            "properties": {
                "sessionId": {"type": "string"},
                "title": {"type": "integer", "description": "How many there are of it."},
                "inner": {"type": "array", "items": inner},
                "one": inner,
                "any": {},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        });
        assert_eq!(Value::Object((*of_arguments::<Example>()).clone()), expected);
    }

    #[test]
    fn answers_keep_names_and_types_alone() {
        let inner = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let expected = json!({
            "type": "object",
            "properties": {
                "sessionId": {"type": "string"},
                "title": {"type": "integer"},
                "inner": {"type": "array", "items": inner},
                "one": inner,
                "any": {},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        });
        assert_eq!(Value::Object((*of_answer::<Example>()).clone()), expected);
    }
}
