//! How long the queue of the service classes takes: PROMETHEE II alone, and whole decisions.

#[path = "../tests/worlds/mod.rs"]
mod worlds;

use edgeloom_common::job::{Job, Service, Sla};
use edgeloom_sched::sla::{Alternative, CRITERIA, Criterion, Rules, Values, net_flows, ranking};
use edgeloom_sched::{decide, profile};
use worlds::{job, node, snapshot, task};

fn main() {
    divan::main();
}

/// Numbers without a pattern: those of Knuth's multiplicative hash.
fn scrambled(at: usize) -> usize {
    at.wrapping_mul(2_654_435_761) >> 7
}

/// Values of so many containers, each criterion with so many levels.
fn values(count: usize, levels: usize) -> Vec<Values> {
    let value = |at: usize, criterion: usize| (scrambled(at * CRITERIA + criterion) % levels) as i32;
    (0..count).map(|at| std::array::from_fn(|criterion| value(at, criterion))).collect()
}

/// The order of a whole queue of service classes.
#[divan::bench(args = [1000, 100_000])]
fn order_of_classes(bencher: divan::Bencher<'_, '_>, count: usize) {
    let queue = values(count, 3);
    bencher.bench(|| ranking(&queue, &Rules::PAPER));
}

/// The order of a whole queue in which hardly any two are alike.
#[divan::bench(args = [1000, 100_000])]
fn order_of_numbers(bencher: divan::Bencher<'_, '_>, count: usize) {
    let queue = values(count, 1 << 20);
    bencher.bench(|| ranking(&queue, &Rules::PAPER));
}

/// Net flows alone, with a preference that rises linearly.
#[divan::bench(args = [1000, 100_000])]
fn flows_of_numbers(bencher: divan::Bencher<'_, '_>, count: usize) {
    let alternatives: Vec<Alternative> =
        values(count, 1 << 20).into_iter().map(|values| Alternative { values, count: 1 }).collect();
    let criteria = [Criterion { weight: 1, indifference: 100, preference: 5000 }; CRITERIA];
    bencher.bench(|| net_flows(&alternatives, &criteria));
}

/// Whole decisions over fifteen nodes of 32 cores.
#[divan::bench(args = [90, 1000])]
fn decision(bencher: divan::Bencher<'_, '_>, count: usize) {
    let nodes = (0..15).map(|at| {
        let mut node = node(&format!("n{at:02}"), 32_000, 1.0, 64 << 30);
        node.labels.insert("reputation".to_owned(), ["high", "average", "low"][at % 3].to_owned());
        node
    });
    let jobs = (0..count).map(|at| container(&format!("c{at:04}"), Service::ALL[scrambled(at) % 3]));
    let world = snapshot(nodes.collect(), Vec::new(), jobs.collect());
    let profile = profile("sla").unwrap();
    bencher.bench(|| decide(profile, &world));
}

fn container(name: &str, service: Service) -> Job {
    let mut work = task(100, 1000, 0);
    work.program.resources.cpu_sized = true;
    let mut made = job(name, vec![("work", work)]);
    made.sla = Sla::all(service);
    made.sla.apply(&mut made.tasks);
    made
}
