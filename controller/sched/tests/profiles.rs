//! What each profile does with small, telling clusters.

mod worlds;

use edgeloom_common::job::{Attribute, Constraint, Job};
use edgeloom_common::units::BitRate;
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::Decision;
use edgeloom_sched::snapshot::{Change, Snapshot};
use edgeloom_sched::{check, decide, profile};
use worlds::{edge, job, link, node, ring, snapshot, source, task, ten_modules};

const MB: u64 = 1_000_000;

fn sound(name: &str, snapshot: &Snapshot) -> Decision {
    let decision = decide(profile(name).unwrap(), snapshot);
    assert_eq!(check(&decision, snapshot), vec![], "{name}");
    decision
}

/// A source on n1 and one task that only fits n2: 1 MB an item over the link.
fn remote(name: &str) -> Job {
    let mut job = job(name, vec![("work", task(100, 100 * MB, 0))]);
    job.source = Some(source("n1", MB));
    edge(&mut job, "source", "work", MB);
    job
}

/// n1 has no room, n2 has; 8 Mbit/s between them: one item a second.
fn pair(jobs: Vec<Job>) -> Snapshot {
    snapshot(
        vec![node("n1", 1000, 1.0, MB), node("n2", 1000, 1.0, 1000 * MB)],
        vec![link("n1", "n2", 8 * MB)],
        jobs,
    )
}

#[test]
fn a_newcomer_on_a_full_link_gets_half_and_the_running_job_is_told() {
    let mut now = pair(vec![remote("first")]);
    let first = sound("edgeloom", &now).plans.remove(0);
    assert_eq!(first.flows[0].rate, BitRate(8 * MB));
    now.running = vec![worlds::running(remote("first"), first)];
    now.waiting[0].job = remote("second");
    let shared = sound("edgeloom", &now);
    let rates: Vec<_> = shared.plans.iter().map(|plan| (plan.job.as_str(), plan.flows[0].rate.0)).collect();
    assert_eq!(rates, [("first", 4 * MB), ("second", 4 * MB)]);
    assert!(shared.plans.iter().all(|plan| (plan.prediction.items_per_s - 0.5).abs() < 1e-6));
    let waits = sound("otfs", &now);
    assert_eq!((waits.plans.len(), waits.unplaced[0].never), (0, false));
}

#[test]
fn what_a_departed_job_leaves_goes_to_the_others_once() {
    let mut now = pair(vec![remote("first"), remote("second")]);
    let both = sound("edgeloom", &now);
    now.waiting.clear();
    now.running = vec![worlds::running(remote("second"), both.plans[1].clone())];
    let raised = sound("edgeloom", &now);
    assert_eq!(raised.plans[0].flows[0].rate, BitRate(8 * MB));
    now.running[0].plan = raised.plans[0].clone();
    assert_eq!(sound("edgeloom", &now), Decision::default());
}

#[test]
fn a_cpu_limit_bounds_the_prediction_and_the_link_keeps_its_rest_for_bursts() {
    let mut limited = remote("limited");
    let work = limited.tasks.get_mut(&"work".parse().unwrap()).unwrap();
    work.work = Some("400ms".parse().unwrap());
    let plan = sound("edgeloom", &pair(vec![limited])).plans.remove(0);
    assert!((plan.prediction.items_per_s - 0.25).abs() < 1e-9, "{:?}", plan.prediction);
    assert_eq!((plan.prediction.bound, plan.prediction.bound_by.as_str()), (Bound::Compute, "work on n2"));
    assert_eq!(plan.flows[0].rate, BitRate(8 * MB));
}

#[test]
fn a_node_that_cannot_shape_hosts_tasks_but_passes_nothing_on() {
    let mut world = pair(vec![remote("job")]);
    world.nodes.push(node("n3", 1000, 1.0, MB));
    world.links = vec![link("n1", "n3", 8 * MB), link("n2", "n3", 8 * MB)];
    assert_eq!(sound("edgeloom", &world).plans[0].flows[0].path.len(), 3);
    world.nodes[1].shapes_flows = false;
    assert_eq!(sound("edgeloom", &world).plans.len(), 1, "the last node of a path sends nothing");
    world.nodes[2].shapes_flows = false;
    let left = sound("edgeloom", &world).unplaced.remove(0);
    assert_eq!(left.reasons[1].text, "no path from n1");
}

#[test]
fn equal_nodes_are_told_apart_by_image_bytes_then_by_name() {
    let nodes = || vec![node("n1", 1000, 1.0, MB * 500), node("n2", 1000, 1.0, MB * 500)];
    let alone = || job("alone", vec![("work", task(100, 100 * MB, 10))]);
    let mut world = snapshot(nodes(), vec![link("n1", "n2", MB)], vec![alone()]);
    let placed =
        |world: &Snapshot| sound("edgeloom", world).plans[0].placement[&"work".parse().unwrap()].to_string();
    assert_eq!(placed(&world), "n1");
    let image = worlds::image("work", &[("base", 70_000_000)]);
    worlds::hold(&mut world, "n2", &image);
    worlds::wants(&mut world, "alone", "work", &image);
    assert_eq!(placed(&world), "n2");
}

#[test]
fn a_job_that_fits_nowhere_says_why_and_that_waiting_is_vain() {
    let huge = job("huge", vec![("work", task(100, 2000 * MB, 0))]);
    let left = sound("edgeloom", &pair(vec![huge])).unplaced.remove(0);
    let texts: Vec<&str> = left.reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert_eq!(texts, ["memory 2 GB requested, 1 MB unused", "memory 2 GB requested, 1 GB unused"]);
    assert!(left.never);
    let mut lost = remote("lost");
    lost.source.as_mut().unwrap().node = "n9".parse().unwrap();
    let left = sound("edgeloom", &pair(vec![lost])).unplaced.remove(0);
    assert_eq!((left.task.as_str(), left.never), ("source", true));
}

