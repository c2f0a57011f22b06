//! Random changes on small graphs, applied by the nodes of each step in any order: rates, routes, moves, and
//! changes of mind on the way. Containers that documents drop live on for a while.

use crate::barrier::{TRICKLE, find, next};
use crate::booking::sources;
use crate::documents::Documents;
use crate::model::Topology;
use crate::moves::{Goal, Occupied, Phase, TaskKey};
use crate::topology::{DownLinks, next_hops};
use edgeloom_common::desired::{
    ContainerSpec, DesiredState, FlowKey, FlowSpec, ImageRef, Pool, Protocol, TaskRoute,
};
use edgeloom_common::ids::{FlowId, NodeId};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

const NODES: usize = 5;
/// More than any change takes.
const STEPS_MAX: usize = 60;

/// A chain of three tasks; the first may be a process, which has no container and stays where it is.
#[derive(Debug, Clone)]
struct Chain {
    process: bool,
    old: Option<Plan>,
    new: Option<Plan>,
}

#[derive(Debug, Clone, PartialEq)]
struct Plan {
    places: [usize; 3],
    flows: [Way; 2],
}

/// Relays and rate of a flow.
type Way = (Vec<usize>, u64);

impl Plan {
    /// The whole path of a flow; none where both ends are on one node.
    fn path(&self, flow: usize) -> Option<Vec<usize>> {
        let (from, to) = (self.places[flow], self.places[flow + 1]);
        if from == to {
            return None;
        }
        let mut path = vec![from];
        path.extend(self.flows[flow].0.iter().filter(|relay| **relay != from && **relay != to));
        path.push(to);
        Some(path)
    }
}

