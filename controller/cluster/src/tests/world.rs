//! An owner, its clock and nodes that apply what is published to them.

use crate::copies::CopyKeys;
use crate::missing::{Blob, Layers};
use crate::model::Image;
use crate::nodes::NodeMessage;
use crate::outbox::{Outbox, Publish};
use crate::owner::{Order, Owner, Ownership};
use crate::state::State;
use edgeloom_common::confidential::{Confidential, Enclosed};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef, Pool};
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::Origin;
use edgeloom_common::report::{ContainerState, Inventory, Links, Observed, Report, Status};
use edgeloom_common::samples;
use edgeloom_common::units::Bytes;
use edgeloom_common::volume::HeldVolume;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use tokio::sync::mpsc;

pub(super) const NODES: [&str; 3] = ["n1", "n2", "n3"];

pub(super) struct World {
    names: &'static [&'static str],
    pub(super) owner: Owner,
    published: mpsc::Receiver<Publish>,
    pub(super) dir: tempfile::TempDir,
    /// Documents as each node holds them.
    pub(super) held: BTreeMap<NodeId, DesiredState>,
    /// Values that each node was given with its document.
    pub(super) given: BTreeMap<NodeId, Confidential>,
    /// Every document in the order of its arrival.
    pub(super) arrivals: Vec<DesiredState>,
    pub(super) dead: BTreeSet<NodeId>,
    /// Nodes that no neighbour reaches.
    unpowered: BTreeSet<NodeId>,
    /// Nodes that show no image that they did not have before.
    pub(super) pulling: BTreeSet<NodeId>,
    /// Nodes whose kernel takes no document that has a container of this task.
    pub(super) refusing: BTreeSet<(NodeId, TaskName)>,
    /// Containers that nodes show though no document lists them any more.
    pub(super) lingering: BTreeMap<NodeId, Vec<ContainerState>>,
    /// Containers that have run to their end, as their nodes show them.
    pub(super) ends: BTreeMap<NodeId, Vec<ContainerState>>,
    /// Volumes that nodes have made for containers.
    pub(super) kept: BTreeMap<NodeId, Vec<HeldVolume>>,
}

pub(super) fn owner(dir: &tempfile::TempDir, now_ms: u64) -> (Owner, mpsc::Receiver<Publish>) {
    let (outgoing, published) = mpsc::channel(64);
    let state = State::open(dir.path()).unwrap();
    let settings = Ownership {
        cluster: "home".parse().unwrap(),
        pool: Pool {
            network: Ipv4Addr::new(10, 77, 0, 0),
            prefix_len: 16,
            gateway: Ipv4Addr::new(10, 77, 0, 1),
        },
        profile: edgeloom_sched::profile("edgeloom").unwrap(),
        scoring: edgeloom_sched::scoring::Scoring::default(),
        batching: crate::Batching::default(),
        follow: None,
        keys: CopyKeys::new(&[[7; 32]]),
        key: state.model.vault.key(&dir.path().join("secrets.key")).unwrap(),
        prices: None,
    };
    (Owner::new(settings, state, Outbox::new(outgoing), now_ms), published)
}

impl World {
    /// Three nodes in a triangle of 20 Mbit/s, all ready.
    pub(super) fn new() -> Self {
        Self::of(&NODES)
    }

    /// The same with these nodes, each joined to each.
    pub(super) fn of(names: &'static [&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (owner, published) = owner(&dir, 1_000);
        let mut world = Self {
            names,
            owner,
            published,
            dir,
            held: BTreeMap::new(),
            given: BTreeMap::new(),
            arrivals: Vec::new(),
            dead: BTreeSet::new(),
            unpowered: BTreeSet::new(),
            pulling: BTreeSet::new(),
            refusing: BTreeSet::new(),
            lingering: BTreeMap::new(),
            ends: BTreeMap::new(),
            kept: BTreeMap::new(),
        };
        world.connect();
        world.settle();
        world.arrivals.clear();
        world
    }

    /// A controller that starts again on the same directory; nodes keep what they hold.
    pub(super) fn restart(self) -> Self {
        self.restart_after(|_| {})
    }

    /// The same, with something done to the directory in between.
    pub(super) fn restart_after(self, change: impl FnOnce(&Path)) -> Self {
        let Self {
            names,
            owner: mut old,
            dir,
            held,
            dead,
            unpowered,
            pulling,
            refusing,
            lingering,
            ends,
            kept,
            ..
        } = self;
        let now_ms = old.now_ms;
        old.state.write_store();
        drop(old);
        change(dir.path());
        let (owner, published) = owner(&dir, now_ms);
        let (given, arrivals) = (BTreeMap::new(), Vec::new());
        Self {
            names,
            owner,
            published,
            dir,
            held,
            given,
            arrivals,
            dead,
            unpowered,
            pulling,
            refusing,
            lingering,
            ends,
            kept,
        }
    }

