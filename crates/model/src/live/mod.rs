//! What goes on in a session right now: pieces of messages and of tools' output, told at once and stored nowhere.
//!
//! Every piece says something that an event says later, joined with what follows. A client that misses pieces loses nothing.

use serde::{Deserialize, Serialize};

use crate::agent::{Delta, ToolCall};

/// A piece of what an agent does now, before an event has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "live", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Live {
    /// An agent says the next piece of a message. The piece's offset tells how much of it was told before.
    #[serde(rename = "said")]
    Delta(Delta),
    /// A tool that runs has given some output.
    ToolOutput {
        /// The tool call that produced the output.
        #[serde(flatten)]
        call: ToolCall,
        /// The end of all the output so far, as the agent reports it.
        output: serde_json::Value,
    },
}
