//! Hand-computed cases: two nodes of one core each, a half-duplex link of 10 Mbit/s between them.

use super::*;
use crate::random::Draw;
use edgeloom_common::ids::{FlowId, TaskName};
use edgeloom_common::job::{Resources, Source, Task};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::{FlowPlan, Prediction, Share};
use edgeloom_sched::snapshot::{Duplex, Hosting};

fn node(name: &str, core_speed: f64) -> Node {
    Node {
        id: name.parse().unwrap(),
        ready: true,
        class: String::new(),
        labels: BTreeMap::new(),
        cpu: MilliCores(1000),
        core_speed,
        memory: Bytes(1 << 30),
        disk: Bytes(1 << 30),
        shapes_flows: true,
        hosting: Hosting::default(),
    }
}

/// The second node's core is twice as fast.
fn ground() -> Ground {
    let rate = BitRate(10_000_000);
    let (a, b) = ("n1".parse().unwrap(), "n2".parse().unwrap());
    let link = Link { a, b, a_to_b: rate, b_to_a: rate, duplex: Duplex::Half };
    Ground::new(&[node("n1", 1.0), node("n2", 2.0)], &[link], 1.0, Processors::Shared)
}

fn task(work_ms: u64) -> Task {
    let resources = Resources { cpu_sized: true, ..Resources::default() };
    Task { work: Some(Work(work_ms * 1_000_000)), ..Task::alone("module", resources) }
}

fn name(text: &str) -> TaskName {
    text.parse().unwrap()
}

/// A job that goes from a source on n1 to one task, with what it is given.
struct Case {
    job: Job,
    plan: JobPlan,
}

impl Case {
    /// The task has that much work an item, on that node, without a limit.
    fn new(work_ms: u64, on: &str) -> Self {
        let mut task = task(work_ms);
        task.inputs.push(TaskName::source());
        let source =
            Source { node: "n1".parse().unwrap(), item: Bytes(125_000), rate_per_s: None, container: None };
        let tasks = BTreeMap::from([(name("t"), task)]);
        let job = Job { source: Some(source), ..Job::of("job".parse().unwrap(), tasks) };
        let placement =
            BTreeMap::from([(TaskName::source(), "n1".parse().unwrap()), (name("t"), on.parse().unwrap())]);
        let prediction = Prediction { items_per_s: 1.0, bound: Bound::Compute, bound_by: String::new() };
        let plan = JobPlan {
            job: job.name.clone(),
            profile: String::new(),
            placement,
            shares: BTreeMap::new(),
            flows: Vec::new(),
            prediction,
            reasons: Vec::new(),
        };
        Self { job, plan }
    }

    /// Items of 1 Mbit go over the link at that rate.
    fn with_flow(mut self, rate: u64) -> Self {
        self.plan.flows.push(FlowPlan {
            id: FlowId { job: self.job.name.clone(), from: TaskName::source(), to: name("t") },
            path: vec!["n1".parse().unwrap(), "n2".parse().unwrap()],
            rate: BitRate(rate),
            volume: Bytes(125_000),
        });
        self
    }

    fn with_limit(mut self, cpu: u32) -> Self {
        self.plan.shares.insert(name("t"), Share { cpu: MilliCores(cpu), memory: Bytes(0) });
        self
    }

    /// One more task beside the first, on that node.
    fn with_task(mut self, work_ms: u64, on: &str) -> Self {
        self.job.tasks.insert(name("more"), task(work_ms));
        self.plan.placement.insert(name("more"), on.parse().unwrap());
        self
    }
}

fn items(cases: &[Case]) -> Vec<f64> {
    let ground = ground();
    let loads: Vec<Load> = cases.iter().map(|case| ground.load(&case.job, &case.plan)).collect();
    ground.throughputs(&loads.iter().collect::<Vec<_>>())
}

fn assert_items(cases: &[Case], expected: &[f64]) {
    let found = items(cases);
    let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
    assert!(near && found.len() == expected.len(), "{found:?}, not {expected:?}");
}

#[test]
fn a_job_goes_as_fast_as_its_slowest_part() {
    // 4 Mbit/s for 1 Mbit an item; 20 items/s would be 100 ms at speed 2.
    assert_items(&[Case::new(100, "n2").with_flow(4_000_000)], &[4.0]);
    assert_items(&[Case::new(1000, "n2").with_flow(4_000_000)], &[2.0]);
    // Work of the same node adds up: 1 / (0.1 + 0.4).
    assert_items(&[Case::new(100, "n1").with_task(400, "n1")], &[2.0]);
}

#[test]
fn an_edge_without_a_flow_carries_nothing() {
    assert_items(&[Case::new(100, "n2")], &[0.0]);
}

