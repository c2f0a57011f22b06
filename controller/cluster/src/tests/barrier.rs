//! Random changes on small graphs, applied by the nodes of each step in any order.

use crate::barrier::{TRICKLE, find, next};
use crate::booking::sources;
use crate::documents::Documents;
use crate::model::Topology;
use crate::topology::{DownLinks, next_hops};
use edgeloom_common::desired::{
    ContainerSpec, DesiredState, FlowKey, FlowSpec, ImageRef, Pool, Protocol, TaskRoute,
};
use edgeloom_common::ids::{FlowId, NodeId, TaskName};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

const NODES: usize = 5;

/// One flow: ends fixed, way and rate of the moment (none: the job is not there).
#[derive(Debug, Clone)]
struct Course {
    process: bool,
    old: Option<(Vec<usize>, u64)>,
    new: Option<(Vec<usize>, u64)>,
}

fn node(index: usize) -> NodeId {
    format!("n{index}").parse().unwrap()
}

fn address(index: usize, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(index).unwrap(), 10 + end)
}

fn course() -> impl Strategy<Value = Course> {
    let order = Just((0..NODES).collect::<Vec<_>>()).prop_shuffle();
    let way = || (prop::collection::vec(0usize..3, 3), 0usize..4, prop::option::weighted(0.8, 1u64..20));
    (order, any::<bool>(), way(), way()).prop_map(|(order, process, old, new)| {
        let path = |(picks, relays, rate): (Vec<usize>, usize, Option<u64>)| {
            let mut between = order[2..].to_vec();
            let mut path = vec![order[0]];
            for pick in picks.into_iter().take(relays) {
                let at = pick % between.len();
                path.push(between.remove(at));
            }
            path.push(order[1]);
            rate.map(|rate| (path, rate * 1_000_000))
        };
        Course { process, old: path(old), new: path(new) }
    })
}

fn container(flow: usize, task: &str, at: Ipv4Addr) -> ContainerSpec {
    ContainerSpec {
        job: format!("j{flow}").parse().unwrap(),
        task: task.parse().unwrap(),
        spec_hash: String::new(),
        image: ImageRef { repository: "r".into(), digest: "d".into(), name: "n".into() },
        command: Vec::new(),
        environment: BTreeMap::new(),
        cpu: MilliCores(1),
        memory: Bytes(1),
        address: at,
        hosts: BTreeMap::new(),
    }
}

fn topology() -> Topology {
    let peers =
        |own: usize| (0..NODES).filter(move |peer| *peer != own).map(|peer| (node(peer), address(9, 0)));
    (0..NODES).map(|own| (node(own), peers(own).collect())).collect()
}

fn id(flow: usize) -> FlowId {
    let task = |name: &str| name.parse::<TaskName>().unwrap();
    FlowId { job: format!("j{flow}").parse().unwrap(), from: task("from"), to: task("to") }
}

