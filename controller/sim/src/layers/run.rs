//! One run: requests in a row, each decided on what those before it left, and pulled at once.

use edgeloom_common::units::Bytes;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::pull::Image;
use edgeloom_sched::scoring::Scoring;
use edgeloom_sched::snapshot::{Change, Policy, Processors, Profiles, Running, Snapshot};
use edgeloom_sched::{Profile, check, decide};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::workload::{Request, requests};
use super::{Settings, cluster};
use crate::SimError;
use crate::random::Draw;
use crate::statistics::mean;

/// What came of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// After each request: bytes fetched so far.
    pub(super) cumulative_bytes: Vec<f64>,
    /// Layers that any node pulled, each once.
    pub(super) bytes_shared: f64,
    /// Layers that were asked for, each once.
    pub(super) bytes_least: f64,
    pub(super) seconds: f64,
    /// Layers that nodes hold at the end.
    pub(super) disk_bytes: f64,
    /// Of each placed container, at its node with it: Eq. 11.
    pub(super) std: Vec<f64>,
    pub(super) placed: usize,
    /// Containers whose layers did not fit the disk that they were sent to.
    pub(super) evicted: usize,
    /// Mean requested shares of the nodes at the end.
    pub(super) cpu: f64,
    pub(super) memory: f64,
    pub(super) decision_ms: Vec<f64>,
}

/// The same requests for every profile with one seed.
pub(super) fn run(
    settings: &Settings,
    images: &[Arc<Image>],
    (profile, seed): (Profile, u64),
) -> Result<Outcome, SimError> {
    let requests = requests(settings.containers, images, &mut Draw::new(seed));
    let mut cluster = Cluster::empty(settings, seed);
    cluster.outcome.bytes_least = once(requests.iter().map(|request| &*request.image));
    for request in requests {
        let bytes = cluster.place(profile, request)?;
        let before = cluster.outcome.cumulative_bytes.last().copied().unwrap_or(0.0);
        cluster.outcome.cumulative_bytes.push(before + bytes);
    }
    Ok(cluster.finish())
}

/// Bytes of the layers of all of them, each once.
#[expect(clippy::cast_precision_loss, reason = "bytes stay far below 2^52")]
fn once<'i>(images: impl Iterator<Item = &'i Image>) -> f64 {
    let layers = images.flat_map(|image| &image.layers);
    let sizes: BTreeMap<&str, u64> = layers.map(|layer| (layer.digest.as_str(), layer.size.0)).collect();
    sizes.values().sum::<u64>() as f64
}

/// Nodes as containers fill them.
struct Cluster {
    snapshot: Snapshot,
    /// Requested of each node: thousandths of a core, and bytes.
    used: Vec<(f64, f64)>,
    /// That any node has.
    pulled: Vec<Arc<Image>>,
    outcome: Outcome,
}

#[expect(clippy::cast_precision_loss, reason = "bytes stay far below 2^52")]
impl Cluster {
    fn empty(settings: &Settings, seed: u64) -> Self {
        let nodes = cluster::nodes(settings);
        let used = vec![(0.0, 0.0); nodes.len()];
        let snapshot = Snapshot {
            now_ms: 0,
            seed,
            goodput: 1.0,
            link_share: 1.0,
            processors: Processors::Shared,
            policy: Policy::default(),
            scoring: Scoring::default(),
            nodes,
            links: Vec::new(),
            running: Vec::new(),
            waiting: Vec::new(),
        };
        Self { snapshot, used, pulled: Vec::new(), outcome: Outcome::default() }
    }

    /// Asks the scheduler and does what it says; the bytes that were fetched.
    fn place(&mut self, profile: Profile, request: Request) -> Result<f64, SimError> {
        self.snapshot.waiting = vec![request.waiting.clone()];
        let started = Instant::now();
        let decision = decide(profile, &self.snapshot);
        self.outcome.decision_ms.push(started.elapsed().as_secs_f64() * 1000.0);
        if let Some(first) = check(&decision, &self.snapshot).first() {
            let (profile, seed) = (profile.name(), self.snapshot.seed);
            return Err(SimError::Broken { profile, seed, at_s: 0.0, first: first.to_string() });
        }
        let mut fetched = 0.0;
        for plan in decision.plans {
            match self.snapshot.running.iter_mut().find(|running| running.job.name == plan.job) {
                Some(running) => running.plan = plan,
                None => fetched = self.start(&request, plan),
            }
        }
        Ok(fetched)
    }

    /// Pulls and runs a container; one whose layers find no room on the disk is sent away again.
    fn start(&mut self, request: &Request, plan: JobPlan) -> f64 {
        let chosen = plan.placement.values().next();
        let at = self.snapshot.nodes.iter().position(|node| Some(&node.id) == chosen);
        let at = at.expect("checked: a plan's nodes are known");
        let node = &mut self.snapshot.nodes[at];
        let held = Arc::make_mut(&mut node.hosting.held);
        let fetch = held.fetch(&request.image);
        if held.stored().0 + fetch.layer_bytes.0 > node.disk.0 {
            self.outcome.evicted += 1;
            return 0.0;
        }
        held.add(&request.image);
        self.pulled.push(Arc::clone(&request.image));
        let goodput = node.hosting.goodput.expect("every node of the experiment has a line");
        self.outcome.seconds += fetch.seconds(goodput, Bytes(0));
        let job = request.waiting.job.clone();
        let resources = job.tasks.values().next().expect("a request is one task").program.resources;
        self.used[at].0 += f64::from(resources.cpu.0);
        self.used[at].1 += resources.memory.0 as f64;
        let (cpu, memory) = self.shares(at);
        self.outcome.std.push((cpu - memory).abs() / 2.0);
        self.outcome.placed += 1;
        let (profiles, enough) = (Profiles::new(), BTreeMap::new());
        self.snapshot.running.push(Running { job, plan, profiles, change: Change::Rates, enough });
        fetch.bytes().0 as f64
    }

    fn shares(&self, at: usize) -> (f64, f64) {
        let (node, used) = (&self.snapshot.nodes[at], self.used[at]);
        (used.0 / f64::from(node.cpu.0), used.1 / node.memory.0 as f64)
    }

    fn finish(mut self) -> Outcome {
        let shares: Vec<(f64, f64)> = (0..self.used.len()).map(|at| self.shares(at)).collect();
        let stored = self.snapshot.nodes.iter().map(|node| node.hosting.held.stored().0 as f64);
        self.outcome.disk_bytes = stored.sum();
        self.outcome.bytes_shared = once(self.pulled.iter().map(|image| &**image));
        self.outcome.cpu = mean(&shares.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>());
        self.outcome.memory = mean(&shares.iter().map(|(_, memory)| *memory).collect::<Vec<_>>());
        self.outcome
    }
}
