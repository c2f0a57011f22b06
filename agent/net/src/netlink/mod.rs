//! Netlink, one verb one message: each file writes and reads one kind of object.
//!
//! Invariant: nothing here decides; what is sent is what was asked for, and every request waits for the
//! kernel's own answer to it.

pub(crate) mod class;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod namespace;
pub(crate) mod neighbour;
pub(crate) mod nft;
pub(crate) mod qdisc;
pub(crate) mod route;
pub(crate) mod rule;
pub(crate) mod socket;
