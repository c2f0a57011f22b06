//! Small clusters and jobs for tests and benchmarks.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]

pub mod example;

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{Job, Resources, Source, Task};
use edgeloom_common::units::{BitRate, Bytes, MilliCores, Work};
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::pull::{Image, Layer};
use edgeloom_sched::scoring::Scoring;
use edgeloom_sched::snapshot::{
    Change, Duplex, Hosting, Link, Node, Policy, Processors, Profiles, Running, Snapshot, Waiting,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A ready node that shapes flows.
pub fn node(name: &str, cpu: u32, core_speed: f64, memory: u64) -> Node {
    Node {
        id: name.parse().unwrap(),
        ready: true,
        class: String::new(),
        labels: BTreeMap::new(),
        cpu: MilliCores(cpu),
        core_speed,
        memory: Bytes(memory),
        disk: Bytes(1 << 40),
        shapes_flows: true,
        hosting: Hosting::default(),
    }
}

/// A full-duplex link of one capacity.
pub fn link(a: &str, b: &str, rate: u64) -> Link {
    let rate = BitRate(rate);
    let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
    Link { a, b, a_to_b: rate, b_to_a: rate, duplex: Duplex::Full }
}

/// A task without edges.
pub fn task(cpu: u32, memory: u64, work_ms: u64) -> Task {
    let resources = Resources { cpu: MilliCores(cpu), memory: Bytes(memory), ..Resources::default() };
    Task { work: (work_ms > 0).then_some(Work(work_ms * 1_000_000)), ..Task::alone("image", resources) }
}

/// A job of named tasks.
pub fn job(name: &str, tasks: Vec<(&str, Task)>) -> Job {
    let tasks = tasks.into_iter().map(|(name, task)| (name.parse().unwrap(), task)).collect();
    Job::of(name.parse().unwrap(), tasks)
}

/// Joins two tasks; `source` may be the first.
pub fn edge(job: &mut Job, from: &str, to: &str, bytes: u64) {
    let (from, to): (TaskName, TaskName) = (from.parse().unwrap(), to.parse().unwrap());
    job.tasks.get_mut(&to).unwrap().inputs.push(from.clone());
    if let Some(task) = job.tasks.get_mut(&from) {
        task.outputs.insert(to, Bytes(bytes));
    }
}

/// A source in a process of its node.
pub fn source(node: &str, item: u64) -> Source {
    Source { node: node.parse().unwrap(), item: Bytes(item), rate_per_s: None, container: None }
}

/// A committed job of which anything may change.
pub fn running(job: Job, plan: JobPlan) -> Running {
    let (profiles, enough) = (Profiles::new(), BTreeMap::new());
    Running { job, plan, profiles, change: Change::Placement, enough }
}

/// A cluster at rest with these jobs waiting, in this order.
pub fn snapshot(nodes: Vec<Node>, links: Vec<Link>, jobs: Vec<Job>) -> Snapshot {
    let waiting = |(at, job): (usize, Job)| Waiting {
        job,
        since_ms: at as u64,
        images: BTreeMap::new(),
        profiles: Profiles::new(),
    };
    Snapshot {
        now_ms: 1000,
        seed: 1,
        goodput: 1.0,
        link_share: 1.0,
        processors: Processors::Shared,
        policy: Policy::default(),
        scoring: Scoring::default(),
        nodes,
        links,
        running: Vec::new(),
        waiting: jobs.into_iter().enumerate().map(waiting).collect(),
    }
}

/// An image of these layers; each stands on those before it.
pub fn image(name: &str, layers: &[(&str, u64)]) -> Image {
    let mut chain = String::new();
    let layers = layers.iter().map(|(layer, size)| {
        chain += &format!("{layer} ");
        Layer { digest: (*layer).to_owned(), chain: chain.clone(), size: Bytes(*size) }
    });
    Image { config: name.to_owned(), config_size: Bytes(0), layers: layers.collect() }
}

/// A node has pulled the image.
pub fn hold(snapshot: &mut Snapshot, node: &str, image: &Image) {
    let node = snapshot.nodes.iter_mut().find(|known| known.id.as_str() == node).unwrap();
    Arc::make_mut(&mut node.hosting.held).add(image);
}

/// A task of a waiting job runs the image.
pub fn wants(snapshot: &mut Snapshot, job: &str, task: &str, image: &Image) {
    let waiting = snapshot.waiting.iter_mut().find(|waiting| waiting.job.name.as_str() == job).unwrap();
    let platforms = BTreeMap::from([(String::new(), Arc::new(image.clone()))]);
    waiting.images.insert(task.parse().unwrap(), platforms);
}

/// The ten-module application: detection, seven attribute nets side by side, tracking.
pub fn ten_modules(name: &str, source_node: &str) -> Job {
    let module = |work| task(200, 64 << 20, work);
    let names: Vec<String> = (1..=10).map(|n| format!("m{n}")).collect();
    let works = [5, 30, 20, 20, 20, 20, 20, 20, 20, 5];
    let mut job = job(name, names.iter().map(String::as_str).zip(works.map(module)).collect());
    job.source = Some(source(source_node, 600_000));
    edge(&mut job, "source", "m1", 600_000);
    edge(&mut job, "m1", "m2", 300_000);
    for middle in 3..=9 {
        edge(&mut job, "m2", &format!("m{middle}"), 40_000);
        edge(&mut job, &format!("m{middle}"), "m10", 4_000);
    }
    job
}

/// A ring with chords; node names sort by number.
pub fn ring(size: usize) -> (Vec<Node>, Vec<Link>) {
    let name = |at: usize| format!("n{at:03}");
    let nodes = (0..size).map(|at| node(&name(at), 1000 + 500 * (at as u32 % 4), 1.0, 2 << 30)).collect();
    let mut links: Vec<Link> =
        (0..size).map(|at| link(&name(at), &name((at + 1) % size), 20_000_000)).collect();
    links.extend((0..size / 2).map(|at| link(&name(at), &name((at * 7 + size / 2) % size), 10_000_000)));
    links.retain(|link| link.a != link.b);
    (nodes, links)
}
