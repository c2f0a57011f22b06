//! One test that the fake and the real kernel both pass.

use super::document::{MBIT, document, flow, key, route, settings};
use super::namespace::{Namespace, lab, sh};
use crate::fake::Fake;
use crate::object::{Operation, Root};
use crate::tag::{DEFAULT_MINOR, PULL_MINOR};
use crate::{Counter, Found, Kernel, KernelError, Linux, Network, Offered, Settings};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::units::BitRate;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A kernel that writes down what it is asked to do.
struct Recording<'a, K> {
    kernel: &'a mut K,
    performed: Vec<Operation>,
}

impl<K: Kernel> Kernel for Recording<'_, K> {
    fn list(&mut self, interfaces: &BTreeSet<&str>) -> Result<Found, KernelError> {
        self.kernel.list(interfaces)
    }
    fn perform(&mut self, operation: &Operation) -> Result<(), KernelError> {
        self.performed.push(operation.clone());
        self.kernel.perform(operation)
    }
    fn announce(&mut self, bridge: &str, addresses: &[Ipv4Addr]) -> Result<(), KernelError> {
        self.kernel.announce(bridge, addresses)
    }
    fn counters(&mut self, interface: &str) -> Result<BTreeMap<u16, Counter>, KernelError> {
        self.kernel.counters(interface)
    }
    fn sysctl(&mut self, key: &str) -> Result<Option<String>, KernelError> {
        self.kernel.sysctl(key)
    }
    fn set_sysctl(&mut self, key: &str, value: &str) -> Result<(), KernelError> {
        self.kernel.set_sysctl(key, value)
    }
    fn offered(&mut self) -> Result<Offered, KernelError> {
        self.kernel.offered()
    }
}

fn over<'a, K: Kernel>(kernel: &'a mut K, settings: &Settings) -> Network<Recording<'a, K>> {
    Network::over(Recording { kernel, performed: Vec::new() }, settings.clone()).unwrap()
}

/// What holds of an empty namespace with the links up.
fn contract(mut kernel: impl Kernel, name: &str) {
    let settings = settings(name);
    let last = changes_are_least_and_in_place(&mut over(&mut kernel, &settings));
    let mut network = over(&mut kernel, &settings);
    // A new run finds everything in the kernel, and gives each flow the class that it has.
    assert_eq!(network.apply(&last).unwrap().changes, 0);
    what_is_not_wanted_goes(&mut network, &last);
    a_purge_leaves_nothing(&mut network);
}

fn changes_are_least_and_in_place<K: Kernel>(network: &mut Network<Recording<'_, K>>) -> DesiredState {
    let capabilities = network.probe();
    assert!(capabilities.htb && capabilities.nft_maps && capabilities.ip_forward, "{capabilities:?}");
    let flows = vec![flow(1, "n2", Some(8 * MBIT)), flow(2, "n3", Some(5 * MBIT)), flow(3, "n3", None)];
    let mut wanted = document(flows, vec![route(9, "n2")]);
    assert!(!apply(network, &wanted).is_empty());
    assert_eq!(apply(network, &wanted), []);
    assert_eq!(network.flow_counters().unwrap().len(), 2);

    // Another rate: the class and its queue, and what the classes beside flows have of the link.
    wanted.flows[0].rate = Some(BitRate(16 * MBIT));
    let performed = of_flows(apply(network, &wanted));
    assert!(
        matches!(
            performed.as_slice(),
            [Operation::PutClass { minor: 1, .. }, Operation::PutLeaf { minor: 1, .. }]
        ),
        "{performed:?}"
    );

    // Another path: the map entry flips between the new class and the removal of the old one.
    wanted.flows[0].next_hop = "n3".parse().unwrap();
    let performed = of_flows(apply(network, &wanted));
    assert!(
        matches!(
            performed.as_slice(),
            [
                Operation::PutClass { .. },
                Operation::PutLeaf { .. },
                Operation::ChangeTable(_),
                Operation::RemoveClass { .. }
            ]
        ),
        "{performed:?}"
    );
    wanted
}

/// Without changes of the classes beside flows, which share what these leave.
fn of_flows(mut performed: Vec<Operation>) -> Vec<Operation> {
    let beside = |operation: &Operation| match operation {
        Operation::PutClass { minor, .. } => *minor == PULL_MINOR || *minor == DEFAULT_MINOR,
        _ => false,
    };
    let all = performed.len();
    performed.retain(|operation| !beside(operation));
    assert!(performed.len() < all, "{performed:?}");
    performed
}

/// Applies a document and returns what the kernel was asked for.
fn apply<K: Kernel>(network: &mut Network<Recording<'_, K>>, wanted: &DesiredState) -> Vec<Operation> {
    network.kernel().performed.clear();
    assert_eq!(network.apply(wanted).unwrap().problems, []);
    network.kernel().performed.clone()
}

fn found<K: Kernel>(network: &mut Network<Recording<'_, K>>) -> Found {
    network.kernel().list(&BTreeSet::from(["l2", "l3"])).unwrap()
}

