//! An error as every protocol carries it.

use mainstay_model::{Action, Error};
use serde::{Deserialize, Serialize};

/// An error as every protocol carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorView {
    /// Its stable code; `mainstay explain CODE` says more.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// What to do next.
    pub next_step: String,
    /// The actions offered instead, where the session's state refused one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Action>,
    /// The error with its fields.
    pub error: Error,
}

impl From<Error> for ErrorView {
    fn from(error: Error) -> Self {
        Self {
            code: error.code().to_string(),
            message: error.to_string(),
            next_step: error.next_step(),
            offered: error.offered(),
            error,
        }
    }
}
