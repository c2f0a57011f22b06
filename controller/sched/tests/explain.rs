//! Explanations held against computation by hand, on the paper's worked example and on small clusters.

mod worlds;

use edgeloom_common::job::{Attribute, Constraint, Job};
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_common::view::{LimitKind, LimitView, OtherNode, TaskExplanation, Verdict};
use edgeloom_sched::plan::Share;
use edgeloom_sched::snapshot::{Duplex, Link, Snapshot, TaskProfile};
use edgeloom_sched::{JobExplanation, decide, explain, profile};
use worlds::example::{cluster, example};
use worlds::{edge, job, link, node, ring, running, snapshot, source, task, ten_modules};

const MB: u64 = 1_000_000;

/// The snapshot with its one waiting job committed as the profile decides.
fn committed(name: &str, mut snapshot: Snapshot) -> Snapshot {
    let decision = decide(profile(name).unwrap(), &snapshot);
    let plan = decision.plans.into_iter().next().unwrap();
    let waiting = snapshot.waiting.remove(0);
    snapshot.running.push(running(waiting.job, plan));
    snapshot
}

fn explained(name: &str, snapshot: Snapshot) -> JobExplanation {
    let snapshot = committed(name, snapshot);
    explain(&snapshot, &snapshot.running[0].job.name).unwrap()
}

fn without_e3() -> Snapshot {
    let mut snapshot = cluster(vec![example()]);
    snapshot.links.retain(|link| link.a.as_str() != "e3" && link.b.as_str() != "e3");
    snapshot
}

fn limit(kind: LimitKind, name: &str, items: [f64; 2], gain: &str) -> LimitView {
    LimitView {
        kind,
        name: name.to_owned(),
        items_per_s_now: items[0],
        items_per_s_with_more: items[1],
        gain_per_unit: gain.to_owned(),
    }
}

/// Rates are whole bits a second, so throughputs are compared to a millionth.
fn same(found: Option<LimitView>, wanted: LimitView) {
    let mut found = found.unwrap();
    for (found, wanted) in [
        (&mut found.items_per_s_now, wanted.items_per_s_now),
        (&mut found.items_per_s_with_more, wanted.items_per_s_with_more),
    ] {
        assert!((*found - wanted).abs() < 1e-5, "{found} instead of {wanted}");
        *found = wanted;
    }
    assert_eq!(found, wanted);
}

fn of<'a>(explanation: &'a JobExplanation, task: &str) -> &'a TaskExplanation {
    explanation.tasks.iter().find(|found| found.task.as_str() == task).unwrap()
}

fn other<'a>(explanation: &'a JobExplanation, task: &str, node: &str) -> &'a OtherNode {
    of(explanation, task).others.iter().find(|found| found.node.as_str() == node).unwrap()
}

#[test]
fn both_links_of_the_one_way_limit_the_whole_job_on_e1() {
    // 10 * 1.1 / 5 = 2.2, and more of one link alone gives nothing.
    let explanation = explained("lr", cluster(vec![example()]));
    let gain = "0.20 items/s for a tenth more of all of them together";
    same(explanation.limit, limit(LimitKind::Link, "e4->e2 and e2->e1", [2.0, 2.2], gain));
}

#[test]
fn equal_and_proportional_shares_have_the_price_of_their_way() {
    // Equal shares: 5.5 / 2. Shares by data: 11 / 3, whoever gives the rates.
    let equal = explained("tp", cluster(vec![example()])).limit;
    let gain = "0.25 items/s for a tenth more of all of them together";
    same(equal, limit(LimitKind::Link, "e4->e2 and e2->e1", [2.5, 2.75], gain));
    let gain = "0.33 items/s for a tenth more of all of them together";
    for name in ["otfs", "edgeloom"] {
        let by_data = explained(name, without_e3()).limit;
        same(by_data, limit(LimitKind::Link, "e4->e2 and e2->e1", [10.0 / 3.0, 11.0 / 3.0], gain));
    }
}

#[test]
fn the_joint_strategy_is_limited_by_two_processors_at_once() {
    // e1: 200 / 50 = 4 and e4: 20 / 5 = 4; a tenth more of both gives 4.4, the flows carry 5 and 6.
    for name in ["otfs", "edgeloom"] {
        let explanation = explained(name, cluster(vec![example()]));
        let found = explanation.limit.clone().unwrap();
        assert!(["e1 and e4", "e4 and e1"].contains(&found.name.as_str()), "{found:?}");
        let gain = "0.40 items/s for a tenth more of all of them together";
        same(explanation.limit, limit(LimitKind::Node, &found.name, [4.0, 4.4], gain));
    }
}

