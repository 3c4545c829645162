//! Who gave a job its task. Source: ARCP draft 01, section 14; draft 02, section 10.1.

use serde::{Deserialize, Serialize};

use crate::id::CommandId;

/// Who gave a job its task, as its grant says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegator {
    /// The command whose job gave the task, of the same principal.
    pub parent: CommandId,
}