#[test]
fn a_link_given_away_twice_gives_each_its_part() {
    // 8 and 12 Mbit/s of 10: half of each.
    let cases = [Case::new(1, "n2").with_flow(8_000_000), Case::new(1, "n2").with_flow(12_000_000)];
    assert_items(&cases, &[4.0, 6.0]);
}

#[test]
fn a_limit_holds_and_leaves_the_rest_to_others() {
    // 0.3 cores of speed 1 and 0.1 s an item: 3 items/s, 0.3 of the core; the other two have 0.35 each.
    let cases = [Case::new(100, "n1").with_limit(300), Case::new(100, "n1"), Case::new(50, "n1")];
    assert_items(&cases, &[3.0, 3.5, 7.0]);
    // No limit is what a share of 0 says: three even parts.
    let cases = [Case::new(100, "n1").with_limit(0), Case::new(100, "n1"), Case::new(100, "n1")];
    assert_items(&cases, &[10.0 / 3.0; 3]);
}

#[test]
fn a_limit_counts_the_speed_of_the_core() {
    assert_items(&[Case::new(100, "n2").with_limit(500).with_flow(10_000_000)], &[10.0]);
    assert_items(&[Case::new(100, "n2").with_limit(250).with_flow(10_000_000)], &[5.0]);
}

#[test]
fn limits_beyond_the_node_give_each_its_part() {
    let cases = [Case::new(100, "n1").with_limit(800), Case::new(100, "n1").with_limit(1200)];
    assert_items(&cases, &[4.0, 6.0]);
}

#[test]
fn what_a_job_held_up_elsewhere_leaves_goes_to_the_others() {
    // Two jobs on n1, one of which n2 holds up at 1 item/s: 0.1 of n1, and 0.9 for the other.
    let cases = [Case::new(100, "n1").with_task(2000, "n2"), Case::new(100, "n1")];
    assert_items(&cases, &[1.0, 9.0]);
}

#[test]
fn jobs_that_meet_on_two_nodes_settle() {
    // Half of n1 each allows 5 and 1 items/s, and n2 has room for both.
    let cases = [Case::new(100, "n1").with_task(100, "n2"), Case::new(500, "n1").with_task(100, "n2")];
    assert_items(&cases, &[5.0, 1.0]);
    // n2 holds up the first at x, n1 the second at y, and each leaves the rest to the other:
    // x = 2 - 0.05 y and y = 10 (1 - 0.1 x), so x = 30/19 and y = 160/19.
    let cases = [Case::new(100, "n1").with_task(1000, "n2"), Case::new(100, "n1").with_task(50, "n2")];
    assert_items(&cases, &[30.0 / 19.0, 160.0 / 19.0]);
}

/// Random jobs of up to four tasks on five nodes: some with limits, each with a bound of its own.
fn crowd(draw: &mut Draw) -> (Ground, Vec<Load>) {
    let nodes: Vec<Node> = (0..5).map(|at| node(&format!("n{at}"), draw.uniform(0.5, 4.0))).collect();
    let loads = (0..20).map(|_| {
        let most = draw.uniform(0.1, 5.0);
        let mut load = Load { most, flows: Vec::new(), limited: Vec::new(), work: Vec::new() };
        for _ in 0..=draw.below(3) {
            let limit = if draw.below(4) == 0 { draw.uniform(0.01, 0.1) } else { 0.0 };
            load.add_task(draw.below(5), limit, draw.uniform(0.01, 1.0));
        }
        load
    });
    let loads = loads.collect();
    (Ground::new(&nodes, &[], 1.0, Processors::Shared), loads)
}

#[test]
fn no_node_gives_more_than_it_has_and_every_job_is_held_up_by_something() {
    let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * other;
    for seed in 0..200 {
        let (ground, loads) = crowd(&mut Draw::new(seed));
        let items = ground.throughputs(&loads.iter().collect::<Vec<_>>());
        let mut used = vec![0.0; ground.speed.len()];
        for (load, items) in loads.iter().zip(&items) {
            load.work.iter().for_each(|work| used[work.node] += items * (work.limited_s + work.free_s));
        }
        let full = |node: usize| near(used[node], ground.speed[node]);
        assert!((0..5).all(|node| used[node] <= ground.speed[node] * (1.0 + 1e-9)), "seed {seed}: {used:?}");
        for (load, items) in loads.iter().zip(&items) {
            let limited = load.limited.iter().any(|task| near(*items, task.speed / task.work_s));
            let held_up = near(*items, load.most) || limited || load.work.iter().any(|work| full(work.node));
            assert!(held_up, "seed {seed}: {items} items/s of {load:?}");
        }
    }
}
