//! The ten-module object-attribute application: 1 -> 2 -> {3..9} -> 10.
//!
//! Volumes, work and memory are not in the paper: 24 Mbit to detection, 0.1-0.6 Mbit to each attribute net,
//! 0.02-0.1 Mbit to tracking; work 1, 6, 4 each, 1 (20% either way); memory 0.25, 0.5, 0.9 each, 0.25 GB.

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{Job, Resources, Source, Task};
use edgeloom_common::units::{Bytes, Work};
use std::collections::BTreeMap;

use super::{Settings, cluster};
use crate::random::Draw;
use crate::simulation::Arrival;

/// Work units an item and memory of each module.
const MODULES: [(f64, u64); 10] = [
    (1.0, 250_000_000),
    (6.0, 500_000_000),
    (4.0, 900_000_000),
    (4.0, 900_000_000),
    (4.0, 900_000_000),
    (4.0, 900_000_000),
    (4.0, 900_000_000),
    (4.0, 900_000_000),
    (4.0, 900_000_000),
    (1.0, 250_000_000),
];

/// All arrivals of a run, in order.
pub(super) fn arrivals(settings: &Settings, draw: &mut Draw) -> Vec<Arrival> {
    let mut at_s = 0.0;
    let mut all = Vec::new();
    for number in 0..settings.jobs {
        at_s += draw.exponential(1.0 / settings.arrivals_per_s);
        let duration_s = draw.exponential(settings.duration_s);
        all.push(Arrival { at_s, duration_s, job: job(settings, number, draw) });
    }
    all
}

fn module(number: usize) -> TaskName {
    format!("m{number:02}").parse().expect("a letter and digits make a name")
}

fn job(settings: &Settings, number: usize, draw: &mut Draw) -> Job {
    let mut tasks: BTreeMap<TaskName, Task> = BTreeMap::new();
    for (index, (work, memory)) in MODULES.into_iter().enumerate() {
        tasks.insert(module(index + 1), task(work * draw.uniform(0.8, 1.2), memory));
    }
    let mut join = |from: usize, to: usize, bits: f64| {
        let (from, to) = (module(from), module(to));
        tasks.get_mut(&to).expect("modules are 1 to 10").inputs.push(from.clone());
        tasks.get_mut(&from).expect("modules are 1 to 10").outputs.insert(to, bytes(bits));
    };
    join(1, 2, settings.raw_bits / 2.0);
    for middle in 3..=9 {
        join(2, middle, draw.uniform(0.1e6, 0.6e6));
        join(middle, 10, draw.uniform(0.02e6, 0.1e6));
    }
    tasks.get_mut(&module(1)).expect("modules are 1 to 10").inputs.push(TaskName::source());
    let node = cluster::name(draw.below(settings.nodes));
    let source = Source { node, item: bytes(settings.raw_bits), rate_per_s: None, container: None };
    let name = format!("job-{number:05}").parse().expect("letters, a hyphen and digits make a name");
    Job { source: Some(source), ..Job::of(name, tasks) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "volumes are positive and small")]
fn bytes(bits: f64) -> Bytes {
    Bytes((bits / 8.0) as u64)
}

/// Without a CPU request: in the paper memory is the resource, and tasks of a node share its processor.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "work is positive and small")]
fn task(work: f64, memory: u64) -> Task {
    let resources = Resources { cpu_sized: true, memory: Bytes(memory), ..Resources::default() };
    Task { work: Some(Work((work * 1e9) as u64)), ..Task::alone("module", resources) }
}
