//! Whether a document may become this node's desired state. Pure.
//!
//! The document comes over the network: a foreign cluster, another node, an older version or a document
//! beyond the bounds is refused whole, and the one held stays in force.

use crate::engine::{Owner, TaskKey};
use edgeloom_common::desired::{DesiredState, ImageRef, Pool, SCHEMA, Version};
use edgeloom_common::digest::{Digest, DigestError};
use edgeloom_common::ids::{ClusterId, NodeId};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// More containers than a node of this kind can run: a bound on what one document makes us do.
const CONTAINERS_MAX: usize = 512;
const IMAGES_MAX: usize = 512;
/// As many HTB classes as one interface's minors leave room for, with a margin.
const FLOWS_MAX: usize = 8192;
const ROUTES_MAX: usize = 16_384;
/// Labels of containers are searched and listed: a hash has no need to be longer.
const SPEC_HASH_MAX: usize = 128;

/// What to do with a document that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It takes the place of the one held.
    Take,
    /// It is the one held.
    Repeat,
}

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("desired state of schema {found} refused, this agent reads schema {SCHEMA}; update the agent")]
    Schema { found: u32 },
    #[error(
        "desired state refused, it does not read: {reason}; if the controller is newer, update the agent"
    )]
    Syntax { reason: String },
    #[error("desired state of cluster {found} refused, this node belongs to {own}")]
    Cluster { found: ClusterId, own: ClusterId },
    #[error("desired state of node {found} refused, this node is {own}")]
    Node { found: NodeId, own: NodeId },
    #[error("desired state {}.{} refused, {}.{} is held (epoch.generation)", found.epoch, found.generation, held.epoch, held.generation)]
    Older { found: Version, held: Version },
    #[error("desired state with {count} {kind} refused, at most {max} are taken")]
    TooMany { kind: &'static str, count: usize, max: usize },
    #[error(
        "pool {network}/{prefix_len} with gateway {gateway} refused: no network of 8 to 30 bits with the gateway inside"
    )]
    Pool { network: Ipv4Addr, prefix_len: u8, gateway: Ipv4Addr },
    #[error("task {task} appears twice in the desired state")]
    Duplicate { task: TaskKey },
    #[error("task {task}: address {address} is outside the pool or the gateway's own")]
    Address { task: TaskKey, address: Ipv4Addr },
    #[error("task {task}: its spec hash has {len} characters, 1 to {SPEC_HASH_MAX} are allowed")]
    SpecHash { task: TaskKey, len: usize },
    #[error("image {name:?}: {source}")]
    Digest { name: String, source: DigestError },
}

/// Judges a document against the one held.
pub(crate) fn judge(
    document: &DesiredState,
    held: Option<&DesiredState>,
    own: &Owner,
) -> Result<Verdict, Refusal> {
    check_address(document, own)?;
    let found = document.version();
    match held.map(DesiredState::version) {
        Some(held) if found < held => return Err(Refusal::Older { found, held }),
        Some(held) if found == held => return Ok(Verdict::Repeat),
        _ => {}
    }
    check_bounds(document)?;
    check_pool(&document.pool)?;
    check_containers(document)?;
    document.images.iter().try_for_each(check_image)?;
    Ok(Verdict::Take)
}

fn check_address(document: &DesiredState, own: &Owner) -> Result<(), Refusal> {
    if document.schema != SCHEMA {
        return Err(Refusal::Schema { found: document.schema });
    }
    if document.cluster != own.cluster {
        return Err(Refusal::Cluster { found: document.cluster.clone(), own: own.cluster.clone() });
    }
    if document.node != own.node {
        return Err(Refusal::Node { found: document.node.clone(), own: own.node.clone() });
    }
    Ok(())
}

fn check_bounds(document: &DesiredState) -> Result<(), Refusal> {
    let counts = [
        ("containers", document.containers.len(), CONTAINERS_MAX),
        ("images", document.images.len(), IMAGES_MAX),
        ("flows", document.flows.len(), FLOWS_MAX),
        ("routes", document.routes.len(), ROUTES_MAX),
        ("alternate routes", document.alternates.len(), ROUTES_MAX),
    ];
    match counts.into_iter().find(|(_, count, max)| max < count) {
        Some((kind, count, max)) => Err(Refusal::TooMany { kind, count, max }),
        None => Ok(()),
    }
}

