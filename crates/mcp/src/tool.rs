//! What a tool is: its arguments, what it is for, and what answers it.

use std::fmt::Display;

use mainstay_model::{Action, Error};
use mainstay_protocol::OperationId;
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::Call;
use super::names::Names;
use super::needs::{Waits, Works};

/// One tool. The type itself is its arguments; what documents a member is read by models, and `sessionId` has nothing since
/// the server's instructions explain it once.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name of the tool.
    const NAME: &'static str;
    /// The operations of the list that a call carries out. Empty for what is MCP's alone.
    const OPERATIONS: &'static [OperationId];
    /// What it does, for the model that chooses among tools. It is not the documentation of its operations: that is for people who read all of it, while
    /// these words tell tools apart, name other tools, and cost each model tokens.
    const DESCRIPTION: &'static str;
    /// What SageFs calls it (seed 000), where it has it by another name.
    const SEED_NAME: Option<&'static str> = None;
    /// What a call may change.
    const EFFECT: Effect;
    /// What it asks of the session that is meant.
    const ACTION: Option<Action>;
    /// In which states of that session it does what it is for.
    const WORKS: Works;
    /// Whether it is of no use to who may not have files read and written.
    const FILES: bool = false;
    /// Whether clients are told the form of its answer: models pay for that, and of another tool's answer they know it already. What
    /// only reads says itself what it is.
    const SAYS_ANSWER: bool = !matches!(Self::EFFECT, Effect::Reads);
    /// Who sees to it that a call is answered before its client's patience ends.
    const WAITS: Waits = Waits::Briefly;
    /// Whether nothing can be done here without it: models that look for tools are told of it at once.
    const IS_BASIC: bool = false;
    /// The type of the tool's answer.
    type Answer: Answer;

    /// Carries out one call.
    fn carry_out(self, call: &Call) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// What answers a call: structured as it serializes, in words as it displays.
///
/// The protocol would like the words to be the same JSON once more. They are not: many clients show the model both, and it
/// would pay for every answer twice. The words hold what matters, for clients that know no structured content.
pub(super) trait Answer: Serialize + JsonSchema + Display {
    /// Whether it shows what rests on files that a session has taken in: what of them has changed since is said with it.
    const IS_MARKED: bool = false;

    /// Whether the call did not achieve what it was for.
    fn is_failure(&self) -> bool {
        false
    }

    /// What it has to look at besides; taken out of it.
    fn pictures(&mut self) -> Vec<PictureBlock> {
        Vec::new()
    }

    /// Cuts what is long of it, so that its words have about so many bytes.
    fn fit(&mut self, _bytes: usize) {}

    /// The result that it stands for, where that is another call's.
    fn whole(&mut self) -> Option<CallToolResult> {
        None
    }
}

/// A picture for a model.
#[derive(Debug, PartialEq)]
pub(super) struct PictureBlock {
    /// The MIME type of the picture.
    pub(super) kind: String,
    /// Its bytes, in base64.
    pub(super) data: String,
}

/// What a call may change. Clients go by it: `codex exec` refuses what may lose something or reaches beyond this machine.
pub(super) enum Effect {
    /// The tool changes nothing.
    Reads,
    /// Whatever code can, which runs as the user: it may lose anything, and reach any machine.
    RunsCode {
        /// Whether a second call changes nothing more.
        idempotent: bool,
    },
    /// Something of Mainstay's own, on this machine.
    Changes {
        /// Whether something may be lost by it.
        destructive: bool,
        /// Whether a second call changes nothing more.
        idempotent: bool,
    },
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