fn what_is_not_wanted_goes<K: Kernel>(network: &mut Network<Recording<'_, K>>, last: &DesiredState) {
    let left = last.flows.iter().filter(|flow| flow.key != key(1)).cloned().collect();
    apply(network, &document(left, Vec::new()));
    let now = found(network);
    let table = now.table.unwrap();
    assert_eq!(table.marks.keys().copied().collect::<Vec<_>>(), [key(2), key(3)]);
    assert_eq!(table.classes.keys().copied().collect::<Vec<_>>(), [key(2)]);
    assert_eq!(now.routes.len(), 2, "the neighbours' defaults alone are left");

    let neighbour = "n3".parse().unwrap();
    for _ in 0..2 {
        network.neighbour_down(&neighbour).unwrap();
        assert_eq!(found(network).routes.len(), 1);
    }
    network.neighbour_up(&neighbour).unwrap();
    assert_eq!(found(network).routes.len(), 2);
}

fn a_purge_leaves_nothing<K: Kernel>(network: &mut Network<Recording<'_, K>>) {
    network.purge().unwrap();
    network.purge().unwrap();
    let now = found(network);
    assert!(now.routes.is_empty() && now.rules.is_empty() && now.table.is_none(), "{now:?}");
    assert!(now.classes.is_empty() && !now.roots.values().any(|root| *root == Root::Ours), "{now:?}");
    for (key, value) in [("conf/l2/send_redirects", "1"), ("ip_forward", "0")] {
        let restored = network.kernel().sysctl(&format!("net/ipv4/{key}")).unwrap();
        assert_eq!(restored.as_deref(), Some(value), "{key}");
    }
}

#[test]
fn the_fake_keeps_the_contract() {
    contract(Fake::with_interfaces(&["l2", "l3"]), "fake-contract");
}

#[test]
fn linux_keeps_the_contract() {
    if lab() {
        Namespace::new().run(|| {
            sh("ip link add l2 type veth peer name p2; ip link add l3 type veth peer name p3
                ip addr add 10.61.2.1/24 dev l2; ip addr add 10.61.3.1/24 dev l3
                ip link set l2 up; ip link set p2 up; ip link set l3 up; ip link set p3 up");
            let before = everything();
            contract(Linux::open().unwrap(), "linux-contract");
            assert_eq!(everything(), before, "what a purge leaves");
        });
    }
}

/// The namespace as the usual programs see it.
fn everything() -> String {
    sh("ip -j rule; ip -4 -j route show table all; tc -j qdisc; nft -j list tables; ip -o link | wc -l")
}

#[test]
fn the_usual_programs_see_what_was_applied() {
    if !lab() {
        return;
    }
    Namespace::new().run(|| {
        sh("ip link add l2 type veth peer name p2; ip link set l2 up; ip link set p2 up");
        let mut settings = settings("usual-programs");
        settings.links.retain(|link| link.interface == "l2");
        let mut network = Network::open(settings).unwrap();
        let wanted = document(vec![flow(7000, "n2", Some(8 * MBIT))], vec![route(9, "n2")]);
        assert_eq!(network.apply(&wanted).unwrap().problems, []);

        let rules = sh("ip -j rule");
        assert!(
            rules.contains(r#""priority":4501"#) && rules.contains(r#""fwmark":"0x45000001""#),
            "{rules}"
        );
        let table = sh("ip route show table 45001");
        assert!(table.contains("default via 10.61.2.2 dev l2 proto 117 onlink"), "{table}");
        let main = sh("ip route show 10.77.0.9");
        assert!(main.contains("10.77.0.9 via 10.61.2.2 dev l2 proto 117 onlink"), "{main}");
        let classes = sh("tc class show dev l2");
        for line in [
            "class htb 4501:ffff root rate 20Mbit ceil 20Mbit burst 12500b cburst 12500b",
            "class htb 4501:fffd parent 4501:ffff leaf",
            "class htb 4501:fffe parent 4501:ffff leaf",
            "prio 7 rate 6Mbit ceil 20Mbit burst 3750b cburst 12500b",
            "prio 1 rate 8Mbit ceil 8Mbit burst 5000b cburst 5000b",
        ] {
            assert!(classes.contains(line), "{line} is not in\n{classes}");
        }
        let nft = sh("nft list table ip edgeloom");
        for line in [
            "10.77.0.2 . 10.77.0.3 . tcp . 7000 : 0x45000001",
            "10.77.0.2 . 10.77.0.3 . tcp . 7000 : 4501:1",
            "meta mark set ip saddr . ip daddr . meta l4proto . th dport map @flow_mark",
            "meta priority set ip saddr . ip daddr . meta l4proto . th dport map @flow_class",
            "type route hook output priority mangle; policy accept;",
            "ip saddr 10.77.0.0/16 ip daddr != 10.77.0.0/16 masquerade comment \"edgeloom 1 10.77.0.0/16\"",
        ] {
            assert!(nft.contains(line), "{line} is not in\n{nft}");
        }
    });
}
