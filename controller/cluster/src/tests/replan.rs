//! The closed loop over simulated nodes, the real scheduler deciding: what is measured is shown, a link that
//! fell leads to one re-plan, noise to none, and each is told.

use super::world::{NODES, World, links, order, with_images};
use crate::nodes::NodeMessage;
use crate::owner::Order;
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::report::{FlowRate, Report, TaskUse};
use edgeloom_common::units::{BitRate, Bytes, MilliCores, TCP_GOODPUT};
use edgeloom_common::view::{EventView, JobView};

/// A cluster on which job `a` runs, and what its nodes report.
struct Loop {
    world: World,
    /// Items a second that the job achieves.
    items: f64,
    /// Cores that each task uses.
    cores: f64,
}

/// A job that the network limits: a source on n1, its only task on n2.
fn heavy(name: &str) -> Order {
    let text = format!(
        "kind: Job\nname: {name}\nsource: {{ node: n1, item: 1MB, image: r/app:1, resources: {{ cpu: 100m, memory: 16MiB }} }}\n\
         tasks:\n  detect:\n    image: r/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    work: 1ms\n    inputs: [source]\n    constraints: [\"node.name == n2\"]\n"
    );
    with_images(edgeloom_common::job::parse(text.as_bytes()).unwrap())
}

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl Loop {
    fn new() -> Self {
        Self::of(order("a"))
    }

    fn of(order: Order) -> Self {
        let mut world = World::new();
        world.owner.submit(order).unwrap();
        world.settle();
        let mut run = Self { world, items: 0.0, cores: 0.05 };
        run.items = run.view().prediction.unwrap().items_per_s_predicted;
        run
    }

    /// A controller that starts again.
    fn restart(self) -> Self {
        let mut world = self.world.restart();
        world.owner.tick();
        world.connect();
        world.settle();
        Self { world, ..self }
    }

    fn view(&self) -> JobView {
        self.world.owner.job(&"a".parse().unwrap()).unwrap()
    }

    fn events(&self, kind: &str) -> Vec<EventView> {
        let job: JobName = "a".parse().unwrap();
        let all = self.world.owner.events.after(0, Some(&job));
        all.into_iter().filter(|event| event.kind == kind).collect()
    }

    /// Seconds pass; each second every node reports what it counts.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            let view = self.view();
            for name in NODES {
                let report = self.report(name, &view);
                self.world.owner.observe(&node(name), NodeMessage::Report(report));
            }
            self.world.pass(1_000);
            self.world.settle();
        }
    }

    fn report(&self, name: &str, view: &JobView) -> Report {
        let job: JobName = "a".parse().unwrap();
        let flow = |flow: &edgeloom_common::view::FlowView| FlowRate {
            id: edgeloom_common::ids::FlowId {
                job: job.clone(),
                from: flow.from.clone(),
                to: flow.to.clone(),
            },
            #[expect(clippy::cast_precision_loss, reason = "small")]
            rate: BitRate(whole(self.items * 8.0 * flow.bytes_per_item as f64 / TCP_GOODPUT)),
            backlog: Bytes(0),
        };
        let task = |task: &edgeloom_common::view::TaskView| TaskUse {
            job: job.clone(),
            task: task.name.clone(),
            cpu: MilliCores(u32::try_from(whole(self.cores * 1000.0)).unwrap()),
            memory: Bytes(0),
            received: BitRate(0),
            sent: BitRate(0),
        };
        Report {
            flows: view.flows.iter().filter(|it| it.path[0].as_str() == name).map(flow).collect(),
            tasks: view.tasks.iter().filter(|it| it.node.as_str() == name).map(task).collect(),
            ..Report::default()
        }
    }

    /// Both ends of n1-n2 measure this capacity.
    fn measure_link(&mut self, capacity: u64) {
        for (name, peer) in [("n1", "n2"), ("n2", "n1")] {
            let mut told = links(name);
            let link = told.links.iter_mut().find(|link| link.neighbour.as_str() == peer).unwrap();
            link.capacity_measured = Some(BitRate(capacity));
            self.world.owner.observe(&node(name), NodeMessage::Links(told));
        }
    }

    /// Both ends of n1-n2 say whether it is up.
    fn set_link(&mut self, up: bool) {
        for (name, peer) in [("n1", "n2"), ("n2", "n1")] {
            let mut told = links(name);
            told.links
                .iter_mut()
                .filter(|link| link.neighbour.as_str() == peer)
                .for_each(|link| link.up = up);
            self.world.owner.observe(&node(name), NodeMessage::Links(told));
        }
    }

    fn reserved(&self) -> u64 {
        let crosses =
            |path: &[NodeId]| path.windows(2).any(|hop| hop[0].as_str() == "n1" && hop[1].as_str() == "n2");
        self.view().flows.iter().filter(|flow| crosses(&flow.path)).map(|flow| flow.rate_given_bps).sum()
    }
}

