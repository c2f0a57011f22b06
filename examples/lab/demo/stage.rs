//! The stage that the demo plays on: a lab with its images pushed, its links metered and its nodes as
//! they were before any agent, remembered.

use super::api::{Api, wait_for};
use super::docker::Engines;
use super::report::{FlowRow, LeftoverCount, Report};
use crate::lab::{Lab, Options};
use crate::leftovers::Snapshot;
use crate::meter::{self, Meter};
use crate::topology::{DIAMOND, Topology};
use crate::{build, command, prepare, publish, registry_log};
use anyhow::{Context, Result};
use edgeloom_common::desired::FlowKey;
use edgeloom_common::view::JobView;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the controller's API is, seen from the host.
const API: &str = "http://10.60.0.2:7070";

/// How long the nodes may take until the controller counts on them: the reference run and the first
/// packet trains take some seconds.
const READY_LIMIT: Duration = Duration::from_secs(90);

/// Everything that the steps of the demo share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) api: Api,
    pub(crate) engines: Engines,
    pub(crate) meter: Meter,
    pub(crate) report: Report,
    lab: Lab,
    /// Each node before its agent was ever started.
    unborn: BTreeMap<String, Snapshot>,
    /// Each node with its agent at rest and no job.
    resting: BTreeMap<String, Snapshot>,
    begun: Instant,
}

impl Stage {
    /// Installs what is missing, builds, raises the lab and fills its registry.
    pub(crate) fn raise() -> Result<Self> {
        let begun = Instant::now();
        prepare::prepare()?;
        let binaries = build::all()?;
        let lab = Lab::up(&Topology::parse(DIAMOND)?, DIAMOND, &Options { bare: true })?;
        let sockets: Vec<(String, PathBuf)> =
            lab.nodes().iter().map(|node| (node.spec.name.clone(), node.docker_socket())).collect();
        let engines = Engines::connect(sockets.iter().map(|(name, path)| (name.clone(), path.as_path())))?;
        engines.settle()?;
        let unborn = snapshots(&lab)?;
        publish::images()?;
        binaries.install(&lab)?;
        lab.start_controller()?;
        for node in lab.nodes() {
            lab.start_agent(&node)?;
        }
        let meter = Meter::start(&lab)?;
        let api = Api::new(API);
        let mut stage = Self {
            api,
            engines,
            meter,
            report: Report::default(),
            lab,
            unborn,
            resting: BTreeMap::new(),
            begun,
        };
        stage.await_nodes()?;
        stage.resting = snapshots(&stage.lab)?;
        Ok(stage)
    }

    fn await_nodes(&self) -> Result<()> {
        eprintln!("waiting until every node has measured itself and its links");
        wait_for("every node to be ready", READY_LIMIT, || {
            let Ok(list) = self.api.nodes() else { return Ok(false) };
            let ready = list.nodes.iter().filter(|node| {
                node.online && node.ready && node.converged && node.links.iter().all(|link| link.up)
            });
            Ok(ready.count() == self.lab.topology.nodes.len())
        })?;
        for node in self.api.nodes()?.nodes {
            println!(
                "  {}: {} millicores of speed {:.2}, {} links",
                node.name,
                node.cpu_capacity_millicores,
                node.core_speed,
                node.links.len()
            );
        }
        Ok(())
    }

    /// Says where the demo is.
    pub(crate) fn chapter(&self, title: &str) {
        println!("\n[{:5.0} s] {title}", self.begun.elapsed().as_secs_f64());
    }