fn state(courses: &[Course], down: &DownLinks, old: bool) -> Documents {
    let pool =
        Pool { network: Ipv4Addr::new(10, 77, 0, 0), prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let mut documents: Documents = (0..NODES)
        .map(|own| (node(own), DesiredState::empty("c".parse().unwrap(), node(own), pool.clone())))
        .collect();
    for (flow, course) in courses.iter().enumerate() {
        let Some((path, rate)) = (if old { &course.old } else { &course.new }) else { continue };
        let path: Vec<NodeId> = path.iter().copied().map(node).collect();
        let ends = [
            ("from", path.first().unwrap(), address(flow, 0)),
            ("to", path.last().unwrap(), address(flow, 1)),
        ];
        for (task, host, at) in ends {
            if task == "to" || !course.process {
                documents.get_mut(host).unwrap().containers.push(container(flow, task, at));
            }
            for (own, via) in next_hops(&topology(), down, host) {
                documents.get_mut(&own).unwrap().routes.push(TaskRoute { address: at, via });
            }
        }
        let key = FlowKey {
            source: address(flow, 0),
            destination: address(flow, 1),
            protocol: Protocol::Tcp,
            destination_port: 7000,
        };
        for (index, hop) in path.windows(2).enumerate() {
            documents.get_mut(&hop[0]).unwrap().flows.push(FlowSpec {
                id: id(flow),
                key,
                next_hop: hop[1].clone(),
                rate: (index == 0).then_some(BitRate(*rate)),
                path: path.clone(),
            });
        }
    }
    for document in documents.values_mut() {
        document.routes.sort();
        document.flows.sort_by(|x, y| x.id.cmp(&y.id));
    }
    documents
}

/// Where packets of `flow` go from `start`, or of nobody's flow along main routes alone.
fn walk(kernel: &Documents, start: &NodeId, flow: Option<&FlowId>, to: Ipv4Addr) -> Result<(), String> {
    let (mut at, mut seen) = (start.clone(), BTreeSet::new());
    while seen.insert(at.clone()) {
        let document = &kernel[&at];
        if document.containers.iter().any(|spec| spec.address == to) {
            return Ok(());
        }
        let entry = flow.and_then(|flow| find(Some(document), flow)).map(|entry| &entry.next_hop);
        let route = || document.routes.iter().find(|route| route.address == to).map(|route| &route.via);
        match entry.or_else(route) {
            Some(next) => at = next.clone(),
            None => return Ok(()),
        }
    }
    Err(format!("loop from {start} to {to} of {flow:?}: {seen:?}"))
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

fn check(kernel: &Documents, courses: &[Course], ends: [&Documents; 2]) -> Result<(), TestCaseError> {
    for (flow, course) in courses.iter().enumerate() {
        let Some((path, _)) = course.new.as_ref().or(course.old.as_ref()) else { continue };
        let first = node(path[0]);
        let runs = kernel[&first].containers.iter().any(|spec| spec.address == address(flow, 0));
        if runs || course.process {
            prop_assert_eq!(walk(kernel, &first, Some(&id(flow)), address(flow, 1)), Ok(()));
        }
        if runs {
            prop_assert!(find(Some(&kernel[&first]), &id(flow)).is_some(), "unshaped {:?}", id(flow));
        }
        for start in 0..NODES {
            for end in 0..2 {
                prop_assert_eq!(walk(kernel, &node(start), None, address(flow, end)), Ok(()));
            }
        }
    }
    let [before, after] = ends.map(loads);
    let slack = TRICKLE.0 * courses.len() as u64;
    for (link, load) in loads(kernel) {
        let most = before.get(&link).max(after.get(&link)).copied().unwrap_or(0);
        prop_assert!(load <= most + slack, "{link:?} has {load} of {most}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_interleaving_loops_a_packet_or_overbooks_a_link(
        courses in prop::collection::vec(course(), 1..4),
        cuts in prop::array::uniform2(prop::collection::vec((0usize..NODES, 0usize..NODES), 0..8)),
        orders in prop::collection::vec(Just((0..NODES).collect::<Vec<_>>()).prop_shuffle(), 40)
    ) {
        let [before, after] = cuts.map(|cut| -> DownLinks {
            cut.into_iter().map(|(a, b)| crate::topology::pair(&node(a), &node(b))).collect()
        });
        let old = state(&courses, &before, true);
        let new = state(&courses, &after, false);
        let mut published = old.clone();
        let mut steps = 0;
        loop {
            let step = next(&published, &new);
            if step.is_empty() {
                break;
            }
            for index in &orders[steps % orders.len()] {
                if let Some(document) = step.get(&node(*index)) {
                    published.insert(node(*index), document.clone());
                    check(&published, &courses, [&old, &new])?;
                }
            }
            steps += 1;
            prop_assert!(steps < 40, "does not come to an end");
        }
        prop_assert_eq!(published, new);
    }
}
