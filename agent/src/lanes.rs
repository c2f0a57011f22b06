//! Interfaces that pulls from registries may share with flows: what each carries, and what flows have of it.

use crate::config::Link;
use edgeloom_blobs::{Lane, Meter};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::units::BitRate;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// As this node's kernel says.
pub(crate) const METER: Meter = Meter { interface_of, received };
/// Counters of all interfaces of this thread's network namespace: proc_pid_net(5).
const COUNTERS: &str = "/proc/thread-self/net/dev";

/// By interface, as this document says. Links that share an interface share its capacity, the largest declared, none
/// if one is not, and what flows have of each adds up.
pub(crate) fn of(links: &[Link], document: &DesiredState) -> BTreeMap<String, Lane> {
    let mut lanes: BTreeMap<String, Lane> = BTreeMap::new();
    for link in links {
        let inbound = document.reserved.get(&link.neighbour).map_or(0, |reserved| reserved.inbound.0);
        let alone = Lane { capacity: link.capacity, reserved: BitRate(0) };
        let lane = lanes.entry(link.interface.clone()).or_insert(alone);
        lane.capacity = lane.capacity.zip(link.capacity).map(|(one, other)| one.max(other));
        lane.reserved.0 = lane.reserved.0.saturating_add(inbound);
    }
    lanes
}

fn interface_of(address: IpAddr) -> Option<String> {
    let IpAddr::V4(wanted) = address else { return None };
    let found = edgeloom_net::addresses().ok()?;
    let has = |own: &[edgeloom_net::Address]| own.iter().any(|own| own.address == wanted);
    found.into_iter().find(|(_, own)| has(own)).map(|(interface, _)| interface)
}

fn received(interface: &str) -> Option<u64> {
    bytes_received(&std::fs::read_to_string(COUNTERS).ok()?, interface)
}

/// `  eth0: 1234 …`: the first number is the bytes received.
fn bytes_received(counters: &str, interface: &str) -> Option<u64> {
    let mut lines = counters.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == interface)?;
    numbers.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::document;
    use edgeloom_common::desired::Reserved;

    fn link(neighbour: &str, interface: &str, capacity: Option<u64>) -> Link {
        Link {
            neighbour: neighbour.parse().unwrap(),
            interface: interface.to_owned(),
            address: None,
            neighbour_address: [10, 61, 1, 2].into(),
            capacity: capacity.map(BitRate),
        }
    }

    #[test]
    fn links_of_one_interface_are_one_lane() {
        let links = [
            link("n2", "eth0", Some(100)),
            link("n3", "eth0", Some(90)),
            link("n4", "wlan0", Some(10)),
            link("n5", "wlan0", None),
            link("n6", "eth1", Some(50)),
        ];
        let inbound = |rate| Reserved { inbound: BitRate(rate), outbound: BitRate(7) };
        let mut document = document(1, vec![]);
        document.reserved =
            [("n2", 20), ("n3", 30)].map(|(node, rate)| (node.parse().unwrap(), inbound(rate))).into();
        let lane = |capacity: Option<u64>, reserved| Lane {
            capacity: capacity.map(BitRate),
            reserved: BitRate(reserved),
        };
        let lanes = of(&links, &document);
        let expected = [("eth0", lane(Some(100), 50)), ("wlan0", lane(None, 0)), ("eth1", lane(Some(50), 0))];
        assert_eq!(lanes, expected.map(|(interface, lane)| (interface.to_owned(), lane)).into());
    }

    #[test]
    fn the_kernel_tells_an_interface_by_its_address_and_counts_what_it_receives() {
        assert_eq!(interface_of([127, 0, 0, 1].into()).as_deref(), Some("lo"));
        assert_eq!(interface_of([192, 0, 2, 1].into()), None);
        assert!(received("lo").is_some() && received("no-such-interface").is_none());
        let text = "Inter-|   Receive\n face |bytes    packets\n    lo:  17 1 0\n  eth0:1234 5 0\n";
        assert_eq!(bytes_received(text, "eth0"), Some(1234));
    }
}