    /// The text of a job among the examples.
    pub(crate) fn job_file(&self, name: &str) -> Result<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs").join(name);
        std::fs::read_to_string(&path).with_context(|| format!("{} of lab {}", path.display(), self.lab.id))
    }

    /// Tasks of a job that have no outputs, by its document: the controller may be dead.
    pub(crate) fn sinks(&self, job: &str) -> Result<Vec<String>> {
        let document = self.job_file(&format!("{job}.yaml"))?;
        let parsed = edgeloom_common::job::parse(document.as_bytes());
        let parsed = parsed.map_err(|problems| anyhow::anyhow!("{job}: {problems:?}"))?;
        let sinks = parsed.tasks.iter().filter(|(_, task)| task.outputs.is_empty());
        Ok(sinks.map(|(name, _)| name.to_string()).collect())
    }

    /// Runs a program in a node's network namespace.
    pub(crate) fn exec(&self, node: &str, words: &[&str]) -> Result<String> {
        let words = command::within(&self.lab.node(node)?.namespace(), words);
        command::run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Names of all nodes.
    pub(crate) fn node_names(&self) -> Vec<String> {
        self.lab.topology.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Interfaces of a node that end in a link.
    pub(crate) fn link_interfaces(&self, node: &str) -> Vec<String> {
        let links = self.lab.topology.links.iter();
        let neighbours = links.filter_map(|link| match &link.between {
            [a, b] if a == node => Some(b),
            [a, b] if b == node => Some(a),
            _ => None,
        });
        neighbours.map(|neighbour| format!("to-{neighbour}")).collect()
    }

    /// Bytes of blobs fetched so far, by (node, repository), from the registry's access log.
    pub(crate) fn fetched_by_node_and_image(&self) -> Result<BTreeMap<(String, String), u64>> {
        let mut sums = BTreeMap::new();
        for fetch in registry_log::bytes_fetched(&self.lab.registry_log(), 0)? {
            let nodes = self.lab.nodes();
            let node = nodes.iter().find(|node| node.uplink_address() == fetch.client.to_string());
            let Some(node) = node else { continue };
            *sums.entry((node.spec.name.clone(), fetch.repository)).or_default() += fetch.bytes;
        }
        Ok(sums)
    }

    /// Bytes of blobs that all nodes fetched so far.
    pub(crate) fn fetched_in_all(&self) -> Result<u64> {
        Ok(self.fetched_by_node_and_image()?.values().sum())
    }

    /// The agent's process.
    pub(crate) fn agent_pid(&self, node: &str) -> Result<u32> {
        let file = self.lab.node(node)?.pid_file("agent");
        let pid = crate::processes::of_file(&file, &self.lab.id);
        Ok(u32::try_from(pid.with_context(|| format!("the agent of {node} does not run"))?)?)
    }

    /// Ends an agent with SIGKILL.
    pub(crate) fn kill_agent(&self, node: &str) -> Result<()> {
        self.lab.kill_agent(&self.lab.node(node)?)
    }

    /// Starts an agent again.
    pub(crate) fn start_agent(&self, node: &str) -> Result<()> {
        self.lab.start_agent(&self.lab.node(node)?).map(drop)
    }

    /// Ends the controller with SIGKILL.
    pub(crate) fn kill_controller(&self) -> Result<()> {
        self.lab.kill_controller()
    }

    /// Starts the controller again.
    pub(crate) fn start_controller(&self) -> Result<()> {
        self.lab.start_controller().map(drop)
    }

    /// Nothing of a job is left: every node is as it was with its agent at rest.
    pub(crate) fn check_leftovers(&mut self, when: &str) -> Result<()> {
        let left = count_beyond(&self.lab, &self.resting)?;
        let none = left == LeftoverCount::default();
        self.report.check(&format!("left over {when}"), none, serde_json::to_value(left)?, 0);
        Ok(())
    }

    /// Ends every agent and lets it purge its node.
    pub(crate) fn purge_agents(&self) -> Result<()> {
        for node in self.lab.nodes() {
            self.lab.kill_agent(&node)?;
            let folder = node.state();
            let (binary, config) = (folder.join("edgeloom-agent"), folder.join("agent.toml"));
            let words = [binary.to_str(), Some("purge"), Some("--config"), config.to_str()];
            let words: Option<Vec<&str>> = words.into_iter().collect();
            self.exec(&node.spec.name, &words.context("a state folder that is no UTF-8")?)?;
        }
        Ok(())
    }

    /// What there is beyond the time before any agent.
    pub(crate) fn count_leftovers_since_birth(&self) -> Result<LeftoverCount> {
        count_beyond(&self.lab, &self.unborn)
    }

    /// Of the flows that leave the main route: the largest share of a flow's bytes that the bypassed first
    /// link carried nevertheless. None if no flow leaves it.
    pub(crate) fn bypassed_share(&self, view: &JobView, flows: &[FlowRow]) -> Result<Option<f64>> {
        let counted = self.meter.snapshot();
        let mut worst = None;
        for (row, flow) in flows.iter().zip(&view.flows) {
            let key = flow.key.context("a running flow has a key")?;
            let main = self.main_next_hop(&row.path[0], &key)?;
            if main == row.path[1] {
                continue;
            }
            let links = counted.links_of(&key);
            let on = |next: &str| {
                let link = links.iter().find(|((from, to), _)| *from == row.path[0] && to == next);
                link.map_or(0, |(_, bytes)| *bytes)
            };
            #[expect(clippy::cast_precision_loss, reason = "byte counts of a demo")]
            let share = on(&main) as f64 / (on(&main) + on(&row.path[1])).max(1) as f64;
            println!(
                "  {} -> {} goes by {} where the main route goes by {main}",
                row.from, row.to, row.path[1]
            );
            worst = Some(f64::max(share, worst.unwrap_or(0.0)));
        }
        Ok(worst)
    }

    /// Where the main routing table sends a destination: `... dev to-n2 ...`.
    fn main_next_hop(&self, node: &str, key: &FlowKey) -> Result<String> {
        let destination = key.destination.to_string();
        let answer = self.exec(node, &["ip", "route", "get", &destination])?;
        let interface = answer.split_whitespace().find_map(|word| word.strip_prefix("to-"));
        interface
            .map(str::to_owned)
            .with_context(|| format!("no main route from {node} to {destination}: {answer}"))
    }

    /// Starts the purged agents again and says how to go on with a lab that stays up.
    pub(crate) fn leave_playable(&self) -> Result<()> {
        for node in self.lab.nodes().iter().filter(|node| self.agent_pid(&node.spec.name).is_err()) {
            self.lab.start_agent(node)?;
        }
        println!("\nthe lab {} stays up; for instance:", self.lab.id);
        println!("  target/release/edgeloom --server {API} nodes");
        println!("  target/release/edgeloom --server {API} run examples/jobs/three-tasks.yaml");
        println!("  cargo lab fault link-down n1 n2");
        println!("  cargo lab down");
        Ok(())
    }

    /// Takes the lab down.
    pub(crate) fn strike(self) -> Result<()> {
        let Self { lab, meter, .. } = self;
        drop(meter);
        lab.down()
    }
}

impl meter::Snapshot {
    /// Bytes of a flow on each link that it crossed, by (from, to).
    pub(crate) fn links_of(&self, key: &FlowKey) -> Vec<((String, String), u64)> {
        let wanted = (key.source, key.destination, key.protocol.number(), key.destination_port);
        let mine = self.0.iter().filter(|(found, _)| found.flow == Some(wanted));
        mine.map(|(found, bytes)| ((found.from.clone(), found.to.clone()), *bytes)).collect()
    }
}

fn snapshots(lab: &Lab) -> Result<BTreeMap<String, Snapshot>> {
    lab.nodes().iter().map(|node| Ok((node.spec.name.clone(), Snapshot::take(node)?))).collect()
}

/// Counts over all nodes what is there now and was not in `before`, and names each.
fn count_beyond(lab: &Lab, before: &BTreeMap<String, Snapshot>) -> Result<LeftoverCount> {
    let mut total = LeftoverCount::default();
    for node in lab.nodes() {
        let now = Snapshot::take(&node)?;
        let then = before.get(&node.spec.name).context("every node has a snapshot")?;
        for (kind, lines) in now.beyond(then) {
            for line in &lines {
                println!("  left on {}: {kind} {line}", node.spec.name);
            }
            match kind {
                "containers" | "networks" => total.containers += lines.len(),
                "classes" | "qdiscs" => total.classes += lines.len(),
                "map_entries" | "nft" => total.map_entries += lines.len(),
                "rules" => total.rules += lines.len(),
                _ => total.routes += lines.len(),
            }
        }
    }
    Ok(total)
}
