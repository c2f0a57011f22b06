//! Random clusters: connected, mean degree 3, kinds of nodes by the mix.
//!
//! The paper does not state its virtual nodes' sizes; memory 1, 4, 8, 16 GB and speeds 8, 16, 48, 80 are
//! assumed, in equal parts. Of the physical devices it states cores and memory, and of speeds only low,
//! medium and high: those of the same names are assumed, and of the second server twice the first's.

use edgeloom_common::ids::NodeId;
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_sched::snapshot::{Duplex, Hosting, Link, Node};
use std::collections::{BTreeMap, BTreeSet};

use super::{Mix, Settings};
use crate::random::Draw;

/// Name, memory in GB, cores, and work units a second of all cores.
type Kind = (&'static str, u64, u32, f64);
const PI: Kind = ("raspberry-pi", 1, 1, 8.0);
const NANO: Kind = ("jetson-nano", 4, 6, 16.0);
const NX: Kind = ("xavier-nx", 8, 6, 48.0);
const VIRTUAL: Kind = ("virtual-large", 16, 8, 80.0);
const SERVER_1: Kind = ("server-1", 64, 64, 80.0);
const SERVER_2: Kind = ("server-2", 192, 128, 160.0);
const EQUAL: [Kind; 4] = [PI, NANO, NX, VIRTUAL];
const TABLE1: [Kind; 10] = [PI, PI, PI, PI, NANO, NANO, NX, NX, SERVER_1, SERVER_2];
/// Deviation of the bandwidth over its mean.
const DEVIATION: f64 = 0.3;
/// The least bandwidth over the mean: a normal draw may be negative.
const LEAST: f64 = 0.1;

/// The name of a node.
pub(super) fn name(at: usize) -> NodeId {
    format!("node-{at:04}").parse().expect("letters, a hyphen and digits make a name")
}

/// Nodes and half-duplex links.
pub(super) fn cluster(settings: &Settings, draw: &mut Draw) -> (Vec<Node>, Vec<Link>) {
    let kinds: &[Kind] = match settings.mix {
        Mix::Equal => &EQUAL,
        Mix::Table1 => &TABLE1,
    };
    let nodes = (0..settings.nodes).map(|at| node(at, kinds[at % kinds.len()])).collect();
    let mut pairs: BTreeSet<(usize, usize)> = (1..settings.nodes).map(|at| (draw.below(at), at)).collect();
    let complete = settings.nodes * (settings.nodes - 1) / 2;
    let wanted = (settings.nodes * 3 / 2).min(complete);
    while pairs.len() < wanted {
        let (x, y) = (draw.below(settings.nodes), draw.below(settings.nodes));
        if x != y {
            pairs.insert((x.min(y), x.max(y)));
        }
    }
    let links = pairs.into_iter().map(|pair| link(settings, pair, draw)).collect();
    (nodes, links)
}

fn node(at: usize, (class, gigabytes, cores, speed): Kind) -> Node {
    Node {
        id: name(at),
        ready: true,
        class: class.to_owned(),
        labels: BTreeMap::new(),
        cpu: MilliCores(cores * 1000),
        core_speed: speed / f64::from(cores),
        memory: Bytes(gigabytes * 1_000_000_000),
        disk: Bytes(u64::from(u32::MAX)),
        shapes_flows: true,
        hosting: Hosting::default(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bandwidths are positive and small"
)]
fn link(settings: &Settings, (a, b): (usize, usize), draw: &mut Draw) -> Link {
    let drawn = draw.normal(settings.link_bps, DEVIATION * settings.link_bps);
    let rate = BitRate(drawn.max(LEAST * settings.link_bps) as u64);
    Link { a: name(a), b: name(b), a_to_b: rate, b_to_a: rate, duplex: Duplex::Half }
}