    /// Living nodes come online.
    pub(super) fn connect(&mut self) {
        for node in self.alive() {
            self.owner.observe(&node, NodeMessage::Status(Status::new(true, 1)));
            self.tell_inventory(&node);
            self.owner.observe(&node, NodeMessage::Links(self.links(&node)));
            if !self.held.contains_key(&node) {
                self.owner.observe(&node, NodeMessage::Observed(nothing(node.as_str())));
            }
        }
    }

    pub(super) fn alive(&self) -> Vec<NodeId> {
        let all = self.names.iter().map(|name| name.parse::<NodeId>().unwrap());
        all.filter(|node| !self.dead.contains(node)).collect()
    }

    /// Links as a node reports them.
    fn links(&self, own: &NodeId) -> Links {
        let mut told = links_among(self.names, own.as_str());
        for link in &mut told.links {
            link.up = !self.unpowered.contains(&link.neighbour);
        }
        told
    }

    /// The power of a node fails: its neighbours reach it no more, and nothing says so but they.
    pub(super) fn power_off(&mut self, name: &str) {
        let node: NodeId = name.parse().unwrap();
        self.dead.insert(node.clone());
        self.unpowered.insert(node);
        for node in self.alive() {
            self.owner.observe(&node, NodeMessage::Links(self.links(&node)));
        }
    }

    /// A node loses its connection to the controller and nothing else; the broker says so.
    pub(super) fn cut_off(&mut self, name: &str) {
        let node: NodeId = name.parse().unwrap();
        self.dead.insert(node.clone());
        self.owner.observe(&node, NodeMessage::Status(Status::new(false, 1)));
    }

    /// A node is back with what it held, and links are as before.
    pub(super) fn bring_back(&mut self, name: &str) {
        let node: NodeId = name.parse().unwrap();
        self.dead.remove(&node);
        self.unpowered.remove(&node);
        self.connect();
        self.show();
        self.settle();
    }

    /// Seconds pass; living nodes report in each.
    pub(super) fn live(&mut self, seconds: u64) {
        for _ in 0..seconds {
            for node in self.alive() {
                self.owner.observe(&node, NodeMessage::Report(Report::default()));
            }
            self.pass(1_000);
            self.settle();
        }
    }

    /// Takes what was published; living nodes apply it and confirm. False: nothing came.
    pub(super) fn turn(&mut self) -> bool {
        let mut came = false;
        while let Ok(message) = self.published.try_recv() {
            if message.topic.contains("/cmd/document/") {
                self.tell_document(&message.topic);
                continue;
            }
            let document: DesiredState = serde_json::from_slice(&message.payload).unwrap();
            came = true;
            self.arrivals.push(document.clone());
            if self.dead.contains(&document.node) {
                continue;
            }
            let held = self.held.get(&document.node).map(DesiredState::version).unwrap_or_default();
            assert!(
                document.version() >= held,
                "an agent would refuse {:?} below {held:?}",
                document.version()
            );
            let Enclosed { confidential } = serde_json::from_slice(&message.payload).unwrap();
            self.given.insert(document.node.clone(), confidential);
            self.make_volumes(&document);
            self.held.insert(document.node.clone(), document);
        }
        let confirm: Vec<Observed> = self.held.values().map(|document| self.observed(document)).collect();
        for (node, observed) in self.held.keys().cloned().collect::<Vec<_>>().into_iter().zip(confirm) {
            if came && !self.dead.contains(&node) {
                self.owner.observe(&node, NodeMessage::Observed(observed));
            }
        }
        came
    }

    fn tell_inventory(&mut self, node: &NodeId) {
        let volumes = self.kept.get(node).cloned().unwrap_or_default();
        self.owner.observe(node, NodeMessage::Inventory(Box::new(Inventory { volumes, ..inventory() })));
    }

    /// A node makes the volumes of its containers, and keeps them.
    fn make_volumes(&mut self, document: &DesiredState) {
        let kept = self.kept.entry(document.node.clone()).or_default();
        let before = kept.len();
        for spec in &document.containers {
            let volumes = spec.mounts.iter().filter_map(|mount| match &mount.from {
                Origin::Volume(volume) => Some(volume.clone()),
                Origin::Host(_) => None,
            });
            let held = |volume| HeldVolume { job: spec.job.clone(), task: spec.task.clone(), volume };
            kept.extend(volumes.map(held));
        }
        kept.sort();
        kept.dedup();
        if kept.len() != before {
            self.tell_inventory(&document.node);
        }
    }

