//! How the payloads of messages are written down: what they must have, and what they may.

/// Payloads, each with its required and its optional fields. Absent optional fields are not written, and unknown fields are not read.
macro_rules! payloads {
    ($($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $required_doc:literal])* $required:ident: $required_type:ty,)*
    } optional {
        $($(#[doc = $optional_doc:literal])* $optional:ident: $optional_type:ty,)*
    })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            pub struct $name {
                $($(#[doc = $required_doc])* pub $required: $required_type,)*
                $(
                    $(#[doc = $optional_doc])*
                    #[serde(default, skip_serializing_if = "Option::is_none")]
                    pub $optional: Option<$optional_type>,
                )*
            }
        )*
    };
}

pub(super) use payloads;
