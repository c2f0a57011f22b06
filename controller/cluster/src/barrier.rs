//! The next step of a change that spans nodes: published documents and wanted ones give the documents that
//! may be published now.
//!
//! Level-triggered: [`next`] is asked again once every node has confirmed the step before, until it answers
//! nothing; it keeps no memory, so a restart goes on where the journal ends. Within one step nodes may apply
//! in any order. The laws, held by a property test over all interleavings:
//! - a flow's entry at a relay appears or changes only when every later node of its new path has the new
//!   entry, at its source likewise; an entry disappears only when every earlier node of its path has none.
//! - a main route changes only when its new next hop has the new route.
//! - a sender that runs gets a route to a task only after its flow's entry.
//! - a link never carries more reserved rate than the larger of before and after, plus [`TRICKLE`] a flow.

use crate::booking::Booking;
use crate::documents::Documents;
use crate::moves::{Goal, Phase, runs};
use edgeloom_common::desired::{ContainerSpec, DesiredState, FlowSpec, TaskRoute};
use edgeloom_common::ids::{FlowId, NodeId};
use edgeloom_common::units::BitRate;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// What a flow keeps while it waits for the room that another one leaves: enough for a connection to live.
pub(crate) const TRICKLE: BitRate = BitRate(64_000);

/// The documents to publish now: those that differ from what is published. None: nothing is left to do until
/// nodes show something new.
pub(crate) fn next(published: &Documents, goal: &Goal) -> Documents {
    let wanted = &goal.documents;
    let step = Step { published, wanted, last: &goal.last };
    let stages = [Step::prepare, Step::switch, Step::tidy, Step::unlock];
    // What waits for a move gets its room when the move is over.
    let stages = if goal.phase == Phase::Last { &stages[..] } else { &stages[..3] };
    for stage in stages {
        let documents: Documents = wanted
            .iter()
            .map(|(node, target)| (node.clone(), stage(&step, node, target)))
            .filter(|(node, document)| !same(published.get(node), document))
            .collect();
        if !documents.is_empty() {
            return documents;
        }
    }
    Documents::new()
}

/// Equal but for the version.
pub(crate) fn same(published: Option<&DesiredState>, document: &DesiredState) -> bool {
    published.is_some_and(|published| {
        let versioned =
            DesiredState { epoch: published.epoch, generation: published.generation, ..document.clone() };
        *published == versioned
    })
}

struct Step<'a> {
    published: &'a Documents,
    wanted: &'a Documents,
    last: &'a Documents,
}