fn way() -> impl Strategy<Value = Way> {
    let relays = Just((0..NODES).collect::<Vec<_>>()).prop_shuffle();
    (relays, 0usize..4, 1u64..20).prop_map(|(mut relays, count, rate)| {
        relays.truncate(count);
        (relays, rate * 1_000_000)
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let place = || 0usize..NODES;
    ([place(), place(), place()], [way(), way()]).prop_map(|(places, flows)| Plan { places, flows })
}

fn chain() -> impl Strategy<Value = Chain> {
    let old = prop::option::weighted(0.9, plan());
    let new = prop::option::weighted(0.9, plan());
    let moves = prop::array::uniform3(prop::bool::weighted(0.4));
    (any::<bool>(), old, new, moves).prop_map(|(process, old, mut new, moves)| {
        if let (Some(old), Some(new)) = (&old, &mut new) {
            for (task, moves) in moves.into_iter().enumerate() {
                if !moves || (process && task == 0) {
                    new.places[task] = old.places[task];
                }
            }
        }
        Chain { process, old, new }
    })
}

fn node(index: usize) -> NodeId {
    format!("n{index}").parse().unwrap()
}

fn address(chain: usize, task: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(chain).unwrap(), u8::try_from(10 + task).unwrap())
}

fn key(chain: usize, task: usize) -> TaskKey {
    (format!("j{chain}").parse().unwrap(), format!("t{task}").parse().unwrap())
}

fn id(chain: usize, flow: usize) -> FlowId {
    let (job, from) = key(chain, flow);
    FlowId { job, from, to: key(chain, flow + 1).1 }
}

fn container(chain: usize, task: usize) -> ContainerSpec {
    let (job, name) = key(chain, task);
    ContainerSpec {
        job,
        task: name,
        spec_hash: String::new(),
        image: ImageRef { repository: "r".into(), digest: "d".into(), name: "n".into() },
        command: Vec::new(),
        environment: BTreeMap::new(),
        cpu: MilliCores(1),
        memory: Bytes(1),
        address: address(chain, task),
        hosts: BTreeMap::new(),
        secrets: BTreeMap::new(),
        to_end: None,
        ports: Vec::new(),
        mounts: Vec::new(),
    }
}

fn topology() -> Topology {
    let peers =
        |own: usize| (0..NODES).filter(move |peer| *peer != own).map(|peer| (node(peer), address(9, 0)));
    (0..NODES).map(|own| (node(own), peers(own).collect())).collect()
}

fn documents(chains: &[Chain], down: &DownLinks, which: fn(&Chain) -> Option<&Plan>) -> Documents {
    let pool =
        Pool { network: Ipv4Addr::new(10, 77, 0, 0), prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let mut documents: Documents = (0..NODES)
        .map(|own| (node(own), DesiredState::empty("c".parse().unwrap(), node(own), pool.clone())))
        .collect();
    for (index, chain) in chains.iter().enumerate() {
        let Some(plan) = which(chain) else { continue };
        for task in 0..3 {
            let host = node(plan.places[task]);
            if task > 0 || !chain.process {
                documents.get_mut(&host).unwrap().containers.push(container(index, task));
            }
            for (own, via) in next_hops(&topology(), down, &host) {
                let route = TaskRoute { address: address(index, task), via };
                documents.get_mut(&own).unwrap().routes.push(route);
            }
        }
        (0..2).for_each(|flow| add_flow(&mut documents, (index, plan), flow));
    }
    for document in documents.values_mut() {
        document.routes.sort();
        document.flows.sort_by(|x, y| x.id.cmp(&y.id));
    }
    documents
}

fn add_flow(documents: &mut Documents, (chain, plan): (usize, &Plan), flow: usize) {
    let path: Vec<NodeId> = plan.path(flow).into_iter().flatten().map(node).collect();
    let key = FlowKey {
        source: address(chain, flow),
        destination: address(chain, flow + 1),
        protocol: Protocol::Tcp,
        destination_port: 7000,
    };
    for (index, hop) in path.windows(2).enumerate() {
        documents.get_mut(&hop[0]).unwrap().flows.push(FlowSpec {
            id: id(chain, flow),
            key,
            next_hop: hop[1].clone(),
            rate: (index == 0).then_some(BitRate(plan.flows[flow].1)),
            path: path.clone(),
        });
    }
}

/// What the nodes have: documents in their kernels, and containers, of which some are on their way out.
struct Nodes<'a> {
    chains: &'a [Chain],
    kernel: Documents,
    stopping: BTreeSet<(TaskKey, NodeId)>,
    /// What links carry before and after.
    bounds: [BTreeMap<(NodeId, NodeId), u64>; 2],
}

impl Nodes<'_> {
    fn apply(&mut self, document: &DesiredState) {
        let before = self.kernel.insert(document.node.clone(), document.clone()).unwrap();
        for spec in before.containers {
            let stays = document.containers.iter().any(|other| other.address == spec.address);
            if !stays {
                self.stopping.insert(((spec.job, spec.task), document.node.clone()));
            }
        }
        let back = |key: &TaskKey| {
            document.containers.iter().any(|spec| (&spec.job, &spec.task) == (&key.0, &key.1))
        };
        self.stopping.retain(|(key, node)| *node != document.node || !back(key));
    }

    fn occupied(&self) -> Occupied {
        let mut occupied = Occupied::new();
        for (key, node) in self.containers() {
            occupied.entry(key).or_default().insert(node);
        }
        occupied
    }

    fn containers(&self) -> Vec<(TaskKey, NodeId)> {
        let wanted = self.kernel.iter().flat_map(|(node, document)| {
            document.containers.iter().map(|spec| ((spec.job.clone(), spec.task.clone()), node.clone()))
        });
        wanted.chain(self.stopping.iter().cloned()).collect()
    }

    fn host(&self, key: &TaskKey) -> Option<NodeId> {
        self.containers().into_iter().find(|(other, _)| other == key).map(|(_, node)| node)
    }

    /// Whether a packet from `start` arrives, by the flow's entries first, else by main routes alone.
    fn walk(&self, start: &NodeId, flow: Option<&FlowId>, to: (&TaskKey, Ipv4Addr)) -> Result<bool, String> {
        let (mut at, mut seen) = (start.clone(), BTreeSet::new());
        let host = self.host(to.0);
        while seen.insert(at.clone()) {
            if host.as_ref() == Some(&at) {
                return Ok(true);
            }
            let document = &self.kernel[&at];
            let entry = flow.and_then(|flow| find(Some(document), flow)).map(|entry| &entry.next_hop);
            let route = || document.routes.iter().find(|route| route.address == to.1).map(|route| &route.via);
            match entry.or_else(route) {
                Some(next) => at = next.clone(),
                None => return Ok(false),
            }
        }
        Err(format!("loop from {start} to {to:?} of {flow:?}: {seen:?}"))
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let occupied = self.occupied();
        let twice = occupied.iter().find(|(_, nodes)| nodes.len() > 1);
        prop_assert!(twice.is_none(), "one address on two nodes: {twice:?}");
        for (index, chain) in self.chains.iter().enumerate() {
            for task in 0..3 {
                for start in 0..NODES {
                    let to = (&key(index, task), address(index, task));
                    prop_assert!(self.walk(&node(start), None, to).is_ok());
                }
            }
            for flow in 0..2 {
                self.check_flow(index, chain, flow)?;
            }
        }
        let slack = TRICKLE.0 * self.chains.len() as u64 * 2;
        for (link, load) in loads(&self.kernel) {
            let most = self.bounds.iter().filter_map(|bound| bound.get(&link)).max().copied().unwrap_or(0);
            prop_assert!(load <= most + slack, "{link:?} has {load} of {most}");
        }
        Ok(())
    }

    fn check_flow(&self, index: usize, chain: &Chain, flow: usize) -> Result<(), TestCaseError> {
        let process = chain.process && flow == 0;
        let sender = match chain.old.as_ref().or(chain.new.as_ref()) {
            Some(plan) if process => Some(node(plan.places[0])),
            _ => self.host(&key(index, flow)),
        };
        let Some(sender) = sender else { return Ok(()) };
        let (receiver, at) = (key(index, flow + 1), address(index, flow + 1));
        let arrives = self.walk(&sender, Some(&id(index, flow)), (&receiver, at));
        prop_assert!(arrives.is_ok(), "{arrives:?}");
        if let (Some(old), Some(new)) = (&chain.old, &chain.new)
            && (old.places[flow], old.places[flow + 1]) == (new.places[flow], new.places[flow + 1])
        {
            prop_assert_eq!(arrives, Ok(true), "{:?} stops though its ends stay", id(index, flow));
        }
        let wanted = self.kernel[&sender].containers.iter().any(|spec| spec.address == address(index, flow));
        let reaches = self.host(&receiver).is_some_and(|host| host != sender)
            && self.kernel[&sender].routes.iter().any(|route| route.address == at);
        if wanted && reaches {
            prop_assert!(find(Some(&self.kernel[&sender]), &id(index, flow)).is_some(), "unshaped");
        }
        Ok(())
    }
}

