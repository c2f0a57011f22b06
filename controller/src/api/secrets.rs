//! Secrets of jobs: values only ever go in.

use super::error::ApiError;
use super::request::Parameters;
use super::{Api, body};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use edgeloom_cluster::{Existing, SecretError};
use edgeloom_common::confidential::{SecretList, SecretView, VALUE_MAX, Value};
use edgeloom_common::ids::SecretName;
use serde::Deserialize;
use zeroize::Zeroizing;

/// Parameters of `PUT /v1/secrets/{name}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Creation {
    /// Another value for a secret that is there.
    #[serde(default)]
    replace: bool,
}

/// The body is the value, whatever bytes it has.
pub(super) async fn keep(
    State(api): State<Api>,
    Path(name): Path<String>,
    Parameters(creation): Parameters<Creation>,
    body: Body,
) -> Result<(StatusCode, Json<SecretView>), ApiError> {
    let name: SecretName = name.parse()?;
    let value = Value::new(&Zeroizing::new(body::bytes(body, VALUE_MAX).await?))?;
    let existing = if creation.replace { Existing::Replace } else { Existing::Refuse };
    let view = api.cluster.keep_secret(name, value, existing).await?;
    tracing::info!(secret = %view.name, bytes = view.bytes, "secret kept");
    Ok((StatusCode::CREATED, Json(view)))
}

pub(super) async fn list(State(api): State<Api>) -> Json<SecretList> {
    Json(SecretList { secrets: api.cluster.secrets().await })
}

pub(super) async fn remove(State(api): State<Api>, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    let name: SecretName = name.parse()?;
    api.cluster.remove_secret(name.clone()).await?;
    tracing::info!(secret = %name, "secret removed");
    Ok(StatusCode::NO_CONTENT)
}

impl From<edgeloom_common::ids::NameError> for ApiError {
    fn from(error: edgeloom_common::ids::NameError) -> Self {
        Self::Path { reason: error.to_string() }
    }
}

impl From<SecretError> for ApiError {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::Unavailable => Self::NotReady,
            error => Self::Secret(error),
        }
    }
}
