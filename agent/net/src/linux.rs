//! The real kernel: the network namespace of the thread that opened it.
//!
//! Sockets stay with their namespace wherever they are used; sysctls and `iptables` follow the calling
//! thread, so all calls belong to the thread that opened this.

use crate::announce;
use crate::firewall;
use crate::kernel::{Kernel, KernelError, Offered};
use crate::netlink::message::Message;
use crate::netlink::nft::{self, Netfilter};
use crate::netlink::qdisc::Listed;
use crate::netlink::socket::Connection;
use crate::netlink::{class, link, neighbour, qdisc, route, rule};
use crate::object::{Class, Counter, Found, Leaf, Operation, Root, Route};
use crate::sysctl;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The temporary pair that capabilities are tried on.
const PROBE_LINK: &str = "el-probe0";
const PROBE_PEER: &str = "el-probe1";
/// The table that is made and removed within one transaction.
const PROBE_TABLE: &str = "edgeloom-probe";

/// One network namespace of this machine.
#[derive(Debug)]
pub struct Linux {
    route: Connection<Message>,
    /// None where the kernel has no nfnetlink.
    netfilter: Option<Netfilter>,
    /// Interface indices as of the last listing.
    indices: BTreeMap<String, u32>,
}

impl Linux {
    /// Opens the calling thread's network namespace.
    pub fn open() -> Result<Self, KernelError> {
        let route = Connection::open(NETLINK_ROUTE)?;
        route.filter_dumps();
        let netfilter = Connection::open(NETLINK_NETFILTER)
            .inspect_err(|error| tracing::warn!(%error, "nfnetlink cannot be opened"))
            .ok();
        Ok(Self { route, netfilter, indices: BTreeMap::new() })
    }

    fn list_links(&mut self) -> Result<BTreeMap<String, bool>, KernelError> {
        let links = link::list(&mut self.route)?;
        self.indices = links.iter().map(|link| (link.name.clone(), link.index)).collect();
        Ok(links.into_iter().map(|link| (link.name, link.up)).collect())
    }

    /// The index of an interface, looked up anew when it is not known.
    fn index(&mut self, interface: &str) -> Result<u32, KernelError> {
        if !self.indices.contains_key(interface) {
            self.list_links()?;
        }
        let index = self.indices.get(interface).copied();
        index.ok_or_else(|| KernelError::NoInterface { interface: interface.to_owned() })
    }

    fn netfilter(&mut self) -> Result<&mut Netfilter, KernelError> {
        let missing = rustix::io::Errno::PROTONOSUPPORT.raw_os_error();
        self.netfilter.as_mut().ok_or(KernelError::Refused { errno: missing })
    }

    fn list_shaping(
        &mut self,
        names: &BTreeMap<u32, String>,
        interfaces: &BTreeSet<&str>,
        found: &mut Found,
    ) -> Result<(), KernelError> {
        for listed in qdisc::list(&mut self.route)? {
            match listed {
                Listed::Root { index, root } => {
                    found.roots.extend(names.get(&index).map(|name| (name.clone(), root)));
                }
                Listed::Leaf { index, minor, leaf } => {
                    found.leaves.extend(names.get(&index).map(|name| ((name.clone(), minor), leaf)));
                }
            }
        }
        for interface in interfaces {
            if found.roots.get(*interface) != Some(&Root::Ours) {
                continue;
            }
            let index = self.index(interface)?;
            let classes = class::list(&mut self.route, index)?;
            found.classes.extend(
                classes.into_iter().map(|(minor, class, _)| (((*interface).to_owned(), minor), class)),
            );
        }
        Ok(())
    }

    fn list_routing(&mut self, names: &BTreeMap<u32, String>, found: &mut Found) -> Result<(), KernelError> {
        for listed in route::list(&mut self.route)? {
            let interface = listed.index.and_then(|index| names.get(&index)).cloned();
            if !listed.ours {
                if listed.destination.len > 0 {
                    let interface = interface.unwrap_or_else(|| "several interfaces".to_owned());
                    found.foreign_routes.insert((listed.destination, interface));
                }
                continue;
            }
            let Some(interface) = interface else { continue };
            // A route of ours always has a gateway; the unspecified address makes any other differ.
            let gateway = listed.gateway.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED);
            let (table, destination) = (listed.table, listed.destination);
            found.routes.insert(Route { table, destination, gateway, interface });
        }
        found.rules = rule::list(&mut self.route)?.into_iter().collect();
        Ok(())
    }

    /// Tries HTB and its leaves on an interface of our own.
    fn try_shaping(&mut self) -> Result<(bool, bool), KernelError> {
        self.indices.remove(PROBE_LINK);
        let index = self.index(PROBE_LINK)?;
        if !supported(qdisc::add_root(&mut self.route, index))? {
            return Ok((false, false));
        }
        let class = Class {
            rate: 125_000,
            ceil: 125_000,
            burst_ticks: 1 << 20,
            ceil_burst_ticks: 1 << 20,
            priority: 0,
        };
        let htb = supported(class::put(&mut self.route, index, 1, class))?;
        let fq_codel = htb && supported(qdisc::put_leaf(&mut self.route, index, 1, Leaf::FqCodel))?;
        Ok((htb, fq_codel))
    }
}

