//! Tokens: make, list, revoke. The text of a token is in one answer, once.

use super::error::ApiError;
use super::identity::off_the_runtime;
use super::{Api, Joining, body};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use edgeloom_common::join::{TokenList, TokenPurpose, TokenRequest};

pub(super) async fn create(State(api): State<Api>, body: Body) -> Result<impl IntoResponse, ApiError> {
    let request: TokenRequest = body::json(body).await?;
    if matches!(request.purpose, TokenPurpose::Join { .. }) && api.joining == Joining::Elsewhere {
        return Err(ApiError::JoiningElsewhere);
    }
    let created = off_the_runtime(move || api.identity.create_token(request)).await??;
    Ok((StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(created)))
}

pub(super) async fn list(State(api): State<Api>) -> Json<TokenList> {
    Json(TokenList { tokens: api.identity.tokens() })
}

pub(super) async fn revoke(State(api): State<Api>, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    let id = id.parse().map_err(|_| ApiError::UnknownToken { id })?;
    off_the_runtime(move || api.identity.revoke_token(&id)).await??;
    Ok(StatusCode::NO_CONTENT)
}
