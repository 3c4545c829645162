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
mod buffers;
mod daemon;
mod events;
mod exchange;
mod history;
mod jobs;
mod queries;
mod schedules;
mod sessions;
mod store;
mod transcripts;

pub use asks::*;
pub use buffers::*;
pub use daemon::*;
pub use events::*;
pub use exchange::*;
pub use history::*;
pub use jobs::*;
pub use queries::*;
pub use schedules::*;
pub use sessions::*;
pub use store::*;
pub use transcripts::*;

/// All operations, by subject.
const SUBJECTS: &[&[OperationDescription]] = &[
    asks::LIST,
    buffers::LIST,
    daemon::LIST,
    events::LIST,
    exchange::LIST,
    history::LIST,
    jobs::LIST,
    queries::LIST,
    schedules::LIST,
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

#[cfg(test)]
mod tests {
    use schemars::SchemaGenerator;

    use super::*;

    #[test]
    fn the_documentation_is_what_the_schema_says_on_one_line() {
        for operation in all() {
            let schema = (operation.request)(&mut SchemaGenerator::default());
            let described = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
            assert_eq!(operation.documentation, described.replace('\n', " "), "{}", operation.id);
            assert!(!operation.documentation.is_empty(), "{}", operation.id);
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut names: Vec<_> = all().map(|operation| operation.id).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}
