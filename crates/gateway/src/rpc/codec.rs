//! The messages of JSON-RPC 2.0.

use mainstay_model::{Error, ErrorClass};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::view::ErrorView;

/// A request; without an id, a notification.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    #[serde(default)]
    pub(super) id: Option<Value>,
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Option<Box<RawValue>>,
}

/// A message to the other side.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Outgoing<'a, T> {
    Request { jsonrpc: Version, id: u64, method: &'a str, params: T },
    Answer { jsonrpc: Version, id: &'a Value, result: T },
    Failure { jsonrpc: Version, id: &'a Value, error: Failure },
    Notification { jsonrpc: Version, method: &'a str, params: T },
}

/// A message that comes to a client.
#[derive(Debug, Deserialize)]
pub(super) struct Incoming {
    #[serde(default)]
    pub(super) id: Option<u64>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) error: Option<Failure>,
}

/// The `jsonrpc` member, which must say 2.0.
#[derive(Debug, Serialize)]
pub(super) enum Version {
    #[serde(rename = "2.0")]
    Two,
}

/// Why a request failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) code: i32,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<ErrorView>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: number(&error), message: error.to_string(), data: Some(error.into()) }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure.data {
            Some(view) => view.error,
            None => Error::BadRequest { reason: failure.message },
        }
    }
}

/// JSON-RPC's numbers: what is wrong with the request itself has the standard ones.
const fn number(error: &Error) -> i32 {
    match error {
        Error::BadRequest { .. } => -32600,
        Error::InvalidArgument { .. }
        | Error::AnswerInvalid { .. }
        | Error::CodeInvalid { .. }
        | Error::CodeTooLarge { .. }
        | Error::MessageTooLarge { .. } => -32602,
        error => match error.class() {
            ErrorClass::NotPermitted => -32001,
            _ => -32000,
        },
    }
}

/// Writes a message as one line, without its end.
pub(super) fn line<T: Serialize>(message: &Outgoing<'_, T>) -> Result<String, Error> {
    serde_json::to_string(message)
        .map_err(|error| Error::BadRequest { reason: format!("a message cannot be written: {error}") })
}
