//! The messages of JSON-RPC 2.0, one a line: what a connection of the local socket begins with, whatever it speaks afterwards.

use mainstay_model::{Error, ErrorClass};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::view::ErrorView;

/// A request and what answers it.
pub trait Method: Serialize + DeserializeOwned + Send + 'static {
    /// The name of the method.
    const NAME: &'static str;
    /// The type of the method's answer.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// A request; without an id, a notification.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// What the answer is to be known by.
    #[serde(default)]
    pub id: Option<Value>,
    /// The name of the method.
    pub method: String,
    /// The parameters of the method, unread.
    #[serde(default)]
    pub params: Option<Box<RawValue>>,
}

/// A message to the other side.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outgoing<'a, T> {
    /// A request of ours.
    Request {
        /// The version of JSON-RPC.
        jsonrpc: Version,
        /// What the answer is known by.
        id: u64,
        /// The name of the method.
        method: &'a str,
        /// The parameters of the method.
        params: T,
    },
    /// The answer to a request.
    Answer {
        /// The version of JSON-RPC.
        jsonrpc: Version,
        /// The id of the request.
        id: &'a Value,
        /// What the method answers.
        result: T,
    },
    /// Why a request failed.
    Failure {
        /// The version of JSON-RPC.
        jsonrpc: Version,
        /// The id of the request; null where the failure concerns the whole connection.
        id: &'a Value,
        /// The message of the error.
        error: Failure,
    },
    /// News that nobody answers.
    Notification {
        /// The version of JSON-RPC.
        jsonrpc: Version,
        /// The name of the notification.
        method: &'a str,
        /// The parameters of the notification.
        params: T,
    },
}

/// A message that comes to a client.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    /// The id of the request that is answered.
    #[serde(default)]
    pub id: Option<u64>,
    /// The name of a notification.
    #[serde(default)]
    pub method: Option<String>,
    /// What a notification says.
    #[serde(default)]
    pub params: Option<Box<RawValue>>,
    /// What the request led to.
    #[serde(default)]
    pub result: Option<Box<RawValue>>,
    /// Why the request failed.
    #[serde(default)]
    pub error: Option<Failure>,
}

/// The `jsonrpc` member, which must say 2.0.
#[derive(Debug, Serialize)]
pub enum Version {
    /// The only version there is.
    #[serde(rename = "2.0")]
    Two,
}

/// Why a request failed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// JSON-RPC's number for what went wrong.
    pub code: i32,
    /// What went wrong, in one line.
    pub message: String,
    /// The error itself, with all that it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ErrorView>,
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
///
/// # Errors
/// [`Error::BadRequest`] where it has no form in JSON.
pub fn line<T: Serialize>(message: &Outgoing<'_, T>) -> Result<String, Error> {
    serde_json::to_string(message)
        .map_err(|error| Error::BadRequest { reason: format!("a message cannot be written: {error}") })
}

/// Reads the parameters of a request.
///
/// # Errors
/// [`Error::BadRequest`] where they do not fit the method.
pub fn params<M: Method>(request: &Request) -> Result<M, Error> {
    let text = request.params.as_ref().map_or("{}", |params| params.get());
    serde_json::from_str(text).map_err(|error| Error::BadRequest { reason: format!("{}: {error}", M::NAME) })
}

/// Writes what a request led to as a message.
pub fn answer<T: Serialize>(id: &Value, result: Result<T, Error>) -> String {
    let text = match result {
        Ok(result) => line(&Outgoing::Answer { jsonrpc: Version::Two, id, result }),
        Err(error) => return failure(id, error),
    };
    text.unwrap_or_else(|error| failure(id, error))
}

/// An error as a message; without an id it concerns the whole connection.
pub fn failure(id: &Value, error: Error) -> String {
    let failure: Outgoing<'_, ()> = Outgoing::Failure { jsonrpc: Version::Two, id, error: error.into() };
    line(&failure).unwrap_or_default()
}
