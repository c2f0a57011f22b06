//! Logins at registries: passwords only ever go in.

use super::error::ApiError;
use super::{Api, body};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use edgeloom_common::confidential::{LOGIN_TEXT_MAX, Login, RegistryList, RegistryView};
use edgeloom_common::registry::{RegistryHost, RegistryHostError};

/// Keeps a login, if its registry honours it.
pub(super) async fn log_in(
    State(api): State<Api>,
    Path(host): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<RegistryView>), ApiError> {
    let registry: RegistryHost = host.parse()?;
    let login: Login = body::json(body).await?;
    let sound = |text: &str| (1..=LOGIN_TEXT_MAX).contains(&text.len()) && !text.contains(char::is_control);
    // RFC 7617: a colon would end the name.
    if !sound(&login.username) || !sound(login.password.expose()) || login.username.contains(':') {
        return Err(ApiError::LoginText);
    }
    let view = api.cluster.keep_login(registry, login).await?;
    tracing::info!(registry = %view.registry, username = view.username, "login kept");
    Ok((StatusCode::CREATED, Json(view)))
}

pub(super) async fn list(State(api): State<Api>) -> Json<RegistryList> {
    Json(RegistryList { registries: api.cluster.logins().await })
}

pub(super) async fn log_out(
    State(api): State<Api>,
    Path(host): Path<String>,
) -> Result<StatusCode, ApiError> {
    let registry: RegistryHost = host.parse()?;
    api.cluster.remove_login(registry.clone()).await?;
    tracing::info!(%registry, "login removed");
    Ok(StatusCode::NO_CONTENT)
}

impl From<RegistryHostError> for ApiError {
    fn from(error: RegistryHostError) -> Self {
        Self::Path { reason: error.to_string() }
    }
}
