//! The node's network as the agent drives it: apply a document, count flows, follow neighbours, purge.
//!
//! All state that matters is in the kernel; kept here are only which neighbours are down, what the kernel
//! offers (tried once) and which classes
//! the flows of the last document have.

use crate::diff;
use crate::error::{NetError, Problem};
use crate::kernel::{Kernel, KernelError, Offered};
use crate::linux::Linux;
use crate::minor::ClassIds;
use crate::object::{Counter, Found, Operation, Prefix, Root, Route};
use crate::plan::{self, Context};
use crate::probe::{self, NetCapabilities};
use crate::record::Record;
use crate::settings::{LinkSettings, Settings};
use crate::sysctl;
use crate::tag::MAIN_TABLE;
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::{FlowId, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What an apply did and what it could not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Operations and sysctl writes that were done; 0 when everything was as wanted.
    pub changes: usize,
    pub problems: Vec<Problem>,
}

/// What a flow's class has sent, and holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCounter {
    pub id: FlowId,
    /// Wire bytes since the class was made.
    pub bytes: u64,
    /// Bytes waiting now.
    pub backlog: u64,
    /// Packets waiting now.
    pub packets: u32,
}

/// The network of one node.
#[derive(Debug)]
pub struct Network<K = Linux> {
    kernel: K,
    configured: Settings,
    /// With the addresses that the neighbours have by the last document.
    settings: Settings,
    /// None until it could be read.
    record: Option<Record>,
    offered: Option<Offered>,
    down: BTreeSet<NodeId>,
    counted: BTreeMap<FlowId, (String, u16)>,
    class_ids: ClassIds,
}

impl Network<Linux> {
    /// Opens the network namespace of the calling thread, from which all further calls must come.
    pub fn open(settings: Settings) -> Result<Self, NetError> {
        let kernel = Linux::open().map_err(|source| NetError::Kernel { doing: "opening netlink", source })?;
        Self::over(kernel, settings)
    }
}

impl<K: Kernel> Network<K> {
    /// A network over any kernel.
    pub fn over(kernel: K, settings: Settings) -> Result<Self, NetError> {
        let settings = settings.checked()?;
        // An error is told by whatever needs the record first, and again until it reads.
        let record = Record::open(&settings.state_dir).ok();
        Ok(Self {
            kernel,
            configured: settings.clone(),
            settings,
            record,
            offered: None,
            down: BTreeSet::new(),
            counted: BTreeMap::new(),
            class_ids: ClassIds::new(),
        })
    }

    /// The kernel below.
    pub fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    /// Makes the kernel carry the document's flows and routes. A second call changes nothing.
    pub fn apply(&mut self, desired: &DesiredState) -> Result<Applied, NetError> {
        self.settings = self.configured.following(&desired.neighbours);
        let offered = self.offered()?;
        let found = self.list()?;
        plan::check_pool(Prefix::from(&desired.pool), &self.settings.bridge, &found)?;
        let (settings, down, remembered) = (&self.settings, &self.down, &self.class_ids);
        let context = Context { settings, down, offered, found: &found, remembered };
        let wanted = plan::plan(desired, context);
        let operations = diff::diff(&wanted, &found);
        let mut applied = Applied { changes: 0, problems: wanted.problems };
        self.set_sysctls(&found, &mut applied)?;
        for operation in operations {
            tracing::debug!(%operation, "network");
            match self.kernel.perform(&operation) {
                Ok(()) => applied.changes += 1,
                Err(error) if error.is_permission() => return Err(NetError::Permission),
                Err(error) => {
                    let (operation, cause) = (operation.to_string(), error.to_string());
                    applied.problems.push(Problem::Refused { operation, cause });
                }
            }
        }
        self.announce(&wanted.routes, &found);
        self.counted = wanted.counted;
        self.class_ids = wanted.class_ids;
        Ok(applied)
    }

    /// Tasks that had no route before may have been here. Without the announcement neighbours find out by
    /// themselves, later: that it cannot be made costs nothing else.
    fn announce(&mut self, wanted: &BTreeSet<Route>, found: &Found) {
        let here_before = |new: &&Route| {
            !found.routes.iter().any(|old| diff::same_place(new, old)) && new.table == MAIN_TABLE
        };
        let addresses: Vec<Ipv4Addr> =
            wanted.iter().filter(here_before).map(|route| route.destination.address).collect();
        let bridge = &self.settings.bridge;
        if addresses.is_empty() || found.interfaces.get(bridge) != Some(&true) {
            return;
        }
        if let Err(error) = self.kernel.announce(bridge, &addresses) {
            tracing::warn!(%error, bridge, tasks = addresses.len(), "tasks that left cannot be announced");
        }
    }

    /// The counters of the flows that are shaped here, as of the last document applied.
    pub fn flow_counters(&mut self) -> Result<Vec<FlowCounter>, NetError> {
        let interfaces: BTreeSet<&String> = self.counted.values().map(|(interface, _)| interface).collect();
        let mut counters = BTreeMap::new();
        for interface in interfaces {
            match self.kernel.counters(interface) {
                Ok(found) => counters.insert(interface.clone(), found),
                Err(error) if error.is_gone() => continue,
                Err(source) => {
                    return Err(NetError::Kernel { doing: "reading class counters", source });
                }
            };
        }
        let counter = |(interface, minor): &(String, u16)| counters.get(interface)?.get(minor).copied();
        let flow = |(id, place): (&FlowId, &_)| {
            let Counter { bytes, backlog, packets } = counter(place)?;
            Some(FlowCounter { id: id.clone(), bytes, backlog, packets })
        };
        Ok(self.counted.iter().filter_map(flow).collect())
    }

