//! Packets: a flow is sent the long way round at its rate, while the main route goes the other way.
//!
//! `n1` reaches `n4` over `n2` (the main route) or over `n3`. Each node is a namespace with a bridge as
//! Docker makes it; a task on `n1` (10.77.0.2) sends to a task on `n4` (10.77.0.3), each in a namespace
//! behind its node's bridge, with the whole pool on its interface.

use super::document::{MBIT, document, flow, folder, route, task};
use super::namespace::{Namespace, lab, sh};
use crate::{LinkSettings, Network, Settings};
use edgeloom_common::desired::{DesiredState, TaskRoute};
use edgeloom_common::units::BitRate;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Wire rate of a flow.
const RATE: u64 = 4 * MBIT;
/// What a busy machine may read as the rate: it begins to count late.
const RATE_MAX: f64 = 1.2 * RATE as f64;
/// Transfers until one has the rate that it is given.
pub(super) const TRIES_MAX: usize = 8;
/// Of the first node's links: less than two flows.
pub(super) const CAPACITY: u64 = 5 * MBIT;
const PAYLOAD_BYTES: usize = 1_000_000;
/// What ACKs and handshakes may add on the link that is passed by.
const STRAY_BYTES: u64 = 50_000;
pub(super) const PORT: u16 = 7000;
/// The task at either end.
pub(super) const SENDER: u8 = 2;
pub(super) const RECEIVER: u8 = 3;

/// Four nodes and the two tasks.
pub(super) struct Mesh {
    nodes: [Namespace; 4],
    pub(super) sender: Namespace,
    pub(super) receiver: Namespace,
    /// Nodes whose links have a declared capacity.
    limited: Vec<u8>,
}

impl Mesh {
    fn new() -> Self {
        Self::limited_at(&[1])
    }

    pub(super) fn limited_at(nodes: &[u8]) -> Self {
        let mesh = Self {
            nodes: std::array::from_fn(|_| Namespace::new()),
            sender: Namespace::new(),
            receiver: Namespace::new(),
            limited: nodes.to_vec(),
        };
        for (a, b) in [(1, 2), (1, 3), (2, 4), (3, 4)] {
            mesh.connect(a, b);
        }
        attach(mesh.node(1), &mesh.sender, SENDER);
        attach(mesh.node(4), &mesh.receiver, RECEIVER);
        mesh
    }

    pub(super) fn node(&self, n: u8) -> &Namespace {
        &self.nodes[usize::from(n) - 1]
    }

    /// A link with the interface `l<peer>` at either end, addresses 10.61.<a><b>.<node>.
    fn connect(&self, a: u8, b: u8) {
        let other = self.node(b).path();
        self.node(a).run(|| {
            sh(&format!(
                "ip link add l{b} type veth peer name l{a} netns {other}
                 ip addr add 10.61.{a}{b}.{a}/24 dev l{b}; ip link set l{b} up"
            ))
        });
        self.node(b).run(|| sh(&format!("ip addr add 10.61.{a}{b}.{b}/24 dev l{a}; ip link set l{a} up")));
    }

    /// The network of node `n`, with the document applied.
    pub(super) fn apply(&self, n: u8, neighbours: &[u8], wanted: &DesiredState) -> Network {
        let link = |peer: &u8| {
            let net = 10 * n.min(*peer) + n.max(*peer);
            LinkSettings {
                neighbour: format!("n{peer}").parse().unwrap(),
                interface: format!("l{peer}"),
                neighbour_address: Ipv4Addr::new(10, 61, net, *peer),
                capacity: self.limited.contains(&n).then_some(BitRate(CAPACITY)),
            }
        };
        let state_dir = folder(&format!("traffic-{:?}-{n}", std::thread::current().id()));
        let links = neighbours.iter().map(link).collect();
        let settings = Settings { bridge: "edgeloom0".to_owned(), links, state_dir };
        self.node(n).run(|| {
            let mut network = Network::open(settings).unwrap();
            assert_eq!(network.apply(wanted).unwrap().problems, []);
            network
        })
    }

    /// Bytes that a node has sent to a neighbour.
    fn sent(&self, from: u8, to: u8) -> u64 {
        let listing = self.node(from).run(|| sh(&format!("ip -j -s link show l{to}")));
        let json: serde_json::Value = serde_json::from_str(&listing).unwrap();
        json[0]["stats64"]["tx"]["bytes"].as_u64().unwrap()
    }

