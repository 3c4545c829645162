//! `load_script`: running the code of a file, as the file's.

use std::fmt::Display;
use std::path::Path;

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Error};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::call::Call;
use super::eval::{Code, EvalAnswer, run};
use super::import_export::unusable;
use super::needs::{Waits, Works};
use super::tool::{Effect, Tool};
use mainstay_gateway::path::absolute;

/// Runs a script file in a session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LoadScript {
    session_id: Option<String>,
    /// Absolute path of the file.
    path: String,
}

impl Tool for LoadScript {
    const NAME: &'static str = "load_script";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Eval>()];
    const SEED_NAME: Option<&'static str> = Some("load_fsharp_script");
    const DESCRIPTION: &'static str = "Run a script file as send_code runs code.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: false };
    const ACTION: Option<Action> = Some(Action::Eval);
    const WORKS: Works = Works::InAny(Action::Eval, Reach::InTurn);
    const WAITS: Waits = Waits::AsAsked;
    const FILES: bool = true;
    const SAYS_ANSWER: bool = false;
    type Answer = EvalAnswer;

    async fn carry_out(self, call: &Call) -> Result<EvalAnswer, Error> {
        call.client().require_all("read files")?;
        let path = absolute(&self.path)?;
        let text = text_of(&path, call.limits().code_bytes).await?;
        run(call, self.session_id.as_deref(), Code { text, file: Some(self.path), key: None }).await
    }
}

/// What is in a file of code.
///
/// # Errors
/// [`Error::InvalidArgument`] where it cannot be read or holds no text, [`Error::CodeTooLarge`].
async fn text_of(path: &Path, limit: usize) -> Result<String, Error> {
    let unusable = |reason: &dyn Display| unusable(&path.display().to_string(), reason);
    let metadata = tokio::fs::metadata(path).await.map_err(|error| unusable(&error))?;
    // Reading a pipe could take for ever.
    if !metadata.is_file() {
        return Err(unusable(&"it is no file"));
    }
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let file = File::open(path).await.map_err(|error| unusable(&error))?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).await.map_err(|error| unusable(&error))?;
    if bytes.len() > limit {
        let bytes = usize::try_from(metadata.len()).unwrap_or(usize::MAX).max(bytes.len());
        return Err(Error::CodeTooLarge { bytes, limit });
    }
    let text = String::from_utf8(bytes).map_err(|_| unusable(&"it is not UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
