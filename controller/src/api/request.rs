//! What is read from a request's line: names from the path, parameters from the query.

use super::error::ApiError;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use edgeloom_common::ids::JobName;
use serde::de::DeserializeOwned;

/// The job that a path names.
pub(super) struct Job(pub(super) JobName);

impl<S: Send + Sync> FromRequestParts<S> for Job {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::Path { reason: rejection.body_text() })?;
        // A text that is no name is the name of no job.
        name.parse().map(Self).map_err(|_| ApiError::UnknownJob { name })
    }
}

/// The parameters of a query; unknown ones are refused by their types.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(parameters)| Self(parameters))
            .map_err(|rejection| ApiError::Query { reason: rejection.body_text() })
    }
}

/// The answer to a path that nothing serves.
pub(super) async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::NoSuchPath { path: uri.path().to_owned() }
}

/// The answer to a method that a path does not have.
pub(super) async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    ApiError::NoSuchMethod { method: method.to_string(), path: uri.path().to_owned() }
}