fn loads(documents: &Documents) -> BTreeMap<(NodeId, NodeId), u64> {
    let mut sums = BTreeMap::new();
    for (_, flow) in sources(documents) {
        for hop in flow.path.windows(2) {
            *sums.entry((hop[0].clone(), hop[1].clone())).or_default() += flow.rate.unwrap().0;
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_interleaving_loops_a_packet_overbooks_a_link_or_doubles_an_address(
        chains in prop::collection::vec(chain(), 1..4),
        cuts in prop::array::uniform2(prop::collection::vec((0usize..NODES, 0usize..NODES), 0..8)),
        orders in prop::collection::vec(Just((0..NODES).collect::<Vec<_>>()).prop_shuffle(), 40),
        lingers in prop::collection::vec(any::<bool>(), 40),
        change_of_mind in prop::option::of(0usize..12),
    ) {
        let [before, after] = cuts.map(|cut| -> DownLinks {
            cut.into_iter().map(|(a, b)| crate::topology::pair(&node(a), &node(b))).collect()
        });
        let old = documents(&chains, &before, |chain| chain.old.as_ref());
        let new = documents(&chains, &after, |chain| chain.new.as_ref());
        let bounds = [loads(&old), loads(&new)];
        let mut nodes = Nodes { chains: &chains, kernel: old.clone(), stopping: BTreeSet::new(), bounds };
        let mut target = &new;
        for steps in 0.. {
            prop_assert!(steps < STEPS_MAX, "does not come to an end");
            if change_of_mind == Some(steps) {
                target = &old;
            }
            let goal = Goal::toward(target.clone(), &nodes.kernel, &nodes.occupied());
            let step = next(&nodes.kernel, &goal);
            if step.is_empty() && nodes.stopping.is_empty() {
                prop_assert_eq!(goal.phase, Phase::Last);
                break;
            }
            for index in &orders[steps % orders.len()] {
                if let Some(document) = step.get(&node(*index)) {
                    nodes.apply(document);
                    nodes.check()?;
                }
            }
            if step.is_empty() || !lingers[steps % lingers.len()] {
                while nodes.stopping.pop_first().is_some() {
                    nodes.check()?;
                }
            }
        }
        prop_assert_eq!(&nodes.kernel, target);
    }
}

#[test]
fn a_rate_rises_after_the_one_that_makes_room_has_fallen() {
    let chain = |old: u64, new: u64| {
        let plan = |rate| Plan { places: [0, 1, 1], flows: [(vec![], rate), (vec![], 0)] };
        Chain { process: false, old: Some(plan(old)), new: Some(plan(new)) }
    };
    let chains = [chain(10_000_000, 4_000_000), chain(5_000_000, 11_000_000)];
    let before = documents(&chains, &DownLinks::new(), |chain| chain.old.as_ref());
    let after = documents(&chains, &DownLinks::new(), |chain| chain.new.as_ref());
    let rates = |documents: &Documents| -> Vec<u64> {
        documents[&node(0)].flows.iter().map(|flow| flow.rate.unwrap().0).collect()
    };
    let (mut published, mut seen) = (before, Vec::new());
    loop {
        let step = next(&published, &Goal::toward(after.clone(), &published, &Occupied::new()));
        if step.is_empty() {
            break;
        }
        published.extend(step);
        seen.push(rates(&published));
    }
    assert_eq!(seen, [[4_000_000, 5_000_000], [4_000_000, 11_000_000]]);
}