#[test]
fn each_other_node_is_refused_or_told_what_it_would_give() {
    let explanation = explained("edgeloom", cluster(vec![example()]));
    let names: Vec<&str> = explanation.tasks.iter().map(|task| task.task.as_str()).collect();
    assert_eq!(names, ["source", "a", "b", "c", "d", "e", "f"]);
    assert_eq!(of(&explanation, "source").why, "the job's source is there");
    let refused = "memory 2 MB requested, 500 KB unused";
    assert_eq!(other(&explanation, "c", "e2").verdict, Verdict::Refused(refused.to_owned()));
    assert_eq!(of(&explanation, "c").why, "no other node can take it");
    // a fits on e1 too, which has 1 MB left: the input of 5 over the way of 10.
    let moved = other(&explanation, "a", "e1");
    assert!(matches!(moved.verdict, Verdict::ItemsPerS(items) if (items - 2.0).abs() < 1e-9), "{moved:?}");
    assert_eq!(moved.text, "2.00 items/s instead of 4.00 (flow source->a over e2->e1 would be the limit)");
    assert_eq!(of(&explanation, "a").why, "4.00 items/s here; the next best, e1, would give 2.00");
}

/// One task of 10 ms limited to 200m, and a source on another node.
fn compute_bound() -> Job {
    let mut small = job("small", vec![("t", task(200, MB, 10))]);
    small.source = Some(source("n1", 1000));
    edge(&mut small, "source", "t", 1000);
    small
}

#[test]
fn a_cpu_limit_is_named_with_its_task_and_priced_in_millicores() {
    let nodes = vec![node("n1", 1000, 1.0, 8 * MB), node("n2", 1000, 2.0, 8 * MB)];
    let snapshot = snapshot(nodes, vec![link("n1", "n2", 100 * MB)], vec![compute_bound()]);
    // 0.2 cores of speed 2 over 10 ms: 40; a tenth more: 44, so 20 for each 100m. On n1, of speed 1: 20.
    let explanation = explained("edgeloom", snapshot);
    same(
        explanation.limit.clone(),
        limit(LimitKind::Task, "t on n2", [40.0, 44.0], "20.00 items/s for each 100m of CPU limit"),
    );
    assert_eq!(
        other(&explanation, "t", "n1").text,
        "20.00 items/s instead of 40.00 (the CPU of t would be the limit)"
    );
}

#[test]
fn a_source_that_makes_no_more_is_the_limit() {
    let mut paced = compute_bound();
    paced.source.as_mut().unwrap().rate_per_s = Some(10.0);
    let nodes = vec![node("n1", 1000, 1.0, 8 * MB), node("n2", 1000, 2.0, 8 * MB)];
    let explanation = explained("edgeloom", snapshot(nodes, vec![link("n1", "n2", 100 * MB)], vec![paced]));
    let gain = "1.00 items/s for each item/s of the source";
    same(explanation.limit.clone(), limit(LimitKind::Source, "source", [10.0, 11.0], gain));
    assert_eq!(of(&explanation, "t").node.as_str(), "n1");
    assert_eq!(
        of(&explanation, "t").why,
        "10.00 items/s, as on n2, with less traffic: 0.0 kbit an item over all hops instead of 8.0"
    );
}

#[test]
fn one_slow_link_is_named_alone_with_its_price_a_megabit() {
    // t fits only on n3: over n2, the second hop has 4 Mbit/s for 8 Mbit an item.
    let mut stream = job("stream", vec![("t", task(100, 64 * MB, 1))]);
    stream.source = Some(source("n1", MB));
    edge(&mut stream, "source", "t", MB);
    let nodes =
        vec![node("n1", 1000, 1.0, 8 * MB), node("n2", 1000, 1.0, 8 * MB), node("n3", 1000, 1.0, 128 * MB)];
    let links = vec![link("n1", "n2", 40 * MB), link("n2", "n3", 4 * MB)];
    for name in ["edgeloom", "otfs", "tp"] {
        let explanation = explained(name, snapshot(nodes.clone(), links.clone(), vec![stream.clone()]));
        let gain = "0.13 items/s for each Mbit/s";
        same(explanation.limit, limit(LimitKind::Link, "n2->n3", [0.5, 0.55], gain));
    }
}

