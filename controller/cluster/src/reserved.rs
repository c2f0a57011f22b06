//! What flows have of links, for the pulls that share them: at the nodes, which give pulls what is left, and
//! here, where that says how long a pull takes.

use crate::documents::Documents;
use crate::model::{JobRecord, Model};
use crate::nodes::Nodes;
use edgeloom_common::desired::Reserved;
use edgeloom_common::ids::NodeId;
use edgeloom_common::units::{BitRate, TCP_GOODPUT};
use edgeloom_sched::plan::FlowPlan;
use edgeloom_sched::pull::Goodput;

/// Adds a flow to the documents of both ends of each link of its path.
pub(crate) fn add(documents: &mut Documents, flow: &FlowPlan) {
    for hop in flow.path.windows(2) {
        let mut add = |node: &NodeId, neighbour: &NodeId, of: fn(&mut Reserved) -> &mut BitRate| {
            if let Some(document) = documents.get_mut(node) {
                let rate = of(document.reserved.entry(neighbour.clone()).or_default());
                rate.0 = rate.0.saturating_add(flow.rate.0);
            }
        };
        add(&hop[0], &hop[1], |reserved| &mut reserved.outbound);
        add(&hop[1], &hop[0], |reserved| &mut reserved.inbound);
    }
}

/// What flows leave for the pull of an image to a node; none where they need nothing of its line. Jobs that wait
/// for that image send nothing yet.
pub(crate) fn left(model: &Model, nodes: &Nodes, (node, image): (&NodeId, &str)) -> Option<Goodput> {
    let over = nodes.pulls_over(node);
    let wire = over.iter().filter_map(|neighbour| nodes.capacities.link(neighbour, node)).max()?;
    let waits = |record: &JobRecord| record.images.values().any(|it| it.reference.name == image);
    let comes_in = |hop: &[NodeId]| hop[1] == *node && over.contains(&hop[0]);
    let needs = model.committed().filter(|(record, _)| !waits(record)).flat_map(|(_, plan)| {
        let here = plan.flows.iter().filter(|flow| flow.path.windows(2).any(comes_in));
        here.map(|flow| plan.needed(flow, TCP_GOODPUT))
    });
    let needed: f64 = needs.sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates of links, not below 0"
    )]
    (needed > 0.0).then(|| Goodput::beside_flows(wire, BitRate(needed as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::desired::{DesiredState, Pool};
    use edgeloom_common::ids::FlowId;
    use edgeloom_common::units::Bytes;
    use std::net::Ipv4Addr;

    fn flow(path: &[&str], mbit_s: u64) -> FlowPlan {
        let id = FlowId { job: "j".parse().unwrap(), from: "a".parse().unwrap(), to: "b".parse().unwrap() };
        let path = path.iter().map(|node| node.parse().unwrap()).collect();
        FlowPlan { id, path, rate: BitRate(mbit_s * 1_000_000), volume: Bytes(1) }
    }

    #[test]
    fn both_ends_of_each_link_know_what_flows_have_of_it() {
        let pool = Pool {
            network: Ipv4Addr::new(10, 77, 0, 0),
            prefix_len: 16,
            gateway: Ipv4Addr::new(10, 77, 0, 1),
        };
        let document = |node: &str| {
            let node: NodeId = node.parse().unwrap();
            (node.clone(), DesiredState::empty("home".parse().unwrap(), node, pool.clone()))
        };
        let mut documents: Documents = ["n1", "n2", "n3"].map(document).into();
        for flow in [flow(&["n1", "n2", "n3"], 4), flow(&["n1", "n2"], 3), flow(&["n3", "n2"], 2)] {
            add(&mut documents, &flow);
        }
        let at = |node: &str, neighbour: &str| {
            let reserved = documents[&node.parse().unwrap()].reserved.get(&neighbour.parse().unwrap());
            reserved.map(|it| (it.inbound.0 / 1_000_000, it.outbound.0 / 1_000_000))
        };
        assert_eq!([at("n1", "n2"), at("n2", "n1")], [Some((0, 7)), Some((7, 0))]);
        assert_eq!([at("n2", "n3"), at("n3", "n2"), at("n1", "n3")], [Some((2, 4)), Some((4, 2)), None]);
    }
}
