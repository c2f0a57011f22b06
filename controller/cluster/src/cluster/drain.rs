//! The handle's part for nodes that take nothing new.

use super::Cluster;
use crate::error::DrainError;
use crate::views;
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::{ConsolidationView, NodeView};
use edgeloom_sched::consolidate::{Bounds, consolidate};

impl Cluster {
    /// Nothing new goes to the node; what runs there stays.
    pub async fn cordon(&self, node: NodeId) -> Result<NodeView, DrainError> {
        let ended = DrainError::Unavailable(node.clone());
        self.ask(move |owner| owner.cordon(&node, false)).await.unwrap_or(Err(ended))
    }

    /// Nothing new goes to the node, and its tasks move to others.
    pub async fn drain(&self, node: NodeId) -> Result<NodeView, DrainError> {
        let ended = DrainError::Unavailable(node.clone());
        self.ask(move |owner| owner.cordon(&node, true)).await.unwrap_or(Err(ended))
    }

    /// The node takes tasks again.
    pub async fn uncordon(&self, node: NodeId) -> Result<NodeView, DrainError> {
        let ended = DrainError::Unavailable(node.clone());
        self.ask(move |owner| owner.uncordon(&node)).await.unwrap_or(Err(ended))
    }

    /// Nodes that could be emptied; changes nothing. None: the owner does not answer.
    pub async fn consolidation(&self) -> Option<ConsolidationView> {
        let (profile, snapshot) = self.ask(|owner| owner.consolidation()).await?;
        let find = move || consolidate(profile, &snapshot, Bounds::NONE);
        Some(views::consolidation(tokio::task::spawn_blocking(find).await.ok()?))
    }

    /// Drains the nodes that could be emptied. None: the owner does not answer.
    pub async fn consolidate(&self) -> Option<Result<ConsolidationView, DrainError>> {
        let found = self.consolidation().await?;
        for emptied in &found.nodes {
            if let Err(error) = self.drain(emptied.node.clone()).await {
                return Some(Err(error));
            }
        }
        Some(Ok(ConsolidationView { applied: true, ..found }))
    }
}