#[test]
fn both_directions_of_a_half_duplex_link_are_one_limit() {
    // 4 MB go to n2 and 1 MB comes back over 40 Mbit/s for both: one item/s.
    let mut echo = job("echo", vec![("t", task(100, 64 * MB, 1)), ("u", task(100, MB, 1))]);
    echo.source = Some(source("n1", 4 * MB));
    edge(&mut echo, "source", "t", 4 * MB);
    edge(&mut echo, "t", "u", MB);
    let at_n1 = Constraint { attribute: Attribute::Name, equal: true, value: "n1".to_owned() };
    echo.tasks.get_mut(&"u".parse().unwrap()).unwrap().constraints.push(at_n1);
    let nodes = vec![node("n1", 1000, 1.0, 8 * MB), node("n2", 1000, 1.0, 128 * MB)];
    let shared = Link { duplex: Duplex::Half, ..link("n1", "n2", 40 * MB) };
    for name in ["edgeloom", "otfs"] {
        let explanation = explained(name, snapshot(nodes.clone(), vec![shared.clone()], vec![echo.clone()]));
        let found = explanation.limit.clone().unwrap();
        assert!(found.name == "n1->n2", "{name}: {found:?}");
        let wanted = limit(LimitKind::Link, &found.name, [1.0, 1.1], "0.0250 items/s for each Mbit/s");
        same(explanation.limit, wanted);
    }
}

#[test]
fn what_does_not_run_is_not_explained() {
    let snapshot = cluster(vec![example()]);
    assert_eq!(explain(&snapshot, &"example".parse().unwrap()), None);
    let mut lost = committed("edgeloom", snapshot);
    lost.links.clear();
    assert_eq!(explain(&lost, &"example".parse().unwrap()), None);
}

#[test]
fn equal_snapshots_are_explained_alike_and_stay_as_they_are() {
    let snapshot = committed("edgeloom", cluster(vec![example()]));
    let before = snapshot.clone();
    let name = "example".parse().unwrap();
    assert_eq!(explain(&snapshot, &name), explain(&snapshot, &name));
    assert_eq!(snapshot, before);
}

/// Everything waiting is decided and committed.
fn settled(name: &str, mut snapshot: Snapshot) -> Snapshot {
    let decision = decide(profile(name).unwrap(), &snapshot);
    for waiting in std::mem::take(&mut snapshot.waiting) {
        let plan = decision.plans.iter().find(|plan| plan.job == waiting.job.name);
        snapshot.running.extend(plan.map(|plan| running(waiting.job, plan.clone())));
    }
    snapshot
}

#[test]
fn a_shared_link_is_worth_to_each_job_what_it_gets_of_it() {
    // Two equal jobs from n1 to n2 over 16 Mbit/s, 8 Mbit an item: one item/s each, half of the 1.6 Mbit/s more.
    let stream = |name: &str| {
        let mut stream = job(name, vec![("t", task(100, 64 * MB, 1))]);
        stream.source = Some(source("n1", MB));
        edge(&mut stream, "source", "t", MB);
        stream
    };
    let nodes = vec![node("n1", 1000, 1.0, MB), node("n2", 1000, 1.0, 256 * MB)];
    let jobs = vec![stream("one"), stream("two")];
    let snapshot = settled("edgeloom", snapshot(nodes, vec![link("n1", "n2", 16 * MB)], jobs));
    for name in ["one", "two"] {
        let explanation = explain(&snapshot, &name.parse().unwrap()).unwrap();
        let wanted = limit(LimitKind::Link, "n1->n2", [1.0, 1.1], "0.0625 items/s for each Mbit/s");
        same(explanation.limit, wanted);
    }
}

#[test]
fn every_other_node_is_told_of_once_and_more_of_the_limit_never_harms() {
    for name in ["edgeloom", "otfs", "lr", "br", "tp"] {
        let (nodes, links) = ring(16);
        let jobs = (0..4).map(|at| ten_modules(&format!("job{at}"), &format!("n{:03}", at * 4))).collect();
        let snapshot = settled(name, snapshot(nodes, links, jobs));
        assert!(!snapshot.running.is_empty(), "{name}");
        for running in &snapshot.running {
            let explanation = explain(&snapshot, &running.job.name).unwrap();
            assert!(
                (explanation.items_per_s_predicted / running.plan.prediction.items_per_s - 1.0).abs() < 1e-3
            );
            assert_eq!(explanation.tasks.len(), running.plan.placement.len());
            for task in &explanation.tasks {
                let mut told: Vec<&str> = task.others.iter().map(|other| other.node.as_str()).collect();
                told.push(task.node.as_str());
                told.sort_unstable();
                told.dedup();
                assert_eq!((told.len(), task.others.len()), (16, 15), "{name} {}", task.task);
                assert_eq!(running.plan.placement[&task.task], task.node);
            }
            let limit = explanation.limit.unwrap();
            let gain = limit.items_per_s_with_more / limit.items_per_s_now;
            assert!((1.0..1.101).contains(&gain), "{name}: {limit:?}");
        }
    }
}

