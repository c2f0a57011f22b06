//! Images that nodes hold ready.

use super::error::ApiError;
use super::{Api, body};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use edgeloom_cluster::{PrefetchError, RegistryError};
use edgeloom_common::prefetch::{PrefetchList, PrefetchRequest, PrefetchView};

pub(super) async fn ask(State(api): State<Api>, body: Body) -> Result<Json<PrefetchView>, ApiError> {
    let request: PrefetchRequest = body::json(body).await?;
    Ok(Json(api.cluster.prefetch(request).await?))
}

pub(super) async fn list(State(api): State<Api>) -> Json<PrefetchList> {
    Json(PrefetchList { images: api.cluster.prefetched().await })
}

/// Status, stable code and title.
pub(super) fn class(error: &PrefetchError) -> (StatusCode, &'static str, &'static str) {
    match error {
        PrefetchError::UnknownNode(_) => (StatusCode::UNPROCESSABLE_ENTITY, "node.unknown", "No such node"),
        PrefetchError::NoNode => (StatusCode::UNPROCESSABLE_ENTITY, "prefetch.nowhere", "No node named"),
        PrefetchError::NotHeld { .. } => (StatusCode::NOT_FOUND, "prefetch.unknown", "Not held ready"),
        PrefetchError::TooMany { .. } => (StatusCode::INSUFFICIENT_STORAGE, "prefetch.no-room", "No room"),
        PrefetchError::Image(RegistryError::Unreachable { .. }) => {
            (StatusCode::SERVICE_UNAVAILABLE, "registry.unreachable", "Registry not reachable")
        }
        PrefetchError::Image(_) => (StatusCode::UNPROCESSABLE_ENTITY, "image.unknown", "Image not found"),
        PrefetchError::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "controller.not-ready", "Not ready"),
    }
}
