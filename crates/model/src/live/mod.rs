//! What goes on in a session right now: pieces of messages and of tools' output, told at once and stored nowhere.
//!
//! Every piece says something that an event says later, joined with what follows. A client that misses pieces loses nothing.
//!
//! [`LiveView`] folds both to one row of [`ViewChange`]s, each told once. The page, the terminal and the pi protocol are renderings of
//! those. HTTP's signals are not: they have no state, since each is a projection of one event, and they carry no live pieces.

mod change;
mod early;
mod partial_message;
mod view;

#[cfg(test)]
mod tests;

pub use change::ViewChange;
pub use partial_message::{PartialMessage, PartialPart};
pub use view::{LiveView, OpenCall};

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