impl Step<'_> {
    /// A: images, routes, relay entries, lowered rates, containers that send nothing to other nodes.
    fn prepare(&self, node: &NodeId, target: &DesiredState) -> DesiredState {
        let now = self.now(node, target);
        // The order of pulls is that of the target; what goes later is pulled last if at all.
        let mut images = target.images.clone();
        images.extend(now.images.iter().filter(|image| !target.images.contains(image)).cloned());
        let mut containers = now.containers.clone();
        let starts = |spec: &&ContainerSpec| !has(&now.containers, spec) && !self.sends(node, spec);
        containers.extend(target.containers.iter().filter(starts).cloned());
        let mut stop_after_s = now.stop_after_s.clone();
        stop_after_s.extend(target.stop_after_s.clone());
        let mut logins = now.logins.clone();
        logins.extend(target.logins.clone());
        DesiredState {
            images,
            logins,
            stop_after_s,
            containers: in_order_of(containers, target),
            flows: self.prepared_flows(node, &now, target),
            routes: self.prepared_routes(node, &now, target),
            alternates: target.alternates.clone(),
            neighbours: target.neighbours.clone(),
            copies: target.copies.clone(),
            layer_grants: target.layer_grants.clone(),
            prefetch: target.prefetch.clone(),
            // Pulls give way before flows get what they had.
            reserved: target.reserved.clone(),
            ..now
        }
    }

    /// B: source entries and raised rates, and every wanted container; stopped ones go.
    fn switch(&self, node: &NodeId, target: &DesiredState) -> DesiredState {
        let prepared = self.prepare(node, target);
        let mut booking = Booking::new(self.published, self.wanted, self.last);
        let allowed = booking.allowed(|flow| self.downstream_ready(&flow.id, 0));
        let mut flows: Vec<FlowSpec> = Vec::new();
        for flow in prepared.flows {
            let goes = flow.rate.is_some()
                && find(self.wanted.get(node), &flow.id).is_none_or(|new| new.rate.is_none());
            if !goes {
                flows.push(flow);
            }
        }
        for (source, flow) in allowed {
            if source == *node {
                flows.retain(|old| old.id != flow.id);
                flows.push(flow);
            }
        }
        flows.sort_by(|x, y| x.id.cmp(&y.id));
        let shaped = |spec: &&ContainerSpec| {
            let own = |flow: &&FlowSpec| {
                flow.id.job == spec.job && flow.id.from == spec.task && flow.rate.is_some()
            };
            target.flows.iter().filter(own).all(|flow| flows.iter().any(|had| had.id == flow.id))
        };
        // One that runs and gets a new flow cannot send it before the route, which waits for the entry.
        let goes_on = |spec: &&ContainerSpec| shaped(spec) || has(&prepared.containers, spec);
        let containers = target.containers.iter().filter(goes_on).cloned().collect();
        let kept = target.kept.clone();
        DesiredState { flows, containers, kept, ..prepared }
    }

    /// C: old relay entries, routes and images go.
    fn tidy(&self, node: &NodeId, target: &DesiredState) -> DesiredState {
        let switched = self.switch(node, target);
        let stays =
            |flow: &FlowSpec| find(Some(target), &flow.id).is_some() || !self.upstream_gone(node, flow);
        let routed = |route: &TaskRoute| target.routes.iter().any(|new| new.address == route.address);
        DesiredState {
            flows: switched.flows.iter().filter(|flow| stays(flow)).cloned().collect(),
            routes: switched.routes.iter().filter(|route| routed(route)).cloned().collect(),
            images: target.images.clone(),
            logins: target.logins.clone(),
            stop_after_s: target.stop_after_s.clone(),
            ..switched
        }
    }

    /// D: flows wait for each other's room: those that have to change fall to a trickle first.
    fn unlock(&self, node: &NodeId, target: &DesiredState) -> DesiredState {
        let mut now = self.tidy(node, target);
        for flow in &mut now.flows {
            let changes = find(Some(target), &flow.id).is_some_and(|new| new != flow);
            if let Some(rate) = flow.rate.as_mut().filter(|_| changes) {
                *rate = (*rate).min(TRICKLE);
            }
        }
        now
    }

    /// What is published to the node; a node never published to has nothing.
    fn now(&self, node: &NodeId, target: &DesiredState) -> DesiredState {
        self.published
            .get(node)
            .cloned()
            .unwrap_or_else(|| DesiredState::empty(target.cluster.clone(), node.clone(), target.pool.clone()))
    }

    /// The container is the first node of a flow.
    fn sends(&self, node: &NodeId, spec: &ContainerSpec) -> bool {
        let starts =
            |flow: &FlowSpec| flow.rate.is_some() && flow.id.job == spec.job && flow.id.from == spec.task;
        self.wanted.get(node).is_some_and(|target| target.flows.iter().any(starts))
    }

    fn prepared_flows(&self, node: &NodeId, now: &DesiredState, target: &DesiredState) -> Vec<FlowSpec> {
        let mut flows = now.flows.clone();
        for new in &target.flows {
            match flows.iter_mut().find(|old| old.id == new.id) {
                // A lowered rate on the same way can only make room.
                Some(old) if old.rate > new.rate && old.path == new.path && old.key == new.key => {
                    *old = new.clone();
                }
                Some(old) if new.rate.is_none() && old.rate.is_none() && self.ready_at(node, new) => {
                    *old = new.clone();
                }
                None if new.rate.is_none() && self.ready_at(node, new) => flows.push(new.clone()),
                _ => {}
            }
        }
        flows.sort_by(|x, y| x.id.cmp(&y.id));
        flows
    }

    /// The relay may have its new entry: every later node of the path has it, or nothing is sent yet.
    fn ready_at(&self, node: &NodeId, new: &FlowSpec) -> bool {
        let index = new.path.iter().position(|hop| hop == node).unwrap_or(0);
        self.quiet(new) || self.downstream_ready(&new.id, index)
    }

    /// No published container or entry of the flow's first node can send its packets: they would have to
    /// come from a container that does not exist.
    fn quiet(&self, flow: &FlowSpec) -> bool {
        let first = flow.path.first().and_then(|first| self.wanted.get(first));
        let from_container = first.is_some_and(|document| {
            document.containers.iter().any(|spec| spec.job == flow.id.job && spec.task == flow.id.from)
        });
        let running = self.published.values().any(|document| {
            document.containers.iter().any(|spec| spec.job == flow.id.job && spec.task == flow.id.from)
        });
        let left_over = self
            .published
            .values()
            .any(|document| find(Some(document), &flow.id).is_some_and(|old| old.path != flow.path));
        from_container && !running && !left_over
    }

    /// Every node of the wanted path behind `index` has published what is wanted of it.
    fn downstream_ready(&self, flow: &FlowId, index: usize) -> bool {
        let Some(path) = self.wanted.values().find_map(|doc| find(Some(doc), flow)).map(|spec| &spec.path)
        else {
            return false;
        };
        path[index + 1..path.len() - 1].iter().all(|node| {
            let wanted = find(self.wanted.get(node), flow);
            wanted.is_some() && find(self.published.get(node), flow) == wanted
        })
    }

    /// No earlier node of the entry's own path still sends packets here.
    fn upstream_gone(&self, node: &NodeId, old: &FlowSpec) -> bool {
        old.path
            .iter()
            .take_while(|hop| *hop != node)
            .all(|hop| find(self.published.get(hop), &old.id).is_none_or(|entry| entry.path != old.path))
    }

    fn prepared_routes(&self, node: &NodeId, now: &DesiredState, target: &DesiredState) -> Vec<TaskRoute> {
        let here: BTreeSet<_> = target.containers.iter().map(|spec| spec.address).collect();
        let mut routes: Vec<TaskRoute> =
            now.routes.iter().filter(|route| !here.contains(&route.address)).cloned().collect();
        let routed: BTreeSet<_> = now.routes.iter().map(|route| route.address).collect();
        let waits =
            |new: &TaskRoute| !routed.contains(&new.address) && self.unshaped(node, target, new.address);
        for new in target.routes.iter().filter(|new| !waits(new)) {
            match routes.iter_mut().find(|old| old.address == new.address) {
                Some(old) if old.via != new.via && self.routed_at(&new.via, new) => *old = new.clone(),
                Some(_) => {}
                None if self.routed_at(&new.via, new) || !self.routed_anywhere(new) => {
                    routes.push(new.clone());
                }
                None => {}
            }
        }
        routes.sort();
        debug_assert!(routes.iter().all(|route| route.via != *node), "a node is no neighbour of its own");
        routes
    }

    /// A sender that runs would use a route to the address before its flow has an entry.
    fn unshaped(&self, node: &NodeId, target: &DesiredState, address: Ipv4Addr) -> bool {
        let mut flows = target.flows.iter().filter(|flow| {
            let entry = find(self.published.get(node), &flow.id).filter(|entry| entry.rate.is_some());
            flow.key.destination == address && flow.rate.is_some() && entry.is_none()
        });
        flows.any(|flow| runs(self.published, self.wanted, flow))
    }

    /// The whole wanted way from `node` on is published.
    fn routed_at(&self, node: &NodeId, route: &TaskRoute) -> bool {
        let of = |documents: &Documents, node: &NodeId| -> Option<NodeId> {
            let mut routes = documents.get(node)?.routes.iter();
            routes.find(|other| other.address == route.address).map(|other| other.via.clone())
        };
        let mut at = node.clone();
        // Wanted routes come nearer with each hop, so this ends within the number of nodes.
        for _ in 0..=self.wanted.len() {
            let wanted = of(self.wanted, &at);
            if of(self.published, &at) != wanted {
                return false;
            }
            match wanted {
                Some(next) => at = next,
                None => return true,
            }
        }
        false
    }

    fn routed_anywhere(&self, route: &TaskRoute) -> bool {
        self.published.values().any(|doc| doc.routes.iter().any(|other| other.address == route.address))
    }
}

fn has(containers: &[ContainerSpec], spec: &ContainerSpec) -> bool {
    containers.iter().any(|other| other.job == spec.job && other.task == spec.task)
}

/// The order of the wanted document, what goes last: equal sets give equal documents.
fn in_order_of(mut containers: Vec<ContainerSpec>, target: &DesiredState) -> Vec<ContainerSpec> {
    containers
        .sort_by_key(|spec| target.containers.iter().position(|other| other == spec).unwrap_or(usize::MAX));
    containers
}

/// The node's entry of a flow.
pub(crate) fn find<'a>(document: Option<&'a DesiredState>, id: &FlowId) -> Option<&'a FlowSpec> {
    document?.flows.iter().find(|flow| flow.id == *id)
}
