//! The links: probes, what they measured, and neighbours that come and go.

use crate::config::Link;
use crate::network::{Neighbours, NetworkThread};
use crate::node::Node;
use crate::wire::Up;
use edgeloom_blobs::Pace;
use edgeloom_common::desired::SCHEMA;
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{LinkReport, Links};
use edgeloom_net::Address;
use edgeloom_observe::links::{LinkEvent, LinkSettings, Prober};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};

/// Events under way: one report and an up or down of each neighbour at the most.
const EVENTS: usize = 16;
/// Pause before the probe sockets are opened again: an interface may appear later.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What comes in and goes out.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) up: mpsc::Sender<Up>,
    pub(super) connected: watch::Receiver<u64>,
    /// Interfaces that have lost their carrier.
    pub(super) lost: broadcast::Sender<String>,
    /// Changes of the kernel, of which some are of our addresses.
    pub(super) changes: watch::Receiver<u64>,
    /// Knows over which interfaces registries are read; none without a layer store.
    pub(super) pace: Option<Pace>,
}

/// Probes the links for ever.
pub(super) async fn run(node: Node, ends: Ends) {
    let (sender, events) = mpsc::channel(EVENTS);
    let Ends { up, connected, lost, changes, pace } = ends;
    let places = Places { links: node.config.links.clone(), neighbours: node.network.neighbours(), changes };
    let voice = Voice { up, pace };
    tokio::join!(probe(places, sender, lost), follow(&node.network, events, voice, connected));
}

