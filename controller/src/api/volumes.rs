//! Volumes that nodes keep for tasks.

use super::Api;
use super::error::ApiError;
use crate::logs::{LogsError, Piece};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use edgeloom_cluster::VolumeError;
use edgeloom_common::ids::NodeId;
use edgeloom_common::volume::{HeldVolume, VolumeCommand, VolumeList};
use std::time::Duration;
use tokio::time::timeout;

/// Removing a large volume from a slow card takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a volume is not removed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoveError {
    #[error(transparent)]
    Refused(#[from] VolumeError),
    #[error(transparent)]
    NotAsked(#[from] LogsError),
    #[error("node {node} does not answer within {seconds} s; `edgeloom volume list` says whether it is gone")]
    Silent { node: NodeId, seconds: u64 },
    #[error("node {node} cannot remove it: {reason}")]
    Failed { node: NodeId, reason: String },
}

pub(super) async fn list(State(api): State<Api>) -> Json<VolumeList> {
    Json(VolumeList { volumes: api.cluster.volumes().await })
}

pub(super) async fn remove(
    State(api): State<Api>,
    Path((node, job, task, volume)): Path<(String, String, String, String)>,
) -> Result<StatusCode, ApiError> {
    let volume: HeldVolume = format!("{job}/{task}/{volume}")
        .parse()
        .map_err(|error| ApiError::Path { reason: format!("{error}") })?;
    let node: NodeId = node.parse().map_err(|_| ApiError::UnknownNode { name: node })?;
    remove_from(&api, node, volume).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove_from(api: &Api, node: NodeId, volume: HeldVolume) -> Result<(), RemoveError> {
    api.cluster.may_remove_volume(node.clone(), volume.clone()).await?;
    let command = VolumeCommand { volume: volume.clone(), cancel: false };
    let mut answer = api.logs.open(node.clone(), command)?;
    match timeout(ANSWER_TIMEOUT, answer.next()).await {
        Ok(None) => {
            api.cluster.volume_removed(node, volume).await;
            Ok(())
        }
        Ok(Some(Piece::Failed(reason))) => Err(RemoveError::Failed { node, reason }),
        Ok(Some(Piece::Text(_) | Piece::Gap)) | Err(_) => {
            Err(RemoveError::Silent { node, seconds: ANSWER_TIMEOUT.as_secs() })
        }
    }
}

/// Status, stable code and title.
pub(super) fn class(error: &RemoveError) -> (StatusCode, &'static str, &'static str) {
    let (status, code) = match error {
        RemoveError::Refused(VolumeError::Unknown { .. }) => (StatusCode::NOT_FOUND, "volume.unknown"),
        RemoveError::Refused(VolumeError::Used(_)) => (StatusCode::CONFLICT, "volume.used"),
        RemoveError::Refused(VolumeError::Offline(_)) => (StatusCode::SERVICE_UNAVAILABLE, "node.offline"),
        RemoveError::Refused(VolumeError::Unavailable) => {
            (StatusCode::SERVICE_UNAVAILABLE, "controller.not-ready")
        }
        RemoveError::NotAsked(_) | RemoveError::Silent { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "node.silent")
        }
        RemoveError::Failed { .. } => (StatusCode::CONFLICT, "volume.stays"),
    };
    (status, code, "Volume not removed")
}
