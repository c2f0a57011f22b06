//! Pauses and counts, by hand: one task of 100 ms on two nodes of one core each makes 10 items a second.

use super::*;
use edgeloom_common::ids::{FlowId, NodeId, TaskName};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_sched::plan::{FlowPlan, JobPlan, Share};

const CLUSTER: &str = r#"
    nodes = [{ name = "n1", cores = 1, memory_mib = 1024 }, { name = "n2", cores = 1, memory_mib = 1024 }]
    links = [{ between = ["n1", "n2"], rate = "10Mbit/s" }]
"#;
const JOB: &[u8] = b"
kind: Job
name: job
tasks:
  t: { image: module, work: 100ms }
";

fn arrivals() -> Vec<Arrival> {
    let job = edgeloom_common::job::parse(JOB).unwrap();
    vec![Arrival { at_s: 0.0, duration_s: 60.0, job }]
}

/// The job runs since 0.
fn started(arrivals: &[Arrival]) -> Simulation<'_> {
    let crate::what_if::Cluster { nodes, links } = crate::what_if::cluster(CLUSTER).unwrap();
    let policy = Policy { migration_s: 5.0, ..Policy::default() };
    let setting = Setting {
        nodes,
        links,
        goodput: 1.0,
        link_share: 1.0,
        processors: Processors::Shared,
        policy,
        seed: 1,
    };
    let mut simulation = Simulation::new(setting, arrivals, edgeloom_sched::profile("lr").unwrap());
    simulation.arrive();
    simulation.place().unwrap();
    // The document's CPU is no matter here: the task may use the whole core.
    let mut plan = simulation.snapshot.running[0].plan.clone();
    let share = Share { cpu: MilliCores(0), memory: Bytes(0) };
    plan.shares.insert("t".parse().unwrap(), share);
    simulation.change(0, plan);
    simulation
}

fn plan(simulation: &Simulation<'_>) -> JobPlan {
    simulation.snapshot.running[0].plan.clone()
}

fn assert_items(simulation: &Simulation<'_>, expected: f64) {
    assert!((simulation.items[0] - expected).abs() < 1e-9, "{} items, not {expected}", simulation.items[0]);
}

#[test]
fn a_job_that_moves_makes_nothing_for_a_while_and_departs_on_time() {
    let arrivals = arrivals();
    let mut simulation = started(&arrivals);
    simulation.advance(20.0);
    assert_items(&simulation, 200.0);
    let mut moved = plan(&simulation);
    let node = &moved.placement[&"t".parse::<TaskName>().unwrap()];
    let other: NodeId = if node.as_str() == "n1" { "n2" } else { "n1" }.parse().unwrap();
    moved.placement.insert("t".parse().unwrap(), other);
    simulation.change(0, moved);
    assert_eq!(simulation.next_event(), Some(25.0));
    simulation.advance(25.0);
    assert_items(&simulation, 200.0);
    assert_eq!(simulation.next_event(), Some(60.0));
    simulation.advance(60.0);
    assert_items(&simulation, 550.0);
    assert!(simulation.depart());
    let outcome = simulation.into_outcome();
    assert!((outcome.items_per_s[0] - 550.0 / 60.0).abs() < 1e-9, "{outcome:?}");
    assert_eq!((outcome.migrations, outcome.reroutes), (1, 0));
}

#[test]
fn new_rates_and_routes_cost_nothing_and_routes_are_counted() {
    let arrivals = arrivals();
    let mut simulation = started(&arrivals);
    simulation.advance(20.0);
    simulation.change(0, plan(&simulation));
    assert_eq!(simulation.outcome.reroutes, 0);
    let flow = |path: [&str; 2], rate: u64| FlowPlan {
        id: FlowId { job: "job".parse().unwrap(), from: "t".parse().unwrap(), to: "u".parse().unwrap() },
        path: path.map(|node| node.parse().unwrap()).to_vec(),
        rate: BitRate(rate),
        volume: Bytes(1),
    };
    let with = |flow: FlowPlan| JobPlan { flows: vec![flow], ..plan(&simulation) };
    let plans = [with(flow(["n1", "n2"], 1)), with(flow(["n1", "n2"], 2)), with(flow(["n2", "n1"], 2))];
    let counts = plans.map(|plan| {
        simulation.change(0, plan);
        simulation.outcome.reroutes
    });
    // The first has a path that there was not before; the second only another rate.
    assert_eq!((counts, simulation.outcome.migrations), ([1, 1, 2], 0));
    simulation.advance(60.0);
    assert_items(&simulation, 600.0);
}
