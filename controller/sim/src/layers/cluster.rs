//! The paper's workers, over and over: four cores; 4, 2, 4 and 4 GB of memory; disks of 30, 30, 20 and 20 GB.

use edgeloom_common::ids::NodeId;
use edgeloom_common::report::LayerInventory;
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_sched::pull::{Goodput, Held};
use edgeloom_sched::snapshot::{Hosting, Node};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Settings;

/// Memory and disk in GB.
const WORKERS: [(u64, u64); 4] = [(4, 30), (2, 30), (4, 20), (4, 20)];
const GB: u64 = 1_000_000_000;

/// Nodes that hold nothing yet.
pub(super) fn nodes(settings: &Settings) -> Vec<Node> {
    (0..settings.nodes).map(|at| node(settings, at)).collect()
}

fn name(at: usize) -> NodeId {
    format!("node-{at:04}").parse().expect("letters, a hyphen and digits make a name")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes and rates are positive and small"
)]
fn node(settings: &Settings, at: usize) -> Node {
    let (memory, disk) = WORKERS[at % WORKERS.len()];
    let held = Held::new(settings.store.into(), &LayerInventory::default());
    Node {
        id: name(at),
        ready: true,
        class: "worker".to_owned(),
        labels: BTreeMap::new(),
        cpu: MilliCores(4000),
        core_speed: 1.0,
        memory: Bytes(memory * GB),
        disk: Bytes(((disk * GB) as f64 * settings.disk_factor) as u64),
        shapes_flows: true,
        hosting: Hosting {
            held: Arc::new(held),
            goodput: Some(Goodput::declared(BitRate(settings.bandwidth_bps as u64))),
            ..Hosting::default()
        },
    }
}
