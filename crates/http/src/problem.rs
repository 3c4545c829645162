//! What is answered where a path leads nowhere. All other problems are errors, and have the status of their class ([`Problem`]).

use axum::http::StatusCode;
use mainstay_model::Error;

use mainstay_gateway::problem::Problem;

/// There is nothing at that path.
pub(super) fn no_such_path() -> Problem {
    let reason = "there is nothing at this path; /openapi.json lists what there is".to_owned();
    Problem::with(StatusCode::NOT_FOUND, Error::BadRequest { reason })
}

/// The path takes other methods.
pub(super) fn no_such_method() -> Problem {
    let reason = "this path takes other methods; /openapi.json lists them".to_owned();
    Problem::with(StatusCode::METHOD_NOT_ALLOWED, Error::BadRequest { reason })
}
