//! Rules between tasks hold in every profile, and the checker knows when they do not.

mod worlds;

use edgeloom_common::ids::NodeId;
use edgeloom_common::job::{
    Attribute, Effect, HostPort, Job, Placement, Protocol, Selector, Spread, Taint, Term, Toleration, Volume,
};
use edgeloom_common::units::Bytes;
use edgeloom_sched::plan::Decision;
use edgeloom_sched::snapshot::Snapshot;
use edgeloom_sched::{check, decide, profile, profile_names};
use std::collections::BTreeMap;
use worlds::{job, link, node, running, snapshot, task};

const MB: u64 = 1_000_000;

fn labels(app: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), app.to_owned())])
}

/// A job of one small task with these rules.
fn ruled(name: &str, placement: Placement) -> Job {
    let mut job = job(name, vec![("t", task(100, 10 * MB, 0))]);
    job.tasks.get_mut(&"t".parse().unwrap()).unwrap().placement = placement;
    job
}

fn labelled(name: &str, app: &str) -> Job {
    ruled(name, Placement { labels: labels(app), ..Placement::default() })
}

/// Three nodes in two zones, all joined.
fn three(jobs: Vec<Job>) -> Snapshot {
    let mut nodes: Vec<_> = ["n1", "n2", "n3"].map(|name| node(name, 1000, 1.0, 1000 * MB)).into();
    for (node, zone) in nodes.iter_mut().zip(["east", "east", "west"]) {
        node.labels.insert("zone".to_owned(), zone.to_owned());
    }
    let links = vec![link("n1", "n2", 8 * MB), link("n1", "n3", 8 * MB), link("n2", "n3", 8 * MB)];
    snapshot(nodes, links, jobs)
}

/// Where a profile puts the only task of a job; none: it waits.
fn node_of(decision: &Decision, job: &str) -> Option<NodeId> {
    let plan = decision.plans.iter().find(|plan| plan.job.as_str() == job)?;
    plan.placement.values().next().cloned()
}

/// Asks every profile, and holds each answer against the checker.
fn each(now: &Snapshot, holds: impl Fn(&str, &Decision)) {
    for name in profile_names() {
        let decision = decide(profile(name).unwrap(), now);
        assert_eq!(check(&decision, now), vec![], "{name}");
        holds(name, &decision);
    }
}

fn zone() -> Attribute {
    Attribute::Label("zone".to_owned())
}

#[test]
fn a_taint_keeps_away_who_does_not_tolerate_it() {
    let mut now = three(vec![labelled("plain", "web")]);
    for node in &mut now.nodes[..2] {
        node.hosting.taints =
            vec![Taint { key: "gpu".into(), value: "yes".into(), effect: Effect::NoSchedule }];
    }
    each(&now, |name, decision| assert_eq!(node_of(decision, "plain").unwrap().as_str(), "n3", "{name}"));
    now.nodes[2].ready = false;
    each(&now, |name, decision| {
        let text = &decision.unplaced[0].reasons[0].text;
        assert!(text.ends_with("taint gpu=yes is not tolerated"), "{name}: {text}");
    });
    let toleration = Toleration { key: Some("gpu".into()), ..Toleration::default() };
    now.waiting[0].job = ruled("plain", Placement { tolerations: vec![toleration], ..Placement::default() });
    each(&now, |name, decision| assert!(node_of(decision, "plain").is_some(), "{name}"));
}

#[test]
fn required_affinity_and_its_contrary_hold_across_jobs() {
    let mut now = three(vec![labelled("old", "cache")]);
    let first = decide(profile("kube").unwrap(), &now).plans.remove(0);
    let there = first.placement.values().next().unwrap().clone();
    now.running = vec![running(now.waiting.remove(0).job, first)];
    let term = || vec![Term { with: Selector::Labels(labels("cache")), by: Attribute::Name }];
    let mut with = Placement::default();
    with.affinity.required = term();
    let mut apart = Placement::default();
    apart.anti_affinity.required = term();
    now.waiting = three(vec![ruled("with", with), ruled("apart", apart)]).waiting;
    each(&now, |name, decision| {
        assert_eq!(node_of(decision, "with").as_ref(), Some(&there), "{name}");
        assert_ne!(node_of(decision, "apart").as_ref(), Some(&there), "{name}");
    });
}

#[test]
fn who_wants_to_be_apart_is_left_alone_by_later_ones() {
    let mut alone = Placement { labels: labels("alone"), ..Placement::default() };
    alone.anti_affinity.required = vec![Term { with: Selector::Labels(labels("web")), by: zone() }];
    let now = three(vec![ruled("alone", alone), labelled("web", "web")]);
    each(&now, |name, decision| {
        let [alone, web] = ["alone", "web"].map(|job| node_of(decision, job).unwrap());
        assert_eq!([alone.as_str() == "n3", web.as_str() == "n3"].iter().filter(|west| **west).count(), 1);
        assert_ne!(alone, web, "{name}");
    });
}

