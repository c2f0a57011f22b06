//! The links to the neighbours: round trip, loss, capacity, and whether a neighbour is there at all.
//!
//! In: our address and the neighbour's on each link. Out: [`LinkEvent`]s on a bounded channel.
//! The two agents of a link probe each other over UDP: a 64-byte echo each second, quickly again where one
//! is not answered, and now and then
//! a train of full frames, from whose arrival times the receiver reads the capacity. A train shows
//! what the link can carry, not what is left of it, and waits while others use the link, unless a queue
//! stands where the link should have room. No two trains of a node run at once.
//! Datagrams that are no probes, or come from anyone but the configured neighbours, are counted and
//! ignored; an answer is never longer than its question.

mod answer;
mod link;
mod packet;
mod probe;
mod socket;
mod track;
mod traffic;
mod train;

pub use probe::Prober;

use edgeloom_common::ids::NodeId;
use edgeloom_common::report::LinkReport;
use edgeloom_common::units::BitRate;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The UDP port of the probes, the same on all nodes.
pub const PORT: u16 = 7117;

/// One link of this node, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    pub neighbour: NodeId,
    pub interface: String,
    /// Ours on the link.
    pub address: Ipv4Addr,
    pub neighbour_address: Ipv4Addr,
    /// Declared wire rate, passed on in the reports.
    pub capacity: Option<BitRate>,
}

/// What happened on the links.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkEvent {
    /// All links, as measured: when something changed, and each minute.
    Report(Vec<LinkReport>),
    /// The neighbour does not answer, or the interface has no carrier.
    Down(NodeId),
    /// The neighbour answers, for the first time or steadily again.
    Up(NodeId),
}

/// Why the links cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    #[error("neighbour {neighbour} has two links; probe it over one")]
    Neighbour { neighbour: NodeId },
    #[error("links to {first} and {second} have the same addresses")]
    Addresses { first: NodeId, second: NodeId },
    #[error("cannot open the probe socket on {address}: {cause}")]
    Socket { address: SocketAddrV4, cause: io::Error },
}
