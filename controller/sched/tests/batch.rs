//! What the batch profiles make of waiting jobs.

mod worlds;

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{Attribute, Constraint, Job, Kind, Placement, Selector, Service, Sla, Term};
use edgeloom_sched::batch::{Objective, Packing};
use edgeloom_sched::plan::Decision;
use edgeloom_sched::snapshot::Snapshot;
use edgeloom_sched::{check, decide, profile};
use worlds::{edge, job, link, node, snapshot, source, task};

const GB: u64 = 1_000_000_000;
const PROFILES: [&str; 3] = ["ecsched-dp", "ecsched-ml", "edgeloom"];

fn sound(name: &str, snapshot: &Snapshot) -> Decision {
    let decision = decide(profile(name).unwrap(), snapshot);
    assert_eq!(check(&decision, snapshot), vec![], "{name}");
    decision
}

/// A job of the kind that runs to its end.
fn batch(name: &str, tasks: &[(&str, u32, u64)]) -> Job {
    let tasks = tasks.iter().map(|(name, cpu, memory)| (*name, task(*cpu, *memory, 0))).collect();
    Job { kind: Kind::Batch, ..job(name, tasks) }
}

fn containers(count: usize, cpu: u32) -> Vec<Job> {
    (0..count).map(|at| batch(&format!("c{at:03}"), &[("run", cpu, GB)])).collect()
}

fn nodes(count: usize) -> Vec<edgeloom_sched::snapshot::Node> {
    (0..count).map(|at| node(&format!("n{at}"), 4000, 1.0, 16 * GB)).collect()
}

#[test]
fn all_that_fits_is_placed_in_one_decision_and_the_rest_is_told_what_is_left() {
    for name in PROFILES {
        let now = snapshot(nodes(3), Vec::new(), containers(14, 1000));
        let decision = sound(name, &now);
        assert_eq!((decision.plans.len(), decision.unplaced.len()), (12, 2), "{name}");
        let left = &decision.unplaced[0];
        assert!(!left.never, "{name}");
        assert_eq!(left.reasons[0].text, "cpu 1000m requested, 0m unused", "{name}");
        assert!(decision.plans.iter().all(|plan| plan.profile == name));
    }
}

#[test]
fn a_job_of_several_tasks_starts_whole_or_not_at_all() {
    for name in PROFILES {
        let gang = batch("gang", &[("a", 3000, GB), ("b", 3000, GB), ("c", 3000, GB)]);
        let mut now = snapshot(nodes(2), Vec::new(), vec![gang, containers(1, 1000).remove(0)]);
        let decision = sound(name, &now);
        assert_eq!((decision.plans.len(), decision.unplaced.len()), (1, 1), "{name}");
        assert_eq!((decision.unplaced[0].job.as_str(), decision.unplaced[0].never), ("gang", true), "{name}");
        now.nodes = nodes(3);
        assert_eq!(sound(name, &now).plans.len(), 2, "{name}");
    }
}

#[test]
fn constraints_hold_and_what_fits_nowhere_is_told_that_waiting_is_vain() {
    for name in PROFILES {
        let mut bound = batch("bound", &[("run", 1000, GB)]);
        let on =
            |value: &str| Constraint { attribute: Attribute::Name, equal: true, value: value.to_owned() };
        bound.tasks.get_mut(&"run".parse().unwrap()).unwrap().constraints = vec![on("n1")];
        let huge = batch("huge", &[("run", 64_000, GB)]);
        let mut nowhere = batch("nowhere", &[("run", 1000, GB)]);
        nowhere.tasks.get_mut(&"run".parse().unwrap()).unwrap().constraints = vec![on("n9")];
        let now = snapshot(nodes(2), Vec::new(), vec![bound, huge, nowhere]);
        let decision = sound(name, &now);
        assert_eq!(decision.plans[0].placement[&"run".parse().unwrap()].as_str(), "n1", "{name}");
        assert!(decision.unplaced.len() == 2 && decision.unplaced.iter().all(|left| left.never), "{name}");
        let text = &decision.unplaced[1].reasons[0].text;
        assert_eq!(text, "constraint node.name == n9 does not hold", "{name}");
    }
}