/// A refusal other than for lack of rights means that the kernel cannot do it.
fn supported(outcome: Result<(), KernelError>) -> Result<bool, KernelError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.is_permission() => Err(error),
        Err(KernelError::Refused { errno }) => {
            tracing::debug!(errno, "tried in vain");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Removing what is gone is done.
fn gone_is_done(outcome: Result<(), KernelError>) -> Result<(), KernelError> {
    match outcome {
        Err(error) if error.is_gone() => Ok(()),
        outcome => outcome,
    }
}

impl Kernel for Linux {
    fn list(&mut self, interfaces: &BTreeSet<&str>) -> Result<Found, KernelError> {
        let mut found = Found { interfaces: self.list_links()?, ..Found::default() };
        let names: BTreeMap<u32, String> =
            self.indices.iter().map(|(name, index)| (*index, name.clone())).collect();
        self.list_shaping(&names, interfaces, &mut found)?;
        self.list_routing(&names, &mut found)?;
        if let Some(netfilter) = &mut self.netfilter {
            found.table = nft::list(netfilter)?;
        }
        let filter = firewall::list()?;
        found.forward_chain = filter.chain;
        found.accepts = filter.accepts;
        Ok(found)
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), KernelError> {
        match operation {
            Operation::AddRoot { interface } => {
                let index = self.index(interface)?;
                qdisc::add_root(&mut self.route, index)
            }
            Operation::RemoveRoot { interface } => {
                let removed =
                    self.index(interface).and_then(|index| qdisc::remove_root(&mut self.route, index));
                gone_is_done(removed)
            }
            Operation::PutClass { interface, minor, class } => {
                let index = self.index(interface)?;
                class::put(&mut self.route, index, *minor, *class)
            }
            Operation::RemoveClass { interface, minor } => {
                let removed =
                    self.index(interface).and_then(|index| class::remove(&mut self.route, index, *minor));
                gone_is_done(removed)
            }
            Operation::PutLeaf { interface, minor, leaf } => {
                let index = self.index(interface)?;
                qdisc::put_leaf(&mut self.route, index, *minor, *leaf)
            }
            Operation::PutRoute(wanted) => {
                let index = self.index(&wanted.interface)?;
                route::put(&mut self.route, wanted, index)
            }
            Operation::RemoveRoute(old) => {
                let removed =
                    self.index(&old.interface).and_then(|index| route::remove(&mut self.route, old, index));
                gone_is_done(removed)
            }
            Operation::AddRule(wanted) => rule::add(&mut self.route, wanted),
            Operation::RemoveRule(old) => gone_is_done(rule::remove(&mut self.route, old)),
            Operation::ChangeTable(change) => nft::change(self.netfilter()?, change),
            Operation::RemoveTable => gone_is_done(nft::remove(self.netfilter()?)),
            Operation::AddAccept(accept) => firewall::add(accept),
            Operation::RemoveAccept(accept) => firewall::remove(accept),
        }
    }

    fn announce(&mut self, bridge: &str, addresses: &[Ipv4Addr]) -> Result<(), KernelError> {
        let index = self.index(bridge)?;
        for address in addresses {
            gone_is_done(neighbour::remove(&mut self.route, *address, index))?;
        }
        announce::announce(bridge, addresses)
    }

    fn counters(&mut self, interface: &str) -> Result<BTreeMap<u16, Counter>, KernelError> {
        let index = self.index(interface)?;
        let classes = class::list(&mut self.route, index)?;
        Ok(classes.into_iter().map(|(minor, _, counter)| (minor, counter)).collect())
    }

    fn sysctl(&mut self, key: &str) -> Result<Option<String>, KernelError> {
        sysctl::read(key)
    }

    fn set_sysctl(&mut self, key: &str, value: &str) -> Result<(), KernelError> {
        sysctl::write(key, value)
    }

    fn offered(&mut self) -> Result<Offered, KernelError> {
        // One may be left from a run that was killed in between.
        gone_is_done(link::remove(&mut self.route, PROBE_LINK))?;
        let made = supported(link::add_pair(&mut self.route, PROBE_LINK, PROBE_PEER))?;
        let shaping = if made { self.try_shaping() } else { Ok((false, false)) };
        gone_is_done(link::remove(&mut self.route, PROBE_LINK))?;
        self.indices.remove(PROBE_LINK);
        let (htb, fq_codel) = shaping?;
        let nft_maps = match &mut self.netfilter {
            Some(netfilter) => supported(nft::try_ruleset(netfilter, PROBE_TABLE))?,
            None => false,
        };
        Ok(Offered { htb, fq_codel, nft_maps })
    }
}
