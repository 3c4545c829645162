//! What is under way for others, as far as its beginning was seen.

use mainstay_model::CommandId;
use mainstay_terminal::turn::TurnRenderer;

/// Someone for whom an agent works.
pub(crate) struct OtherTurn {
    pub(crate) name: String,
    pub(crate) command: CommandId,
    pub(crate) renderer: TurnRenderer,
}

/// Someone whose code runs.
pub(crate) struct OtherEval {
    pub(crate) name: String,
    pub(crate) code: String,
    /// Printed, and not yet a whole line.
    pub(crate) begun: String,
}

impl OtherEval {
    /// One whose beginning was not seen.
    pub(crate) fn unseen() -> Self {
        Self { name: "session".to_owned(), code: String::new(), begun: String::new() }
    }
}