#[test]
fn what_is_measured_stands_beside_the_prediction() {
    let mut run = Loop::new();
    assert_eq!(run.view().measured, None);
    run.pass(25);
    let measured = run.view().measured.unwrap();
    assert!((measured.items_per_s_measured - run.items).abs() < 0.01 * run.items, "{measured:?}");
    assert_eq!((measured.origin.as_str(), run.view().replans), ("flows", 0));
    assert_eq!(run.events("placed").len(), 1);
}

#[test]
fn a_halved_link_leads_to_one_replan_that_is_told() {
    let mut run = Loop::new();
    run.pass(20);
    assert!(run.reserved() > 9_500_000, "{}", run.reserved());
    run.measure_link(10_000_000);
    run.pass(30);
    assert_eq!(run.view().replans, 1, "{:?}", run.world.owner.events.after(0, None));
    assert!(run.reserved() <= 9_500_000, "{}", run.reserved());
    let told = run.events("replan");
    assert!(told[0].text.starts_with("link n1-n2 fell: 9.5 Mbit/s usable instead of 19 Mbit/s"), "{told:?}");
    run.pass(600);
    assert_eq!(run.view().replans, 1);
}

#[test]
fn a_link_that_flaps_leads_to_at_most_two_replans() {
    let mut run = Loop::of(heavy("a"));
    run.pass(20);
    for turn in 0..30 {
        run.measure_link(if turn % 2 == 0 { 10_000_000 } else { 20_000_000 });
        run.items = run.view().prediction.unwrap().items_per_s_predicted;
        run.pass(20);
    }
    assert!((1..=2).contains(&run.view().replans), "{:?}", run.world.owner.events.after(0, None));
}

#[test]
fn a_link_that_comes_and_goes_leads_to_at_most_two_replans() {
    let mut run = Loop::of(heavy("a"));
    run.pass(20);
    for turn in 0..30 {
        run.set_link(turn % 2 == 1);
        run.items = run.view().prediction.unwrap().items_per_s_predicted;
        run.pass(20);
    }
    assert!((1..=2).contains(&run.view().replans), "{:?}", run.world.owner.events.after(0, None));
    assert_eq!(run.reserved(), 0);
}

#[test]
fn ten_minutes_of_noise_change_nothing() {
    let mut run = Loop::of(heavy("a"));
    let predicted = run.items;
    for second in 0..600_u32 {
        // Three periods that have no common one.
        let noise = f64::from(second % 7 + second % 11 + second % 13) / 14.0 - 1.0;
        run.items = predicted * 0.2_f64.mul_add(noise, 1.0);
        run.measure_link(20_000_000 - u64::from(second % 17 * 100_000));
        run.pass(1);
    }
    let kinds: Vec<_> = run.world.owner.events.after(0, Some(&"a".parse().unwrap()));
    assert_eq!(kinds.len(), 2, "accepted and placed: {kinds:?}");
}