    /// Sends the payload from task to task and returns bits of payload a second.
    fn send(&self) -> f64 {
        self.send_to(PORT)
    }

    fn send_to(&self, port: u16) -> f64 {
        let listener = self.receiver.run(|| TcpListener::bind((task(RECEIVER), port)).unwrap());
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                let received = stream.read_to_end(&mut Vec::new()).unwrap();
                (received, Instant::now())
            });
            let begun = self.sender.run(|| {
                let mut stream = TcpStream::connect((task(RECEIVER), port)).unwrap();
                let begun = Instant::now();
                stream.write_all(&vec![7; PAYLOAD_BYTES]).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                begun
            });
            let (received, ended) = receiver.join().unwrap();
            assert_eq!(received, PAYLOAD_BYTES);
            8.0 * received as f64 / ended.duration_since(begun).as_secs_f64()
        })
    }
}

/// A task behind the bridge of its node.
fn attach(node: &Namespace, container: &Namespace, last: u8) {
    let path = container.path();
    node.run(|| {
        sh(&format!(
            "ip link add edgeloom0 type bridge; ip addr add 10.77.0.1/16 dev edgeloom0; ip link set edgeloom0 up
             ip link add port type veth peer name eth0 netns {path}
             ip link set port master edgeloom0; ip link set port up"
        ))
    });
    container.run(|| {
        sh(&format!(
            "ip addr add 10.77.0.{last}/16 dev eth0; ip link set eth0 up; ip route add default via 10.77.0.1"
        ))
    });
}

fn routes(routes: &[(u8, &str)]) -> Vec<TaskRoute> {
    routes.iter().map(|(last, via)| route(*last, via)).collect()
}

#[test]
fn a_flow_takes_the_chosen_path_at_its_rate_and_the_main_one_when_its_neighbour_is_down() {
    if !lab() {
        return;
    }
    let mesh = Mesh::new();
    let shaped = vec![flow(PORT, "n3", Some(RATE))];
    let mut first = mesh.apply(1, &[2, 3], &document(shaped, routes(&[(RECEIVER, "n2")])));
    let main = document(Vec::new(), routes(&[(SENDER, "n1"), (RECEIVER, "n4")]));
    mesh.apply(2, &[1, 4], &main);
    mesh.apply(3, &[1, 4], &DesiredState { flows: vec![flow(PORT, "n4", None)], ..main });
    mesh.apply(4, &[2, 3], &document(Vec::new(), routes(&[(SENDER, "n2")])));

    let goodput = mesh.send();
    assert!(goodput <= RATE_MAX, "{goodput} bit/s of payload in a class of {RATE}");
    for (from, to) in [(1, 3), (3, 4)] {
        let sent = mesh.sent(from, to);
        assert!(sent > PAYLOAD_BYTES as u64, "n{from} sent {sent} bytes to n{to}");
    }
    for (from, to) in [(1, 2), (2, 4)] {
        let sent = mesh.sent(from, to);
        assert!(sent < STRAY_BYTES, "n{from} sent {sent} bytes to n{to}, which is not on the path");
    }
    let counted = mesh.node(1).run(|| first.flow_counters().unwrap());
    assert!(counted[0].bytes > PAYLOAD_BYTES as u64, "{counted:?}");

    mesh.node(1).run(|| first.neighbour_down(&"n3".parse().unwrap()).unwrap());
    let before = mesh.sent(1, 3);
    mesh.send();
    assert!(mesh.sent(1, 2) > PAYLOAD_BYTES as u64);
    assert!(mesh.sent(1, 3) - before < STRAY_BYTES);
}

/// A flow goes n1, n3, n4, another one n1, n2, n4, which is the main route too.
struct Led {
    mesh: Mesh,
    third: Network,
    document: DesiredState,
}

const OTHER_PORT: u16 = 7001;

