//! The stage that the demo plays on: a lab with its images pushed, its links metered and its nodes as
//! they were before any agent, remembered.

use super::report::{FlowRow, LeftoverCount, Report};
use crate::build::Build;
use crate::ground::Ground;
use crate::lab::Lab;
use crate::leftovers::Snapshot;
use crate::meter::Meter;
use crate::registry_log;
use crate::topology::DIAMOND;
use anyhow::{Context, Result};
use edgeloom_common::desired::FlowKey;
use edgeloom_common::view::JobView;
use std::collections::BTreeMap;

/// Everything that the steps of the demo share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) ground: Ground,
    pub(crate) meter: Meter,
    pub(crate) report: Report,
    /// Each node before its agent was ever started.
    unborn: BTreeMap<String, Snapshot>,
    /// Each node with its agent at rest and no job.
    resting: BTreeMap<String, Snapshot>,
}

impl Stage {
    /// Raises the lab, remembering each node before its agent and with its agent at rest.
    pub(crate) fn raise(build: &Build) -> Result<Self> {
        let ground = Ground::lay(DIAMOND, build)?;
        match begin(&ground) {
            Ok((meter, [unborn, resting])) => {
                Ok(Self { ground, meter, report: Report::default(), unborn, resting })
            }
            Err(error) => Err(ground.lab.abandon(error)),
        }
    }

    /// Interfaces of a node that end in a link.
    pub(crate) fn link_interfaces(&self, node: &str) -> Vec<String> {
        let links = self.ground.lab.topology.links.iter();
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
        for fetch in registry_log::bytes_fetched(&self.ground.lab.registry_log(), 0)? {
            let nodes = self.ground.lab.nodes();
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
        let file = self.ground.lab.node(node)?.pid_file("agent");
        let pid = crate::processes::of_file(&file, &self.ground.lab.id);
        Ok(u32::try_from(pid.with_context(|| format!("the agent of {node} does not run"))?)?)
    }

    /// Nothing of a job is left: every node is as it was with its agent at rest.
    pub(crate) fn check_leftovers(&mut self, when: &str) -> Result<()> {
        let left = count_beyond(&self.ground.lab, &self.resting)?;
        let none = left == LeftoverCount::default();
        self.report.check(&format!("left over {when}"), none, serde_json::to_value(left)?, 0);
        Ok(())
    }

    /// Ends every agent and lets it purge its node.
    pub(crate) fn purge_agents(&self) -> Result<()> {
        for node in self.ground.lab.nodes() {
            self.ground.lab.kill_agent(&node)?;
            let folder = node.state();
            let (binary, config) = (folder.join("edgeloom-agent"), folder.join("agent.toml"));
            let words = [binary.to_str(), Some("purge"), Some("--config"), config.to_str()];
            let words: Option<Vec<&str>> = words.into_iter().collect();
            self.ground.exec(&node.spec.name, &words.context("a state folder that is no UTF-8")?)?;
        }
        Ok(())
    }

    /// What there is beyond the time before any agent.
    pub(crate) fn count_leftovers_since_birth(&self) -> Result<LeftoverCount> {
        count_beyond(&self.ground.lab, &self.unborn)
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
        let answer = self.ground.exec(node, &["ip", "route", "get", &destination])?;
        let interface = answer.split_whitespace().find_map(|word| word.strip_prefix("to-"));
        interface
            .map(str::to_owned)
            .with_context(|| format!("no main route from {node} to {destination}: {answer}"))
    }

    /// Starts the purged agents again, for a lab that stays up.
    pub(crate) fn revive(&self) -> Result<()> {
        let lab = &self.ground.lab;
        let nodes = lab.nodes();
        let mut purged = nodes.iter().filter(|node| self.agent_pid(&node.spec.name).is_err());
        purged.try_for_each(|node| lab.start_agent(node).map(drop))
    }
}

/// Starts the daemons; with the meter, what there was on the nodes before and with agents at rest.
fn begin(ground: &Ground) -> Result<(Meter, [BTreeMap<String, Snapshot>; 2])> {
    let unborn = snapshots(&ground.lab)?;
    ground.start_daemons()?;
    let meter = Meter::start(&ground.lab)?;
    ground.await_nodes()?;
    Ok((meter, [unborn, snapshots(&ground.lab)?]))
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
