//! The paper's worked example (Fig. 2); `worked_example.rs` says what the paper fixes and what is chosen.

use super::{edge, job, link, node, snapshot, source, task};
use edgeloom_common::job::Job;
use edgeloom_sched::snapshot::Snapshot;

/// Of data, in bytes.
pub const UNIT: u64 = 1_000_000;
/// Of bandwidth, in bits a second.
pub const BANDWIDTH: u64 = 8 * UNIT;

/// The job.
pub fn example() -> Job {
    let mut example = job(
        "example",
        vec![
            ("a", task(0, UNIT, 5000)),
            ("b", task(0, 2 * UNIT, 10_000)),
            ("c", task(0, 2 * UNIT, 10_000)),
            ("d", task(0, 2 * UNIT, 10_000)),
            ("e", task(0, 2 * UNIT, 10_000)),
            ("f", task(0, 2 * UNIT, 10_000)),
        ],
    );
    example.source = Some(source("e4", 5 * UNIT));
    edge(&mut example, "source", "a", 5 * UNIT);
    edge(&mut example, "a", "b", UNIT);
    edge(&mut example, "a", "c", 2 * UNIT);
    for (from, to) in [("b", "d"), ("c", "e"), ("d", "f"), ("e", "f")] {
        edge(&mut example, from, to, UNIT);
    }
    example
}

/// The four nodes, with these jobs waiting.
pub fn cluster(jobs: Vec<Job>) -> Snapshot {
    let nodes = vec![
        node("e1", 1000, 200.0, 11 * UNIT),
        node("e2", 1000, 10.0, UNIT / 2),
        node("e3", 1000, 10.0, UNIT / 2),
        node("e4", 1000, 20.0, UNIT),
    ];
    let links = vec![
        link("e1", "e2", 10 * BANDWIDTH),
        link("e1", "e3", 6 * BANDWIDTH),
        link("e2", "e4", 10 * BANDWIDTH),
        link("e3", "e4", 6 * BANDWIDTH),
    ];
    snapshot(nodes, links, jobs)
}
