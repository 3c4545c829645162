//! What reading JSON-RPC promises of every line, whatever is in it. Property tests and fuzzers hold it to that.

#![allow(clippy::panic, reason = "a broken promise is what a test looks for")]

use std::fmt::Debug;

use mainstay_model::{Error, Event};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json_rpc::{Failure, Incoming, Method, Request, params};
use crate::operations::{
    self, EVENT_NOTIFICATION, LIVE_NOTIFICATION, LiveNotice, WARM_UP_NOTIFICATION, WarmUpNotice,
};

/// A line that a client sends.
///
/// # Panics
/// Where a promise is broken.
pub(crate) fn check_request(line: &str) {
    let Ok(request) = serde_json::from_str::<Request>(line) else { return };
    for operation in operations::all().filter(|operation| operation.id.as_str() == request.method) {
        (operation.check)(&request);
    }
}

/// A line that the daemon sends.
///
/// # Panics
/// As [`check_request`].
pub(crate) fn check_message(line: &str) {
    let Ok(Incoming { id: _, method, params, result: _, error }) = serde_json::from_str(line) else { return };
    if let Some(failure) = error {
        let error = Error::from(failure);
        assert_eq!(Error::from(Failure::from(error.clone())), error);
    }
    let Some((method, params)) = method.zip(params) else { return };
    match method.as_str() {
        EVENT_NOTIFICATION => is_read_as_written(serde_json::from_str::<Event>(params.get())),
        LIVE_NOTIFICATION => is_read_as_written(serde_json::from_str::<LiveNotice>(params.get())),
        WARM_UP_NOTIFICATION => drop(serde_json::from_str::<WarmUpNotice>(params.get())),
        _ => {}
    }
}

/// What a method reads of its parameters is what it reads of them once they are written again.
pub(super) fn reads_its_parameters<M: Method + PartialEq + Debug>(request: &Request) {
    is_read_as_written(params::<M>(request));
}

fn is_read_as_written<T: Serialize + DeserializeOwned + PartialEq + Debug, E>(read: Result<T, E>) {
    let Ok(read) = read else { return };
    let written = serde_json::to_string(&read).unwrap_or_default();
    match serde_json::from_str::<T>(&written) {
        Ok(again) => assert_eq!(again, read, "{written}"),
        Err(error) => panic!("{written} cannot be read: {error}"),
    }
}
