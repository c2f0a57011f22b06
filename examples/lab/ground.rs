//! The ground that every experiment stands on: a lab with its images pushed, its controller and agents at
//! work and every node ready.

use crate::api::{Api, wait_for};
use crate::build::{self, Binaries, Build};
use crate::document::Document;
use crate::engines::Engines;
use crate::lab::{Lab, Options};
use crate::throughput::{self, WARM_UP};
use crate::topology::Topology;
use crate::{command, prepare, publish};
use anyhow::{Context, Result};
use edgeloom_common::view::{JobState, JobView, LinkView};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the nodes may take until the controller counts on them: the reference run and the first
/// packet trains take some seconds.
const READY_LIMIT: Duration = Duration::from_secs(90);

/// How long the controller may take to see what Docker shows.
const REPORT_LIMIT: Duration = Duration::from_secs(30);

/// Within this time a job that goes on has counted further: programs print every two seconds.
const ITEMS_LIMIT: Duration = Duration::from_secs(10);

/// What all experiments share.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) api: Api,
    pub(crate) engines: Engines,
    pub(crate) lab: Lab,
    binaries: Binaries,
    begun: Instant,
}

impl Ground {
    /// Installs what is missing, builds, and raises a lab with Docker alone.
    pub(crate) fn lay(topology: &str, build: &Build) -> Result<Self> {
        let begun = Instant::now();
        prepare::prepare()?;
        let binaries = build::all(build)?;
        let lab = Lab::up(&Topology::parse(topology)?, topology, &Options { bare: true })?;
        let sockets: Vec<(String, PathBuf)> =
            lab.nodes().iter().map(|node| (node.spec.name.clone(), node.docker_socket())).collect();
        let engines = Engines::connect(sockets.iter().map(|(name, path)| (name.clone(), path.as_path())))?;
        engines.settle()?;
        Ok(Self { api: Api::new(lab.context()), engines, lab, binaries, begun })
    }

    /// Fills the registry, and makes a cluster of the nodes.
    pub(crate) fn start_daemons(&self) -> Result<()> {
        publish::images()?;
        self.start_cluster()
    }

    /// Makes a cluster of the nodes.
    pub(crate) fn start_cluster(&self) -> Result<()> {
        self.binaries.install(&self.lab)?;
        self.lab.start_cluster()
    }

    /// Waits until the controller counts on every node.
    pub(crate) fn await_nodes(&self) -> Result<()> {
        eprintln!("waiting until every node has measured itself and its links");
        wait_for("every node to be ready", READY_LIMIT, || {
            let Ok(list) = self.api.nodes() else { return Ok(false) };
            let known = |link: &LinkView| {
                link.up && link.capacity_declared_bps.or(link.capacity_measured_bps).is_some()
            };
            let ready = list
                .nodes
                .iter()
                .filter(|node| node.online && node.ready && node.converged && node.links.iter().all(known));
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

    /// Waits until every node is online, ready and as wanted.
    pub(crate) fn await_converged(&self, when: &str, limit: Duration) -> Result<()> {
        wait_for(&format!("all nodes to converge {when}"), limit, || {
            let Ok(list) = self.api.nodes() else { return Ok(false) };
            let settled = list.nodes.iter().filter(|node| {
                node.online && node.ready && node.converged && node.version_sent == node.version_observed
            });
            Ok(settled.count() == self.lab.topology.nodes.len())
        })
    }

    /// Says where the run is.
    pub(crate) fn chapter(&self, title: &str) {
        println!("\n[{:5.0} s] {title}", self.begun.elapsed().as_secs_f64());
    }

    /// Posts a job, waits until all of its containers run, telling how many do, and answers with the job
    /// and the time from HTTP 201 until Docker showed all running.
    pub(crate) fn start(
        &self,
        document: &Document,
        mut tell: impl FnMut(&str),
    ) -> Result<(JobView, Duration)> {
        let posted = self.api.post(&document.text)?;
        let begun = Instant::now();
        let name = posted.name.to_string();
        println!("  {name}: accepted, {} tasks, profile {}", posted.tasks.len(), posted.profile);
        if let Some(prediction) = &posted.prediction {
            println!(
                "  {name}: predicted {:.2} items/s, {:?}-bound by {}",
                prediction.items_per_s_predicted, prediction.bound, prediction.bound_by
            );
        }
        let count = posted.tasks.len();
        self.engines.wait_running(&format!("edgeloom.job={name}"), count, |running| {
            let seconds = begun.elapsed().as_secs_f64();
            tell(&format!("{seconds:4.1} s: {running} of {count} containers run"));
        })?;
        let took = begun.elapsed();
        let mut last = None;
        wait_for(&format!("{name} to be reported running"), REPORT_LIMIT, || {
            last = self.api.job(&name)?;
            Ok(last.as_ref().is_some_and(|view| view.state == JobState::Running))
        })?;
        Ok((last.context("the job vanished")?, took))
    }

    /// Items a second of a job over `window`, after a warm-up.
    pub(crate) fn throughput(&self, document: &Document, window: Duration) -> Result<f64> {
        std::thread::sleep(WARM_UP);
        let rates = throughput::measure(&self.engines, &[document], window)?;
        rates.first().copied().with_context(|| format!("{} was not measured", document.name))
    }

    /// The job goes on: its last tasks count further.
    pub(crate) fn expect_items(&self, document: &Document) -> Result<()> {
        for sink in &document.sinks {
            let before = self.engines.items(&document.name, sink)?;
            wait_for(&format!("{sink} to go on"), ITEMS_LIMIT, || {
                Ok(self.engines.items(&document.name, sink)?.since(before) > 0)
            })?;
        }
        Ok(())
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

    /// Says how to go on with a lab that stays up.
    pub(crate) fn leave(&self) {
        println!("\nthe lab {} stays up; for instance:", self.lab.id);
        println!("  export {}", self.lab.login());
        println!("  target/release/edgeloom nodes");
        println!("  target/release/edgeloom run examples/jobs/three-tasks.yaml");
        println!("  cargo lab fault link-down n1 n2");
        println!("  cargo lab down");
    }

    /// Takes the lab down and says where its logs are, for whoever looks for what went wrong in it.
    pub(crate) fn abandon(self) -> Result<()> {
        if let Some(log) = self.lab.keep_logs() {
            eprintln!("logs of lab {} are in {}", self.lab.id, log.display());
        }
        self.lab.down()
    }

    /// Takes the lab down, unless it is to stay.
    pub(crate) fn clear(self, stay: Stay) -> Result<()> {
        match stay {
            Stay::Up => {
                self.leave();
                Ok(())
            }
            Stay::Down => self.lab.down(),
        }
    }
}

/// What becomes of the lab at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    Up,
    Down,
}