impl Led {
    fn new() -> Self {
        let mesh = Mesh::new();
        let flows = vec![flow(PORT, "n3", Some(RATE)), flow(OTHER_PORT, "n2", Some(RATE))];
        mesh.apply(1, &[2, 3], &document(flows, routes(&[(RECEIVER, "n2")])));
        let main = document(Vec::new(), routes(&[(SENDER, "n1"), (RECEIVER, "n4")]));
        mesh.apply(2, &[1, 4], &main);
        let alternates = routes(&[(RECEIVER, "n1")]);
        let document = DesiredState { flows: vec![flow(PORT, "n4", None)], alternates, ..main };
        let third = mesh.apply(3, &[1, 4], &document);
        mesh.apply(4, &[2, 3], &self::document(Vec::new(), routes(&[(SENDER, "n2")])));
        Self { mesh, third, document }
    }

    /// The link between n3 and n4 carries nothing any more, and n3 has noticed.
    fn cut(&mut self) {
        self.mesh.node(3).run(|| {
            sh("nft add table ip cut
                nft 'add chain ip cut out { type filter hook postrouting priority 200; }'
                nft add rule ip cut out oifname l4 drop");
            self.third.neighbour_down(&"n4".parse().unwrap()).unwrap();
            self.third.apply(&self.document).unwrap();
        });
    }
}

#[test]
fn a_relay_whose_link_is_dead_sends_back_and_the_node_before_takes_the_main_route() {
    if !lab() {
        return;
    }
    let mut led = Led::new();
    led.mesh.send();
    assert!(led.mesh.sent(3, 4) > PAYLOAD_BYTES as u64);
    led.cut();
    let before = [(1, 3), (3, 1), (1, 2)].map(|(from, to)| led.mesh.sent(from, to));
    let goodput = led.mesh.send();
    assert!(goodput <= RATE_MAX, "{goodput} bit/s of payload in a class of {RATE}");
    let after = [(1, 3), (3, 1), (1, 2)].map(|(from, to)| led.mesh.sent(from, to));
    for (before, after) in before.into_iter().zip(after) {
        let sent = after - before;
        assert!((PAYLOAD_BYTES as u64..2 * PAYLOAD_BYTES as u64).contains(&sent), "{sent}: no loop");
    }
}

#[test]
fn a_flow_that_falls_to_another_link_takes_nothing_from_the_flows_there() {
    if !lab() {
        return;
    }
    let mut led = Led::new();
    led.cut();
    let (mesh, over) = (&led.mesh, std::sync::atomic::AtomicBool::new(false));
    // A fair half of the link would be 2.5 Mbit/s each time; a busy machine takes from a flow, and gives nothing.
    let is_kept = |goodput: &f64| *goodput > 0.8 * RATE as f64;
    let goodputs: Vec<f64> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                mesh.send();
            }
        });
        let mut tries: Vec<f64> = Vec::new();
        while tries.len() < TRIES_MAX && !tries.last().is_some_and(is_kept) {
            tries.push(mesh.send_to(OTHER_PORT));
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        tries
    });
    assert!(goodputs.last().is_some_and(is_kept), "{goodputs:?} bit/s of payload in a class of {RATE}");
}

/// The hardware address that a task's node has for another task, as `ip neigh` prints it.
fn neighbour(namespace: &Namespace, of: Ipv4Addr) -> String {
    let listing = namespace.run(|| sh(&format!("ip -j neigh show {of} dev eth0")));
    let json: serde_json::Value = serde_json::from_str(&listing).unwrap();
    json[0]["lladdr"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn neighbours_of_a_task_that_leaves_learn_the_bridge_at_once() {
    if !lab() {
        return;
    }
    let mesh = Mesh::new();
    let mut network = mesh.apply(1, &[2, 3], &document(vec![], vec![]));
    let (stays, left) = (&mesh.sender, task(RECEIVER));
    stays.run(|| sh(&format!("ip neigh replace {left} lladdr 02:00:00:00:00:99 dev eth0 nud reachable")));
    let moved = document(vec![], vec![route(RECEIVER, "n2")]);
    mesh.node(1).run(|| assert_eq!(network.apply(&moved).unwrap().problems, []));
    let listing = mesh.node(1).run(|| sh("ip -j link show dev edgeloom0"));
    let listing: serde_json::Value = serde_json::from_str(&listing).unwrap();
    let bridge = listing[0]["address"].as_str().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while neighbour(stays, left) != bridge {
        assert!(Instant::now() < deadline, "{} is not the bridge", neighbour(stays, left));
        std::thread::sleep(Duration::from_millis(1));
    }
}
