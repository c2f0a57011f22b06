//! Wanted and found things of the fast tests.

use crate::engine::{FoundContainer, FoundState, Hold, Limits, Owner, TaskKey, Times};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef, Pool};
use edgeloom_common::units::{Bytes, MilliCores};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The digest of the one image that [`spec`] names.
pub const DIGEST: &str = "sha256:a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

/// A wanted container of job `j`; its address follows from the task's name.
#[must_use]
pub fn spec(task: &str, hash: &str) -> ContainerSpec {
    let last = task.bytes().fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    ContainerSpec {
        job: "j".parse().expect("a constant name"),
        task: task.parse().expect("tests name their tasks well"),
        spec_hash: hash.to_owned(),
        image: ImageRef {
            repository: "registry/app".to_owned(),
            digest: DIGEST.to_owned(),
            name: "app".to_owned(),
        },
        command: Vec::new(),
        environment: BTreeMap::new(),
        cpu: MilliCores(100),
        memory: Bytes(16 << 20),
        address: Ipv4Addr::new(10, 77, 1, last),
        hosts: BTreeMap::new(),
        secrets: BTreeMap::new(),
        to_end: None,
        ports: Vec::new(),
        mounts: Vec::new(),
    }
}

/// A found container of job `j`.
#[must_use]
pub fn found(task: &str, hash: &str, state: FoundState) -> FoundContainer {
    let spec = spec(task, hash);
    FoundContainer {
        id: format!("id-{task}-{hash}"),
        key: TaskKey::of(&spec),
        limits: Limits::of(&spec).into(),
        spec_hash: spec.spec_hash,
        address: Some(spec.address),
        state,
        times: Times::default(),
        hold: Hold::Free,
    }
}

/// The owner in the fast tests.
#[must_use]
pub fn owner() -> Owner {
    Owner { cluster: "test".parse().expect("a constant name"), node: "n1".parse().expect("a constant name") }
}

/// A document for [`owner`] with these containers.
#[must_use]
pub fn document(generation: u64, containers: Vec<ContainerSpec>) -> DesiredState {
    let pool =
        Pool { network: Ipv4Addr::new(10, 77, 0, 0), prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let Owner { cluster, node } = owner();
    DesiredState { generation, containers, epoch: 1, ..DesiredState::empty(cluster, node, pool) }
}