/// Probes until nobody listens; begins anew when an end of a link has got another address.
async fn probe(mut places: Places, events: mpsc::Sender<LinkEvent>, lost: broadcast::Sender<String>) {
    loop {
        let links = places.now();
        if links.is_empty() {
            // The controller counts on no node before it knows the node's links, also that there are none.
            if events.send(LinkEvent::Report(Vec::new())).await.is_err() {
                return;
            }
            places.differ(&links).await;
            continue;
        }
        match Prober::open(links.clone()) {
            Ok(prober) => {
                tokio::select! {
                    () = prober.run(events.clone(), lost.subscribe()) => return,
                    () = places.differ(&links) => tracing::info!("a link has other addresses"),
                }
                // The sockets are closed when the prober's tasks have had their turn.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "links are not probed");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}

/// Where the ends of the links are.
struct Places {
    links: Vec<Link>,
    neighbours: watch::Receiver<Neighbours>,
    changes: watch::Receiver<u64>,
}

impl Places {
    /// The links as they are now; one whose interface has no address yet is left out.
    fn now(&mut self) -> Vec<LinkSettings> {
        let own = edgeloom_net::addresses().unwrap_or_else(|error| {
            tracing::warn!(%error, "our addresses are not known");
            BTreeMap::new()
        });
        self.changes.mark_unchanged();
        let neighbours = self.neighbours.borrow_and_update().clone();
        self.links.iter().filter_map(|link| place(link, &own, &neighbours)).collect()
    }

    /// Waits until they are other than these.
    async fn differ(&mut self, links: &[LinkSettings]) {
        loop {
            tokio::select! {
                Ok(()) = self.changes.changed() => {}
                Ok(()) = self.neighbours.changed() => {}
                else => std::future::pending().await,
            }
            if self.now() != links {
                return;
            }
        }
    }
}

/// One link. Of several addresses of an interface the one in the neighbour's network is ours on the link.
fn place(link: &Link, own: &BTreeMap<String, Vec<Address>>, neighbours: &Neighbours) -> Option<LinkSettings> {
    let Link { neighbour, interface, neighbour_address, capacity, .. } = link.clone();
    let neighbour_address = neighbours.get(&neighbour).copied().unwrap_or(neighbour_address);
    let found = own.get(&interface).map_or(&[][..], Vec::as_slice);
    let beside = found.iter().find(|address| address.is_beside(neighbour_address)).or(found.first());
    let address = link.address.or(beside.map(|address| address.address))?;
    Some(LinkSettings { neighbour, interface, address, neighbour_address, capacity })
}

/// Passes events on until there are no more; the last report is said again to each new connection.
async fn follow(
    network: &NetworkThread,
    mut events: mpsc::Receiver<LinkEvent>,
    voice: Voice,
    mut connected: watch::Receiver<u64>,
) {
    let mut latest = None;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                None => return,
                Some(LinkEvent::Report(links)) => {
                    voice.say(latest.insert(links)).await;
                }
                Some(LinkEvent::Up(neighbour)) => turn(network, neighbour, true).await,
                Some(LinkEvent::Down(neighbour)) => turn(network, neighbour, false).await,
            },
            Ok(()) = connected.changed() => if let Some(links) = &latest {
                voice.say(links).await;
            },
        }
    }
}

/// Tells the controller of links.
struct Voice {
    up: mpsc::Sender<Up>,
    pace: Option<Pace>,
}

impl Voice {
    async fn say(&self, links: &[LinkReport]) {
        let mut links = links.to_vec();
        if let Some(pace) = &self.pace {
            mark(&mut links, pace);
        }
        let _ = self.up.send(Up::Links(Links { schema: SCHEMA, links })).await;
    }
}

/// What pulls over the links go by, and which ones they come over.
fn mark(links: &mut [LinkReport], pace: &Pace) {
    let used = pace.used();
    for link in links {
        link.pulls = used.contains(&link.interface);
        if let Some(capacity) = link.capacity_measured {
            pace.measured(&link.interface, capacity);
        }
    }
}

async fn turn(network: &NetworkThread, neighbour: NodeId, up: bool) {
    if let Err(error) = network.neighbour(neighbour, up).await {
        tracing::error!(%error, "neighbour change is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::samples;
    use edgeloom_net::Network;
    use edgeloom_net::fake::Fake;
    use std::net::Ipv4Addr;

    fn report() -> LinkReport {
        LinkReport {
            interface: "link0".to_owned(),
            capacity_declared: None,
            rtt_min_us: Some(900),
            rtt_median_us: Some(1000),
            ..samples::link("n2", Ipv4Addr::new(10, 61, 1, 1))
        }
    }

    #[test]
    fn our_address_is_the_interface_s_in_the_neighbour_s_network() {
        let address = |last: [u8; 4]| Address { address: last.into(), mask: Ipv4Addr::new(255, 255, 255, 0) };
        let link = Link {
            neighbour: "n2".parse().unwrap(),
            interface: "wlan0".to_owned(),
            address: None,
            neighbour_address: Ipv4Addr::new(10, 61, 1, 2),
            capacity: None,
        };
        let ours = |addresses: &[[u8; 4]], neighbours: &Neighbours| {
            let own =
                BTreeMap::from([("wlan0".to_owned(), addresses.iter().copied().map(address).collect())]);
            place(&link, &own, neighbours)
                .map(|link| (link.address.octets(), link.neighbour_address.octets()))
        };
        let nowhere = Neighbours::new();
        assert_eq!(ours(&[], &nowhere), None);
        assert_eq!(ours(&[[10, 9, 9, 9]], &nowhere), Some(([10, 9, 9, 9], [10, 61, 1, 2])));
        let both = [[10, 9, 9, 9], [10, 61, 1, 7]];
        assert_eq!(ours(&both, &nowhere), Some(([10, 61, 1, 7], [10, 61, 1, 2])));
        let moved = Neighbours::from([("n2".parse().unwrap(), Ipv4Addr::new(10, 9, 9, 1))]);
        assert_eq!(ours(&both, &moved), Some(([10, 9, 9, 9], [10, 9, 9, 1])));
        let fixed = Link { address: Some(Ipv4Addr::new(10, 61, 1, 1)), ..link.clone() };
        assert_eq!(place(&fixed, &BTreeMap::new(), &nowhere).unwrap().address, Ipv4Addr::new(10, 61, 1, 1));
    }

    #[tokio::test]
    async fn a_node_without_links_says_so() {
        let (_neighbours, neighbours) = watch::channel(Neighbours::new());
        let (_changes, changes) = watch::channel(0);
        let places = Places { links: Vec::new(), neighbours, changes };
        let (sender, mut events) = mpsc::channel(1);
        tokio::select! {
            () = probe(places, sender, broadcast::Sender::new(1)) => panic!("probing ended"),
            event = events.recv() => {
                assert!(matches!(&event, Some(LinkEvent::Report(links)) if links.is_empty()), "{event:?}");
            }
        }
    }

    #[tokio::test]
    async fn each_connection_hears_the_last_report() {
        let disk = tempfile::tempdir().unwrap();
        let bridge = "edgeloom0".to_owned();
        let settings =
            edgeloom_net::Settings { bridge, links: Vec::new(), state_dir: disk.path().to_owned() };
        let kernel = Fake::with_interfaces(&["edgeloom0"]);
        let network = NetworkThread::start(move || Network::over(kernel, settings)).unwrap();
        let (sender, events) = mpsc::channel(1);
        let (up, mut said) = mpsc::channel(1);
        let (connections, connected) = watch::channel(0);
        let hearing = async {
            sender.send(LinkEvent::Report(vec![report()])).await.unwrap();
            for _ in 0..3 {
                assert!(matches!(said.recv().await, Some(Up::Links(links)) if links.links == [report()]));
                connections.send_modify(|count| *count += 1);
            }
            drop(sender);
        };
        tokio::join!(follow(&network, events, Voice { up, pace: None }, connected), hearing);
    }
}