#[test]
fn bad_jobs_get_a_reason_each_and_the_others_are_placed() {
    let on = |value: &str| Constraint { attribute: Attribute::Name, equal: true, value: value.to_owned() };
    for name in PROFILES {
        let mut torn = batch("torn", &[("run", 1000, GB)]);
        torn.tasks.get_mut(&"run".parse().unwrap()).unwrap().constraints = vec![on("n0"), on("n1")];
        let bad = [
            torn,
            batch("gang", &[("a", 1000, GB), ("b", 64_000, GB)]),
            batch("huge", &[("run", u32::MAX, u64::MAX)]),
            batch("huge-gang", &[("a", u32::MAX, u64::MAX), ("b", u32::MAX, u64::MAX)]),
        ];
        let mut jobs = vec![batch("nothing", &[("run", 0, 0)]), containers(1, 4000).remove(0)];
        jobs.extend(bad);
        let decision = sound(name, &snapshot(nodes(2), Vec::new(), jobs));
        let placed: Vec<&str> = decision.plans.iter().map(|plan| plan.job.as_str()).collect();
        assert_eq!(
            (placed.len(), placed.contains(&"c000") && placed.contains(&"nothing")),
            (2, true),
            "{name}"
        );
        assert_eq!(decision.unplaced.len(), 4, "{name}");
        for left in &decision.unplaced {
            let told = left.reasons.len() == 2 && left.reasons.iter().all(|reason| !reason.text.is_empty());
            assert!(left.never && told, "{name}: {left:?}");
        }
        let task =
            |job: &str| decision.unplaced.iter().find(|left| left.job.as_str() == job).unwrap().task.as_str();
        assert_eq!(task("gang"), "b", "the task in the way, not the one that would fit");
    }
}

/// Makes a rule of a task about another of its job.
fn rule(job: &mut Job, of: &str, to: &str, rules: impl Fn(&mut Placement) -> &mut Vec<Term>) {
    let term = Term { with: Selector::Task(to.parse().unwrap()), by: Attribute::Name };
    rules(&mut job.tasks.get_mut(&of.parse::<TaskName>().unwrap()).unwrap().placement).push(term);
}

fn near(placement: &mut Placement) -> &mut Vec<Term> {
    &mut placement.affinity.required
}

fn far(placement: &mut Placement) -> &mut Vec<Term> {
    &mut placement.anti_affinity.required
}

#[test]
fn tasks_that_have_to_be_together_or_apart_are_and_what_cannot_be_is_told() {
    for name in PROFILES {
        let mut kept = batch("kept", &[("a", 1000, GB), ("b", 1000, GB), ("c", 1000, GB)]);
        rule(&mut kept, "a", "b", near);
        rule(&mut kept, "c", "b", far);
        let mut torn = batch("torn", &[("a", 1000, GB), ("b", 1000, GB)]);
        rule(&mut torn, "a", "b", near);
        rule(&mut torn, "b", "a", far);
        let mut large = batch("large", &[("a", 3000, GB), ("b", 3000, GB)]);
        rule(&mut large, "b", "a", near);
        let mut jobs = containers(2, 1000);
        jobs.extend([kept, torn, large]);
        let decision = sound(name, &snapshot(nodes(2), Vec::new(), jobs));
        let plan = decision.plans.iter().find(|plan| plan.job.as_str() == "kept").unwrap();
        let on = |task: &str| &plan.placement[&task.parse().unwrap()];
        assert!(on("a") == on("b") && on("b") != on("c"), "{name}: {plan:?}");
        assert!(plan.reasons[0].contains("5 jobs"), "in one batch with the others: {}", plan.reasons[0]);
        let told = |job: &str| {
            let left = decision.unplaced.iter().find(|left| left.job.as_str() == job).unwrap();
            (left.never, left.reasons[0].text.as_str())
        };
        assert_eq!((decision.plans.len(), decision.unplaced.len()), (3, 2), "{name}");
        assert_eq!(
            told("torn"),
            (true, "the job's rules want it both together with a task and apart from it")
        );
        let company = "could take this task, but not with all that have to be together with it";
        assert!(told("large").0, "{name}");
        assert!(
            [company, "cpu 3000m requested"].iter().any(|text| told("large").1.starts_with(text)),
            "{name}"
        );
    }
}

#[test]
fn an_empty_batch_is_answered() {
    for name in PROFILES {
        assert_eq!(sound(name, &snapshot(nodes(2), Vec::new(), Vec::new())), Decision::default(), "{name}");
        let decision = sound(name, &snapshot(Vec::new(), Vec::new(), containers(2, 1000)));
        assert_eq!((decision.plans.len(), decision.unplaced.len()), (0, 2), "{name}");
    }
}

#[test]
fn a_node_that_is_not_ready_gets_nothing() {
    let mut now = snapshot(nodes(2), Vec::new(), containers(8, 1000));
    now.nodes[0].ready = false;
    for name in PROFILES {
        let decision = sound(name, &now);
        assert_eq!(decision.plans.len(), 4, "{name}");
        assert_eq!(decision.unplaced[0].reasons[0].text, "node is not ready", "{name}");
    }
}

#[test]
fn a_node_that_may_come_back_makes_waiting_worth_while() {
    for name in PROFILES {
        let mut now = snapshot(nodes(2), Vec::new(), vec![batch("large", &[("run", 6000, GB)])]);
        now.nodes[1].cpu.0 = 8000;
        now.nodes[1].ready = false;
        let decision = sound(name, &now);
        assert_eq!((decision.unplaced.len(), decision.unplaced[0].never), (1, false), "{name}");
    }
}

