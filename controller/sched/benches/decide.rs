//! How long decisions take: a ten-task job on clusters of 4, 30 and 70 nodes, and JRBA's search alone.

#[path = "../tests/worlds/mod.rs"]
mod worlds;

use edgeloom_sched::{JrbaSize, decide, jrba_congestion, profile};
use worlds::{ring, snapshot, ten_modules};

fn main() {
    divan::main();
}

#[divan::bench(args = [4, 30, 70])]
fn edgeloom_ten_tasks(bencher: divan::Bencher<'_, '_>, nodes: usize) {
    one_job(bencher, "edgeloom", nodes);
}

#[divan::bench(args = [4, 30, 70])]
fn otfs_ten_tasks(bencher: divan::Bencher<'_, '_>, nodes: usize) {
    one_job(bencher, "otfs", nodes);
}

fn one_job(bencher: divan::Bencher<'_, '_>, name: &str, size: usize) {
    let (nodes, links) = ring(size);
    let world = snapshot(nodes, links, vec![ten_modules("ten", "n001")]);
    let profile = profile(name).unwrap();
    bencher.bench(|| decide(profile, &world));
}

/// Routing and lower bound of 500 flows over 70 nodes.
#[divan::bench]
fn jrba_70_nodes_500_flows() -> (f64, f64) {
    jrba_congestion(JrbaSize { nodes: 70, flows: 500, seed: 1 })
}
