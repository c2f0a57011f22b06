//! The real kernel beside others: what is not ours stays, what others undo is seen, and size does not
//! matter.

use super::document::{MBIT, document, flow, settings};
use super::namespace::{Namespace, lab, sh};
use crate::watch::{self, Change};
use crate::{NetError, Network, Problem};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// A namespace with both links, up.
fn node() -> Namespace {
    let node = Namespace::new();
    node.run(|| {
        sh("ip link add l2 type veth peer name p2; ip link add l3 type veth peer name p3
            ip addr add 10.61.2.1/24 dev l2; ip addr add 10.61.3.1/24 dev l3
            ip link set l2 up; ip link set p2 up; ip link set l3 up; ip link set p3 up")
    });
    node
}

#[test]
fn a_thousand_flows_are_applied_in_one_go_and_read_back_alike() {
    if !lab() {
        return;
    }
    node().run(|| {
        let mut network = Network::open(settings("thousand")).unwrap();
        let rate = |port: u16| match port {
            // Beyond 32 bits of bytes a second.
            1 => Some(100_000 * MBIT),
            port if port.is_multiple_of(2) => Some(u64::from(port) * 16_001),
            _ => None,
        };
        let flows: Vec<_> = (1..=1000).map(|port| flow(port, "n2", rate(port))).collect();
        assert_eq!(network.apply(&document(flows.clone(), Vec::new())).unwrap().problems, []);
        assert_eq!(network.apply(&document(flows.clone(), Vec::new())).unwrap().changes, 0);
        assert_eq!(network.flow_counters().unwrap().len(), 501);
        assert_eq!(sh("nft list map ip edgeloom flow_mark").matches("0x45000001").count(), 1000);

        let fewer = flows.into_iter().filter(|flow| flow.key.destination_port > 900).collect();
        assert_eq!(network.apply(&document(fewer, Vec::new())).unwrap().problems, []);
        assert_eq!(network.flow_counters().unwrap().len(), 50);
        network.purge().unwrap();
    });
}

#[test]
fn what_others_made_stays() {
    if !lab() {
        return;
    }
    node().run(|| {
        sh("tc qdisc add dev l3 root handle 1: htb; tc class add dev l3 parent 1: classid 1:1 htb rate 1mbit
            ip rule add priority 4600 fwmark 0x1 lookup 45005; ip route add 10.99.0.0/24 dev l2 table 45001
            nft add table ip other; ip addr add 10.98.0.1/24 dev l2");
        let theirs = || sh("tc class show dev l3; ip rule; ip -4 route show table all; nft list ruleset");
        let before = theirs();
        let mut network = Network::open(settings("others")).unwrap();
        let wanted = document(vec![flow(1, "n3", Some(MBIT)), flow(2, "n2", Some(MBIT))], Vec::new());
        let applied = network.apply(&wanted).unwrap();
        assert!(
            matches!(applied.problems.as_slice(), [Problem::ForeignQdisc { interface, kind }]
                if interface == "l3" && kind == "htb"),
            "{:?}",
            applied.problems
        );
        network.purge().unwrap();
        assert_eq!(theirs(), before);
    });
}

#[test]
fn what_others_undo_is_made_again_with_the_same_classes() {
    if !lab() {
        return;
    }
    node().run(|| {
        let mut network = Network::open(settings("undo")).unwrap();
        let wanted = document(vec![flow(1, "n2", Some(MBIT)), flow(2, "n3", Some(MBIT))], Vec::new());
        network.apply(&wanted).unwrap();
        // A queue that is made anew has another number; IPv6 routes come when the kernel is done probing.
        let everything = || {
            sh("tc class show dev l2 | sed 's/ leaf [0-9a-f]*://'
                ip rule; ip -4 route show table all; nft list ruleset")
        };
        let before = everything();
        for undo in [
            "nft flush ruleset",
            "nft flush chain ip edgeloom output",
            "nft flush map ip edgeloom flow_class",
            "nft add rule ip edgeloom prerouting drop",
            "tc qdisc del dev l2 root",
            "ip rule del priority 4501",
            "ip link set l2 down; ip link set l2 up",
        ] {
            sh(undo);
            assert_eq!(network.apply(&wanted).unwrap().problems, [], "{undo}");
            assert_eq!(everything(), before, "{undo}");
        }
    });
}

#[test]
fn the_pool_is_accepted_where_forwarding_drops() {
    if !lab() {
        return;
    }
    node().run(|| {
        let mut network = Network::open(settings("forward")).unwrap();
        let wanted = document(Vec::new(), Vec::new());
        sh("iptables -P FORWARD DROP");
        assert_eq!(network.apply(&wanted).unwrap().problems, []);
        assert_eq!(network.apply(&wanted).unwrap().changes, 0);
        assert_eq!(sh("iptables -S FORWARD").matches("--comment edgeloom -j ACCEPT").count(), 1);
        // Docker comes: its chain is the place now.
        sh("iptables -N DOCKER-USER");
        assert_eq!(network.apply(&wanted).unwrap().changes, 2);
        assert_eq!(sh("iptables -S DOCKER-USER").matches("--comment edgeloom -j ACCEPT").count(), 1);
        assert_eq!(sh("iptables -S").matches("edgeloom").count(), 1);
        network.purge().unwrap();
        assert_eq!(sh("iptables -S").matches("edgeloom").count(), 0);
    });
}

#[test]
fn a_link_that_comes_is_told_and_a_lost_carrier_at_once() {
    if !lab() {
        return;
    }
    Namespace::new().run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut changes = watch::changes().unwrap();
            sh("ip link add l2 type veth peer name p2; ip link set l2 up; ip link set p2 up");
            while changes.next().await.unwrap() != Change::Some {}
            sh("ip link set p2 down");
            let lost = [changes.next().await.unwrap(), changes.next().await.unwrap()];
            assert!(lost.contains(&Change::Lost("l2".to_owned())), "{lost:?}");
            sh("ip addr add 10.61.2.9/24 dev l2");
            while changes.next().await.unwrap() != Change::Some {}
        });
    });
}

#[test]
fn without_cap_net_admin_the_answer_is_a_refusal() {
    if !lab() {
        return;
    }
    node().run(|| {
        // The thread's own; others keep theirs.
        let nothing = CapabilitySet::empty();
        let sets = CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing };
        rustix::thread::set_capabilities(None, sets).unwrap();
        let mut network = Network::open(settings("powerless")).unwrap();
        let refused = network.apply(&document(vec![flow(1, "n2", Some(MBIT))], Vec::new()));
        assert!(matches!(refused, Err(NetError::Permission)), "{refused:?}");
        let capabilities = network.probe();
        assert!(!capabilities.htb && !capabilities.nft_maps, "{capabilities:?}");
        assert!(capabilities.problems[0].contains("CAP_NET_ADMIN"), "{capabilities:?}");
    });
}
