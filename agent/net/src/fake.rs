//! A kernel that behaves like the real one as far as the reconciler can tell, for fast tests.

use crate::kernel::{Kernel, KernelError, Offered};
use crate::object::{Counter, Element, Found, Operation, Root, Table, TableChange};
use crate::tag::LINK_MINOR;
use edgeloom_common::desired::FlowKey;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A network namespace in memory.
#[derive(Debug, Clone)]
pub struct Fake {
    /// What is there; a test may put foreign things in.
    pub state: Found,
    pub sysctls: BTreeMap<String, String>,
    pub counters: BTreeMap<(String, u16), Counter>,
    pub offered: Offered,
    /// Every operation that was asked for, in order.
    pub performed: Vec<Operation>,
    /// Every address that was announced, in order.
    pub announced: Vec<Ipv4Addr>,
    /// Refuse every change, as the kernel does without CAP_NET_ADMIN.
    pub denied: bool,
}

impl Fake {
    /// A namespace with these interfaces up, a stack as Linux starts it, and everything on offer.
    #[must_use]
    pub fn with_interfaces(interfaces: &[&str]) -> Self {
        let mut state = Found::default();
        let mut sysctls = BTreeMap::from([("net/ipv4/ip_forward".to_owned(), "0".to_owned())]);
        for interface in interfaces.iter().chain(&["all"]) {
            let defaults =
                [("rp_filter", "1"), ("send_redirects", "1"), ("accept_redirects", "1"), ("proxy_arp", "0")];
            for (name, value) in defaults {
                sysctls.insert(format!("net/ipv4/conf/{interface}/{name}"), value.to_owned());
            }
            sysctls.insert(format!("net/ipv4/neigh/{interface}/proxy_delay"), "80".to_owned());
        }
        for interface in interfaces {
            state.interfaces.insert((*interface).to_owned(), true);
            state.roots.insert((*interface).to_owned(), Root::Kernel);
        }
        let offered = Offered { htb: true, fq_codel: false, nft_maps: true };
        let (counters, performed, announced) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { state, sysctls, counters, offered, performed, announced, denied: false }
    }

    fn present(&self, interface: &str) -> Result<bool, KernelError> {
        let up = self.state.interfaces.get(interface).copied();
        up.ok_or_else(|| KernelError::NoInterface { interface: interface.to_owned() })
    }

    fn root(&mut self, interface: &str) -> Result<(), KernelError> {
        self.present(interface)?;
        let free = self.state.roots.get(interface) == Some(&Root::Kernel);
        check(free, Errno::EXIST)?;
        self.state.roots.insert(interface.to_owned(), Root::Ours);
        Ok(())
    }

    fn remove_root(&mut self, interface: &str) {
        if self.state.roots.get(interface) == Some(&Root::Ours) {
            self.state.roots.insert(interface.to_owned(), Root::Kernel);
            self.state.classes.retain(|(of, _), _| of != interface);
            self.state.leaves.retain(|(of, _), _| of != interface);
        }
    }

    fn class_may_be(&self, interface: &str, minor: u16) -> Result<(), KernelError> {
        self.present(interface)?;
        check(self.state.roots.get(interface) == Some(&Root::Ours), Errno::INVAL)?;
        let parent = self.state.classes.contains_key(&(interface.to_owned(), LINK_MINOR));
        check(minor == LINK_MINOR || parent, Errno::NOENT)
    }

    fn change_table(&mut self, change: &TableChange) -> Result<(), KernelError> {
        let fresh = |pool| Table { pool: Some(pool), marks: BTreeMap::new(), classes: BTreeMap::new() };
        let table = change.replace.map(fresh).or_else(|| self.state.table.clone());
        let Some(mut table) = table else {
            return check(false, Errno::NOENT);
        };
        remove_elements(&mut table.marks, &change.remove_marks)?;
        remove_elements(&mut table.classes, &change.remove_classes)?;
        add_elements(&mut table.marks, &change.add_marks)?;
        add_elements(&mut table.classes, &change.add_classes)?;
        self.state.table = Some(table);
        Ok(())
    }
}

fn check(holds: bool, errno: Errno) -> Result<(), KernelError> {
    if holds { Ok(()) } else { Err(KernelError::Refused { errno: errno.raw_os_error() }) }
}

