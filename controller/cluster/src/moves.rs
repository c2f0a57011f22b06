//! Tasks that change their node: what to publish before the whole of a new plan may be.
//!
//! A task keeps its address for life, so a container with it must be gone before another one starts, and
//! no packet may meet old and new ways to it at once. Between the old plan and the new one lie therefore
//! further wanted documents, found from what is published and what nodes show, without memory:
//! 1. [`Phase::Pulling`]: all is as before, and the new nodes pull ([`crate::holding`]).
//! 2. [`Phase::Vacating`]: the old node gives the container up; flows and routes stay as published.
//! 3. [`Phase::Clearing`]: flows and routes of the old place go, while nobody has the address.
//! 4. [`Phase::Last`]: the new plan, as for a job that begins.
//!
//! Whatever else changes goes on meanwhile, but no flow falls to a trickle for room that a move will leave.

use crate::barrier::find;
use crate::documents::Documents;
use edgeloom_common::desired::{ContainerSpec, DesiredState, FlowSpec, TaskRoute};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What identifies a task.
pub(crate) type TaskKey = (JobName, TaskName);
/// Nodes that may have a container of a task, whether or not their document lists it.
pub(crate) type Occupied = BTreeMap<TaskKey, BTreeSet<NodeId>>;

/// How far the moves are; the last one when nothing moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pulling,
    Vacating,
    Clearing,
    Last,
}

/// What to publish next, and where it leads.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) phase: Phase,
    pub(crate) documents: Documents,
    /// After all phases: what links may carry.
    pub(crate) last: Documents,
}

impl Goal {
    /// The goal on the way to `last`.
    pub(crate) fn toward(last: Documents, published: &Documents, occupied: &Occupied) -> Self {
        let place = Placing::new(published, &last);
        let (mut vacating, mut clearing) = (BTreeMap::new(), BTreeMap::new());
        for (node, spec) in containers(&last) {
            let (key, address) = ((spec.job.clone(), spec.task.clone()), spec.address);
            if place.elsewhere(&key, node) || place.left_behind(&key, node, occupied) {
                vacating.insert(key, address);
            } else if place.leftover(&key, address) {
                clearing.insert(key, address);
            }
        }
        let phase = match (vacating.is_empty(), clearing.is_empty()) {
            (false, _) => Phase::Vacating,
            (true, false) => Phase::Clearing,
            (true, true) => Phase::Last,
        };
        let documents = last
            .iter()
            .map(|(node, document)| {
                let without = Traces::outside(document, [&vacating, &clearing]);
                let published = published.get(node);
                let document = without.beginning_later(published, [&vacating, &clearing]);
                (node.clone(), document.with(published, &vacating).sorted())
            })
            .collect();
        let documents = if phase == Phase::Last { last.clone() } else { documents };
        Self { phase, documents, last }
    }
}

fn containers(documents: &Documents) -> impl Iterator<Item = (&NodeId, &ContainerSpec)> {
    documents.iter().flat_map(|(node, document)| document.containers.iter().map(move |spec| (node, spec)))
}

fn is_of(spec: &ContainerSpec, key: &TaskKey) -> bool {
    (&spec.job, &spec.task) == (&key.0, &key.1)
}

fn touches(flow: &FlowSpec, key: &TaskKey) -> bool {
    flow.id.job == key.0 && (flow.id.from == key.1 || flow.id.to == key.1)
}

struct Placing<'a> {
    published: &'a Documents,
    last: &'a Documents,
    /// Nodes whose published document lists a task.
    listing: Occupied,
}

impl<'a> Placing<'a> {
    fn new(published: &'a Documents, last: &'a Documents) -> Self {
        let mut listing = Occupied::new();
        for (node, spec) in containers(published) {
            listing.entry((spec.job.clone(), spec.task.clone())).or_default().insert(node.clone());
        }
        Self { published, last, listing }
    }

    /// Another node's document lists the task.
    fn elsewhere(&self, key: &TaskKey, node: &NodeId) -> bool {
        self.listing.get(key).is_some_and(|nodes| nodes.iter().any(|other| other != node))
    }