    /// Stops using a neighbour: its flows take the main route until it is up again.
    pub fn neighbour_down(&mut self, neighbour: &NodeId) -> Result<(), NetError> {
        let (place, link) = self.link_to(neighbour)?;
        let operation = Operation::RemoveRoute(plan::neighbour_route(place, link));
        self.down.insert(neighbour.clone());
        self.perform(&operation)
    }

    /// Uses a neighbour again.
    pub fn neighbour_up(&mut self, neighbour: &NodeId) -> Result<(), NetError> {
        let (place, link) = self.link_to(neighbour)?;
        let operation = Operation::PutRoute(plan::neighbour_route(place, link));
        self.down.remove(neighbour);
        self.perform(&operation)
    }

    /// What the kernel can do; tries it on a temporary interface.
    pub fn probe(&mut self) -> NetCapabilities {
        probe::probe(&mut self.kernel)
    }

    /// Removes everything that is ours and puts sysctls back; goes on after an error and returns all.
    pub fn purge(&mut self) -> Result<(), Vec<NetError>> {
        let found = self.list().map_err(|error| vec![error])?;
        let mut errors = Vec::new();
        for operation in removal(&found) {
            errors.extend(self.perform(&operation).err());
        }
        self.counted.clear();
        self.class_ids.clear();
        self.restore_sysctls(&mut errors);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn link_to(&self, neighbour: &NodeId) -> Result<(usize, &LinkSettings), NetError> {
        let mut links = self.settings.links.iter().enumerate();
        links
            .find(|(_, link)| link.neighbour == *neighbour)
            .ok_or_else(|| NetError::UnknownNeighbour { neighbour: neighbour.clone() })
    }

    fn list(&mut self) -> Result<Found, NetError> {
        let listed = self.kernel.list(&self.settings.interfaces());
        listed.map_err(|source| failed("listing the network", source))
    }

    fn offered(&mut self) -> Result<Offered, NetError> {
        if let Some(offered) = self.offered {
            return Ok(offered);
        }
        let offered =
            self.kernel.offered().map_err(|source| failed("trying what the kernel offers", source))?;
        self.offered = Some(offered);
        Ok(offered)
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), NetError> {
        self.kernel.perform(operation).map_err(|source| match source.is_permission() {
            true => NetError::Permission,
            false => NetError::Operation { operation: operation.to_string(), source },
        })
    }

    /// All values are read and kept before the first is written: writing one resets others.
    fn set_sysctls(&mut self, found: &Found, applied: &mut Applied) -> Result<(), NetError> {
        let mut present = Vec::new();
        for (key, wanted) in sysctl::wanted(&self.settings, &found.interfaces) {
            let value = self.kernel.sysctl(&key).map_err(|source| failed("reading sysctls", source))?;
            present.extend(value.map(|value| (key, value, wanted)));
        }
        self.record()?.keep(present.iter().map(|(key, value, _)| (key.clone(), value.clone())))?;
        for (key, found, wanted) in present.into_iter().filter(|(_, value, wanted)| value != wanted) {
            match self.kernel.set_sysctl(&key, wanted) {
                Ok(()) => applied.changes += 1,
                Err(error) => applied.problems.push(Problem::Sysctl {
                    key,
                    found,
                    wanted: wanted.to_owned(),
                    cause: error.to_string(),
                }),
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<&mut Record, NetError> {
        if self.record.is_none() {
            self.record = Some(Record::open(&self.configured.state_dir)?);
        }
        Ok(self.record.as_mut().expect("opened just now, or before"))
    }

    fn restore_sysctls(&mut self, errors: &mut Vec<NetError>) {
        let before = errors.len();
        let kept = match self.record() {
            Ok(record) => record.sysctls().clone(),
            Err(error) => return errors.push(error),
        };
        let mut kept: Vec<_> = kept.iter().collect();
        kept.sort_by_key(|(key, _)| *key != sysctl::IP_FORWARD);
        for (key, value) in kept {
            let restored = match self.kernel.sysctl(key) {
                Ok(Some(now)) if now != *value => self.kernel.set_sysctl(key, value),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            errors.extend(restored.err().map(|source| failed("restoring sysctls", source)));
        }
        if errors.len() == before {
            errors.extend(self.record().and_then(Record::remove).err());
        }
    }
}

fn failed(doing: &'static str, source: KernelError) -> NetError {
    if source.is_permission() { NetError::Permission } else { NetError::Kernel { doing, source } }
}

/// Everything of ours, what points first: map entries, then rules, routes and classes.
fn removal(found: &Found) -> Vec<Operation> {
    let mut operations: Vec<Operation> = found.accepts.iter().cloned().map(Operation::RemoveAccept).collect();
    operations.extend(found.table.is_some().then_some(Operation::RemoveTable));
    operations.extend(found.rules.iter().cloned().map(Operation::RemoveRule));
    operations.extend(found.routes.iter().cloned().map(Operation::RemoveRoute));
    let ours = found.roots.iter().filter(|(_, root)| **root == Root::Ours);
    operations.extend(ours.map(|(interface, _)| Operation::RemoveRoot { interface: interface.clone() }));
    operations
}
