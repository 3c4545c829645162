//! What a request says in its query and its path.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use mainstay_model::Error;
use serde::de::DeserializeOwned;

use mainstay_gateway::problem::Problem;

/// What was asked for.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Sync + Send> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(rejection) => Err(Error::BadRequest { reason: rejection.body_text() }.into()),
        }
    }
}

/// What the last part of the path names.
pub(super) struct PathParams(pub(super) String);

impl<S: Sync + Send> FromRequestParts<S> for PathParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(rejection) => Err(Error::BadRequest { reason: rejection.body_text() }.into()),
        }
    }
}