    /// Another node may have a container though none is listed. One that runs already is not stopped for
    /// what a node still has that was away when it began.
    fn left_behind(&self, key: &TaskKey, node: &NodeId, occupied: &Occupied) -> bool {
        let begun = self.listing.contains_key(key);
        !begun && occupied.get(key).is_some_and(|nodes| nodes.iter().any(|other| other != node))
    }

    /// No document lists the task, but some have flows or routes to or from a place that it will not have.
    fn leftover(&self, key: &TaskKey, address: Ipv4Addr) -> bool {
        if self.listing.contains_key(key) {
            return false;
        }
        self.published.iter().any(|(node, document)| {
            let last = self.last.get(node);
            let flow_stays = |flow: &FlowSpec| {
                let mut flows = last.iter().flat_map(|last| &last.flows);
                flows.any(|new| new.id == flow.id && new.path == flow.path && new.key == flow.key)
            };
            let route_stays = |route: &TaskRoute| last.is_some_and(|last| last.routes.contains(route));
            document.flows.iter().any(|flow| touches(flow, key) && !flow_stays(flow))
                || document.routes.iter().any(|route| {
                    route.address == address && (!route_stays(route) || self.unshaped(node, route))
                })
        })
    }

    /// A sender that runs would reach the task by this route before its flow has an entry.
    fn unshaped(&self, node: &NodeId, route: &TaskRoute) -> bool {
        let mut flows = self.last.get(node).into_iter().flat_map(|last| &last.flows);
        flows.any(|flow| {
            let entry = find(self.published.get(node), &flow.id).filter(|entry| entry.rate.is_some());
            let to_task = flow.rate.is_some() && flow.key.destination == route.address;
            to_task && entry.is_none() && runs(self.published, self.last, flow)
        })
    }
}

/// The flow's first task has a container, or is a process.
pub(crate) fn runs(published: &Documents, wanted: &Documents, flow: &FlowSpec) -> bool {
    let first = (flow.id.job.clone(), flow.id.from.clone());
    let lists = |documents: &Documents| containers(documents).any(|(_, spec)| is_of(spec, &first));
    lists(published) || !lists(wanted)
}

type Tasks = BTreeMap<TaskKey, Ipv4Addr>;

/// One document, of which the traces of some tasks are replaced.
struct Traces(DesiredState);

impl Traces {
    /// All but containers, flows and routes of these tasks.
    fn outside(document: &DesiredState, tasks: [&Tasks; 2]) -> Self {
        let mut document = document.clone();
        for (key, address) in tasks.into_iter().flatten() {
            document.containers.retain(|spec| !is_of(spec, key));
            document.flows.retain(|flow| !touches(flow, key));
            document.routes.retain(|route| route.address != *address);
        }
        Self(document)
    }

    /// Without containers that would begin while another task of their job moves: they could send to its old
    /// place, for which they have no flow.
    fn beginning_later(mut self, published: Option<&DesiredState>, tasks: [&Tasks; 2]) -> Self {
        let jobs: BTreeSet<&JobName> =
            tasks.into_iter().flat_map(BTreeMap::keys).map(|(job, _)| job).collect();
        let runs = |spec: &ContainerSpec| {
            let here = published.into_iter().flat_map(|document| &document.containers);
            here.into_iter().any(|old| (&old.job, &old.task) == (&spec.job, &spec.task))
        };
        self.0.containers.retain(|spec| !jobs.contains(&spec.job) || runs(spec));
        self
    }

    /// With the tasks' flows and routes as they are published.
    fn with(mut self, published: Option<&DesiredState>, tasks: &Tasks) -> Self {
        let Some(published) = published else { return self };
        let touched = |flow: &&FlowSpec| tasks.keys().any(|key| touches(flow, key));
        let routed = |route: &&TaskRoute| tasks.values().any(|address| *address == route.address);
        self.0.flows.extend(published.flows.iter().filter(touched).cloned());
        self.0.routes.extend(published.routes.iter().filter(routed).cloned());
        self
    }

    fn sorted(mut self) -> DesiredState {
        self.0.flows.sort_by(|x, y| x.id.cmp(&y.id));
        self.0.routes.sort();
        self.0
    }
}
