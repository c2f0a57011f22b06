//! Image blobs between a registry and the Docker of this node.
//!
//! In: pulls that the agent admits, neighbours that may have blobs, and what is granted to them. Out: a
//! registry on the loopback address from which Docker pulls, with every blob kept on disk by its digest, up to a
//! budget, and the same blobs for neighbours. So a pull that was cut off goes on where it was,
//! whoever died; layers that Docker threw away are not fetched again; and one download serves all who ask.
//! Invariants: what is kept as whole has the digest that it is kept by; nobody without the token of an admitted
//! pull gets anything; a stream holds at most [`CHUNK_BYTES`].
//!
//! The protocol is the OCI distribution specification 1.1, as far as a pull by digest goes.

mod answer;
mod failure;
mod flight;
mod http;
mod inspect;
mod manifest;
mod neighbours;
mod pace;
mod proxy;
mod reader;
mod server;
mod sources;
mod store;
mod ticket;
mod upstream;

pub use edgeloom_common::digest::Digest;
pub use failure::{Blame, Failure};
pub use http::HttpError;
pub use inspect::{InspectError, Layers};
pub use neighbours::{Grants, Neighbours};
pub use pace::{Lane, Meter, Pace};
pub use proxy::Proxy;
pub use sources::Sources;
pub use store::{Store, StoreError};
pub use ticket::{Counts, Ticket};
pub use upstream::Upstream;

/// The most that one stream holds in memory, in bytes.
pub const CHUNK_BYTES: usize = 64 * 1024;
