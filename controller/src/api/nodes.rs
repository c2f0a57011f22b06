//! Nodes: list, and forget those that will not come back.

use super::Api;
use super::error::ApiError;
use super::identity::off_the_runtime;
use axum::Json;
use axum::extract::{Path, State};
use edgeloom_cluster::ForgetError;
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::{ForgottenView, NodeList};
use edgeloom_identity::NoSuchNode;

pub(super) async fn list(State(api): State<Api>) -> Json<NodeList> {
    Json(NodeList { nodes: api.cluster.nodes().await })
}

/// The cluster forgets first: where it refuses, the node keeps its certificates. One that joined and was never
/// heard of has certificates alone.
pub(super) async fn forget(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<Json<ForgottenView>, ApiError> {
    let node: NodeId = name.parse().map_err(|_| ApiError::UnknownNode { name })?;
    let forgotten = match api.cluster.forget(node.clone()).await {
        Ok(may_run) => Some(may_run),
        Err(ForgetError::Unknown(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let (identity, revoked) = (api.identity.clone(), node.clone());
    let serials = match (off_the_runtime(move || identity.revoke_node(&revoked)).await?, &forgotten) {
        (Ok(serials), _) => serials,
        (Err(NoSuchNode::Unknown { .. }), Some(_)) => Vec::new(),
        (Err(error), _) => return Err(error.into()),
    };
    Ok(Json(ForgottenView { node, may_run: forgotten.unwrap_or_default(), serials }))
}