#[test]
fn a_measured_pace_rises_with_the_limit_only_where_the_limit_made_it() {
    // 0.2 cores of speed 2: 10 ms of work take 25 ms. Another that waits for something else takes 50 ms.
    for (wall_s, items, gain) in [
        (0.025, [40.0, 44.0], "20.00 items/s for each 100m of CPU limit"),
        (0.05, [20.0, 20.0], "nothing: something else limits the job as much, or other jobs would get it"),
    ] {
        let nodes = vec![node("n1", 1000, 2.0, MB / 2), node("n2", 1000, 2.0, 8 * MB)];
        let mut snapshot = snapshot(nodes, vec![link("n1", "n2", 100 * MB)], vec![compute_bound()]);
        let measured = TaskProfile { work_s: 0.01, wall_s, core_speed: 2.0, memory_peak: Bytes(1) };
        let by_class = [(String::new(), measured)].into();
        snapshot.waiting[0].profiles.insert("t".parse().unwrap(), by_class);
        let profiles = snapshot.waiting[0].profiles.clone();
        let mut snapshot = committed("edgeloom", snapshot);
        snapshot.running[0].profiles = profiles;
        let explanation = explain(&snapshot, &"small".parse().unwrap()).unwrap();
        same(explanation.limit, limit(LimitKind::Task, "t on n2", items, gain));
    }
}

#[test]
fn a_task_that_the_planner_sizes_is_priced_by_the_limit_it_was_given() {
    // Sized to 0.4 cores of speed 2 over 10 ms: 80 items a second, 88 with a tenth more.
    let nodes = vec![node("n1", 1000, 2.0, MB / 2), node("n2", 400, 2.0, 8 * MB)];
    let mut sized = compute_bound();
    sized.tasks.get_mut(&"t".parse().unwrap()).unwrap().program.resources.cpu_sized = true;
    let mut snapshot = committed("edgeloom", snapshot(nodes, vec![link("n1", "n2", 100 * MB)], vec![sized]));
    let share = Share { cpu: MilliCores(400), memory: Bytes(MB) };
    snapshot.running[0].plan.shares.insert("t".parse().unwrap(), share);
    let limit = explain(&snapshot, &"small".parse().unwrap()).unwrap().limit.unwrap();
    assert!((limit.items_per_s_now - 80.0).abs() < 1e-9, "{limit:?}");
    assert!((limit.items_per_s_with_more - 88.0).abs() < 1e-9, "{limit:?}");
}

#[test]
fn what_another_node_would_give_is_no_more_than_the_planner_reaches_there() {
    let stream = |pin: Option<&str>| {
        let mut stream = job("stream", vec![("t", task(100, 64 * MB, 2)), ("u", task(100, 64 * MB, 2))]);
        stream.source = Some(source("n000", 100_000));
        edge(&mut stream, "source", "t", 100_000);
        edge(&mut stream, "t", "u", 50_000);
        let pinned =
            |name: &str| Constraint { attribute: Attribute::Name, equal: true, value: name.to_owned() };
        let last = stream.tasks.get_mut(&"u".parse().unwrap()).unwrap();
        last.constraints.extend(pin.map(pinned));
        stream
    };
    let (nodes, links) = ring(16);
    let at_rest = |pin| snapshot(nodes.clone(), links.clone(), vec![stream(pin)]);
    let explanation = explained("edgeloom", at_rest(None));
    let mut compared = 0;
    for other in &of(&explanation, "u").others {
        let Verdict::ItemsPerS(told) = other.verdict else { continue };
        let reached = committed("edgeloom", at_rest(Some(other.node.as_str())));
        let reached = reached.running[0].plan.prediction.items_per_s;
        assert!(told <= reached * 1.006, "{}: told {told}, reached {reached}", other.node);
        compared += 1;
    }
    assert_eq!(compared, 15);
}