fn check_pool(pool: &Pool) -> Result<(), Refusal> {
    let Pool { network, prefix_len, gateway } = *pool;
    let sound = (8..=30).contains(&prefix_len)
        && network.to_bits() & !mask(prefix_len) == 0
        && contains(pool, gateway);
    if sound { Ok(()) } else { Err(Refusal::Pool { network, prefix_len, gateway }) }
}

/// Host bits are zero; `prefix_len` is 8 to 30.
fn mask(prefix_len: u8) -> u32 {
    u32::MAX << (32 - u32::from(prefix_len))
}

/// A host address of the pool: neither its network nor its broadcast address.
fn contains(pool: &Pool, address: Ipv4Addr) -> bool {
    let mask = mask(pool.prefix_len);
    let host = address.to_bits() & !mask;
    address.to_bits() & mask == pool.network.to_bits() && host != 0 && host != !mask
}

fn check_containers(document: &DesiredState) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for spec in &document.containers {
        let task = TaskKey::of(spec);
        if !seen.insert(task.clone()) {
            return Err(Refusal::Duplicate { task });
        }
        if !contains(&document.pool, spec.address) || spec.address == document.pool.gateway {
            return Err(Refusal::Address { task, address: spec.address });
        }
        if spec.spec_hash.is_empty() || SPEC_HASH_MAX < spec.spec_hash.len() {
            return Err(Refusal::SpecHash { task, len: spec.spec_hash.len() });
        }
        check_image(&spec.image)?;
    }
    Ok(())
}

fn check_image(image: &ImageRef) -> Result<(), Refusal> {
    let refuse = |source| Refusal::Digest { name: image.name.chars().take(80).collect(), source };
    image.digest.parse::<Digest>().map(|_| ()).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{document, owner, spec};

    #[test]
    fn a_newer_document_is_taken_and_the_same_is_a_repeat() {
        let (old, new) = (document(1, vec![]), document(2, vec![]));
        assert_eq!(judge(&new, Some(&old), &owner()), Ok(Verdict::Take));
        assert_eq!(judge(&old, Some(&old), &owner()), Ok(Verdict::Repeat));
    }

    #[test]
    fn a_lower_epoch_is_refused_whatever_its_generation() {
        let held = DesiredState { epoch: 2, ..document(1, vec![]) };
        let stale = DesiredState { epoch: 1, ..document(99, vec![]) };
        assert!(matches!(judge(&stale, Some(&held), &owner()), Err(Refusal::Older { .. })));
    }

    #[test]
    fn a_document_for_another_cluster_or_node_is_refused() {
        let cluster = DesiredState { cluster: "other".parse().unwrap(), ..document(1, vec![]) };
        let node = DesiredState { node: "other".parse().unwrap(), ..document(1, vec![]) };
        assert!(matches!(judge(&cluster, None, &owner()), Err(Refusal::Cluster { .. })));
        assert!(matches!(judge(&node, None, &owner()), Err(Refusal::Node { .. })));
    }

    #[test]
    fn unsound_contents_are_refused() {
        let twice = document(1, vec![spec("a", "h"), spec("a", "h")]);
        assert!(matches!(judge(&twice, None, &owner()), Err(Refusal::Duplicate { .. })));

        let mut outside = document(1, vec![spec("a", "h")]);
        outside.containers[0].address = Ipv4Addr::new(192, 168, 0, 1);
        assert!(matches!(judge(&outside, None, &owner()), Err(Refusal::Address { .. })));

        let mut tag = document(1, vec![spec("a", "h")]);
        tag.containers[0].image.digest = "latest".to_owned();
        assert!(matches!(judge(&tag, None, &owner()), Err(Refusal::Digest { .. })));

        let mut pool = document(1, vec![]);
        pool.pool.prefix_len = 33;
        assert!(matches!(judge(&pool, None, &owner()), Err(Refusal::Pool { .. })));
    }

    #[test]
    fn an_over_large_document_is_refused() {
        let mut large = document(1, vec![]);
        large.images = vec![spec("a", "h").image; IMAGES_MAX + 1];
        assert!(matches!(judge(&large, None, &owner()), Err(Refusal::TooMany { kind: "images", .. })));
    }
}
