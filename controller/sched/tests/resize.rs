//! Limits of containers that run: divided anew by class as others come and go, and by what turned out to be enough.

mod worlds;

use edgeloom_common::job::{Attribute, Constraint, Job, Kind, Service, Sla};
use edgeloom_common::units::MilliCores;
use edgeloom_sched::plan::Decision;
use edgeloom_sched::snapshot::{Change, Node, Snapshot};
use edgeloom_sched::{check, decide, profile, resize};
use worlds::{job, node, running, snapshot, task};

const GB: u64 = 1_000_000_000;
const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// A container of this class of resources that leaves its cores to the scheduler.
fn container(name: &str, resources: Service) -> Job {
    let mut work = task(100, 1000, 0);
    work.program.resources.cpu_sized = true;
    let mut made = job(name, vec![("work", work)]);
    made.sla = Sla { resources: Some(resources), ..Sla::default() };
    made
}

fn nine_cores(name: &str) -> Node {
    node(name, 9000, 1.0, GB)
}

fn empty(nodes: usize) -> Snapshot {
    snapshot(NODES.iter().take(nodes).map(|name| nine_cores(name)).collect(), vec![], vec![])
}

/// Lets the jobs of a decision run.
fn carry_out(world: &mut Snapshot, decision: &Decision) {
    assert_eq!(check(decision, world), vec![]);
    for plan in &decision.plans {
        match world.running.iter_mut().find(|it| it.job.name == plan.job) {
            Some(it) => it.plan = plan.clone(),
            None => {
                let at = world.waiting.iter().position(|it| it.job.name == plan.job).unwrap();
                world.running.push(running(world.waiting.remove(at).job, plan.clone()));
            }
        }
    }
}

/// One after the other, each on what those before it left.
fn arrive(world: &mut Snapshot, by: &str, job: Job) -> Decision {
    world.waiting.extend(snapshot(vec![], vec![], vec![job]).waiting);
    let decision = decide(profile(by).unwrap(), world);
    carry_out(world, &decision);
    decision
}

fn leave(world: &mut Snapshot, name: &str) {
    world.running.retain(|it| it.job.name.as_str() != name);
    let decision = decide(profile("sla").unwrap(), world);
    carry_out(world, &decision);
}

fn cores(world: &Snapshot) -> Vec<(&str, u32)> {
    let share = |it: &edgeloom_sched::snapshot::Running| it.plan.shares.values().next().unwrap().cpu.0;
    world.running.iter().map(|it| (it.job.name.as_str(), share(it))).collect()
}

fn turned_out(world: &mut Snapshot, name: &str, cpu: u32) {
    let it = world.running.iter_mut().find(|it| it.job.name.as_str() == name).unwrap();
    it.enough.insert("work".parse().unwrap(), MilliCores(cpu));
}

#[test]
fn a_large_share_gives_way_to_who_would_wait_and_comes_back_when_that_one_goes() {
    let mut world = empty(1);
    arrive(&mut world, "sla", container("low", Service::BestEffort));
    arrive(&mut world, "sla", container("middle", Service::Advanced));
    assert_eq!(cores(&world), [("low", 3000), ("middle", 6000)]);
    let decision = arrive(&mut world, "sla", container("low-2", Service::BestEffort));
    assert_eq!(decision.unplaced, []);
    // Least 1, 4 and 1; the other 3 by priorities 1, 2 and 1, rounding first to the highest.
    assert_eq!(cores(&world), [("low", 2000), ("middle", 6000), ("low-2", 1000)]);
    leave(&mut world, "middle");
    assert_eq!(cores(&world), [("low", 3000), ("low-2", 3000)]);
    leave(&mut world, "low");
    assert_eq!(cores(&world), [("low-2", 3000)]);
}

#[test]
fn nothing_gives_way_where_that_does_not_help_or_may_not_change() {
    let mut world = empty(1);
    arrive(&mut world, "sla", container("one", Service::Premium));
    let before = world.running.clone();
    let decision = arrive(&mut world, "sla", container("two", Service::Premium));
    assert_eq!((decision.plans.len(), decision.unplaced.len()), (0, 1));
    assert_eq!(world.running, before);
    world.waiting.clear();
    world.running[0].change = Change::Nothing;
    let decision = arrive(&mut world, "sla", container("three", Service::BestEffort));
    assert_eq!(decision.unplaced.len(), 1, "9 of 9 cores are held");
    assert!(resize(&world).plans.is_empty());
}

#[test]
fn who_uses_little_gives_and_others_get_it_by_class() {
    let mut world = empty(1);
    for name in ["a", "b"] {
        arrive(&mut world, "sla", container(name, Service::Advanced));
    }
    carry_out_resize(&mut world);
    assert_eq!(cores(&world), [("a", 5000), ("b", 4000)]);
    turned_out(&mut world, "a", 1200);
    carry_out_resize(&mut world);
    assert_eq!(cores(&world), [("a", 4000), ("b", 5000)], "no less than the class's least");
    let mut low = empty(1);
    for name in ["a", "b", "c", "d"] {
        arrive(&mut low, "sla", container(name, Service::BestEffort));
    }
    assert_eq!(cores(&low), [("a", 3000), ("b", 2000), ("c", 2000), ("d", 2000)]);
}

fn carry_out_resize(world: &mut Snapshot) {
    let decision = resize(world);
    carry_out(world, &decision);
    assert_eq!(resize(world).plans, [], "a second look changes nothing");
}

