//! The paper's worked example (Fig. 2): six tasks a to f, work 55 and memory 11 in total, a source at e4
//! with 5 an item, four ways to run it that reach 2, 2.5, 3.33 and 4 items a second.
//!
//! The text fixes: work of a = 5, D(a->c) = 2, D(a->b) = 1, speed of e1 = 200, the way e4-e2-e1 has
//! bandwidth 10 and e4-e3-e1 has 6. It leaves open, and this test chooses: speed of e4 = 20, of e2 and e3
//! = 10; memory of e1 = 11, of e4 = 1 (only a fits), of e2 and e3 = 0.5 (nothing fits); work of b to f 10
//! each; memory of a = 1 and of b to f 2 each; b->d, c->e, d->f and e->f carry 1. No CPU requests: in the
//! paper memory is the resource. One unit of data is 1 MB, one of bandwidth 8 Mbit/s, one of memory 1 MB.

mod worlds;

use edgeloom_common::units::BitRate;
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::Snapshot;
use edgeloom_sched::{check, decide, profile};
use worlds::example::{BANDWIDTH, cluster, example};

fn plan(name: &str, snapshot: &Snapshot) -> JobPlan {
    let decision = decide(profile(name).unwrap(), snapshot);
    assert_eq!(check(&decision, snapshot), vec![], "{name}");
    assert_eq!(decision.unplaced, vec![], "{name}");
    decision.plans.into_iter().next().unwrap()
}

/// From, to, path and rate in units of bandwidth.
fn flows(plan: &JobPlan) -> Vec<(String, String, f64)> {
    let one = |flow: &edgeloom_sched::plan::FlowPlan| {
        let path: Vec<&str> = flow.path.iter().map(edgeloom_common::ids::NodeId::as_str).collect();
        let edge = format!("{}{}", flow.id.from.as_str(), flow.id.to.as_str());
        let thousandths = (flow.rate.as_f64() / BANDWIDTH as f64 * 1000.0).round();
        (edge, path.join(" "), thousandths / 1000.0)
    };
    plan.flows.iter().map(one).collect()
}

fn row(edge: &str, path: &str, rate: f64) -> (String, String, f64) {
    (edge.to_owned(), path.to_owned(), rate)
}

fn nodes(plan: &JobPlan) -> Vec<&str> {
    plan.placement.values().map(edgeloom_common::ids::NodeId::as_str).collect()
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-5, "{found} instead of {wanted}");
}

/// The same job with the edges of the shared way: both flows forced over e4-e2-e1.
fn without_e3() -> Snapshot {
    let mut snapshot = cluster(vec![example()]);
    snapshot.links.retain(|link| link.a.as_str() != "e3" && link.b.as_str() != "e3");
    snapshot
}

const A_APART: [&str; 7] = ["e4", "e1", "e1", "e1", "e1", "e1", "e4"];

#[test]
fn whole_job_on_e1_reaches_2() {
    let snapshot = cluster(vec![example()]);
    let plan = plan("lr", &snapshot);
    assert_eq!(nodes(&plan), ["e1", "e1", "e1", "e1", "e1", "e1", "e4"]);
    assert_eq!(flows(&plan), [row("sourcea", "e4 e2 e1", 10.0)]);
    close(plan.prediction.items_per_s, 2.0);
    assert_eq!((plan.prediction.bound, plan.prediction.bound_by.as_str()), (Bound::Network, "source->a"));
}

#[test]
fn equal_shares_of_one_way_reach_2_5() {
    let plan = plan("tp", &cluster(vec![example()]));
    assert_eq!(nodes(&plan), A_APART);
    assert_eq!(flows(&plan), [row("ab", "e4 e2 e1", 5.0), row("ac", "e4 e2 e1", 5.0)]);
    close(plan.prediction.items_per_s, 2.5);
}

#[test]
fn shares_by_data_reach_3_33() {
    for name in ["otfs", "edgeloom"] {
        let plan = plan(name, &without_e3());
        assert_eq!(nodes(&plan), A_APART, "{name}");
        assert_eq!(flows(&plan), [row("ab", "e4 e2 e1", 3.333), row("ac", "e4 e2 e1", 6.667)], "{name}");
        close(plan.prediction.items_per_s, 10.0 / 3.0);
    }
}

#[test]
fn joint_routing_and_rates_reach_4() {
    for name in ["otfs", "edgeloom"] {
        let plan = plan(name, &cluster(vec![example()]));
        assert_eq!(nodes(&plan), A_APART, "{name}");
        assert_eq!(flows(&plan), [row("ab", "e4 e3 e1", 6.0), row("ac", "e4 e2 e1", 10.0)], "{name}");
        close(plan.prediction.items_per_s, 4.0);
        assert_eq!(plan.prediction.bound, Bound::Compute, "{name}");
    }
}

#[test]
fn the_printed_strict_test_refuses_what_fits_exactly() {
    let snapshot = cluster(vec![example()]);
    let decision = decide(profile("otfs-strict").unwrap(), &snapshot);
    let stuck = &decision.unplaced[0];
    assert_eq!((stuck.task.as_str(), stuck.never), ("f", true));
    assert_eq!(stuck.reasons[0].text, "memory 2 MB requested, 2 MB unused");
}

#[test]
fn the_checker_refuses_a_plan_that_was_tampered_with() {
    let snapshot = cluster(vec![example()]);
    let sound = decide(profile("edgeloom").unwrap(), &snapshot);
    let tamper = |change: fn(&mut JobPlan)| {
        let mut decision = sound.clone();
        change(&mut decision.plans[0]);
        check(&decision, &snapshot).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let e2 = || "e2".parse().unwrap();
    assert_eq!(
        tamper(|plan| plan.flows[0].rate = BitRate(7 * BANDWIDTH)),
        ["e3 to e1", "e4 to e3"]
            .map(|link| format!("link {link}: 56000000 bit/s given, 48000000 bit/s to give"))
    );
    assert_eq!(tamper(|plan| plan.flows[0].rate = BitRate(0)), ["flow example/a->b: has no rate"]);
    assert_eq!(tamper(|plan| drop(plan.flows.pop())), ["flow example/a->c: is missing"]);
    assert_eq!(
        tamper(|plan| drop(plan.flows[0].path.remove(1))),
        ["flow example/a->b: no link joins e4 and e1"]
    );
    assert!(
        tamper(|plan| drop(plan.placement.remove(&"f".parse().unwrap())))
            .contains(&"job example, task f: has no node".to_owned())
    );
    let moved: Vec<String> = {
        let mut decision = sound.clone();
        decision.plans[0].placement.insert("b".parse().unwrap(), e2());
        check(&decision, &snapshot).iter().map(ToString::to_string).collect()
    };
    assert!(moved.iter().any(|text| text == "node e2: memory 2 MB requested, 500 KB unused"), "{moved:?}");
    assert_eq!(
        tamper(|plan| plan.prediction.items_per_s = f64::INFINITY),
        ["job example: predicted throughput is not a positive finite number"]
    );
}
