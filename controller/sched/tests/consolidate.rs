//! Nodes that could be emptied: what moves where, what it costs, and what is in the way.

mod worlds;

use edgeloom_common::job::{Attribute, Constraint, Job};
use edgeloom_sched::consolidate::{Bounds, Consolidation, Emptied, consolidate};
use edgeloom_sched::plan::Decision;
use edgeloom_sched::pull::Goodput;
use edgeloom_sched::snapshot::{Node, Snapshot, Waiting};
use edgeloom_sched::{check, decide, profile};
use worlds::{edge, hold, image, job, link, node, running, snapshot, source, task, wants};

const GB: u64 = 1_000_000_000;

fn single(name: &str, cpu: u32) -> Job {
    job(name, vec![("work", task(cpu, 1000, 0))])
}

/// The cluster with these jobs running where this profile puts them, and the same jobs as if they waited.
fn world(by: &str, nodes: Vec<Node>, jobs: Vec<Job>) -> Snapshot {
    let links = nodes.windows(2).map(|it| link(it[0].id.as_str(), it[1].id.as_str(), 20_000_000)).collect();
    let mut world = snapshot(nodes, links, jobs);
    let again: Vec<Waiting> = world.waiting.clone();
    let decision: Decision = decide(profile(by).unwrap(), &world);
    assert_eq!(check(&decision, &world), vec![]);
    for plan in decision.plans {
        let job = again.iter().find(|it| it.job.name == plan.job).unwrap().job.clone();
        world.running.push(running(job, plan));
    }
    world.waiting = again;
    world
}

fn found(world: &Snapshot) -> Consolidation {
    consolidate(profile("edgeloom").unwrap(), world, Bounds::NONE)
}

fn names(emptied: &[Emptied]) -> Vec<&str> {
    emptied.iter().map(|it| it.node.as_str()).collect()
}

fn three() -> Vec<Node> {
    ["n1", "n2", "n3"].map(|name| node(name, 4000, 1.0, GB)).to_vec()
}

#[test]
fn jobs_of_a_spread_cluster_fit_on_one_node() {
    let world = world("swarm-spread", three(), vec![single("a", 1000), single("b", 1500), single("c", 500)]);
    let found = found(&world);
    assert_eq!(found.emptied.len(), 2, "{found:?}");
    assert_eq!(found.kept.len(), 1);
    assert_eq!(found.kept[0].reason, "it is the last node that takes tasks");
    // The least used goes first, and nothing moves to a node that was emptied before.
    assert_eq!(found.emptied[0].moves[0].job.as_str(), "c");
    let last = &found.kept[0].node;
    assert!(found.emptied[1].moves.iter().all(|it| it.to == *last), "{found:?}");
    let one = consolidate(profile("edgeloom").unwrap(), &world, Bounds { emptied: 1, ..Bounds::NONE });
    assert_eq!(one.emptied.len(), 1);
}

#[test]
fn what_does_not_fit_or_is_bound_keeps_its_node() {
    let mut bound = single("bound", 100);
    let here = Constraint { attribute: Attribute::Name, equal: true, value: "n1".to_owned() };
    bound.tasks.values_mut().for_each(|task| task.constraints.push(here.clone()));
    let mut fed = job("fed", vec![("work", task(100, 1000, 1))]);
    fed.source = Some(source("n2", 1000));
    edge(&mut fed, "source", "work", 1000);
    let world = world("edgeloom", three(), vec![bound, fed, single("large", 3950)]);
    let found = found(&world);
    assert_eq!(names(&found.emptied), Vec::<&str>::new(), "{found:?}");
    let why = |node: &str| found.kept.iter().find(|it| it.node.as_str() == node).unwrap().reason.clone();
    assert!(why("n1").starts_with("task work of job bound finds no other node"), "{}", why("n1"));
    assert_eq!(why("n2"), "the source of job fed stays on it");
    assert!(
        why("n3").contains("task work of job large finds no other node (n1: cpu 3950m requested"),
        "{}",
        why("n3")
    );
}

#[test]
fn nobody_is_slowed_down_for_an_empty_node() {
    // A core of n2 does 20 items a second; beside another such task on n1 it would do 10.
    let with_work = |work_ms: u64| {
        let paced = |name: &str| job(name, vec![("work", task(0, 1000, work_ms))]);
        let mut nodes = three()[..2].to_vec();
        nodes.iter_mut().for_each(|node| node.cpu.0 = 1000);
        world("swarm-spread", nodes, vec![paced("x"), paced("y")])
    };
    let busy = found(&with_work(50));
    assert!(busy.emptied.is_empty(), "{busy:?}");
    assert!(busy.kept[0].reason.contains("would fall from"), "{busy:?}");
    assert_eq!(found(&with_work(0)).emptied.len(), 1);
}

#[test]
fn a_move_costs_what_its_node_lacks() {
    let mut world = world("swarm-spread", three(), vec![single("a", 1000), single("b", 1000)]);
    let app = image("app", &[("base", 1_000_000), ("top", 500_000)]);
    for job in ["a", "b"] {
        wants(&mut world, job, "work", &app);
        let at = world.running.iter().find(|it| it.job.name.as_str() == job).unwrap();
        let at = at.plan.placement.values().next().unwrap().to_string();
        hold(&mut world, &at, &app);
    }
    for node in &mut world.nodes {
        node.hosting.goodput = Some(Goodput::declared(edgeloom_common::units::BitRate(8_000_000)));
    }
    let moves: Vec<_> = found(&world).emptied.into_iter().flat_map(|it| it.moves).collect();
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert_eq!(moves[0].bytes.0, 0, "its layers are there");
    assert!((moves[0].pause_s - 1.0).abs() < 1e-9);
    let empty = std::sync::Arc::default();
    world.nodes.iter_mut().for_each(|node| node.hosting.held = std::sync::Arc::clone(&empty));
    let moves: Vec<_> = found(&world).emptied.into_iter().flat_map(|it| it.moves).collect();
    assert!(moves[0].bytes.0 >= 1_500_000 && moves[0].pull_s.unwrap() > 1.0, "{moves:?}");
}
