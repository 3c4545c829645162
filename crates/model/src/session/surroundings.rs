//! What a session's code was compiled against, and what is there now.

use serde::{Deserialize, Serialize};

use crate::fingerprint::{Environment, References};

/// What a session's code rests on besides itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Surroundings {
    /// The runtime under the language.
    pub runtime: String,
    /// What its worker has, as it has it.
    #[serde(default, skip_serializing_if = "References::is_empty")]
    pub loaded: References,
    /// All that it ever rested on, as it is now, as far as that was looked at.
    #[serde(default, skip_serializing_if = "References::is_empty")]
    pub present: References,
}

impl Surroundings {
    /// What its worker runs code against.
    pub fn loaded(&self) -> Environment {
        Environment { runtime: self.runtime.clone(), references: self.loaded.clone() }
    }

    /// What a new worker would run it against.
    pub fn present(&self) -> Environment {
        Environment { runtime: self.runtime.clone(), references: self.present.clone() }
    }

    /// All that it ever rested on, once its worker has these: what a worker has anew is how it is now.
    pub(crate) fn present_with(&self, loaded: &References) -> References {
        let mut present = self.present.clone();
        for (name, reference) in loaded {
            if self.loaded.get(name) != Some(reference) || !present.contains_key(name) {
                present.insert(name.clone(), reference.clone());
            }
        }
        present
    }
}
