//! What an operation is, how the list of operations describes it, and how others name it.

use std::fmt::{Display, Formatter};

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::json_rpc::Method;

/// Something that a client can ask the daemon. The type itself is the request.
///
/// Only the list in [`operations`](crate::operations) implements it.
pub trait Operation: Listed + Method<Answer: JsonSchema> + JsonSchema {
    /// What the operation does, on one line.
    const DOCUMENTATION: &'static str;
}

/// Keeps [`Operation`] from being implemented outside of this crate.
pub trait Listed {}

/// The name of an operation. It can only be made of the operation's type, so it never names an operation that is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(&'static str);

impl OperationId {
    /// The name of this operation.
    pub const fn of<O: Operation>() -> Self {
        Self(O::NAME)
    }

    /// The name as the local socket writes it, for example `session/eval`.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl Display for OperationId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// An operation as the list describes it.
#[derive(Clone, Copy)]
pub struct OperationDescription {
    /// The name of the operation.
    pub id: OperationId,
    /// What the operation does, on one line.
    pub documentation: &'static str,
    /// Makes the schema of the request.
    pub request: fn(&mut SchemaGenerator) -> Schema,
    /// Makes the schema of the answer.
    pub answer: fn(&mut SchemaGenerator) -> Schema,
    /// Checks how the request is read, for fuzzers.
    #[cfg(feature = "fuzzing")]
    pub(crate) check: fn(&crate::json_rpc::Request),
}

impl OperationDescription {
    /// Describes an operation by its type.
    pub(crate) const fn of<O: Operation + PartialEq + std::fmt::Debug>() -> Self {
        Self {
            id: OperationId::of::<O>(),
            documentation: O::DOCUMENTATION,
            request: O::json_schema,
            answer: SchemaGenerator::subschema_for::<O::Answer>,
            #[cfg(feature = "fuzzing")]
            check: crate::fuzz_invariants::reads_its_parameters::<O>,
        }
    }
}
