//! Shaping and custom routes of one node.
//!
//! In: the node's desired state and the settings of its links. Out: HTB classes, policy routes, one
//! nftables table and a few sysctls in the network namespace of the calling thread, and what stood in
//! the way. [`Network::apply`] is level-triggered: it lists what the kernel has, compares, and makes
//! the least change, in place; a second call changes nothing.
//!
//! A change goes `plan` (document to wanted objects, pure) -> `diff` (wanted minus found to ordered
//! operations, pure) -> `kernel` (one operation, one message).
//!
//! Invariant: only objects with our mark (see `tag`) are ever changed or removed, sysctls excepted,
//! whose first values are kept on disk and restored by [`Network::purge`].

mod address;
mod announce;
mod diff;
mod error;
#[cfg(any(test, feature = "fakes"))]
pub mod fake;
mod firewall;
mod kernel;
mod linux;
mod minor;
mod netlink;
mod network;
mod object;
mod orphans;
mod plan;
mod probe;
mod record;
mod settings;
mod shape;
mod sysctl;
mod tag;
#[cfg(test)]
mod tests;
pub mod watch;

pub use address::{Address, addresses};
pub use error::{NetError, Problem};
pub use kernel::{Kernel, KernelError, Offered};
pub use linux::Linux;
pub use network::{Applied, FlowCounter, Network};
pub use object::{
    Class, Counter, Element, ForwardAccept, Found, Leaf, Operation, Prefix, Root, Route, Rule, Table,
    TableChange,
};
pub use orphans::remove_orphans;
pub use probe::NetCapabilities;
pub use settings::{LinkSettings, Settings};
pub use tag::PULL_PRIORITY;
