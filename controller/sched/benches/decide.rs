//! How long decisions take: a ten-task job on clusters of 4, 30 and 70 nodes, and JRBA's solvers alone.

#[path = "../tests/worlds/mod.rs"]
mod worlds;

use edgeloom_sched::{JrbaProblem, JrbaSize, decide, profile};
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

/// Nodes and flows of JRBA's problems.
const SIZES: [(usize, usize); 2] = [(70, 500), (1000, 5000)];

/// The relaxation with its certificate.
#[divan::bench(args = SIZES, sample_count = 20)]
fn jrba_relaxation(bencher: divan::Bencher<'_, '_>, (nodes, flows): (usize, usize)) {
    let problem = JrbaProblem::random(JrbaSize { nodes, flows, seed: 1 });
    bencher.bench(|| problem.relax());
}

/// Relaxation, rounding and single paths.
#[divan::bench(args = SIZES, sample_count = 20)]
fn jrba_single_paths(bencher: divan::Bencher<'_, '_>, (nodes, flows): (usize, usize)) {
    let problem = JrbaProblem::random(JrbaSize { nodes, flows, seed: 1 });
    bencher.bench(|| problem.solve());
}
