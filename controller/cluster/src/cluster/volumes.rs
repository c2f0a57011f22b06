//! The handle's part for what nodes keep for tasks.

use super::Cluster;
use crate::error::VolumeError;
use edgeloom_common::ids::NodeId;
use edgeloom_common::volume::{HeldVolume, VolumeView};

impl Cluster {
    /// Every volume that nodes told of.
    pub async fn volumes(&self) -> Vec<VolumeView> {
        self.ask(|owner| owner.volumes()).await.unwrap_or_default()
    }

    /// Whether a node may be told to remove a volume: it has it, no job does, and it is online.
    pub async fn may_remove_volume(&self, node: NodeId, volume: HeldVolume) -> Result<(), VolumeError> {
        let asked = self.ask(move |owner| owner.may_remove(&node, &volume)).await;
        asked.unwrap_or(Err(VolumeError::Unavailable))
    }

    /// The node has removed it.
    pub async fn volume_removed(&self, node: NodeId, volume: HeldVolume) {
        // Without an owner there is nobody to tell.
        let _ = self.ask(move |owner| owner.forget_volume(&node, &volume)).await;
    }
}
