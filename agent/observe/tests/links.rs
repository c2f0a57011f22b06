//! The link probes between two probers: over loopback, and over a shaped link between two network
//! namespaces of the test's own.

use edgeloom_common::report::LinkReport;
use edgeloom_common::units::BitRate;
use edgeloom_observe::links::{LinkEvent, LinkSettings, LinksError, Prober};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::TryRecvError;
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, mpsc};
use tokio::time::timeout;

/// A wait longer than this is a failure; nothing is measured with it.
const PATIENCE: Duration = Duration::from_secs(60);

fn link(neighbour: &str, interface: &str, address: [u8; 4], neighbour_address: [u8; 4]) -> LinkSettings {
    LinkSettings {
        neighbour: neighbour.parse().unwrap(),
        interface: interface.to_owned(),
        address: Ipv4Addr::from(address),
        neighbour_address: Ipv4Addr::from(neighbour_address),
        capacity: Some(BitRate(20_000_000)),
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Longer than the silence after which a neighbour is taken for gone.
const AWAY: Duration = Duration::from_secs(4);

/// Interfaces that lose their carrier: none.
fn carrier() -> broadcast::Receiver<String> {
    broadcast::channel(1).1
}

/// The first event that `wanted` accepts.
async fn wait_for<T>(
    events: &mut mpsc::Receiver<LinkEvent>,
    mut wanted: impl FnMut(LinkEvent) -> Option<T>,
) -> T {
    let search = async {
        loop {
            let event = events.recv().await.expect("the prober runs as long as it is listened to");
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    };
    timeout(PATIENCE, search).await.expect("the event comes")
}

#[test]
fn two_neighbours_find_each_other_and_keep_the_one_whose_agent_is_away() {
    runtime().block_on(async {
        let one = Prober::open(vec![link("two", "lo", [127, 71, 17, 1], [127, 71, 17, 2])]).unwrap();
        let two = Prober::open(vec![link("one", "lo", [127, 71, 17, 2], [127, 71, 17, 1])]).unwrap();
        let (sender_one, mut events_one) = mpsc::channel(8);
        let (sender_two, events_two) = mpsc::channel(8);
        tokio::spawn(one.run(sender_one, carrier()));
        let other = tokio::spawn(two.run(sender_two, carrier()));

        let up = |event| (event == LinkEvent::Up("two".parse().unwrap())).then_some(());
        wait_for(&mut events_one, up).await;
        let report = wait_for(&mut events_one, |event| match event {
            LinkEvent::Report(mut links) => links.pop(),
            _ => None,
        });
        let report: LinkReport = report.await;
        assert!(report.up && report.rtt_min_us <= report.rtt_median_us && report.rtt_min_us.is_some());
        assert_eq!(report.loss_permille, 0);

        // Its kernel says that nobody listens any more: the machine is there.
        drop(events_two);
        timeout(PATIENCE, other).await.unwrap().unwrap();
        let down = wait_for(&mut events_one, |event| {
            (event == LinkEvent::Down("two".parse().unwrap())).then_some(())
        });
        assert!(timeout(AWAY, down).await.is_err(), "only its agent is away");
    });
}

#[test]
fn a_link_whose_address_does_not_exist_yet_opens_and_is_down() {
    runtime().block_on(async {
        let prober = Prober::open(vec![link("two", "none", [192, 0, 2, 1], [192, 0, 2, 2])]).unwrap();
        let (sender, mut events) = mpsc::channel(8);
        tokio::spawn(prober.run(sender, carrier()));
        wait_for(&mut events, |event| (event == LinkEvent::Down("two".parse().unwrap())).then_some(())).await;
    });
}

#[test]
fn links_that_cannot_be_told_apart_are_refused() {
    runtime().block_on(async {
        let (ours, theirs) = ([127, 71, 18, 1], [127, 71, 18, 2]);
        let twice = vec![link("two", "a", ours, theirs), link("two", "b", theirs, ours)];
        assert!(matches!(Prober::open(twice), Err(LinksError::Neighbour { .. })));
        let same = vec![link("two", "a", ours, theirs), link("three", "b", ours, theirs)];
        assert!(matches!(Prober::open(same), Err(LinksError::Addresses { .. })));
    });
}

/// Three namespaces in a row; the one in the middle bridges and shapes, as a lab's link does.
struct ShapedLink {
    prefix: String,
}

impl ShapedLink {
    /// Tests that run side by side differ by their letter.
    fn build(letter: char) -> Self {
        let shaped = Self { prefix: format!("elo{letter}{}", std::process::id()) };
        let [a, m, b] = ["a", "m", "b"].map(|side| shaped.namespace(side));
        for name in [&a, &m, &b] {
            run(&format!("ip netns add {name}"));
            run(&format!("ip -n {name} link set lo up"));
        }
        run(&format!("ip -n {m} link add br0 type bridge"));
        run(&format!("ip -n {m} link set br0 up"));
        for (side, middle, address) in [(&a, "vm-a", "10.99.0.1/24"), (&b, "vm-b", "10.99.0.2/24")] {
            run(&format!("ip -n {m} link add {middle} type veth peer name vlk netns {side}"));
            run(&format!("ip -n {m} link set {middle} master br0 up"));
            run(&format!("ip -n {side} addr add {address} dev vlk"));
            run(&format!("ip -n {side} link set vlk up"));
            run(&format!("tc -n {m} qdisc add dev {middle} root tbf rate 20mbit burst 16kb latency 400ms"));
        }
        shaped
    }

    fn namespace(&self, side: &str) -> String {
        format!("{}{side}", self.prefix)
    }

    /// A prober at `b`, until what is returned first is dropped.
    fn far_end(&self) -> (mpsc::Sender<()>, thread::JoinHandle<()>) {
        let (over, mut far_over) = mpsc::channel::<()>(1);
        let far = self.inside("b", move || {
            runtime().block_on(async {
                let prober = Prober::open(vec![link("a", "vlk", [10, 99, 0, 2], [10, 99, 0, 1])]).unwrap();
                let (sender, mut events) = mpsc::channel(8);
                tokio::spawn(prober.run(sender, carrier()));
                loop {
                    tokio::select! {
                        event = events.recv() => assert!(event.is_some()),
                        _ = far_over.recv() => return,
                    }
                }
            });
        });
        (over, far)
    }

    /// Runs `work` on a thread of its own inside a namespace.
    fn inside<T: Send + 'static>(
        &self,
        side: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let path = format!("/run/netns/{}", self.namespace(side));
        thread::spawn(move || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }
}

impl Drop for ShapedLink {
    fn drop(&mut self) {
        for side in ["a", "m", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &self.namespace(side)]).status();
        }
    }
}

fn run(line: &str) {
    let mut words = line.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{line}: {status}");
}

#[test]
fn a_train_reads_the_rate_of_the_shaper_and_a_cut_link_goes_down_and_up() {
    if !edgeloom_prepare::lab_allowed(&["ip", "tc"]) {
        return;
    }
    let shaped = ShapedLink::build('x');
    let (over, far) = shaped.far_end();
    let middle = shaped.namespace("m");
    let near = shaped.inside("a", move || runtime().block_on(near_end(middle)));
    let capacity = near.join().unwrap();
    drop(over);
    far.join().unwrap();
    println!("capacity measured: {capacity}");
    assert!((18_000_000..=22_000_000).contains(&capacity.0), "{capacity}");
}

/// Measures, then cuts the link in the middle and mends it again.
async fn near_end(middle: String) -> BitRate {
    let prober = Prober::open(vec![link("b", "vlk", [10, 99, 0, 1], [10, 99, 0, 2])]).unwrap();
    let (sender, mut events) = mpsc::channel(8);
    tokio::spawn(prober.run(sender, carrier()));
    let capacity = wait_for(&mut events, |event| match event {
        LinkEvent::Report(links) => links.first()?.capacity_measured,
        _ => None,
    })
    .await;
    let neighbour: edgeloom_common::ids::NodeId = "b".parse().unwrap();
    run(&format!("ip -n {middle} link set vm-b down"));
    wait_for(&mut events, |event| (event == LinkEvent::Down(neighbour.clone())).then_some(())).await;
    run(&format!("ip -n {middle} link set vm-b up"));
    wait_for(&mut events, |event| (event == LinkEvent::Up(neighbour.clone())).then_some(())).await;
    capacity
}

#[test]
fn a_busy_link_that_comes_to_carry_less_is_measured_while_it_is_busy() {
    if !edgeloom_prepare::lab_allowed(&["ip", "tc"]) {
        return;
    }
    let shaped = ShapedLink::build('y');
    let (over, far) = shaped.far_end();
    let listener = shaped.inside("b", || TcpListener::bind("10.99.0.2:5001").unwrap()).join().unwrap();
    let reader =
        thread::spawn(move || std::io::copy(&mut listener.accept().unwrap().0, &mut std::io::sink()));
    let middle = shaped.namespace("m");
    let (measured, sender) = std::sync::mpsc::channel::<()>();
    let writer = shaped.inside("a", move || {
        // The first measurement finds the link idle.
        sender.recv().unwrap();
        let mut stream = TcpStream::connect("10.99.0.2:5001").unwrap();
        while sender.try_recv() == Err(TryRecvError::Empty) {
            stream.write_all(&[0; 20_000]).unwrap();
        }
    });
    let near = shaped.inside("a", move || {
        runtime().block_on(async {
            let undeclared =
                LinkSettings { capacity: None, ..link("b", "vlk", [10, 99, 0, 1], [10, 99, 0, 2]) };
            let (sender, mut events) = mpsc::channel(8);
            tokio::spawn(Prober::open(vec![undeclared]).unwrap().run(sender, carrier()));
            let capacity = |event| match event {
                LinkEvent::Report(links) => links.first()?.capacity_measured.map(|rate| rate.0),
                _ => None,
            };
            wait_for(&mut events, |event| capacity(event).filter(|rate| *rate > 15_000_000)).await;
            measured.send(()).unwrap();
            run(&format!(
                "tc -n {middle} qdisc change dev vm-b root tbf rate 5mbit burst 16kb latency 200ms"
            ));
            wait_for(&mut events, |event| capacity(event).filter(|rate| *rate < 8_000_000)).await
        })
    });
    let capacity = near.join().unwrap();
    println!("capacity measured: {}", BitRate(capacity));
    writer.join().unwrap();
    reader.join().unwrap().unwrap();
    drop(over);
    far.join().unwrap();
    assert!(capacity > 4_000_000, "{capacity}");
}
