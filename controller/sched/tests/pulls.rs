//! Pulls that share a line with flows of jobs: their seconds count together with transfer and compute time.

mod worlds;

use edgeloom_common::units::BitRate;
use edgeloom_sched::pull::Goodput;
use edgeloom_sched::snapshot::Snapshot;
use edgeloom_sched::{check, decide, profile};
use worlds::{edge, image, job, link, node, running, snapshot, source, task, wants};

const MB: u64 = 1_000_000;
/// Of every link and of every line to the registry, wire rate.
const WIRE: u64 = 20 * MB;

/// n2 computes a tenth faster than n3; both pull 20 MB for the job that waits, n2 over its link with n1.
fn world() -> Snapshot {
    let mut app = job("app", vec![("work", task(100, 100 * MB, 100))]);
    app.source = Some(source("n4", 1_000));
    edge(&mut app, "source", "work", 1_000);
    let nodes = vec![
        node("n1", 1000, 1.0, 0),
        node("n2", 1000, 1.1, 1000 * MB),
        node("n3", 1000, 1.0, 1000 * MB),
        node("n4", 1000, 1.0, 0),
    ];
    let links = [("n1", "n2"), ("n2", "n4"), ("n3", "n4")].map(|(a, b)| link(a, b, WIRE));
    let mut world = snapshot(nodes, links.to_vec(), vec![app]);
    world.link_share = 0.95;
    wants(&mut world, "app", "work", &image("app", &[("base", 20 * MB)]));
    for node in &mut world.nodes {
        node.hosting.goodput = Some(Goodput::declared(BitRate(WIRE)));
    }
    world.nodes[1].hosting.pulls_over = ["n1".parse().unwrap()].into();
    world
}

/// A job that has all that flows may have of the link from n1 to n2.
fn with_a_full_link(mut world: Snapshot) -> Snapshot {
    let mut stream = job("stream", vec![("sink", task(10, 10 * MB, 0))]);
    stream.source = Some(source("n1", MB));
    edge(&mut stream, "source", "sink", MB);
    let wide = snapshot(world.nodes[..2].to_vec(), vec![link("n1", "n2", WIRE)], vec![stream.clone()]);
    let plan = decide(profile("edgeloom").unwrap(), &Snapshot { link_share: 0.95, ..wide }).plans.remove(0);
    assert_eq!(plan.flows[0].rate, BitRate(19 * MB));
    world.running = vec![running(stream, plan)];
    world
}

fn placed(world: &Snapshot) -> String {
    let decision = decide(profile("edgeloom").unwrap(), world);
    assert_eq!(check(&decision, world), vec![]);
    let plan = decision.plans.iter().find(|plan| plan.job.as_str() == "app").unwrap();
    plan.placement[&"work".parse().unwrap()].to_string()
}

#[test]
fn a_line_that_flows_fill_makes_the_pull_too_long_for_a_faster_processor() {
    assert_eq!(placed(&world()), "n2", "both pull for nine seconds");
    assert_eq!(placed(&with_a_full_link(world())), "n3", "at n2 flows leave a twentieth: three minutes");
}

#[test]
fn flows_on_other_links_take_nothing_of_a_pull() {
    let mut world = with_a_full_link(world());
    world.nodes[1].hosting.pulls_over.clear();
    assert_eq!(placed(&world), "n2");
    // Out of the node: the other direction of the line.
    world.nodes[0].hosting.pulls_over = ["n2".parse().unwrap()].into();
    assert_eq!(placed(&world), "n2");
}

#[test]
fn a_job_that_holds_nothing_back_for_itself_pulls_at_the_whole_line() {
    let mut world = world();
    let own = &mut world.waiting[0].job;
    own.source = Some(source("n1", MB));
    own.tasks.get_mut(&"work".parse().unwrap()).unwrap().outputs.clear();
    world.links.push(link("n1", "n3", WIRE));
    assert_eq!(placed(&world), "n2", "its flow over the same link sends nothing before it runs");
}

#[test]
fn what_flows_leave_is_never_less_than_their_share_allows() {
    let seconds = |reserved| {
        let fetch = edgeloom_sched::pull::Fetch::even(100, edgeloom_common::units::Bytes(100 * MB));
        let rest = edgeloom_common::units::Bytes(0);
        fetch.seconds(Goodput::beside_flows(BitRate(WIRE), BitRate(reserved)), rest)
            / fetch.seconds(Goodput::declared(BitRate(WIRE)), rest)
    };
    assert!((1.0..1.1).contains(&seconds(0)));
    assert!((2.0..2.2).contains(&seconds(WIRE / 2)));
    assert!((19.0..20.5).contains(&seconds(WIRE)), "a twentieth");
}
