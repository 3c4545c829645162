//! BARE (draft-devault-bare): messages without names and types in them, for machines that have the schema. What is said in JSON is said in
//! BARE field by field under the same names, so that both can be read by one description.
//!
//! [`record!`], [`told!`] and [`choice!`] stand beside the types they are of. Each names every field, so that one that is added to a type
//! must be added to its form here; the schema ([`schema`]) is made of them and of the list of endpoints. [`vocabulary`] has the types of
//! other crates, [`reader`] takes apart what clients send.
//!
//! A message carries no version: the media type does (`application/bare; version=1`), and what a version says never changes.

mod document;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz_invariants;
mod macros;
mod plain;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod vocabulary;

pub(super) use document::document;
pub(super) use macros::{choice, record, told};
pub(super) use plain::member;
pub(super) use reader::{Malformed, Reader};
pub(super) use schema::{Field, Schema, field, flattened};

/// The version of all messages.
pub(super) const VERSION: &str = "1";

/// Something that has a form in BARE.
pub(super) trait Shape {
    /// What it is in the schema, which then has it where it needs a name.
    fn shape(schema: &mut Schema) -> String;
}

/// Something that is told.
pub(super) trait Encode: Shape {
    /// Appends the value in its BARE encoding.
    fn encode(&self, to: &mut Vec<u8>);
}

/// Something that clients say.
pub(super) trait Decode: Shape + Sized {
    /// Reads it.
    ///
    /// # Errors
    /// [`Malformed`].
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// Several fields in a row.
pub(super) trait Fields {
    /// Their names, what they are, and what is said of each.
    fn fields(schema: &mut Schema) -> Vec<Field>;
}

/// Encodes a whole message, with its version in front.
pub(super) fn message(told: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    told.encode(&mut bytes);
    bytes
}

/// What a whole message says.
///
/// # Errors
/// [`Malformed`], also where something follows.
pub(super) fn read<T: Decode>(message: &[u8]) -> Result<T, Malformed> {
    let mut reader = Reader::new(message);
    let said = T::decode(&mut reader)?;
    reader.end()?;
    Ok(said)
}
