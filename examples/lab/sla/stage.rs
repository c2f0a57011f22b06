//! The lab of these scenarios: its jobs, its containers as the kernel and Docker have them, and its command line.

use crate::api::{Request, wait_for};
use crate::cgroup;
use crate::document::Document;
use crate::experiment::Experiment;
use crate::ground::{Ground, Stay};
use crate::recovery::containers::{self, Container};
use anyhow::{Context, Result, ensure};
use edgeloom_common::usage::UsageView;
use edgeloom_common::view::JobView;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

const TOPOLOGY: &str = include_str!("../topologies/sla.toml");
const PRICES: &str = include_str!("prices.toml");
/// How long anything may take that has no bound of its own.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) ground: Ground,
}

/// A container of one task that is sized by its job's class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classed<'a> {
    pub(super) name: &'a str,
    pub(super) profile: &'a str,
    pub(super) class: &'a str,
    pub(super) node: &'a str,
    pub(super) load: Load,
}

/// What its program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    Idle,
    /// As much as it may.
    Busy,
}

impl Classed<'_> {
    fn text(&self) -> String {
        let Self { name, profile, class, node, load } = self;
        let command = if *load == Load::Idle { "    command: [idle]\n" } else { "" };
        // Classes are sized by the smallest node of that reputation: the small ones are of another.
        format!(
            "kind: Job\nname: {name}\nprofile: {profile}\n\
             sla: {{ resources: {class}, reputation: advanced, satisfaction: {class} }}\n\
             tasks:\n  work:\n    image: 10.60.0.1:5000/vision/age:1.0\n{command}    \
             resources: {{ memory: 24MiB }}\n    constraints: [\"node.name == {node}\"]\n"
        )
    }
}

impl Stage {
    pub(super) fn lay(experiment: &Experiment) -> Result<Self> {
        Ok(Self { ground: Ground::lay(TOPOLOGY, &experiment.build())? })
    }

    /// Starts the cluster, which charges for what is used.
    pub(super) fn begin(&self) -> Result<()> {
        self.configure(PRICES)?;
        self.ground.start_daemons()?;
        self.ground.await_nodes()
    }

    /// Adds sections to the controller's configuration, which it reads when it starts.
    pub(super) fn configure(&self, sections: &str) -> Result<()> {
        let path = self.ground.lab.state().join("controller.toml");
        let mut file =
            File::options().append(true).open(&path).with_context(|| path.display().to_string())?;
        Ok(file.write_all(sections.as_bytes())?)
    }

    /// Takes the lab down; one in which something did not hold leaves its logs.
    pub(super) fn end(self, ok: bool, stay: Stay) -> Result<()> {
        if ok || stay == Stay::Up { self.ground.clear(stay) } else { self.ground.abandon() }
    }

    /// Stops every job, and opens every node.
    pub(super) fn clear(&self) -> Result<()> {
        let (_, body) = self.ground.api.request(&Request::Get("/v1/jobs"))?;
        let list: Value = serde_json::from_str(&body)?;
        for job in list["jobs"].as_array().context("a list of jobs")? {
            self.ground.api.stop(job["name"].as_str().context("a job has a name")?)?;
        }
        for node in self.ground.api.nodes()?.nodes.iter().filter(|node| node.cordon.is_some()) {
            self.edgeloom(&["uncordon", node.name.as_str()])?;
        }
        Ok(())
    }

    /// Starts a job and waits until its containers run.
    pub(super) fn start(&self, text: &str) -> Result<Document> {
        let document = Document::read(text)?;
        self.ground.start(&document, |_| ())?;
        Ok(document)
    }

    pub(super) fn start_classed(&self, job: &Classed<'_>) -> Result<()> {
        self.start(&job.text()).map(drop)
    }

    pub(super) fn view(&self, job: &str) -> Result<JobView> {
        self.ground.api.job(job)?.with_context(|| format!("{job} is gone"))
    }

    /// A job's containers that run.
    pub(super) fn containers(&self, job: &str) -> Result<Vec<Container>> {
        let found = self.ground.lab.nodes().iter().map(containers::list).collect::<Result<Vec<_>>>()?;
        Ok(found.into_iter().flatten().filter(|one| one.job == job && one.running).collect())
    }

    /// The container of a job that has one.
    pub(super) fn container(&self, job: &str) -> Result<Container> {
        let mut found = self.containers(job)?;
        ensure!(found.len() == 1, "{job} has {} containers", found.len());
        Ok(found.remove(0))
    }

    /// Tasks of ours on a node, as its Docker has them.
    pub(super) fn tasks_on(&self, node: &str) -> Result<Vec<String>> {
        let found = containers::list(&self.ground.lab.node(node)?)?;
        Ok(found.into_iter().map(|one| format!("{}/{}", one.job, one.task)).collect())
    }

    /// The limit that the kernel enforces, in thousandths of a core.
    pub(super) fn limit(&self, container: &Container) -> Result<u32> {
        let found = cgroup::cpu_limit(&self.ground.lab.id, &container.node, &container.id)?;
        found.with_context(|| format!("{} has no limit", container.job))
    }

    /// Processor time by the kernel's account, in microseconds.
    pub(super) fn cpu_us(&self, container: &Container) -> Result<u64> {
        cgroup::cpu_us(&self.ground.lab.id, &container.node, Some(&container.id))
    }

    /// The records of one container.
    pub(super) fn records(&self, container: &Container) -> Result<Vec<UsageView>> {
        let mut records = self.ground.api.usage(&container.job)?;
        records.retain(|record| record.container == container.id);
        Ok(records)
    }

    /// Runs the command line: its exit code and what it printed.
    pub(super) fn edgeloom(&self, words: &[&str]) -> Result<(i32, String)> {
        let mut command = Command::new(self.ground.lab.state().join("edgeloom"));
        // What whoever runs the lab has logged in to is another cluster.
        for name in ["EDGELOOM_SERVER", "EDGELOOM_TOKEN", "EDGELOOM_CA"] {
            command.env_remove(name);
        }
        let output = command.env("EDGELOOM_CONTEXT", self.ground.lab.context()).args(words).output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let code = output.status.code().context("the command line was killed")?;
        ensure!(code < 2, "`edgeloom {}`: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        Ok((code, told))
    }

    /// Kills the controller, and starts it again.
    pub(super) fn restart_controller(&self) -> Result<()> {
        self.ground.lab.kill_controller()?;
        self.ground.lab.start_controller()?;
        self.ground.api.await_controller(PATIENCE)?;
        self.ground.await_converged("after the controller's restart", PATIENCE)
    }

    /// Waits until a node has no task any more, by its Docker.
    pub(super) fn await_empty(&self, node: &str) -> Result<()> {
        wait_for(&format!("{node} to be empty"), PATIENCE, || {
            Ok(self.tasks_on(node).is_ok_and(|tasks| tasks.is_empty()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn documents_and_topology_read() {
        let job = Classed { name: "a", profile: "sla", class: "premium", node: "n2", load: Load::Idle };
        for load in [Load::Idle, Load::Busy] {
            Document::read(&Classed { load, ..job }.text()).unwrap();
        }
        Topology::parse(TOPOLOGY).unwrap();
    }
}
