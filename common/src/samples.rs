//! What a healthy node tells, for tests: each takes what it is about and changes the rest by struct update, so that
//! a new field is filled in here alone.

use crate::desired::{SCHEMA, Version};
use crate::ids::{JobName, TaskName};
use crate::report::{
    Capabilities, ContainerPhase, ContainerState, ImageStore, Inventory, LayerInventory, LinkReport, Observed,
};
use crate::units::{BitRate, Bytes, MilliCores};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A machine of one core, 1 GiB of memory and 16 GiB of disk that can do what flows need.
///
/// # Panics
/// When that is no name of a cluster.
#[must_use]
pub fn inventory(cluster: &str) -> Inventory {
    Inventory {
        schema: SCHEMA,
        cluster: cluster.parse().expect("the test names a cluster"),
        architecture: "x86_64".to_owned(),
        class: String::new(),
        cpu: MilliCores(1_000),
        core_speed: 1.0,
        memory: Bytes(1 << 30),
        disk: Bytes(1 << 34),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        volumes: Vec::new(),
        capabilities: Capabilities { htb: true, nft_maps: true, ip_forward: true, ..Capabilities::default() },
        store: ImageStore::Graphdriver,
        layers: LayerInventory::default(),
    }
}

/// A link that is up, of 20 Mbit/s as declared.
///
/// # Panics
/// When that is no name of a node.
#[must_use]
pub fn link(neighbour: &str, address: Ipv4Addr) -> LinkReport {
    LinkReport {
        neighbour: neighbour.parse().expect("the test names a node"),
        interface: "eth0".to_owned(),
        address,
        capacity_declared: Some(BitRate(20_000_000)),
        capacity_measured: None,
        rtt_min_us: None,
        rtt_median_us: None,
        loss_permille: 0,
        up: true,
        pulls: false,
    }
}

/// A container that runs.
#[must_use]
pub fn running((job, task): (&JobName, &TaskName), spec_hash: &str) -> ContainerState {
    ContainerState {
        job: job.clone(),
        task: task.clone(),
        spec_hash: spec_hash.to_owned(),
        container_id: "c".to_owned(),
        phase: ContainerPhase::Running,
        restarts: 0,
        detail: String::new(),
        started_ms: Some(1),
        finished_ms: None,
        outcome: None,
    }
}

/// A node on which all is as wanted.
#[must_use]
pub fn observed(version: Version, containers: Vec<ContainerState>) -> Observed {
    Observed {
        schema: SCHEMA,
        version,
        network_applied: true,
        converged: true,
        listed: true,
        containers,
        pulls: Vec::new(),
        prefetched: Vec::new(),
        collected: Vec::new(),
        ended: Vec::new(),
        problems: Vec::new(),
    }
}
