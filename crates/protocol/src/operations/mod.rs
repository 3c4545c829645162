//! The list of operations, named `resource/verb`, with their requests and answers: one file for each subject.
//!
//! What documents a request documents its operation.

use serde::{Deserialize, Serialize};

use crate::operation::OperationDescription;

macro_rules! operations {
    ($($(#[doc = $doc:literal])* $name:literal $request:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } -> $answer:ty;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "camelCase")]
            pub struct $request {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl crate::json_rpc::Method for $request {
                const NAME: &'static str = $name;
                type Answer = $answer;
            }

            impl crate::operation::Listed for $request {}

            impl crate::operation::Operation for $request {
                // Each line of a doc comment begins with a space.
                const DOCUMENTATION: &'static str = concat!($($doc),*).trim_ascii();
            }
        )*

        /// The operations of this subject.
        pub(super) const LIST: &[crate::operation::OperationDescription] =
            &[$(crate::operation::OperationDescription::of::<$request>()),*];
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

/// All operations, by subject.
const SUBJECTS: &[&[OperationDescription]] = &[
    asks::LIST,
    daemon::LIST,
    events::LIST,
    exchange::LIST,
    history::LIST,
    jobs::LIST,
    queries::LIST,
    sessions::LIST,
    store::LIST,
    transcripts::LIST,
];

/// All operations, in the order of the OpenRPC document.
pub fn all() -> impl Iterator<Item = &'static OperationDescription> {
    SUBJECTS.iter().copied().flatten()
}

/// No answer but that it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Nothing {}
