//! What nodes keep for tasks: listed, and let go.

use super::Owner;
use crate::data;
use crate::error::VolumeError;
use edgeloom_common::ids::NodeId;
use edgeloom_common::volume::{HeldVolume, VolumeView};

impl Owner {
    /// Every volume that nodes told of.
    pub(crate) fn volumes(&self) -> Vec<VolumeView> {
        let view = |(node, volume): (&NodeId, &HeldVolume)| VolumeView {
            node: node.clone(),
            volume: volume.clone(),
            online: self.nodes.online(node),
            used: self.is_mounted(volume),
        };
        self.nodes.volumes().map(view).collect()
    }

    fn is_mounted(&self, volume: &HeldVolume) -> bool {
        let Some(record) = self.model().jobs.get(&volume.job) else { return false };
        let task = record.job.tasks.get_key_value(&volume.task);
        task.is_some_and(|task| data::volumes(record, task).any(|mounted| mounted == *volume))
    }

    /// Whether a node may be told to remove a volume.
    pub(crate) fn may_remove(&self, node: &NodeId, volume: &HeldVolume) -> Result<(), VolumeError> {
        if !self.nodes.volumes().any(|held| held == (node, volume)) {
            return Err(VolumeError::Unknown { node: node.clone(), volume: volume.clone() });
        }
        if self.is_mounted(volume) {
            return Err(VolumeError::Used(volume.clone()));
        }
        match self.nodes.online(node) {
            true => Ok(()),
            false => Err(VolumeError::Offline(node.clone())),
        }
    }

    /// The node has removed it: nobody is held to it, before the node's own list says so.
    pub(crate) fn forget_volume(&mut self, node: &NodeId, volume: &HeldVolume) {
        let inventory = self.nodes.table.get_mut(node).and_then(|known| known.inventory.as_mut());
        if let Some(inventory) = inventory {
            inventory.volumes.retain(|held| held != volume);
        }
        self.advance();
    }
}