#[test]
fn a_job_whose_ways_are_down_or_not_measured_yet_waits_for_them() {
    for name in edgeloom_sched::profile_names() {
        let mut world = pair(vec![remote("far")]);
        world.links.clear();
        let left = sound(name, &world).unplaced.remove(0);
        assert!(!left.never && left.reasons.iter().any(|reason| reason.text.contains("no path")), "{left:?}");
    }
}

#[test]
fn ten_modules_spread_and_the_search_is_never_behind_algorithm_1() {
    for size in [4, 12] {
        let (nodes, links) = ring(size);
        let world = snapshot(nodes, links, vec![ten_modules("ten", "n001")]);
        let items = |name: &str| sound(name, &world).plans[0].prediction.items_per_s;
        // Placements within half a percent of the fastest count as equal.
        assert!(items("edgeloom") >= items("otfs") * 0.995, "{} nodes", size);
        assert!(items("edgeloom") >= items("lr") * 0.995, "{} nodes", size);
    }
}

/// A runs on the faster node, the only one that B may run on, and there is room for one of them.
fn taken() -> (Snapshot, Job) {
    let nodes = vec![node("n1", 1000, 2.0, 1 << 30), node("n2", 1000, 1.0, 1 << 30)];
    let mut now =
        snapshot(nodes, vec![link("n1", "n2", 10_000_000)], vec![job("a", vec![("t", task(800, 1, 10))])]);
    let first = decide(profile("edgeloom").unwrap(), &now).plans.remove(0);
    assert_eq!(first.placement[&"t".parse().unwrap()].as_str(), "n1");
    let mut bound = task(800, 1, 10);
    bound.constraints = vec![Constraint { attribute: Attribute::Name, equal: true, value: "n1".to_owned() }];
    let a = now.waiting.remove(0).job;
    now.running = vec![worlds::running(a, first)];
    (now, job("b", vec![("t", bound)]))
}

#[test]
fn a_running_job_makes_room_for_one_that_fits_nowhere_else() {
    let (mut now, b) = taken();
    now.waiting = snapshot(Vec::new(), Vec::new(), vec![b]).waiting;
    let decision = decide(profile("edgeloom").unwrap(), &now);
    assert_eq!(check(&decision, &now), vec![]);
    let node = |job: &str| {
        let plan = decision.plans.iter().find(|plan| plan.job.as_str() == job).unwrap();
        plan.placement[&"t".parse().unwrap()].to_string()
    };
    assert_eq!((node("a"), node("b")), ("n2".to_owned(), "n1".to_owned()));
    let moved = decision.plans.iter().find(|plan| plan.job.as_str() == "a").unwrap();
    assert!(moved.reasons[0].contains("tasks moved: b finds room only so"), "{:?}", moved.reasons);
}

/// A job on `n1` whose task names no CPU, not even a least, and one that asks for so much of that node.
fn beside_a_sized_one(nodes: usize, cpu: u32) -> Snapshot {
    let mut sized = task(0, 1, 10);
    sized.program.resources.cpu_sized = true;
    let nodes = (1..=nodes).map(|at| node(&format!("n{at}"), 1000, 1.0, 1 << 30)).collect();
    let mut now = snapshot(nodes, vec![], vec![job("a", vec![("t", sized)])]);
    let first = decide(profile("edgeloom").unwrap(), &now).plans.remove(0);
    let a = now.waiting.remove(0).job;
    now.running = vec![worlds::running(a, first)];
    let mut bound = task(cpu, 1, 10);
    bound.constraints = vec![Constraint { attribute: Attribute::Name, equal: true, value: "n1".to_owned() }];
    now.waiting = snapshot(Vec::new(), Vec::new(), vec![job("b", vec![("t", bound)])]).waiting;
    now
}

#[test]
fn a_newcomer_does_not_take_the_last_items_of_a_running_job() {
    let now = beside_a_sized_one(1, 1000);
    let decision = sound("edgeloom", &now);
    assert!(decision.plans.is_empty() && !decision.unplaced[0].never, "{decision:?}");
    assert_eq!(decision.unplaced[0].reasons[0].text, "cpu 1000m requested, 999m unused");
    let plan = |decision: &Decision, job: &str| {
        decision.plans.iter().find(|plan| plan.job.as_str() == job).unwrap().clone()
    };
    let less = sound("edgeloom", &beside_a_sized_one(1, 900));
    assert_eq!(plan(&less, "a").prediction.items_per_s.round(), 10.0);
    assert_eq!(plan(&less, "b").prediction.items_per_s.round(), 90.0);
    let mut two = beside_a_sized_one(2, 1000);
    two.links = vec![link("n1", "n2", 10_000_000)];
    let elsewhere = sound("edgeloom", &two);
    assert_eq!(plan(&elsewhere, "a").placement[&"t".parse().unwrap()].as_str(), "n2");
    assert_eq!(plan(&elsewhere, "b").placement[&"t".parse().unwrap()].as_str(), "n1");
}

#[test]
fn a_running_job_that_may_not_move_makes_no_room() {
    let (mut now, b) = taken();
    now.running[0].change = Change::Routes;
    now.waiting = snapshot(Vec::new(), Vec::new(), vec![b]).waiting;
    let decision = decide(profile("edgeloom").unwrap(), &now);
    assert!(decision.plans.is_empty() && !decision.unplaced[0].never, "{decision:?}");
}