#[test]
fn a_controller_that_starts_again_plans_nothing_anew() {
    let mut run = Loop::of(heavy("a"));
    run.pass(60);
    let mut run = run.restart();
    run.pass(120);
    assert!(run.view().measured.is_some());
    assert!(run.world.owner.events.after(0, Some(&"a".parse().unwrap())).is_empty());
}

#[test]
fn a_link_that_is_cut_leads_to_another_way() {
    let mut run = Loop::new();
    run.pass(20);
    run.set_link(false);
    run.pass(20);
    assert_eq!((run.view().replans, run.reserved()), (1, 0), "{:?}", run.world.owner.events.after(0, None));
    assert!(run.events("replan")[0].text.contains("goes over n1 > n3 > n2"));
    assert!(run.world.owner.events.after(0, None).iter().any(|event| event.kind == "link-down"));
}

#[test]
fn flows_over_a_line_that_one_end_calls_down_have_another_way_within_three_seconds() {
    for both in [true, false] {
        // A job that has only begun counts as well.
        for before in [6, 20] {
            let mut run = Loop::new();
            run.pass(before);
            if both {
                run.set_link(false);
            } else {
                let mut told = links("n2");
                told.links[0].up = false;
                run.world.owner.observe(&node("n2"), NodeMessage::Links(told));
            }
            run.pass(3);
            assert_eq!((run.view().replans, run.reserved()), (1, 0), "{:?}", run.events("replan"));
        }
    }
}

#[test]
fn a_line_that_is_down_where_there_is_no_other_way_is_told_once_and_moves_nothing_before_lost_after() {
    let mut run = Loop::of(heavy("a"));
    run.pass(20);
    let before = run.world.owner.model().jobs[&"a".parse().unwrap()].plan.clone();
    for (name, peers) in [("n1", [0, 1]), ("n2", [0, 1]), ("n3", [0, 1])] {
        let mut told = links(name);
        peers.into_iter().for_each(|peer| told.links[peer].up = false);
        run.world.owner.observe(&node(name), NodeMessage::Links(told));
    }
    run.pass(50);
    assert_eq!((run.view().replans, run.events("kept").len()), (0, 1), "{:?}", run.events("kept"));
    assert_eq!(run.world.owner.model().jobs[&"a".parse().unwrap()].plan, before);
}

#[test]
fn what_a_departed_job_leaves_is_shared_out() {
    let mut run = Loop::of(heavy("a"));
    let alone = run.view().prediction.unwrap().items_per_s_predicted;
    for other in ["b", "c", "d"] {
        run.world.owner.submit(heavy(other)).unwrap();
        run.world.settle();
    }
    assert!(run.view().prediction.unwrap().items_per_s_predicted < 0.6 * alone, "two ways, four jobs");
    for other in ["b", "c", "d"] {
        run.world.owner.stop(&other.parse().unwrap()).unwrap();
        run.world.settle();
    }
    assert!(run.view().prediction.unwrap().items_per_s_predicted > 0.99 * alone);
    assert!(run.events("changed").len() >= 2 && run.view().replans == 0);
}

#[test]
fn a_source_that_sends_less_is_told_and_changes_nothing() {
    let mut run = Loop::new();
    run.items *= 0.5;
    run.pass(120);
    assert_eq!((run.view().replans, run.events("shortfall").len()), (0, 1));
    assert!(run.events("shortfall")[0].text.ends_with("so less comes in"));
    run.items *= 2.0;
    run.pass(60);
    assert_eq!(run.events("recovered").len(), 1);
}

#[test]
fn heavier_work_is_learnt_and_told() {
    let mut run = Loop::new();
    (run.items, run.cores) = (run.items * 0.5, 0.2);
    run.cores = f64::from(run.view().tasks.iter().map(|task| task.cpu_millicores).max().unwrap()) / 1000.0;
    run.pass(60);
    let told: Vec<_> = ["replan", "kept"].into_iter().flat_map(|kind| run.events(kind)).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].text.contains("of a reference core an item instead of 10.0 ms"), "{told:?}");
}
