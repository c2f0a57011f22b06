//! The `edgeloom` profile spends no more of the links than the throughput needs: on the diamond n1-n2-n4 and
//! n1-n3-n4 with a link between the relays.

mod worlds;

use edgeloom_common::ids::NodeId;
use edgeloom_common::job::{Attribute, Constraint, Job, parse};
use edgeloom_common::units::TCP_GOODPUT;
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::{FlowPlan, JobPlan};
use edgeloom_sched::snapshot::Snapshot;
use edgeloom_sched::{check, decide, profile};
use worlds::{edge, job, link, node, snapshot, source, task};

const MBIT: u64 = 1_000_000;
const LINKS: [(&str, &str, u64); 5] =
    [("n1", "n2", 20), ("n2", "n4", 20), ("n1", "n3", 12), ("n3", "n4", 12), ("n2", "n3", 10)];

/// Four nodes of 0.4 core; `speeds` are those of a whole core.
fn diamond(speeds: [f64; 4], jobs: Vec<Job>) -> Snapshot {
    let nodes = (1..).zip(speeds).map(|(at, speed)| node(&format!("n{at}"), 400, speed, 1 << 30));
    let links = LINKS.map(|(a, b, rate)| link(a, b, rate * MBIT)).to_vec();
    let mut world = snapshot(nodes.collect(), links, jobs);
    world.goodput = TCP_GOODPUT;
    world.link_share = 0.95;
    world
}

fn plan(world: &Snapshot) -> JobPlan {
    let mut decision = decide(profile("edgeloom").unwrap(), world);
    assert_eq!(check(&decision, world), vec![]);
    assert_eq!(decision.unplaced, vec![]);
    decision.plans.remove(0)
}

fn ten_modules() -> Job {
    parse(include_bytes!("../../../examples/jobs/object-attributes.yaml")).unwrap()
}

fn hops(flow: &FlowPlan) -> usize {
    flow.path.len() - 1
}

/// Only n1 and n4 have no link of their own.
fn fewest_hops(flow: &FlowPlan) -> usize {
    let (first, last) = (flow.path[0].as_str(), flow.path[hops(flow)].as_str());
    if matches!((first, last), ("n1", "n4") | ("n4", "n1")) { 2 } else { 1 }
}

fn written(path: &[NodeId]) -> String {
    path.iter().map(NodeId::as_str).collect::<Vec<_>>().join(" ")
}

/// Each flow has what the prediction needs, rounded down to whole bits a second.
fn assert_rates_meet_needs(plan: &JobPlan, goodput: f64) {
    for flow in &plan.flows {
        let need = plan.prediction.items_per_s * flow.volume.0 as f64 * 8.0 / goodput;
        assert!(flow.rate.as_f64() + 1.0 >= need, "{} has {} and needs {need}", flow.id, flow.rate);
    }
}

/// No link that a flow could fill is left half idle: each flow passes one that is full.
fn assert_nothing_is_left(plan: &JobPlan, world: &Snapshot) {
    for flow in &plan.flows {
        let full = flow.path.windows(2).any(|hop| {
            let passes = |other: &&FlowPlan| other.path.windows(2).any(|other| other == hop);
            let given: f64 = plan.flows.iter().filter(passes).map(|other| other.rate.as_f64()).sum();
            let joins = |link: &&edgeloom_sched::snapshot::Link| {
                (&link.a, &link.b) == (&hop[0], &hop[1]) || (&link.b, &link.a) == (&hop[0], &hop[1])
            };
            let link = world.links.iter().find(joins).unwrap();
            given + 1000.0 >= link.a_to_b.as_f64() * world.link_share
        });
        assert!(full, "{} by {} could have more", flow.id, written(&flow.path));
    }
}

#[test]
fn a_job_bound_by_computing_stays_near_its_source_on_shortest_paths() {
    // Equal speeds, and speeds that differ by less than what counts.
    for speeds in [[2.4; 4], [2.394, 2.4, 2.397, 2.405], [1.0; 4]] {
        let world = diamond(speeds, vec![ten_modules()]);
        let plan = plan(&world);
        assert_eq!(plan.prediction.bound, Bound::Compute, "{:?}", plan.prediction);
        let least = speeds.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(plan.prediction.items_per_s >= 5.0 * least * 0.995, "{:?}", plan.prediction);
        let detect = plan.placement[&"detect".parse().unwrap()].as_str();
        assert!(matches!(detect, "n1" | "n2" | "n3"), "detect on {detect}");
        for flow in &plan.flows {
            assert_eq!(hops(flow), fewest_hops(flow), "{} by {}", flow.id, written(&flow.path));
        }
        assert_rates_meet_needs(&plan, world.goodput);
        assert_nothing_is_left(&plan, &world);
    }
}

/// A camera on n1 sends 100 KB and 60 KB an item to two tasks that must run on n4.
fn fan_out() -> Job {
    let pinned = || {
        let mut task = task(100, 1 << 20, 0);
        task.constraints =
            vec![Constraint { attribute: Attribute::Name, equal: true, value: "n4".to_owned() }];
        task
    };
    let on_camera = || {
        let mut task = pinned();
        task.constraints[0].value = "n1".to_owned();
        task
    };
    let tasks = vec![("camera", on_camera()), ("left", pinned()), ("right", pinned())];
    let mut job = job("fan-out", tasks);
    edge(&mut job, "camera", "left", 100_000);
    edge(&mut job, "camera", "right", 60_000);
    job
}

#[test]
fn a_fan_out_bound_by_the_network_uses_both_relays() {
    let world = diamond([1.0; 4], vec![fan_out()]);
    let plan = plan(&world);
    let flows: Vec<_> =
        plan.flows.iter().map(|flow| (flow.id.to.as_str(), written(&flow.path), flow.rate.0)).collect();
    assert_eq!(
        flows,
        [("left", "n1 n2 n4".to_owned(), 19_000_000), ("right", "n1 n3 n4".to_owned(), 11_400_000)]
    );
    assert_eq!(plan.prediction.bound, Bound::Network);
    assert_nothing_is_left(&plan, &world);
}

/// A task on n2 sends an item of 100 KB to one on n3; the direct link has 10 Mbit/s, the way by n4 12.
fn relay_to_relay(rate_per_s: f64) -> Job {
    let mut job = job("relay", vec![("work", task(100, 1 << 20, 0))]);
    job.source = Some(source("n2", 100_000));
    job.source.as_mut().unwrap().rate_per_s = Some(rate_per_s);
    job.tasks.get_mut(&"work".parse().unwrap()).unwrap().constraints =
        vec![Constraint { attribute: Attribute::Name, equal: true, value: "n3".to_owned() }];
    edge(&mut job, "source", "work", 100_000);
    job
}

#[test]
fn a_longer_path_is_taken_only_where_the_short_one_does_not_carry_the_need() {
    // The direct link's share carries 11.3 items a second, nine tenths of it 10.1; the way around 13.5.
    for (rate_per_s, direct) in [(5.0, true), (10.0, true), (13.0, false), (100.0, false)] {
        let world = diamond([1.0; 4], vec![relay_to_relay(rate_per_s)]);
        let plan = plan(&world);
        assert_eq!(hops(&plan.flows[0]) == 1, direct, "{rate_per_s} by {}", written(&plan.flows[0].path));
        assert_rates_meet_needs(&plan, world.goodput);
    }
}