#[test]
fn copies_go_to_different_nodes_and_more_copies_than_nodes_never_fit() {
    for name in PROFILES {
        let mut three = batch("three", &[("run", 1000, GB)]);
        three.sla = Sla { redundancy: Some(Service::Premium), ..Sla::default() };
        three.sla.apply(&mut three.tasks);
        let jobs = || vec![three.clone(), containers(1, 1000).remove(0)];
        let decision = sound(name, &snapshot(nodes(3), Vec::new(), jobs()));
        assert_eq!(decision.plans.len(), 2, "{name}");
        let decision = sound(name, &snapshot(nodes(2), Vec::new(), jobs()));
        let left = &decision.unplaced[0];
        assert_eq!((decision.plans.len(), left.job.as_str(), left.never), (1, "three", true), "{name}");
        assert!(left.reasons[0].text.contains("nodes of their own"), "{name}: {left:?}");
    }
}

#[test]
fn the_better_class_of_satisfaction_is_placed_first() {
    for name in PROFILES {
        let mut jobs = containers(9, 1000);
        jobs[8].sla.satisfaction = Some(Service::Premium);
        let decision = sound(name, &snapshot(nodes(2), Vec::new(), jobs));
        assert_eq!(decision.plans.len(), 8, "{name}");
        assert!(decision.plans.iter().any(|plan| plan.job.as_str() == "c008"), "{name}");
    }
}

#[test]
fn the_default_says_what_it_optimises_and_the_operator_chooses() {
    let mut jobs = containers(4, 1000);
    jobs.push(batch("whole", &[("run", 4000, GB)]));
    let mut now = snapshot(nodes(1), Vec::new(), jobs);
    let mut placed = |objective| {
        now.policy.batch = Packing { objective, ..Packing::default() };
        let decision = sound("edgeloom", &now);
        let reason = decision.plans[0].reasons[0].clone();
        assert!(reason.ends_with(&format!("for {}", objective.name())), "{reason}");
        decision.plans.len()
    };
    assert_eq!((placed(Objective::Count), placed(Objective::Completion)), (4, 4));
    assert_eq!(placed(Objective::Utilisation), 1);
}

#[test]
fn the_default_decides_on_pipelines_and_batches_in_one_go_and_leaves_batches_where_they_run() {
    let mut now = snapshot(nodes(2), vec![link("n0", "n1", 8_000_000)], containers(3, 1000));
    let mut pipeline = job("pipeline", vec![("work", task(4000, GB, 10))]);
    pipeline.source = Some(source("n0", 1000));
    edge(&mut pipeline, "source", "work", 1000);
    now.waiting.extend(snapshot(Vec::new(), Vec::new(), vec![pipeline]).waiting);
    let decision = sound("edgeloom", &now);
    assert_eq!(decision.plans.len(), 4, "{decision:?}");
    let waiting = std::mem::take(&mut now.waiting);
    let plan = |name: &str| decision.plans.iter().find(|plan| plan.job.as_str() == name).unwrap().clone();
    now.running = waiting
        .into_iter()
        .map(|one| worlds::running(one.job.clone(), plan(one.job.name.as_str())))
        .collect();
    let names: Vec<String> = sound("edgeloom", &now).plans.iter().map(|plan| plan.job.to_string()).collect();
    assert!(names.iter().all(|name| name == "pipeline"), "{names:?}");
}

#[test]
fn jobs_with_flows_get_paths_and_rates_under_the_flow_profiles_too() {
    for name in ["ecsched-dp", "ecsched-ml"] {
        let mut pair = job("pair", vec![("a", task(3000, GB, 0)), ("b", task(3000, GB, 0))]);
        edge(&mut pair, "a", "b", 1000);
        let now = snapshot(nodes(2), vec![link("n0", "n1", 8_000_000)], vec![pair.clone()]);
        assert_eq!(sound(name, &now).plans[0].flows[0].path.len(), 2, "{name}");
        let apart = snapshot(nodes(2), Vec::new(), vec![pair]);
        assert_eq!(sound(name, &apart).unplaced.len(), 1, "{name}");
    }
}

#[test]
fn equal_snapshots_give_equal_decisions_whatever_the_order_of_their_lists() {
    let mut now = snapshot(nodes(3), Vec::new(), containers(14, 900));
    let before: Vec<Decision> = PROFILES.iter().map(|name| sound(name, &now)).collect();
    now.nodes.reverse();
    now.waiting.reverse();
    let after: Vec<Decision> = PROFILES.iter().map(|name| sound(name, &now)).collect();
    assert_eq!(before, after);
}
