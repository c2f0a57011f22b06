//! For any sequence of documents: the kernel ends as the last one wants it, flows that did not change
//! were not touched on the way, and a purge leaves nothing.

use super::document::{MBIT, document, flow, route, settings};
use crate::fake::Fake;
use crate::object::{Operation, Root};
use crate::{Network, tag};
use edgeloom_common::desired::{DesiredState, FlowSpec};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A few flows by port, so that successive documents share some; a rate or none, two neighbours.
fn any_document() -> impl Strategy<Value = DesiredState> {
    let hop = prop_oneof![Just("n2"), Just("n3")];
    let rate = proptest::option::of(1..=3 * MBIT).prop_map(|rate| rate.map(|rate| rate + MBIT));
    let flows = btree_map(1u16..12, (hop.clone(), rate), 0..10);
    let routes = btree_map(10u8..20, hop, 0..6);
    (flows, routes).prop_map(|(flows, routes)| {
        let flows = flows.into_iter().map(|(port, (hop, rate))| flow(port, hop, rate)).collect();
        document(flows, routes.into_iter().map(|(last, via)| route(last, via)).collect())
    })
}

/// What the kernel should hold of a document, told without the planner.
fn check(document: &DesiredState, fake: &Fake) {
    let table = fake.state.table.as_ref().expect("applied");
    assert_eq!(table.marks.len(), document.flows.len());
    assert_eq!(fake.state.routes.len(), 2 + document.routes.len());
    assert_eq!(fake.state.rules.len(), 4);
    let shaped: Vec<&FlowSpec> = document.flows.iter().filter(|flow| flow.rate.is_some()).collect();
    // Beside the flows each link has a class of its own, one for pulls and one for the rest.
    assert_eq!(fake.state.classes.len(), shaped.len() + 6);
    let mut minors = BTreeSet::new();
    for flow in shaped {
        let interface = flow.next_hop.as_str().replace('n', "l");
        let minor = tag::flow_minor(table.classes[&flow.key]).expect("a flow's class");
        assert!(minors.insert(minor), "one class, two flows");
        let class = fake.state.classes[&(interface.clone(), minor)];
        assert_eq!(class.rate, flow.rate.unwrap().0 / 8);
        assert!(fake.state.leaves.contains_key(&(interface, minor)));
    }
}

/// The class operations of flows that both documents want alike.
fn touched<'a>(before: &DesiredState, after: &DesiredState, fake: &'a Fake) -> Vec<&'a Operation> {
    let table = fake.state.table.as_ref().expect("applied");
    let same = after.flows.iter().filter(|flow| flow.rate.is_some() && before.flows.contains(flow));
    let minors: BTreeSet<u16> = same.filter_map(|flow| tag::flow_minor(table.classes[&flow.key])).collect();
    let of_class = |operation: &&Operation| match operation {
        Operation::PutClass { minor, .. }
        | Operation::PutLeaf { minor, .. }
        | Operation::RemoveClass { minor, .. } => minors.contains(minor),
        Operation::AddRoot { .. } | Operation::RemoveRoot { .. } => true,
        _ => false,
    };
    fake.performed.iter().filter(of_class).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_converges_and_leaves_unchanged_flows_alone(documents in vec(any_document(), 1..6)) {
        let untouched = Fake::with_interfaces(&["l2", "l3"]);
        let mut network = Network::over(untouched.clone(), settings("convergence")).unwrap();
        let mut before: Option<&DesiredState> = None;
        for document in &documents {
            network.kernel().performed.clear();
            prop_assert_eq!(network.apply(document).unwrap().problems, vec![]);
            check(document, network.kernel());
            if let Some(before) = before {
                prop_assert_eq!(touched(before, document, network.kernel()), Vec::<&Operation>::new());
            }
            prop_assert_eq!(network.apply(document).unwrap().changes, 0);
            before = Some(document);
        }
        network.purge().unwrap();
        prop_assert_eq!(&network.kernel().state, &untouched.state);
        prop_assert_eq!(&network.kernel().sysctls, &untouched.sysctls);
    }

    #[test]
    fn a_document_converges_from_any_damage(document in any_document(), lost in vec(any::<prop::sample::Index>(), 0..8)) {
        let mut network = Network::over(Fake::with_interfaces(&["l2", "l3"]), settings("damage")).unwrap();
        network.apply(&document).unwrap();
        let state = &mut network.kernel().state;
        for index in lost {
            match index.index(5) {
                0 => drop(state.routes.pop_first()),
                1 => drop(state.rules.pop_first()),
                2 => state.table = None,
                3 => drop(state.leaves.pop_first()),
                _ => {
                    state.roots.insert("l2".to_owned(), Root::Kernel);
                    state.classes.retain(|(interface, _), _| interface != "l2");
                    state.leaves.retain(|(interface, _), _| interface != "l2");
                }
            }
        }
        prop_assert_eq!(network.apply(&document).unwrap().problems, vec![]);
        check(&document, network.kernel());
    }
}
