//! Nodes: list.

use super::Api;
use axum::Json;
use axum::extract::State;
use edgeloom_common::view::NodeList;

pub(super) async fn list(State(api): State<Api>) -> Json<NodeList> {
    Json(NodeList { nodes: api.cluster.nodes().await })
}
