//! Reports in, items a second out.

use super::*;
use edgeloom_common::report::{FlowRate, TaskUse};
use edgeloom_common::units::{BitRate, MilliCores};
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::{FlowPlan, Prediction};

fn job() -> Job {
    let text = "kind: Job\nname: j\nsource: { node: n1, item: 100KB }\ntasks:\n  a:\n    image: r/a:1\n    inputs: [source]\n    \
                outputs: { b: 10KB, c: 100B }\n  b:\n    image: r/a:1\n  c:\n    image: r/a:1\n";
    edgeloom_common::job::parse(text.as_bytes()).unwrap()
}

fn flow(from: &str, to: &str, volume: u64) -> FlowPlan {
    let name = |text: &str| text.parse().unwrap();
    FlowPlan {
        id: FlowId { job: "j".parse().unwrap(), from: name(from), to: name(to) },
        path: vec!["n1".parse().unwrap(), "n2".parse().unwrap()],
        rate: BitRate(1),
        volume: Bytes(volume),
    }
}

fn plan(flows: Vec<FlowPlan>) -> JobPlan {
    let on = |task: &str, node: &str| (task.parse().unwrap(), node.parse().unwrap());
    JobPlan {
        job: "j".parse().unwrap(),
        profile: "edgeloom".to_owned(),
        placement: BTreeMap::from([on("source", "n1"), on("a", "n1"), on("b", "n2"), on("c", "n2")]),
        shares: BTreeMap::new(),
        flows,
        prediction: Prediction { items_per_s: 10.0, bound: Bound::Network, bound_by: "x".to_owned() },
        reasons: Vec::new(),
    }
}

fn rate(flow: &FlowPlan, rate: f64) -> FlowRate {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
    FlowRate { id: flow.id.clone(), rate: BitRate(rate.round() as u64), backlog: Bytes(0) }
}

/// The wire rate of that many items a second.
fn wire(items_per_s: f64, volume: u32) -> f64 {
    items_per_s * 8.0 * f64::from(volume) / TCP_GOODPUT
}

fn received(task: &str, bits: u64) -> TaskUse {
    TaskUse {
        job: "j".parse().unwrap(),
        task: task.parse().unwrap(),
        cpu: MilliCores(250),
        memory: Bytes(0),
        received: BitRate(bits),
        sent: BitRate(0),
    }
}

/// Twelve reports of `node`, 2 s apart.
fn report(throughput: &mut Throughput, node: &str, report: &Report) {
    for turn in 0..12 {
        throughput.take(&node.parse().unwrap(), report, 100_000 + turn * 2_000);
    }
}

const NOW_MS: u64 = 122_000;

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-4 * right
}

#[test]
fn a_job_is_as_fast_as_its_slowest_flow_of_weight() {
    let (job, slow, fast, light) =
        (job(), flow("a", "b", 10_000), flow("source", "a", 100_000), flow("a", "c", 100));
    let plan = plan(vec![slow.clone(), fast.clone(), light.clone()]);
    let mut throughput = Throughput::default();
    throughput.begin(&plan);
    let flows =
        vec![rate(&slow, wire(8.0, 10_000)), rate(&fast, wire(9.0, 100_000)), rate(&light, wire(1.0, 100))];
    report(&mut throughput, "n1", &Report { flows, ..Report::default() });
    let measured = throughput.measured(&job, &plan, NOW_MS, WINDOW_MS).unwrap();
    assert!(near(measured.items_per_s_measured, 8.0), "{measured:?}");
    assert_eq!((measured.origin.as_str(), measured.window_s), ("flows", 20.0));
}

#[test]
fn a_node_s_word_counts_only_for_what_it_has() {
    let (job, flow) = (job(), flow("a", "b", 10_000));
    let plan = plan(vec![flow.clone()]);
    let mut throughput = Throughput::default();
    throughput.begin(&plan);
    let flows = vec![rate(&flow, wire(8.0, 10_000))];
    report(&mut throughput, "n2", &Report { flows, ..Report::default() });
    assert_eq!(throughput.measured(&job, &plan, NOW_MS, WINDOW_MS), None);
}

#[test]
fn without_flows_what_containers_receive_counts() {
    let (job, plan) = (job(), plan(Vec::new()));
    let mut throughput = Throughput::default();
    throughput.begin(&plan);
    report(
        &mut throughput,
        "n1",
        &Report { tasks: vec![received("a", 8 * 100_000 * 5)], ..Report::default() },
    );
    assert_eq!(throughput.measured(&job, &plan, NOW_MS, WINDOW_MS), None, "b is not known yet");
    report(
        &mut throughput,
        "n2",
        &Report { tasks: vec![received("b", 8 * 10_000 * 4)], ..Report::default() },
    );
    let measured = throughput.measured(&job, &plan, NOW_MS, WINDOW_MS).unwrap();
    assert!(near(measured.items_per_s_measured, 4.0), "{measured:?}");
    assert_eq!(measured.origin, "containers");
    let cpu = throughput.cpu(&job.name, &"a".parse().unwrap(), NOW_MS, WINDOW_MS).unwrap();
    assert!(near(cpu.rate, 0.25));
}

#[test]
fn a_new_plan_begins_anew() {
    let (job, flow) = (job(), flow("a", "b", 10_000));
    let plan = plan(vec![flow.clone()]);
    let mut throughput = Throughput::default();
    throughput.begin(&plan);
    report(
        &mut throughput,
        "n1",
        &Report { flows: vec![rate(&flow, wire(8.0, 10_000))], ..Report::default() },
    );
    assert!(throughput.measured(&job, &plan, NOW_MS, WINDOW_MS).is_some());
    throughput.begin(&plan);
    assert_eq!(throughput.measured(&job, &plan, NOW_MS, WINDOW_MS), None);
}