fn remove_elements(map: &mut BTreeMap<FlowKey, u32>, elements: &[Element]) -> Result<(), KernelError> {
    elements.iter().try_for_each(|element| check(map.remove(&element.key).is_some(), Errno::NOENT))
}

fn add_elements(map: &mut BTreeMap<FlowKey, u32>, elements: &[Element]) -> Result<(), KernelError> {
    elements.iter().try_for_each(|element| {
        let same = map.insert(element.key, element.value).is_none_or(|old| old == element.value);
        check(same, Errno::EXIST)
    })
}

impl Kernel for Fake {
    fn list(&mut self, interfaces: &BTreeSet<&str>) -> Result<Found, KernelError> {
        let mut found = self.state.clone();
        found.classes.retain(|(interface, _), _| interfaces.contains(interface.as_str()));
        Ok(found)
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), KernelError> {
        check(!self.denied, Errno::PERM)?;
        self.performed.push(operation.clone());
        match operation {
            Operation::AddRoot { interface } => self.root(interface)?,
            Operation::RemoveRoot { interface } => self.remove_root(interface),
            Operation::PutClass { interface, minor, class } => {
                self.class_may_be(interface, *minor)?;
                self.state.classes.insert((interface.clone(), *minor), *class);
            }
            Operation::RemoveClass { interface, minor } => {
                self.state.classes.remove(&(interface.clone(), *minor));
                self.state.leaves.remove(&(interface.clone(), *minor));
            }
            Operation::PutLeaf { interface, minor, leaf } => {
                let place = (interface.clone(), *minor);
                check(self.state.classes.contains_key(&place), Errno::NOENT)?;
                self.state.leaves.insert(place, *leaf);
            }
            Operation::PutRoute(route) => {
                check(self.present(&route.interface)?, Errno::NETDOWN)?;
                let same =
                    |old: &crate::Route| old.table == route.table && old.destination == route.destination;
                self.state.routes.retain(|old| !same(old));
                self.state.routes.insert(route.clone());
            }
            Operation::RemoveRoute(route) => {
                self.state.routes.remove(route);
            }
            Operation::AddRule(rule) => check(self.state.rules.insert(rule.clone()), Errno::EXIST)?,
            Operation::RemoveRule(rule) => {
                self.state.rules.remove(rule);
            }
            Operation::ChangeTable(change) => self.change_table(change)?,
            Operation::RemoveTable => self.state.table = None,
            Operation::AddAccept(accept) => {
                self.state.accepts.insert(accept.clone());
            }
            Operation::RemoveAccept(accept) => {
                self.state.accepts.remove(accept);
            }
        }
        Ok(())
    }

    fn announce(&mut self, bridge: &str, addresses: &[Ipv4Addr]) -> Result<(), KernelError> {
        check(!self.denied, Errno::PERM)?;
        self.present(bridge)?;
        self.announced.extend(addresses);
        Ok(())
    }

    fn counters(&mut self, interface: &str) -> Result<BTreeMap<u16, Counter>, KernelError> {
        self.present(interface)?;
        let classes = self.state.classes.keys().filter(|(of, _)| of == interface);
        Ok(classes.map(|place| (place.1, self.counters.get(place).copied().unwrap_or_default())).collect())
    }

    fn sysctl(&mut self, key: &str) -> Result<Option<String>, KernelError> {
        Ok(self.sysctls.get(key).cloned())
    }

    fn set_sysctl(&mut self, key: &str, value: &str) -> Result<(), KernelError> {
        check(!self.denied, Errno::PERM)?;
        let old = self.sysctls.insert(key.to_owned(), value.to_owned());
        check(old.is_some(), Errno::NOENT)?;
        if key == crate::sysctl::IP_FORWARD && old.as_deref() != Some(value) {
            // As `inet_forward_change` does: a router accepts no redirects, a host does.
            let accepts = if value == "1" { "0" } else { "1" };
            self.sysctls.insert("net/ipv4/conf/all/accept_redirects".to_owned(), accepts.to_owned());
        }
        Ok(())
    }

    fn offered(&mut self) -> Result<Offered, KernelError> {
        check(!self.denied, Errno::PERM)?;
        Ok(self.offered)
    }
}
