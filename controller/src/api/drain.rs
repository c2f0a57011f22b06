//! Nodes that take nothing new, and nodes that could be emptied.

use super::Api;
use super::error::ApiError;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use edgeloom_cluster::DrainError;
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::{ConsolidationView, NodeView};

type Answer = Result<Json<NodeView>, ApiError>;

pub(super) async fn cordon(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    Ok(Json(api.cluster.cordon(node(name)?).await?))
}

pub(super) async fn drain(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<NodeView>), ApiError> {
    Ok((StatusCode::ACCEPTED, Json(api.cluster.drain(node(name)?).await?)))
}

pub(super) async fn uncordon(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    Ok(Json(api.cluster.uncordon(node(name)?).await?))
}

pub(super) async fn consolidation(State(api): State<Api>) -> Result<Json<ConsolidationView>, ApiError> {
    api.cluster.consolidation().await.map(Json).ok_or(ApiError::NotReady)
}

pub(super) async fn consolidate(
    State(api): State<Api>,
) -> Result<(StatusCode, Json<ConsolidationView>), ApiError> {
    let view = api.cluster.consolidate().await.ok_or(ApiError::NotReady)??;
    Ok((StatusCode::ACCEPTED, Json(view)))
}

fn node(name: String) -> Result<NodeId, ApiError> {
    name.parse().map_err(|_| ApiError::UnknownNode { name })
}

impl From<DrainError> for ApiError {
    fn from(error: DrainError) -> Self {
        match error {
            DrainError::Unknown(name) => Self::UnknownNode { name: name.to_string() },
            DrainError::Unavailable(_) => Self::NotReady,
            last @ DrainError::Last(_) => Self::Drain(last),
        }
    }
}