    /// A living node tells what it holds.
    fn tell_document(&mut self, topic: &str) {
        let asked = |node: &NodeId| edgeloom_common::topics::parse_command(node, topic).is_some();
        let Some(node) = self.alive().into_iter().find(asked) else { return };
        if let Some(document) = self.held.get(&node) {
            self.owner.observe(&node, NodeMessage::Held(Box::new(document.clone())));
        }
    }

    /// What a node shows of its document.
    fn observed(&self, document: &DesiredState) -> Observed {
        let mut seen = observed(document);
        seen.converged = !self.pulling.contains(&document.node);
        let refused = |task: &TaskName| self.refusing.contains(&(document.node.clone(), task.clone()));
        seen.network_applied = !document.containers.iter().any(|spec| refused(&spec.task));
        let ends = self.ends.get(&document.node).into_iter().flatten();
        for end in ends {
            seen.containers.retain(|state| (&state.job, &state.task) != (&end.job, &end.task));
            seen.containers.push(end.clone());
        }
        seen.containers.extend(self.lingering.get(&document.node).into_iter().flatten().cloned());
        seen
    }

    /// Nodes show what has changed without a new document.
    pub(super) fn show(&mut self) {
        for (node, held) in self.held.clone() {
            let seen = self.observed(&held);
            if !self.dead.contains(&node) {
                self.owner.observe(&node, NodeMessage::Observed(seen));
            }
        }
    }

    pub(super) fn settle(&mut self) {
        for _ in 0..30 {
            if !self.turn() {
                return;
            }
        }
        panic!("documents go out without end");
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// How much is journaled.
    pub(super) fn journal_bytes(&self) -> u64 {
        std::fs::metadata(self.dir.path().join("journal")).unwrap().len()
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.owner.now_ms += ms;
        self.owner.tick();
    }
}

pub(super) fn inventory() -> Inventory {
    samples::inventory("home")
}

pub(super) fn links(own: &str) -> Links {
    links_among(&NODES, own)
}

fn links_among(names: &[&str], own: &str) -> Links {
    let link = |peer: &&str| samples::link(peer, Ipv4Addr::new(10, 61, 0, own.as_bytes()[1]));
    Links { schema: 1, links: names.iter().filter(|peer| **peer != own).map(link).collect() }
}

/// What a node shows that was never sent a document.
pub(super) fn nothing(name: &str) -> Observed {
    let pool = Pool { network: Ipv4Addr::UNSPECIFIED, prefix_len: 8, gateway: Ipv4Addr::UNSPECIFIED };
    observed(&DesiredState::empty("home".parse().unwrap(), name.parse().unwrap(), pool))
}

pub(super) fn observed(document: &DesiredState) -> Observed {
    let container = |spec: &ContainerSpec| samples::running((&spec.job, &spec.task), &spec.spec_hash);
    samples::observed(document.version(), document.containers.iter().map(container).collect())
}

/// A source container on n1 and two tasks, the second on n3 and too large to share a node.
pub(super) fn order(name: &str) -> Order {
    let text = format!(
        "kind: Job\nname: {name}\nsource: {{ node: n1, item: 10KB, image: r/app:1, resources: {{ cpu: 100m, memory: 16MiB }} }}\n\
         tasks:\n  detect:\n    image: r/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    work: 10ms\n    inputs: [source]\n    outputs: {{ track: 10KB }}\n    constraints: [\"node.name == n2\"]\n  \
         track:\n    image: r/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    work: 10ms\n    inputs: [detect]\n    constraints: [\"node.name == n3\"]\n"
    );
    let job = edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
    with_images(job)
}

/// Every task with an image of one layer.
pub(super) fn with_images(job: edgeloom_common::job::Job) -> Order {
    let layers = Layers {
        config: Blob { digest: "sha256:c".to_owned(), size: Bytes(5) },
        layers: vec![Blob { digest: "sha256:l".to_owned(), size: Bytes(100) }],
        diff_ids: vec!["sha256:d".to_owned()],
    };
    let image = Image {
        reference: ImageRef { repository: "r/app".into(), digest: "sha256:m".into(), name: "r/app:1".into() },
        platforms: BTreeMap::from([("amd64".to_owned(), layers)]),
    };
    let tasks = crate::documents::programs(&job).into_iter().map(|(task, _)| task);
    let images: BTreeMap<TaskName, Image> = tasks.map(|task| (task, image.clone())).collect();
    Order { job, images }
}
