//! What can go wrong, in two kinds: errors that end a call, and problems with one object that leave
//! the others applied.

use crate::kernel::KernelError;
use crate::object::Prefix;
use edgeloom_common::desired::FlowKey;
use edgeloom_common::ids::{FlowId, NodeId};
use edgeloom_common::units::BitRate;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Why a call could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error("{links} links are configured, at most {max} fit the rule priorities")]
    TooManyLinks { links: usize, max: usize },
    #[error(
        "interface name {name:?} is none: 1 to {max} printable characters without '/', and not a reserved word"
    )]
    InterfaceName { name: String, max: usize },
    #[error("neighbour {neighbour} has two links in the configuration; remove one")]
    DuplicateNeighbour { neighbour: NodeId },
    #[error("interface {interface} is the bridge of the tasks and cannot be a link; name another")]
    BridgeAsLink { interface: String },
    #[error("pool {pool} is no network: the length is 8 to 30 and the host bits are zero")]
    PoolInvalid { pool: Prefix },
    #[error(
        "pool {pool} overlaps the route to {route} on {interface}; choose another pool or remove the route"
    )]
    PoolOverlap { pool: Prefix, route: Prefix, interface: String },
    #[error("neighbour {neighbour} has no link in the configuration; add a [[link]] entry")]
    UnknownNeighbour { neighbour: NodeId },
    #[error("the kernel refuses changes to the network; run as root or with CAP_NET_ADMIN")]
    Permission,
    #[error("{doing}: {source}")]
    Kernel { doing: &'static str, source: KernelError },
    #[error("{operation}: {source}")]
    Operation { operation: String, source: KernelError },
    #[error("record of sysctls {path}: {source}", path = path.display())]
    Record { path: PathBuf, source: std::io::Error },
}

/// What stands in the way of one object; the others are applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("flow {flow}: next hop {next_hop} is no neighbour; add a [[link]] for it to agent.toml")]
    UnknownNextHop { flow: FlowId, next_hop: NodeId },
    #[error("flow {flow}: the same packets ({key:?}) belong to another flow already; give one another port")]
    DuplicateKey { flow: FlowId, key: FlowKey },
    #[error("flow {flow}: rate {rate} is below the least, {least}; ask for more")]
    RateTooLow { flow: FlowId, rate: BitRate, least: BitRate },
    #[error("flow {flow}: all {max} classes are taken; stop other flows of this node first")]
    NoClassLeft { flow: FlowId, max: u16 },
    #[error("flow {flow}: the kernel has no HTB, its rate is not enforced; load the module sch_htb")]
    NoShaping { flow: FlowId },
    #[error("{flows} flows take the main route: the kernel has no nftables maps; load the module nf_tables")]
    NoMaps { flows: usize },
    #[error("route to {address}: {via} is no neighbour; add a [[link]] for it to agent.toml")]
    UnknownVia { address: Ipv4Addr, via: NodeId },
    #[error("route to {address}: it is outside the pool {pool}")]
    OutsidePool { address: Ipv4Addr, pool: Prefix },
    #[error("route to {address}: two neighbours are named for it, {via} is left out")]
    DuplicateRoute { address: Ipv4Addr, via: NodeId },
    #[error(
        "link to {neighbour}: interface {interface} does not exist, is down or has no carrier; \
         bring it up, plug it in or correct agent.toml"
    )]
    LinkUnusable { neighbour: NodeId, interface: String },
    #[error(
        "interface {interface}: its queueing discipline {kind} is not ours and is kept, flows are not shaped there; \
         remove it with `tc qdisc del dev {interface} root`"
    )]
    ForeignQdisc { interface: String, kind: String },
    #[error("sysctl {key} is {found:?} and cannot be set to {wanted}; set it in /etc/sysctl.d ({cause})")]
    Sysctl { key: String, found: String, wanted: String, cause: String },
    #[error("{operation}: {cause}")]
    Refused { operation: String, cause: String },
}

impl Problem {
    /// The document is not in force for as long as this lasts. A link that is down is the world's matter: the
    /// controller knows of it, and has to be able to change what is led over other links.
    #[must_use]
    pub fn hinders(&self) -> bool {
        !matches!(self, Self::LinkUnusable { .. })
    }
}
