//! The `sla` profile: the paper's worked example, and what it does with queues that do not fit.

mod worlds;

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{Job, Service, Sla};
use edgeloom_sched::plan::{Decision, JobPlan};
use edgeloom_sched::sla::{Blocked, Cores, Order, Rules};
use edgeloom_sched::snapshot::{Node, Snapshot};
use edgeloom_sched::{Profile, check, decide, profile, profile_names};
use worlds::{job, node, running, snapshot, task};

const GB: u64 = 1_000_000_000;

/// A container of these classes that leaves its cores to the scheduler.
fn container(name: &str, sla: Sla) -> Job {
    let mut work = task(100, 1000, 0);
    work.program.resources.cpu_sized = true;
    let mut made = job(name, vec![("work", work)]);
    made.sla = sla;
    sla.apply(&mut made.tasks);
    made
}

fn reputed(name: &str, cores: u32, reputation: &str) -> Node {
    let mut made = node(name, cores * 1000, 1.0, GB);
    made.labels.insert("reputation".to_owned(), reputation.to_owned());
    made
}

fn sound(profile: Profile, world: &Snapshot) -> Decision {
    let decision = decide(profile, world);
    assert_eq!(check(&decision, world), vec![], "{}", profile.name());
    assert_eq!(decision.plans.len() + decision.unplaced.len(), world.waiting.len(), "{}", profile.name());
    decision
}

fn sla(world: &Snapshot) -> Decision {
    sound(profile("sla").unwrap(), world)
}

/// Job, cores, and the nodes of its containers.
fn rows(decision: &Decision) -> Vec<(String, u32, Vec<String>)> {
    let row = |plan: &JobPlan| {
        let nodes = plan.placement.values().map(ToString::to_string).collect();
        (plan.job.to_string(), cores(plan, "work") / 1000, nodes)
    };
    decision.plans.iter().map(row).collect()
}

fn cores(plan: &JobPlan, task: &str) -> u32 {
    plan.shares[&task.parse::<TaskName>().unwrap()].cpu.0
}

fn row(job: &str, cores: u32, nodes: &[&str]) -> (String, u32, Vec<String>) {
    (job.to_owned(), cores, nodes.iter().map(|node| (*node).to_owned()).collect())
}

/// Premium reputation, one container, and this service in the class of resources.
fn single(name: &str, resources: Service) -> Job {
    let premium = Some(Service::Premium);
    container(
        name,
        Sla { satisfaction: premium, reputation: premium, resources: Some(resources), redundancy: None },
    )
}

/// Section 5.3: nodes with 9, 6 and 6 idle cores, N = 9. The paper gives c3 6 cores, against its own maximum
/// of 3: here it gets 3.
#[test]
fn the_worked_example() {
    let mut world = snapshot(
        vec![reputed("n1", 9, "high"), reputed("n2", 9, "high"), reputed("n3", 9, "high")],
        Vec::new(),
        vec![
            single("c1", Service::Premium),
            single("c2", Service::Advanced),
            single("c3", Service::BestEffort),
        ],
    );
    // Two containers of others leave 6 idle cores on n2 and on n3.
    for name in ["n2", "n3"] {
        let other = job(&format!("on-{name}"), vec![("work", task(3000, 1000, 0))]);
        let taken = Snapshot {
            nodes: vec![reputed(name, 9, "high")],
            ..snapshot(vec![], vec![], vec![other.clone()])
        };
        let plan = sound(profile("edgeloom").unwrap(), &taken).plans.remove(0);
        world.running.push(running(other, plan));
    }
    let decision = sla(&world);
    assert_eq!(rows(&decision), [row("c1", 9, &["n1"]), row("c2", 6, &["n2"]), row("c3", 3, &["n3"])]);
    assert!(
        decision.plans[0].reasons[0]
            .starts_with("work -> n1: cpu 9000m of 21000m idle, its class has 7000m to 9000m")
    );
    assert!(
        decision.plans[1].reasons[0]
            .starts_with("work -> n2: cpu 6000m of 12000m idle, its class has 4000m to 6000m")
    );
    assert!(
        decision.plans[2].reasons[0]
            .starts_with("work -> n3: cpu 3000m of 6000m idle, its class has 1000m to 3000m")
    );
}

#[test]
fn copies_go_to_different_nodes_and_a_job_is_placed_whole() {
    let nodes = || vec![reputed("n1", 9, "high"), reputed("n2", 9, "high"), reputed("n3", 9, "high")];
    let premium = |name: &str| container(name, Sla::all(Service::Premium));
    let decision = sla(&snapshot(nodes(), vec![], vec![premium("one"), premium("two")]));
    assert_eq!(rows(&decision), [row("one", 9, &["n1", "n2", "n3"])]);
    assert!(!decision.unplaced[0].never);
    let two = nodes().into_iter().take(2).collect();
    let left = sla(&snapshot(two, vec![], vec![premium("one")])).unplaced.remove(0);
    assert_eq!((left.task.as_str(), left.never), ("work-3", true));
    assert!(left.reasons.iter().all(|reason| reason.text == "another container of the same task is there"));
}

#[test]
fn who_finds_no_room_is_passed_by_lower_classes_unless_it_blocks() {
    let nodes = vec![reputed("n1", 9, "high"), reputed("n2", 9, "low")];
    let low = Sla::all(Service::BestEffort);
    let world = snapshot(
        nodes,
        vec![],
        vec![container("low", low), container("high", Sla::all(Service::Premium)), container("low-2", low)],
    );
    // 1 * 9 / 2 = 4, clipped to 3; then 1 * 6 / 1 = 6, clipped too.
    assert_eq!(rows(&sla(&world)), [row("low", 3, &["n2"]), row("low-2", 3, &["n2"])]);
    let blocks = Rules { blocked: Blocked::Blocks, ..Rules::PAPER };
    let decision = sound(Profile::sla(blocks), &world);
    assert!(decision.plans.is_empty());
    assert_eq!(decision.unplaced[1].reasons[0].text, "waits behind job high");
}

