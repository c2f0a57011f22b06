//! Three nodes in a triangle, the real agent on each, no controller and no Docker: a flow is led around a
//! link that dies by the agents alone, and comes back when the link does.
//!
//! A task behind n1 sends a datagram every few milliseconds to a task behind n3. The link n1-n3 passes a
//! switch of its own, so that it can go silent without a loss of carrier, as a radio link does.

#[path = "failover/triangle.rs"]
mod triangle;

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use triangle::{RECEIVER, SENDER, TASK_PORT, Triangle, document};

/// A wait longer than this is a failure; nothing is measured with it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two datagrams.
const PACE: Duration = Duration::from_millis(10);
/// Datagrams that are more than what was on its way.
const STREAM: u64 = 20;

/// Receives until the stream passes n2; the longest pause in it.
fn led_around(receiver: &UdpSocket, triangle: &Triangle) -> Duration {
    let (begun, before) = (Instant::now(), triangle.passed_by_n2());
    let (mut last, mut longest) = (begun, Duration::ZERO);
    while begun.elapsed() < PATIENCE {
        if receiver.recv(&mut [0; 64]).is_ok() {
            longest = longest.max(last.elapsed());
            last = Instant::now();
            if before + STREAM < triangle.passed_by_n2() {
                return longest;
            }
        }
    }
    panic!("the stream is not led around");
}

/// Receives until a datagram comes.
fn arrives(receiver: &UdpSocket) {
    let begun = Instant::now();
    while receiver.recv(&mut [0; 64]).is_err() {
        assert!(begun.elapsed() < PATIENCE, "nothing arrives");
    }
}

/// Runs `trial` while the task behind n1 sends.
fn while_sending(triangle: &Triangle, trial: impl FnOnce(&UdpSocket)) {
    let receiver = triangle.inside("r", || UdpSocket::bind((RECEIVER, TASK_PORT)).unwrap());
    receiver.set_read_timeout(Some(PACE)).unwrap();
    let sender = triangle.inside("s", || UdpSocket::bind((SENDER, 0)).unwrap());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Refused while there is no route: what is not sent is lost.
                let _ = sender.send_to(&[0; 32], (RECEIVER, TASK_PORT));
                thread::sleep(PACE);
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| trial(&receiver)));
        over.store(true, Ordering::Relaxed);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn trial(cut: &str, mend: &str, what: &str) {
    if !edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "nsenter", "tc"]) {
        return;
    }
    let mut triangle = Triangle::build();
    triangle.start();
    while_sending(&triangle, |receiver| {
        arrives(receiver);
        triangle.switch(cut);
        let pause = led_around(receiver, &triangle);
        println!("{what}: the stream paused for {} ms", pause.as_millis());
        assert!(pause < Duration::from_secs(3), "{pause:?}");
        // The kernel tells of a carrier once a second at most.
        triangle.wait_for_loss("n1", "n3");
        triangle.wait_for_loss("n3", "n1");
        triangle.switch(mend);
        triangle.wait_for("n1", "n3", 2);
        triangle.wait_for("n3", "n1", 2);
        arrives(receiver);
        let before = triangle.passed_by_n2();
        (0..4 * STREAM).for_each(|_| arrives(receiver));
        assert!(triangle.passed_by_n2() < before + STREAM, "it takes its path again");
    });
}

#[test]
fn a_flow_is_led_around_a_link_that_goes_silent() {
    trial("link set port1 nomaster", "link set port1 master switch", "silent link");
}

#[test]
fn a_flow_is_led_around_a_link_that_loses_its_carrier() {
    trial("link set port1 down", "link set port1 up", "lost carrier");
}

/// The document is the controller's way to tell n3 where n1 is now, which n1 itself has told the controller.
#[test]
fn a_node_whose_address_changes_is_found_again() {
    if !edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "nsenter", "tc"]) {
        return;
    }
    let mut triangle = Triangle::build();
    triangle.start();
    let moved = Ipv4Addr::new(10, 61, 13, 77);
    triangle.move_n1(moved);
    let mut told = document("n3");
    told.generation = 2;
    told.neighbours.insert("n1".parse().unwrap(), moved);
    triangle.start_agent("n3", &told);
    triangle.wait_for("n3", "n1", 1);
    triangle.wait_for("n1", "n3", 2);
    while_sending(&triangle, |receiver| {
        arrives(receiver);
        let before = triangle.passed_by_n2();
        (0..4 * STREAM).for_each(|_| arrives(receiver));
        assert!(triangle.passed_by_n2() < before + STREAM, "it takes its path again");
    });
}