#[test]
fn tasks_of_a_job_stay_together_or_apart_whichever_comes_first() {
    for (owner, other) in [("a", "b"), ("b", "a")] {
        for together in [true, false] {
            let mut both = job("both", vec![("a", task(300, 300 * MB, 5)), ("b", task(300, 300 * MB, 5))]);
            let term = Term { with: Selector::Task(other.parse().unwrap()), by: zone() };
            let rules = &mut both.tasks.get_mut(&owner.parse().unwrap()).unwrap().placement;
            match together {
                true => rules.affinity.required.push(term),
                false => rules.anti_affinity.required.push(term),
            }
            let now = three(vec![both]);
            each(&now, |name, decision| {
                // The baselines that put a whole job on one node cannot part it.
                let Some(plan) = decision.plans.first() else {
                    assert!(!together && ["lr", "br"].contains(&name), "{name}");
                    return;
                };
                let west = plan.placement.values().filter(|node| node.as_str() == "n3").count();
                assert_eq!(west == 1, !together, "{name}: {:?}", plan.placement);
            });
        }
    }
}

#[test]
fn a_required_spread_fills_places_evenly() {
    let spread = Spread { labels: labels("web"), by: zone(), max_skew: 1, required: true };
    let web = Placement { labels: labels("web"), spread: vec![spread], ..Placement::default() };
    let jobs = ["w1", "w2", "w3", "w4"].map(|name| ruled(name, web.clone())).to_vec();
    each(&three(jobs), |name, decision| {
        let nodes = ["w1", "w2", "w3", "w4"].map(|job| node_of(decision, job).unwrap());
        assert_eq!(nodes.iter().filter(|node| node.as_str() == "n3").count(), 2, "{name}: {nodes:?}");
    });
}

#[test]
fn ports_volumes_and_numbers_of_containers_are_taken_once() {
    let port = HostPort { port: 80, protocol: Protocol::Tcp, container: 80 };
    let web = Placement { ports: vec![port], ..Placement::default() };
    let names = ["w1", "w2", "w3", "w4"];
    each(&three(names.map(|name| ruled(name, web.clone())).to_vec()), |name, decision| {
        assert_eq!((decision.plans.len(), decision.unplaced.len()), (3, 1), "{name}");
        let text = &decision.unplaced[0].reasons[0].text;
        assert!(text.ends_with("port 80 is taken"), "{name}: {text}");
    });
    let volume = Volume { class: "ssd".into(), size: Bytes(60) };
    let data = Placement { volumes: vec![volume], ..Placement::default() };
    let mut now = three(names.map(|name| ruled(name, data.clone())).to_vec());
    now.nodes[1].hosting.volumes = BTreeMap::from([("ssd".to_owned(), Bytes(100))]);
    each(&now, |name, decision| {
        assert_eq!((decision.plans.len(), decision.unplaced.len()), (1, 3), "{name}");
        let reasons = &decision.unplaced[0].reasons;
        for (reason, free) in reasons.iter().zip([0, 40]) {
            let text = format!("volume ssd of 60 B requested, {free} B unused");
            assert!(reason.text.ends_with(&text), "{name}: {reason:?}");
        }
    });
    let mut now = three(names.map(|name| labelled(name, "web")).to_vec());
    now.nodes.iter_mut().for_each(|node| node.hosting.containers_max = 1);
    each(&now, |name, decision| assert_eq!(decision.plans.len(), 3, "{name}"));
}

#[test]
fn the_checker_refuses_a_plan_that_breaks_a_rule() {
    let mut apart = Placement { labels: labels("web"), ..Placement::default() };
    apart.anti_affinity.required = vec![Term { with: Selector::Labels(labels("web")), by: zone() }];
    let now = three(vec![ruled("w1", apart.clone()), ruled("w2", apart)]);
    let mut decision = decide(profile("kube").unwrap(), &now);
    assert_eq!(check(&decision, &now), vec![]);
    let first = decision.plans[0].placement.clone();
    decision.plans[1].placement = first;
    assert!(check(&decision, &now).iter().any(|it| it.to_string().contains("has to be apart")));
    let mut tainted = now.clone();
    for node in &mut tainted.nodes {
        node.hosting.taints =
            vec![Taint { key: "k".into(), value: String::new(), effect: Effect::NoExecute }];
    }
    assert!(check(&decision, &tainted).iter().any(|it| it.to_string().contains("taint k")));
}

#[test]
fn what_runs_outlives_the_task_that_it_was_placed_by() {
    let mut now = three(vec![labelled("old", "cache")]);
    let mut with = Placement::default();
    with.affinity.required = vec![Term { with: Selector::Labels(labels("cache")), by: Attribute::Name }];
    now.waiting.extend(three(vec![ruled("with", with)]).waiting);
    let decision = decide(profile("kube").unwrap(), &now);
    let plan = decision.plans.into_iter().find(|plan| plan.job.as_str() == "with").unwrap();
    let job = now.waiting.pop().unwrap().job;
    now.waiting.clear();
    now.running = vec![running(job, plan.clone())];
    let again = Decision { plans: vec![plan], unplaced: Vec::new() };
    assert_eq!(check(&again, &now), vec![]);
}
