//! How full the nodes are: requested shares as the controller counts them, disks as their file systems do.

use crate::ground::Ground;
use anyhow::{Context, Result};
use edgeloom_common::view::NodeView;
use nix::sys::statvfs::statvfs;
use serde::Serialize;

/// Shares of one node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    cpu: f64,
    memory: f64,
}

#[expect(clippy::cast_precision_loss, reason = "shares")]
impl Shares {
    fn of(node: &NodeView) -> Self {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Self {
            cpu: share(node.cpu_requested_millicores.into(), node.cpu_capacity_millicores.into()),
            memory: share(node.memory_requested_bytes, node.memory_capacity_bytes),
        }
    }

    /// The paper's Eq. 11: the standard deviation of the two.
    fn deviation(self) -> f64 {
        (self.cpu - self.memory).abs() / 2.0
    }
}

/// All nodes after a container was placed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Load {
    /// At the container's node.
    pub(super) std: f64,
    /// Mean over nodes, as of the shares.
    pub(super) std_nodes: f64,
    pub(super) cpu_share: f64,
    pub(super) memory_share: f64,
}

#[expect(clippy::cast_precision_loss, reason = "a handful of nodes")]
impl Load {
    /// With a container on `node`, if it was placed.
    pub(super) fn with(ground: &Ground, node: Option<&str>) -> Result<Self> {
        let nodes = ground.api.nodes()?.nodes;
        let here = nodes.iter().find(|one| Some(one.name.as_str()) == node);
        let mean = |of: fn(Shares) -> f64| {
            nodes.iter().map(|node| of(Shares::of(node))).sum::<f64>() / nodes.len().max(1) as f64
        };
        Ok(Self {
            std: here.map_or(0.0, |node| Shares::of(node).deviation()),
            std_nodes: mean(Shares::deviation),
            cpu_share: mean(|shares| shares.cpu),
            memory_share: mean(|shares| shares.memory),
        })
    }
}

/// Bytes used on all nodes' disks.
pub(super) fn disks(ground: &Ground) -> Result<u64> {
    let used = |node: crate::lab::Node<'_>| {
        let path = node.state().join("docker");
        let found = statvfs(&path).with_context(|| path.display().to_string())?;
        Ok((found.blocks() - found.blocks_free()) * found.fragment_size())
    };
    ground.lab.nodes().into_iter().map(used).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_half_the_difference() {
        assert!((Shares { cpu: 0.25, memory: 0.35 }.deviation() - 0.05).abs() < 1e-12);
    }
}
