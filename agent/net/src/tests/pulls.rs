//! Layers for a neighbour beside flows of jobs, on a real link: what flows have they keep, and what they leave
//! the neighbour gets.

use super::document::{MBIT, document, flow, route, task};
use super::namespace::{Namespace, lab, sh};
use super::traffic::{CAPACITY, Mesh, PORT, RECEIVER, SENDER, TRIES_MAX};
use crate::PULL_PRIORITY;
use edgeloom_common::desired::{DesiredState, Reserved};
use edgeloom_common::units::{BitRate, TCP_GOODPUT};
use nix::sys::socket::{setsockopt, sockopt::Priority};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

/// Wire rate of the job's flow.
const RATE: u64 = 3 * MBIT;
const PULL_PORT: u16 = 7118;
/// What is not waited for: connections that begin.
const START: Duration = Duration::from_millis(1500);
const WINDOW: Duration = Duration::from_secs(4);
/// Of its throughput, that a job keeps.
const KEPT_MIN: f64 = 0.95;
/// Of what flows leave of the link, that a pull gets.
const PART_MIN: f64 = 0.9;

/// One connection that sends as fast as it may.
struct Stream<'a> {
    from: &'a Namespace,
    to: &'a Namespace,
    address: SocketAddr,
    priority: Option<u32>,
}

impl Stream<'_> {
    /// Sends until it is over, and counts what arrives.
    fn run(&self, over: &AtomicBool, arrived: &AtomicU64) {
        let listener = self.to.run(|| TcpListener::bind(self.address).unwrap());
        scope(|threads| {
            threads.spawn(move || {
                let (mut stream, mut bytes) = (listener.accept().unwrap().0, vec![0; 64 << 10]);
                while let Ok(read @ 1..) = stream.read(&mut bytes) {
                    arrived.fetch_add(read as u64, Ordering::Relaxed);
                }
            });
            self.from.run(|| {
                let mut stream = TcpStream::connect(self.address).unwrap();
                if let Some(priority) = self.priority {
                    setsockopt(&stream, Priority, &i32::try_from(priority).unwrap()).unwrap();
                }
                while !over.load(Ordering::Relaxed) {
                    stream.write_all(&[7; 16 << 10]).unwrap();
                }
            });
        });
    }
}

/// Bits of payload a second that each of the streams gets beside the others.
fn goodputs<const N: usize>(streams: [&Stream<'_>; N]) -> [f64; N] {
    let over = AtomicBool::new(false);
    let arrived = std::array::from_fn::<_, N, _>(|_| AtomicU64::new(0));
    scope(|threads| {
        for (stream, arrived) in streams.iter().zip(&arrived) {
            let over = &over;
            threads.spawn(move || stream.run(over, arrived));
        }
        std::thread::sleep(START);
        let (before, began) = (arrived.each_ref().map(|bytes| bytes.load(Ordering::Relaxed)), Instant::now());
        std::thread::sleep(WINDOW);
        let after = arrived.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
        let seconds = began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        std::array::from_fn(|at| (after[at] - before[at]) as f64 * 8.0 / seconds)
    })
}

/// A flow of `RATE` from n1 over n3 to n4; `mesh` limits the node that serves.
fn led(mesh: &Mesh) {
    let reserved = |neighbour: &str| {
        let outbound = Reserved { outbound: BitRate(RATE), ..Reserved::default() };
        [(neighbour.parse().unwrap(), outbound)].into()
    };
    let routes = |routes: &[(u8, &str)]| routes.iter().map(|(last, via)| route(*last, via)).collect();
    let first = document(vec![flow(PORT, "n3", Some(RATE))], routes(&[(RECEIVER, "n3")]));
    mesh.apply(1, &[2, 3], &DesiredState { reserved: reserved("n3"), ..first });
    let relay = document(vec![flow(PORT, "n4", None)], routes(&[(SENDER, "n1"), (RECEIVER, "n4")]));
    mesh.apply(3, &[1, 4], &DesiredState { reserved: reserved("n4"), ..relay });
    mesh.apply(4, &[2, 3], &document(vec![], routes(&[(SENDER, "n3")])));
}

/// The flow and a pull over the link from one node to another keep their parts.
fn assert_shared(mesh: &Mesh, from: u8, to: u8) {
    let of_job = Stream {
        from: &mesh.sender,
        to: &mesh.receiver,
        address: (task(RECEIVER), PORT).into(),
        priority: None,
    };
    let link = 10 * from + to;
    let of_pull = Stream {
        from: mesh.node(from),
        to: mesh.node(to),
        address: ([10, 61, link, to], PULL_PORT).into(),
        priority: Some(PULL_PRIORITY),
    };
    // A busy machine takes from either, and gives nothing.
    let mut tries = Vec::new();
    while tries.len() < TRIES_MAX {
        let [alone] = goodputs([&of_job]);
        let [job, pull] = goodputs([&of_job, &of_pull]);
        let (kept, part) = (job / alone, pull / TCP_GOODPUT / (CAPACITY as f64 - job / TCP_GOODPUT));
        tries.push((alone, kept, part));
        if alone > 0.9 * TCP_GOODPUT * RATE as f64 && kept >= KEPT_MIN && part >= PART_MIN {
            println!("the job keeps {kept:.3}, the pull gets {part:.3} of what is left");
            return;
        }
    }
    panic!("goodput of the flow alone, part of it beside a pull, part of the rest that this gets: {tries:?}");
}

#[test]
fn a_pull_gets_what_a_flow_leaves_of_the_link_that_both_begin_on() {
    if !lab() {
        return;
    }
    let mesh = Mesh::limited_at(&[1]);
    led(&mesh);
    assert_shared(&mesh, 1, 3);
}

#[test]
fn a_flow_that_passes_keeps_its_rate_beside_a_pull_from_the_relay() {
    if !lab() {
        return;
    }
    let mesh = Mesh::limited_at(&[1, 3]);
    led(&mesh);
    assert_shared(&mesh, 3, 4);
}

#[test]
fn a_pull_alone_has_the_whole_link_in_a_class_of_its_own() {
    if !lab() {
        return;
    }
    let mesh = Mesh::limited_at(&[1]);
    led(&mesh);
    let of_pull = Stream {
        from: mesh.node(1),
        to: mesh.node(3),
        address: ([10, 61, 13, 3], PULL_PORT).into(),
        priority: Some(PULL_PRIORITY),
    };
    let mut tries = Vec::new();
    while tries.last().is_none_or(|part| *part < PART_MIN) {
        assert!(tries.len() < TRIES_MAX, "{tries:?} of the link");
        let [goodput] = goodputs([&of_pull]);
        tries.push(goodput / TCP_GOODPUT / CAPACITY as f64);
    }
    let classes = mesh.node(1).run(|| sh("tc -s class show dev l3"));
    let own = classes.split("class htb ").find(|class| class.starts_with("4501:fffd ")).expect("its class");
    let sent = own.split_once("Sent ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    let least = (PART_MIN * CAPACITY as f64 / 8.0 * WINDOW.as_secs_f64()) as u64;
    assert!(sent.is_some_and(|sent| sent > least), "{classes}");
}
