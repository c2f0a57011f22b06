//! One lab of the experiment: so many of the paper's workers, each with a line of one rate to the registry, and
//! links between all of them.

use crate::build::Build;
use crate::ground::Ground;
use crate::publish;
use anyhow::{Context, Result};
use edgeloom_common::units::BitRate;
use edgeloom_examples::images::ImageSpec;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::Write;

/// Memory in MiB and disk in MB of the paper's workers: their memory, and a fortieth of their disks, as of the
/// images.
const WORKERS: [(u64, u64); 4] = [(4096, 750), (2048, 750), (4096, 500), (4096, 500)];
/// A core's share; a twelfth of a worker's four cores, so that five nodes leave some of this machine's two.
const CORES: f64 = 0.32;
/// What scores go by, a fortieth of the defaults as well.
const SCORING: &str = "[scoring]\nlocal_above = \"250KB\"\nlocality = [\"575KiB\", \"25MiB\"]\nroom_fill = \"1250KB\"\nroom_imbalance = \"3750KB\"\n";
/// Between any two nodes.
const LINK: &str = "50Mbit/s";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Cell {
    pub(super) nodes: u8,
    #[serde(rename = "uplink_bps")]
    pub(super) uplink: BitRate,
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} nodes at {}", self.nodes, self.uplink)
    }
}

impl Cell {
    fn topology(self) -> String {
        let count = usize::from(self.nodes);
        let node = |at: usize| {
            let (memory, disk) = WORKERS[at % WORKERS.len()];
            let disk_mib = disk * 1_000_000 / (1 << 20);
            let uplink = self.uplink.0;
            format!(
                "{{ name = \"n{}\", cores = {CORES}, memory_mib = {memory}, disk_mib = {disk_mib}, uplink = \"{uplink}bit/s\" }},\n",
                at + 1
            )
        };
        let link = |a: usize, b: usize| {
            format!("{{ between = [\"n{}\", \"n{}\"], rate = \"{LINK}\" }},\n", a + 1, b + 1)
        };
        let nodes: String = (0..count).map(node).collect();
        let links: String = (0..count).flat_map(|a| (a + 1..count).map(move |b| link(a, b))).collect();
        format!("nodes = [\n{nodes}]\nlinks = [\n{links}]\n")
    }

    /// A lab whose nodes are ready, and the images in its registry.
    pub(super) fn raise(self, build: &Build) -> Result<(Ground, Vec<ImageSpec>)> {
        let ground = Ground::lay(&self.topology(), build)?;
        let start = || {
            let images = publish::family()?;
            let config = ground.lab.state().join("controller.toml");
            File::options().append(true).open(config)?.write_all(SCORING.as_bytes())?;
            ground.start_cluster().context("starting controller and agents")?;
            ground.await_nodes()?;
            Ok(images)
        };
        match start() {
            Ok(images) => Ok((ground, images)),
            Err(error) => Err(ground.lab.abandon(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn every_number_of_nodes_makes_a_topology_with_all_links() {
        for (nodes, links) in [(3, 3), (4, 6), (5, 10)] {
            let text = Cell { nodes, uplink: BitRate(20_000_000) }.topology();
            let topology = Topology::parse(&text).unwrap();
            assert_eq!((topology.nodes.len(), topology.links.len()), (usize::from(nodes), links));
            assert_eq!(topology.nodes[1].uplink, Some(BitRate(20_000_000)));
        }
    }
}
