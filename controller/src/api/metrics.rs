//! `GET /metrics`: the cluster in numbers, for Prometheus and what reads like it.

use super::Api;
use super::error::ApiError;
use crate::metrics;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

pub(super) async fn show(State(api): State<Api>) -> Result<impl IntoResponse, ApiError> {
    let figures = api.cluster.figures().await.ok_or(ApiError::NotReady)?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::text(&figures)))
}
