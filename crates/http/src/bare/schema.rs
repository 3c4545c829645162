//! The schema, in BARE's own language: what the types say of themselves, with the comments that the JSON Schema has.

use schemars::JsonSchema;
use serde_json::Value;

use super::{Fields, Shape};

/// What is named so far, in an order in which each comes behind what it is made of.
#[derive(Default)]
pub(crate) struct Schema {
    definitions: Vec<(String, Definition)>,
}

struct Definition {
    about: String,
    is: String,
}

/// A field of a struct.
pub(crate) struct Field {
    name: String,
    is: String,
}

impl Field {
    pub(super) fn new(called: &str, is: String) -> Self {
        Self { name: camel(called), is }
    }
}

/// A field whose type is told by what reads it.
pub(crate) fn field<T, F: Shape>(called: &str, _: fn(&T) -> &F, schema: &mut Schema) -> Field {
    Field::new(called, F::shape(schema))
}

/// The fields of a field.
pub(crate) fn flattened<T, F: Fields>(_: fn(&T) -> &F, schema: &mut Schema) -> Vec<Field> {
    F::fields(schema)
}

impl Schema {
    /// Adds a definition, if the name is not yet defined.
    pub(super) fn define(&mut self, name: &str, about: &str, is: impl FnOnce(&mut Self) -> String) -> String {
        if !self.definitions.iter().any(|(other, _)| other == name) {
            let is = is(self);
            self.definitions.push((name.to_owned(), Definition { about: about.to_owned(), is }));
        }
        name.to_owned()
    }

    pub(crate) fn define_struct<T: Fields + JsonSchema>(&mut self, name: &str) -> String {
        let described = described::<T>();
        self.define(name, &about(&described), |schema| {
            let fields = T::fields(schema).into_iter().map(|Field { name, is }| {
                let about = comment(&about(&described["properties"][&name]), "  ");
                format!("{about}  {name}: {is}\n")
            });
            format!("struct {{\n{}}}", fields.collect::<String>())
        })
    }

    pub(crate) fn define_enum<T: JsonSchema>(&mut self, name: &str, variants: &[&str]) -> String {
        let variants = variants.iter().enumerate();
        let lines = variants.map(|(number, variant)| format!("  {} = {number}\n", upper(variant)));
        let is = format!("enum {{\n{}}}", lines.collect::<String>());
        self.define(name, &about(&described::<T>()), |_| is)
    }

    /// Members with the names of their types, numbered from 0.
    pub(crate) fn define_union(
        &mut self,
        name: &str,
        about: &str,
        members: &[fn(&mut Self) -> String],
    ) -> String {
        self.define(name, about, |schema| {
            let members = members.iter().enumerate();
            let members = members.map(|(number, member)| format!("{} = {number}", member(schema)));
            format!("union {{ {} }}", members.collect::<Vec<_>>().join(" | "))
        })
    }

    /// Every definition, each behind what it is made of.
    pub(super) fn definitions(&self) -> String {
        let definition = |(name, Definition { about, is }): &(String, Definition)| {
            format!("\n{}type {name} {is}\n", comment(about, ""))
        };
        self.definitions.iter().map(definition).collect()
    }
}

/// What a type's JSON Schema says.
fn described<T: JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn about(described: &Value) -> String {
    described["description"].as_str().unwrap_or_default().to_owned()
}

fn comment(text: &str, indent: &str) -> String {
    text.lines().map(|line| format!("{indent}# {line}\n")).collect()
}

/// As JSON writes it.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_uppercase() + rest
    })
}

/// As BARE writes the members of an enum.
fn upper(name: &str) -> String {
    let letters = name.char_indices().flat_map(|(at, letter)| {
        let gap = (at > 0 && letter.is_uppercase()).then_some('_');
        gap.into_iter().chain(letter.to_uppercase())
    });
    letters.collect()
}
