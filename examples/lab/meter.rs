//! Counts what leaves each link, from the link's own namespace, after its limit.
//!
//! A packet socket sees outgoing frames after the qdisc, so what is counted has passed the bucket.

use crate::lab::Lab;
use crate::network;
use anyhow::{Context, Result};
use edgeloom_common::desired::FlowKey;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// PACKET_OUTGOING of linux/if_packet.h.
const OUTGOING: u8 = 4;
/// Headers of Ethernet, IPv4 and TCP with time stamps, and what is left of 1514 for the segment.
const HEADERS: u64 = 66;
const SEGMENT: u64 = 1448;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Source, destination, protocol, destination port; nothing for frames that are not IPv4.
    pub(crate) flow: Option<(Ipv4Addr, Ipv4Addr, u8, u16)>,
}

/// Wire bytes, with the 14 of the Ethernet header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<Key, u64>);

impl Snapshot {
    /// What was counted between the two.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let less =
            |(key, bytes): (&Key, &u64)| (key.clone(), bytes - before.0.get(key).copied().unwrap_or(0));
        Self(self.0.iter().map(less).collect())
    }

    /// Bytes of a flow on each link that it crossed, by (from, to).
    pub(crate) fn links_of(&self, key: &FlowKey) -> Vec<((String, String), u64)> {
        let wanted = (key.source, key.destination, key.protocol.number(), key.destination_port);
        let mine = self.0.iter().filter(|(found, _)| found.flow == Some(wanted));
        mine.map(|(found, bytes)| ((found.from.clone(), found.to.clone()), *bytes)).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Meter {
    counts: Arc<Mutex<Snapshot>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Meter {
    pub(crate) fn start(lab: &Lab) -> Result<Self> {
        let mut meter = Self { counts: Arc::default(), stop: Arc::default(), threads: Vec::new() };
        for link in &lab.topology.links {
            let (fd, ports) = listen(network::link(&lab.id, link), link.between.clone())?;
            let (counts, stop) = (Arc::clone(&meter.counts), Arc::clone(&meter.stop));
            meter.threads.push(std::thread::spawn(move || count(&fd, &ports, &counts, &stop)));
        }
        Ok(meter)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.counts.lock().expect("no counter panics with the lock").clone()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A counter that panicked has told so on standard error.
            let _ = thread.join();
        }
    }
}

/// Port's interface index -> (from, to).
type Ports = BTreeMap<usize, (String, String)>;

/// Opens the socket in a thread of its own: a thread that entered a namespace stays there.
fn listen(namespace: String, between: [String; 2]) -> Result<(OwnedFd, Ports)> {
    let open = move || -> Result<(OwnedFd, Ports)> {
        let file = std::fs::File::open(format!("/run/netns/{namespace}")).context(namespace)?;
        setns(&file, CloneFlags::CLONE_NEWNET)?;
        let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)?;
        setsockopt(&fd, sockopt::RcvBufForce, &(8 << 20))?;
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::milliseconds(200))?;
        let [a, b] = between;
        let index = |port: &str| nix::net::if_::if_nametoindex(port).map(|index| index as usize);
        // What leaves by the port towards a came from b.
        let ports = BTreeMap::from([(index(&a)?, (b.clone(), a.clone())), (index(&b)?, (a, b))]);
        Ok((fd, ports))
    };
    std::thread::spawn(open).join().expect("opening a socket does not panic")
}

fn count(fd: &OwnedFd, ports: &Ports, counts: &Mutex<Snapshot>, stop: &AtomicBool) {
    let mut frame = vec![0_u8; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, Some(from))) = recvfrom::<LinkAddr>(fd.as_raw_fd(), &mut frame) else { continue };
        let Some((source, to)) = ports.get(&from.ifindex()).filter(|_| from.pkttype() == OUTGOING) else {
            continue;
        };
        let key = Key { from: source.clone(), to: to.clone(), flow: flow(&frame[..length]) };
        *counts.lock().expect("no counter panics with the lock").0.entry(key).or_default() +=
            wire_bytes(length as u64);
    }
}

/// A frame beyond 1514 bytes is several segments on a wire, each with its headers.
fn wire_bytes(length: u64) -> u64 {
    if length <= HEADERS + SEGMENT {
        return length;
    }
    length + ((length - HEADERS).div_ceil(SEGMENT) - 1) * HEADERS
}

fn flow(frame: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr, u8, u16)> {
    let packet = frame.strip_prefix(frame.get(..14)?)?;
    if frame[12..14] != [8, 0] || packet.len() < 20 {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let header = usize::from(packet[0] & 15) * 4;
    let protocol = packet[9];
    let port = match packet.get(header + 2..header + 4) {
        Some(bytes) if matches!(protocol, 6 | 17) => u16::from_be_bytes([bytes[0], bytes[1]]),
        _ => 0,
    };
    Some((address(12), address(16), protocol, port))
}
