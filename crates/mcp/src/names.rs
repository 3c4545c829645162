//! What tools are called. Each has a neutral name; those that SageFs has (seed 000) have its name too, which speaks of F#. Calls take both,
//! and one setting says which of them clients are shown: the same for every session, since clients ask for the list once.

use serde::{Deserialize, Serialize};

/// The tool names that clients are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// Names without a language, such as `send_code`.
    #[default]
    Neutral,
    /// The names of SageFs where it has the tool, such as `send_fsharp_code`.
    Sagefs,
}
