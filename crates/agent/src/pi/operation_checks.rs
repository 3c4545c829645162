//! What has pi ask, before each tool that it runs, whether the grant of its job allows that. pi has no such rules of its own, so it is given an
//! extension, whose dialogs are answered here and shown to nobody.

use std::ffi::OsString;
use std::path::Path;

use mainstay_model::grant::AskedOperation;
use mainstay_model::permission::Permission;
use mainstay_model::{AskId, Error};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::rpc::{ExtensionRequest, dialog_answer};

/// The source of the extension that Mainstay loads into pi.
pub(super) const EXTENSION: &str = include_str!("operation_checks.js");
/// Its file, among a session's files.
pub(super) const FILE: &str = "operation-checks.js";
/// The title of its dialogs.
const TITLE: &str = "mainstay:operation";
/// The answer where nothing bounds the job.
const UNBOUNDED: &str = "unbounded";
/// The answer where the grant allows it.
const GRANTED: &str = "granted";

/// The answer where the job was to pause meanwhile, and somebody has said how it is to go on.
const PAUSED: &str =
    "you were to pause before this; read what the person says now, and do it only where it still fits";
/// The answer where somebody was asked who does not allow it.
const REFUSED: &str = "nobody allowed this; do without it, or ask";

/// How pi is told of the extension in a session's folder.
pub(super) fn arguments(folder: &Path) -> [OsString; 2] {
    ["--extension".into(), folder.join(FILE).into()]
}

/// What pi's tools are about to do, and wait to hear whether they may.
pub(super) struct Check {
    pub(super) id: AskId,
    pub(super) operation: AskedOperation,
}

impl Check {
    /// What a dialog asks that is of the extension.
    ///
    /// # Errors
    /// The line that ends the dialog, where it asks nothing that is understood.
    pub(super) fn of(request: &ExtensionRequest) -> Result<Self, String> {
        let operation = request.placeholder.as_deref().map(serde_json::from_str);
        match (Uuid::try_parse(&request.id), operation) {
            (Ok(id), Some(Ok(operation))) => Ok(Self { id: AskId::from_uuid(id), operation }),
            _ => Err(line(&request.id, "what is to be done is not understood")),
        }
    }
}

/// Whether a dialog is of the extension.
pub(super) fn is_check(request: &ExtensionRequest) -> bool {
    request.method == "input" && request.title == TITLE
}

/// The line that lets tools of a job do what nothing bounds.
pub(super) fn unbounded(request: &ExtensionRequest) -> String {
    line(&request.id, UNBOUNDED)
}

/// The line for tools that go on after the end of a job which a grant bounded.
pub(super) fn without_job(request: &ExtensionRequest) -> String {
    line(&request.id, "the job has ended whose grant allowed anything")
}

/// The line with which tools hear whether they may.
pub(super) fn answered(id: AskId, answer: &Result<Value, Error>) -> String {
    match answer {
        Ok(value) if Permission::of(value) == Some(Permission::No) => line(&id.to_string(), REFUSED),
        Ok(_) => line(&id.to_string(), GRANTED),
        Err(error) => line(&id.to_string(), &error.to_string()),
    }
}

/// The line for what was held back while the job paused, and is not to be done after what somebody has said.
pub(super) fn paused(request: &ExtensionRequest) -> String {
    line(&request.id, PAUSED)
}

/// The line for what was held back, where nobody says how to go on.
pub(super) fn refused(request: &ExtensionRequest, error: &Error) -> String {
    line(&request.id, &error.to_string())
}

fn line(id: &str, text: &str) -> String {
    dialog_answer(id, Map::from_iter([("value".to_owned(), Value::from(text))]))
}