#[test]
fn a_fixed_size_is_the_middle_of_the_class_and_arrival_decides_who_is_first() {
    let nodes = vec![reputed("n1", 9, "high")];
    let rules = Rules { order: Order::Arrival, cores: Cores::Fixed, ..Rules::PAPER };
    let jobs = vec![single("early", Service::BestEffort), single("late", Service::Advanced)];
    let decision = sound(Profile::sla(rules), &snapshot(nodes, vec![], jobs));
    assert_eq!(rows(&decision), [row("early", 2, &["n1"]), row("late", 5, &["n1"])]);
}

/// N = 600m over the nodes of high reputation: premium has 401m to 600m.
#[test]
fn machines_of_fewer_than_three_cores_are_shared_in_thousandths() {
    let mut zero = reputed("zero", 1, "high");
    zero.cpu.0 = 600;
    let world = snapshot(
        vec![zero, reputed("n1", 1, "high"), reputed("n2", 1, "low")],
        vec![],
        vec![single("c1", Service::Premium), single("c2", Service::BestEffort)],
    );
    let decision = sla(&world);
    let given: Vec<u32> = decision.plans.iter().map(|plan| cores(plan, "work")).collect();
    // 3 * 1600 / 4 = 1200, clipped to 600; then 1 * 1000 / 1, clipped to 200.
    assert_eq!(given, [600, 200]);
}

#[test]
fn what_a_document_names_is_given_and_bad_demands_are_told_while_the_rest_is_placed() {
    let named = |name: &str, cpu: u32| {
        let mut made = container(name, Sla::default());
        let resources = &mut made.tasks.get_mut(&"work".parse().unwrap()).unwrap().program.resources;
        (resources.cpu.0, resources.cpu_sized) = (cpu, false);
        made
    };
    let no_node = container("nowhere", Sla { reputation: Some(Service::BestEffort), ..Sla::default() });
    let jobs = vec![named("huge", u32::MAX), named("none", 0), no_node, named("two", 2000)];
    let world = snapshot(vec![reputed("n1", 9, "high")], vec![], jobs);
    let decision = sla(&world);
    assert_eq!(decision.plans.len(), 2);
    assert!(decision.plans.iter().all(|plan| plan.shares.is_empty()));
    let told: Vec<_> = decision
        .unplaced
        .iter()
        .map(|left| (left.job.as_str(), left.never, left.reasons[0].text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("huge", true, "cpu 4294967295m requested, 9000m unused"),
            ("nowhere", true, "constraint node.labels.reputation == low does not hold")
        ]
    );
}

#[test]
fn no_nodes_and_no_jobs_are_no_trouble() {
    let alone = snapshot(vec![], vec![], vec![container("one", Sla::all(Service::Premium))]);
    assert!(sla(&alone).unplaced[0].never);
    assert_eq!(sla(&snapshot(vec![reputed("n1", 9, "high")], vec![], vec![])), Decision::default());
}

#[test]
fn every_profile_keeps_the_classes() {
    let nodes: Vec<Node> =
        (0..9).map(|at| reputed(&format!("n{at}"), 9, ["high", "average", "low"][at % 3])).collect();
    for name in profile_names() {
        let jobs = vec![
            container("last", Sla::all(Service::Advanced)),
            container("first", Sla::all(Service::Premium)),
        ];
        let decision = sound(profile(name).unwrap(), &snapshot(nodes.clone(), vec![], jobs));
        assert_eq!(decision.unplaced, vec![], "{name}");
        assert_eq!(decision.plans[0].job.as_str(), "first", "{name}: the better class goes first");
        for (plan, copies, least, of) in [(&decision.plans[0], 3, 7000, 0), (&decision.plans[1], 2, 4000, 1)]
        {
            assert_eq!(plan.placement.len(), copies, "{name}");
            for (task, at) in &plan.placement {
                let number: usize = at.as_str()[1..].parse().unwrap();
                assert_eq!(number % 3, of, "{name}: reputation of {task}");
                assert!(cores(plan, task.as_str()) >= least, "{name}: cores of {task}");
            }
        }
    }
}

#[test]
fn running_copies_stay_apart_when_others_come_and_go() {
    let nodes: Vec<Node> = (0..3).map(|at| reputed(&format!("n{at}"), 9, "high")).collect();
    let held = container("held", Sla { redundancy: Some(Service::Advanced), ..Sla::default() });
    let edgeloom = profile("edgeloom").unwrap();
    let mut world = snapshot(nodes, vec![], vec![held.clone()]);
    let plan = sound(edgeloom, &world).plans.remove(0);
    world.running.push(running(held, plan));
    world.waiting = snapshot(vec![], vec![], vec![container("new", Sla::default())]).waiting;
    let decision = sound(edgeloom, &world);
    assert_eq!(decision.plans.len(), 1, "the one with copies is left as it is");
    let mut together = world.running[0].plan.clone();
    let first = together.placement.values().next().unwrap().clone();
    together.placement.values_mut().for_each(|node| *node = first.clone());
    let broken = check(&Decision { plans: vec![together], unplaced: vec![] }, &world);
    assert!(broken[0].to_string().contains("a container of the same task"), "{broken:?}");
}
