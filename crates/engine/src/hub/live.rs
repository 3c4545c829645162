//! What is heard at once and kept nowhere. It says nothing that an event does not say in the end.

use std::sync::Arc;

use mainstay_model::Delta;
use mainstay_model::agent::ToolCall;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// How many pieces of one session are kept for who is slow to listen; the events have what they miss.
pub(super) const KEPT: usize = 1024;

/// A piece of what is going on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "live", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Live {
    /// An agent says something. Events have it too, joined with what follows: the offset tells what was heard already.
    Said(Delta),
    /// A tool has given so much.
    ToolOutput {
        /// The tool call that produced the output.
        #[serde(flatten)]
        call: ToolCall,
        /// The end of all that it has given, in its own words.
        output: serde_json::Value,
    },
}

/// One who listens to a session.
pub(crate) struct Listener(pub(super) broadcast::Receiver<Arc<Live>>);

impl Listener {
    /// The next piece; waits for it. Who is slow misses some. None once the daemon goes down.
    pub(crate) async fn next(&mut self) -> Option<Arc<Live>> {
        loop {
            match self.0.recv().await {
                Ok(live) => return Some(live),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
