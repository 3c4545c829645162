//! What tools are called. Each has a neutral name; those that SageFs has (seed 000) have its name too, which speaks of F#. Calls take both,
//! and one setting says which of them clients are shown: the same for every session, since clients ask for the list once.

use serde::Deserialize;

use super::tool::Tool;

/// Which names clients are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// Those that name no language.
    #[default]
    Neutral,
    /// Those of SageFs, where it has one.
    Sagefs,
}

impl Names {
    /// The name of a tool.
    pub(super) const fn of<T: Tool>(self) -> &'static str {
        match (self, T::SEED_NAME) {
            (Self::Sagefs, Some(name)) => name,
            (Self::Neutral | Self::Sagefs, _) => T::NAME,
        }
    }
}
