//! The methods, `resource/verb`, with their parameters and results: one file for each subject.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

pub use mainstay_gateway::command::{Conditions, Sent};
pub use mainstay_gateway::json_rpc::Method;
pub use mainstay_gateway::local_socket::Attached;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:literal $params:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "camelCase")]
            pub struct $params {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl super::Method for $params {
                const NAME: &'static str = $name;
                type Answer = $answer;
            }
        )*

        /// The names of this subject's methods.
        pub(super) const NAMES: &[&str] = &[$($name),*];

        /// What the OpenRPC document says of this subject's methods.
        pub(super) const DESCRIPTIONS: &[super::MethodSchemas] = &[$(super::MethodSchemas::of::<$params>()),*];

        /// How each method reads its parameters.
        #[cfg(feature = "fuzzing")]
        pub(super) const READERS: &[super::Reader] =
            &[$(($name, crate::fuzz_invariants::reads_its_parameters::<$params>),)*];
    };
}

mod asks;
mod daemon;
mod events;
mod exchange;
mod history;
mod jobs;
mod queries;
mod sessions;
mod store;
mod transcripts;

pub use asks::*;
pub use daemon::*;
pub use events::*;
pub use exchange::*;
pub use history::*;
pub use jobs::*;
pub use queries::*;
pub use sessions::*;
pub use store::*;
pub use transcripts::*;

/// The names of all methods, by subject.
pub const NAMES: &[&[&str]] = &[
    asks::NAMES,
    daemon::NAMES,
    events::NAMES,
    exchange::NAMES,
    history::NAMES,
    jobs::NAMES,
    queries::NAMES,
    sessions::NAMES,
    store::NAMES,
    transcripts::NAMES,
];

/// What the OpenRPC document says of a method: its name, and the schemas of its parameters and of its result.
#[derive(Clone, Copy)]
pub struct MethodSchemas {
    /// The name of the method.
    pub name: &'static str,
    /// Makes the schema of the parameters.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// Makes the schema of the result.
    pub result: fn(&mut SchemaGenerator) -> Schema,
}

impl MethodSchemas {
    const fn of<M: Method<Answer: JsonSchema> + JsonSchema>() -> Self {
        Self { name: M::NAME, params: M::json_schema, result: SchemaGenerator::subschema_for::<M::Answer> }
    }
}

/// What the OpenRPC document says of all methods, by subject.
pub const DESCRIPTIONS: &[&[MethodSchemas]] = &[
    asks::DESCRIPTIONS,
    daemon::DESCRIPTIONS,
    events::DESCRIPTIONS,
    exchange::DESCRIPTIONS,
    history::DESCRIPTIONS,
    jobs::DESCRIPTIONS,
    queries::DESCRIPTIONS,
    sessions::DESCRIPTIONS,
    store::DESCRIPTIONS,
    transcripts::DESCRIPTIONS,
];

/// The name of a method, and how it reads its parameters.
#[cfg(feature = "fuzzing")]
pub(super) type Reader = (&'static str, fn(&mainstay_gateway::json_rpc::Request));

/// How all methods read their parameters, by subject.
#[cfg(feature = "fuzzing")]
pub(super) const READERS: &[&[Reader]] = &[
    asks::READERS,
    daemon::READERS,
    events::READERS,
    exchange::READERS,
    history::READERS,
    jobs::READERS,
    queries::READERS,
    sessions::READERS,
    store::READERS,
    transcripts::READERS,
];

/// No answer but that it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Nothing {}
