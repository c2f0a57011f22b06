//! Kernel objects of ours as plain values: what is listed, what is wanted, and the steps between.

use edgeloom_common::desired::{FlowKey, Pool};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

/// A network: address and prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    pub address: Ipv4Addr,
    pub len: u8,
}

impl Prefix {
    /// One host.
    #[must_use]
    pub fn host(address: Ipv4Addr) -> Self {
        Self { address, len: 32 }
    }

    /// The netmask as a number.
    #[must_use]
    pub fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.len.min(32))).unwrap_or(0)
    }

    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask() == self.address.to_bits() & self.mask()
    }

    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

impl From<&Pool> for Prefix {
    fn from(pool: &Pool) -> Self {
        Self { address: pool.network, len: pool.prefix_len }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// A route of ours: a task in the main table, or a neighbour's default.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub table: u32,
    pub destination: Prefix,
    pub gateway: Ipv4Addr,
    pub interface: String,
}

/// A policy rule of ours: packets of a mark look in a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    pub priority: u32,
    pub mark: u32,
    pub table: u32,
    /// Only packets that came in here.
    pub interface: Option<String>,
}

/// What sits at the root of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// What the kernel attached by itself.
    Kernel,
    /// Our HTB.
    Ours,
    /// Set up by someone else.
    Foreign { kind: String },
}

/// An HTB class; rates in bytes a second of wire frames. Bursts are times, in the scheduler's ticks of
/// 64 ns, as the kernel takes and gives them: in bytes they would not read back as they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    pub rate: u64,
    pub ceil: u64,
    pub burst_ticks: u32,
    pub ceil_burst_ticks: u32,
    /// 0 is served first, 7 last.
    pub priority: u32,
}

/// The queue of a leaf class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    FqCodel,
    /// `limit` in bytes.
    Bfifo {
        limit: u32,
    },
    /// The default queue or one set by someone else.
    Other,
}

/// Our nftables table as far as it is worth comparing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The pool of its masquerade rule; none when chains or rules are not as we made them.
    pub pool: Option<Prefix>,
    /// Flow to firewall mark.
    pub marks: BTreeMap<FlowKey, u32>,
    /// Flow to HTB classid.
    pub classes: BTreeMap<FlowKey, u32>,
}

/// A map element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element {
    pub key: FlowKey,
    pub value: u32,
}

/// An accept for the pool's own traffic in a chain of the filter table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForwardAccept {
    pub chain: String,
    pub pool: Prefix,
}

/// Everything the kernel has that decides what to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Interfaces by name; the value says whether it is up and has a carrier.
    pub interfaces: BTreeMap<String, bool>,
    pub roots: BTreeMap<String, Root>,
    /// Classes under our roots, by interface and minor.
    pub classes: BTreeMap<(String, u16), Class>,
    /// Leaf queues under our roots, by interface and class minor.
    pub leaves: BTreeMap<(String, u16), Leaf>,
    pub routes: BTreeSet<Route>,
    /// Routes of others in the main table, defaults left out.
    pub foreign_routes: BTreeSet<(Prefix, String)>,
    pub rules: BTreeSet<Rule>,
    pub table: Option<Table>,
    /// Chain that needs our accept: DOCKER-USER, or FORWARD when it drops.
    pub forward_chain: Option<String>,
    pub accepts: BTreeSet<ForwardAccept>,
}

/// What a class has sent and holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    pub bytes: u64,
    /// Bytes waiting.
    pub backlog: u64,
    /// Packets waiting.
    pub packets: u32,
}

/// One transaction on our table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableChange {
    /// Make the table, its maps, chains and rules anew, for this pool.
    pub replace: Option<Prefix>,
    pub remove_marks: Vec<Element>,
    pub remove_classes: Vec<Element>,
    pub add_marks: Vec<Element>,
    pub add_classes: Vec<Element>,
}

impl TableChange {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One step; each is one message to the kernel but for the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    AddRoot {
        interface: String,
    },
    RemoveRoot {
        interface: String,
    },
    /// Made, or changed in place.
    PutClass {
        interface: String,
        minor: u16,
        class: Class,
    },
    RemoveClass {
        interface: String,
        minor: u16,
    },
    PutLeaf {
        interface: String,
        minor: u16,
        leaf: Leaf,
    },
    /// Made, or the gateway of the same destination changed in place.
    PutRoute(Route),
    RemoveRoute(Route),
    AddRule(Rule),
    RemoveRule(Rule),
    ChangeTable(TableChange),
    RemoveTable,
    AddAccept(ForwardAccept),
    RemoveAccept(ForwardAccept),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddRoot { interface } => write!(f, "adding HTB to {interface}"),
            Self::RemoveRoot { interface } => write!(f, "removing HTB from {interface}"),
            Self::PutClass { interface, minor, .. } => write!(f, "setting class {minor:x} on {interface}"),
            Self::RemoveClass { interface, minor } => write!(f, "removing class {minor:x} from {interface}"),
            Self::PutLeaf { interface, minor, .. } => {
                write!(f, "setting the queue of class {minor:x} on {interface}")
            }
            Self::PutRoute(route) => {
                write!(f, "setting the route to {} in table {}", route.destination, route.table)
            }
            Self::RemoveRoute(route) => {
                write!(f, "removing the route to {} from table {}", route.destination, route.table)
            }
            Self::AddRule(rule) => write!(f, "adding rule {}", rule.priority),
            Self::RemoveRule(rule) => write!(f, "removing rule {}", rule.priority),
            Self::ChangeTable(_) => f.write_str("changing the nftables table"),
            Self::RemoveTable => f.write_str("removing the nftables table"),
            Self::AddAccept(accept) => write!(f, "accepting the pool in chain {}", accept.chain),
            Self::RemoveAccept(accept) => write!(f, "removing the accept from chain {}", accept.chain),
        }
    }
}