#[test]
fn classes_are_sized_under_every_profile_and_say_why() {
    for name in edgeloom_sched::profile_names() {
        for kind in [Kind::Pipeline, Kind::Batch] {
            let mut world = empty(1);
            arrive(&mut world, name, Job { kind, ..container("one", Service::Premium) });
            carry_out_resize(&mut world);
            assert_eq!(cores(&world), [("one", 9000)], "{name}");
            turned_out(&mut world, "one", 6500);
            carry_out_resize(&mut world);
            assert_eq!(cores(&world), [("one", 7000)], "{name}");
            let said = world.running[0].plan.reasons.last().unwrap();
            assert!(said.starts_with("cores of work: 7000m of 9000m on n1 for all"), "{name}: {said}");
            let lines = world.running[0].plan.reasons.iter().filter(|line| line.starts_with("cores of"));
            assert_eq!(lines.count(), 1);
        }
    }
}

#[test]
fn small_changes_are_not_worth_a_document() {
    // N below three cores: shares are thousandths.
    let mut world = snapshot(vec![node("n1", 2400, 1.0, GB)], vec![], vec![]);
    arrive(&mut world, "sla", container("one", Service::Advanced));
    assert_eq!(cores(&world), [("one", 1600)]);
    turned_out(&mut world, "one", 1450);
    assert!(resize(&world).plans.is_empty());
    turned_out(&mut world, "one", 1440);
    carry_out_resize(&mut world);
    assert_eq!(cores(&world), [("one", 1440)]);
}

#[test]
fn who_names_its_cores_or_has_no_class_keeps_them() {
    let mut world = empty(1);
    arrive(&mut world, "kube", job("plain", vec![("work", task(500, 1000, 0))]));
    let mut fixed = container("fixed", Service::Premium);
    fixed.tasks.values_mut().for_each(|task| task.program.resources.cpu_sized = false);
    arrive(&mut world, "sla", fixed);
    let mut open = container("open", Service::Premium);
    open.sla = Sla::default();
    arrive(&mut world, "kube", open);
    assert!(resize(&world).plans.is_empty());
}

#[test]
fn a_job_that_has_lost_its_node_is_for_others_to_change() {
    let mut world = empty(2);
    for name in ["a", "b"] {
        arrive(&mut world, "sla", container(name, Service::BestEffort));
        turned_out(&mut world, name, 1000);
    }
    let at = world.running[0].plan.placement.values().next().unwrap().clone();
    world.nodes.iter_mut().filter(|node| node.id == at).for_each(|node| node.ready = false);
    let decision = resize(&world);
    assert_eq!(check(&decision, &world), vec![]);
    let there = |plan: &&edgeloom_sched::plan::JobPlan| plan.placement.values().any(|node| *node == at);
    assert_eq!(decision.plans.iter().filter(there).count(), 0);
}

#[test]
fn nodes_that_get_nothing_new_keep_their_shares_and_streams_may_take_part() {
    let mut world = empty(3);
    for at in NODES {
        let mut made = container(&format!("on-{at}"), Service::Premium);
        bind(&mut made, at);
        arrive(&mut world, "sla", made);
    }
    let mut stream = job("stream", vec![("work", task(4000, 1000, 10))]);
    stream.tasks.values_mut().for_each(|task| task.program.resources.cpu_sized = true);
    bind(&mut stream, "n2");
    world.running[1].job.sla.resources = Some(Service::BestEffort);
    world.running[1].plan.shares.values_mut().for_each(|share| share.cpu = MilliCores(9000));
    let decision = arrive(&mut world, "edgeloom", stream);
    assert_eq!(decision.unplaced, []);
    let [one, two, three, stream] = [0, 1, 2, 3].map(|at| cores(&world)[at].1);
    assert_eq!((one, three), (9000, 9000));
    assert!(two < 9000 && stream >= 4000 && two + stream <= 9000, "{two} {stream}");
}

fn bind(job: &mut Job, node: &str) {
    let here = Constraint { attribute: Attribute::Name, equal: true, value: node.to_owned() };
    job.tasks.values_mut().for_each(|task| task.constraints.push(here.clone()));
}

/// Numbers that look like chance, the same each time.
fn draw(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn whoever_comes_goes_or_gives_every_decision_is_sound_and_dividing_comes_to_rest() {
    let profiles = ["sla", "edgeloom", "kube", "ecsched-dp"];
    for seed in 0..6 {
        let (mut state, mut world) = (seed, empty(3));
        for step in 0..60 {
            match draw(&mut state) % 4 {
                0 if !world.running.is_empty() => {
                    let gone = draw(&mut state) % world.running.len();
                    let name = world.running[gone].job.name.to_string();
                    leave(&mut world, &name);
                }
                1 if !world.running.is_empty() => {
                    let one = draw(&mut state) % world.running.len();
                    let name = world.running[one].job.name.to_string();
                    turned_out(&mut world, &name, u32::try_from(draw(&mut state) % 9000).unwrap());
                }
                _ => {
                    let service = Service::ALL[draw(&mut state) % 3];
                    let by = profiles[draw(&mut state) % profiles.len()];
                    arrive(&mut world, by, container(&format!("job-{step}"), service));
                    world.waiting.clear();
                }
            }
            carry_out_resize(&mut world);
        }
        assert!(world.running.len() > 1, "{}", world.running.len());
    }
}
