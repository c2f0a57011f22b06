//! All plugins together, worked out by hand: a task of 500m and 256 MiB with an image of 600 MiB and a label,
//! before four nodes without zones.
//!
//! A has 4 cores and 4 GiB, 1000m and 1 GiB of them used by a task with the label, and the image; B 4 cores
//! and 2 GiB, 500m and 256 MiB used, and a taint that is only preferred; C 4 cores and 4 GiB, empty; D the
//! same, 3000m and 512 MiB used, and the image.

use super::kube::{totals, words};
use crate::case::Case;
use crate::images::{JobImages, Stores};
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::one_by_one::Turn;
use crate::plan::JobPlan;
use crate::scoring::Plugins;
use crate::snapshot::Snapshot;
use crate::world::World;
use crate::worlds::{hold, image, job, node, running, snapshot, task, wants};
use edgeloom_common::job::{Effect, Job, Taint};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

fn labelled(name: &str, cpu: u32, memory: u64) -> Job {
    let mut task = task(cpu, memory, 0);
    task.placement.labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    job(name, vec![("t", task)])
}

fn plan(job: &Job, node: &str) -> JobPlan {
    let prediction = crate::plan::Prediction {
        items_per_s: 1.0,
        bound: edgeloom_common::view::Bound::Source,
        bound_by: String::new(),
    };
    JobPlan {
        job: job.name.clone(),
        profile: "kube".to_owned(),
        placement: BTreeMap::from([("t".parse().unwrap(), node.parse().unwrap())]),
        shares: BTreeMap::new(),
        flows: Vec::new(),
        prediction,
        reasons: Vec::new(),
    }
}

fn four_nodes() -> Snapshot {
    let nodes = [("a", 4096), ("b", 2048), ("c", 4096), ("d", 4096)];
    let nodes = nodes.map(|(name, memory)| node(name, 4000, 1.0, memory * MIB)).to_vec();
    let mut now = snapshot(nodes, Vec::new(), vec![labelled("new", 500, 256 * MIB)]);
    now.nodes[1].hosting.taints =
        vec![Taint { key: "slow".into(), value: String::new(), effect: Effect::PreferNoSchedule }];
    let other = |name: &str, cpu, memory: u64| job(name, vec![("t", task(cpu, memory * MIB, 0))]);
    let placed = [
        (labelled("old", 1000, 1024 * MIB), "a"),
        (other("small", 500, 256), "b"),
        (other("large", 3000, 512), "d"),
    ];
    now.running = placed.map(|(job, node)| running(job.clone(), plan(&job, node))).to_vec();
    let web = image("web", &[("base", 600 * MIB)]);
    hold(&mut now, "a", &web);
    hold(&mut now, "d", &web);
    wants(&mut now, "new", "t", &web);
    now
}

/// Hands the turn of the only waiting task to `look`.
fn turn<T>(now: &Snapshot, look: impl Fn(&Turn<'_>) -> T) -> T {
    let world = World::of(now);
    let held: HeldJobs<'_> = now.running.iter().map(|it| (it.job.name.clone(), Held::of(it))).collect();
    let entry = &now.waiting[0];
    let graph = JobGraph::of(&world, &entry.job, &entry.profiles);
    let ledger = Ledger::of(&world, held.values());
    let case = Case { world: &world, graph: &graph, ledger: &ledger };
    let images = JobImages::of(&world, &graph, entry);
    let stores = Stores::of(&world);
    let open: Vec<usize> = (0..world.nodes.len()).collect();
    look(&Turn { case: &case, ledger: &ledger, stores: &stores, images: &images, vertex: 0, open: &open })
}

#[test]
fn the_worked_totals_hold_with_both_releases_weights() {
    let mut now = four_nodes();
    assert_eq!(turn(&now, totals), [589, 375, 686, 639]);
    now.scoring.plugins = Plugins::V1BETA2;
    assert_eq!(turn(&now, totals), [389, 375, 486, 439]);
}

#[test]
fn the_words_name_each_plugin_that_counts() {
    let now = four_nodes();
    let text = turn(&now, |turn| words(turn, 0));
    assert_eq!(text, "fit 65, balance 96, image 28, taints 100, node affinity 0, task affinity 0, spread 50");
}

#[test]
fn a_plugin_of_weight_0_is_off() {
    let mut now = four_nodes();
    now.scoring.plugins.taint_toleration = 0;
    assert_eq!(turn(&now, totals), [289, 375, 386, 339]);
    assert!(!turn(&now, |turn| words(turn, 0)).contains("taints"));
}
