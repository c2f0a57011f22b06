//! The paper's weights at one node, worked out by hand: WordPress asked for where Joomla is.
//!
//! Sizes are those of `wordpress:6.1-apache` and the base chain that it shares with `joomla` as of February
//! 2023 (docker-library/repo-info): 164201241 of 217202352 bytes, a layer score of 75.5983.

use super::weight::weight;
use super::{Layers, layer_score};
use crate::case::Case;
use crate::images::{JobImages, Stores};
use crate::job_graph::JobGraph;
use crate::ledger::{HeldJobs, Ledger};
use crate::one_by_one::{Judge, Turn};
use crate::scoring::{Condition, Step};
use crate::snapshot::Snapshot;
use crate::world::World;
use crate::worlds::{hold, image, job, node, snapshot, task, wants};
use edgeloom_common::units::Bytes;

const SHARED: u64 = 164_201_241;
const WORDPRESS: u64 = 217_202_352;
const GB: u64 = 1_000_000_000;

/// One node of 1000m and 1 GB, and a task that takes so many thousandths of both.
fn one_node(cpu: u32, memory: u64) -> Snapshot {
    let nodes = vec![node("n1", 1000, 1.0, GB)];
    let mut now =
        snapshot(nodes, Vec::new(), vec![job("blog", vec![("t", task(cpu, memory * (GB / 1000), 0))])]);
    hold(&mut now, "n1", &image("joomla", &[("php", SHARED), ("joomla", 20_000_000)]));
    wants(&mut now, "blog", "t", &image("wordpress", &[("php", SHARED), ("wp", WORDPRESS - SHARED)]));
    now
}

fn turn<T>(now: &Snapshot, look: impl Fn(&Turn<'_>) -> T) -> T {
    let world = World::of(now);
    let entry = &now.waiting[0];
    let graph = JobGraph::of(&world, &entry.job, &entry.profiles);
    let ledger = Ledger::of(&world, HeldJobs::new().values());
    let case = Case { world: &world, graph: &graph, ledger: &ledger };
    let (images, stores) = (JobImages::of(&world, &graph, entry), Stores::of(&world));
    look(&Turn { case: &case, ledger: &ledger, stores: &stores, images: &images, vertex: 0, open: &[0] })
}

fn weight_of(now: &Snapshot) -> f64 {
    turn(now, |turn| weight(turn, 0, layer_score(turn, 0)))
}

#[test]
fn the_layer_score_is_the_share_that_is_there() {
    let now = one_node(250, 300);
    let score = turn(&now, |turn| layer_score(turn, 0));
    assert!((score - 75.5983).abs() < 1e-4, "{score}");
}

#[test]
fn layers_count_twice_where_there_is_room_and_half_elsewhere() {
    assert_eq!(weight_of(&one_node(250, 300)), 2.0);
    // The thresholds themselves are not below.
    assert_eq!(weight_of(&one_node(600, 600)), 0.5, "CPU");
    assert_eq!(weight_of(&one_node(580, 260)), 0.5, "a deviation of 0.16");
    assert_eq!(weight_of(&one_node(599, 280)), 2.0);
}

#[test]
fn few_shared_bytes_count_half() {
    let mut now = one_node(250, 300);
    let small = image("small", &[("php", 10_000_000), ("own", 1)]);
    now.nodes[0].hosting = crate::snapshot::Hosting::default();
    hold(&mut now, "n1", &image("other", &[("php", 10_000_000)]));
    wants(&mut now, "blog", "t", &small);
    assert_eq!(weight_of(&now), 0.5);
}

#[test]
fn totals_are_the_weighted_layer_score_and_the_base() {
    let now = one_node(250, 300);
    let total = |layers: Layers| turn(&now, |turn| layers.rate(turn)[0].score);
    let (base, score) =
        (turn(&now, |turn| super::base_scores(turn)[0]), turn(&now, |turn| layer_score(turn, 0)));
    assert!((total(Layers::Adaptive) - base - 151.1966).abs() < 1e-4);
    assert!((total(Layers::Fixed) - base - 4.0 * score).abs() < 1e-9);
}

#[test]
fn conditions_and_steps_are_lists() {
    let mut now = one_node(250, 300);
    let conditions = &mut now.scoring.layers.conditions;
    conditions.push(Condition::StorageBelow(0.5));
    conditions.push(Condition::MemoryBelow(0.4));
    now.scoring.layers.steps = vec![Step { score: 0.0, weight: 1.0 }, Step { score: 70.0, weight: 3.0 }];
    assert_eq!(weight_of(&now), 3.0);
    now.scoring.layers.conditions.push(Condition::Label { key: "edge".into(), value: "true".into() });
    assert_eq!(weight_of(&now), 0.5);
    now.nodes[0].labels.insert("edge".into(), "true".into());
    assert_eq!(weight_of(&now), 3.0);
}

#[test]
fn layers_that_do_not_fit_the_disk_are_refused() {
    let mut now = one_node(250, 300);
    now.nodes[0].disk = Bytes(WORDPRESS + 20_000_000);
    assert_eq!(turn(&now, |turn| Layers::Adaptive.refusal(turn, 0)), None);
    now.nodes[0].disk.0 -= 1;
    let text = turn(&now, |turn| Layers::Adaptive.refusal(turn, 0)).unwrap();
    assert_eq!(text, "no disk left for 53 MB of layers beside 184.2 MB");
}
