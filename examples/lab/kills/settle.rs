//! After the last kill: everything comes to rest as acknowledged, then everything stops, and nothing is left.

use super::client::Desk;
use super::ledger::Known;
use super::lives::{Eye, Life};
use super::report::{Report, Violation};
use crate::api::wait_for;
use crate::docker;
use crate::ground::Ground;
use crate::leftovers::Snapshot;
use anyhow::{Context, Result};
use edgeloom_common::view::{JobState, JobView};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the cluster may take to come to rest, pauses between attempts among it.
const REST_LIMIT: Duration = Duration::from_secs(180);
/// How long the process of a container may take that Docker says runs, at a fiftieth of a core.
const PROCESS_LIMIT: Duration = Duration::from_secs(5);
/// How long a running job may take to finish another item.
const ITEM_LIMIT: Duration = Duration::from_secs(20);
/// All tasks have their addresses in this pool; its network and gateway are of no task.
const POOL: &str = "10.77.";
const NO_TASKS: [&str; 3] = ["10.77.0.0", "10.77.0.1", "10.77.255.255"];

/// Nodes as they were before the first job.
pub(crate) type Resting = BTreeMap<String, Snapshot>;

pub(crate) fn resting(ground: &Ground) -> Result<Resting> {
    let nodes = ground.lab.nodes();
    nodes.iter().map(|node| Ok((node.spec.name.clone(), Snapshot::take(node)?))).collect()
}

/// What is looked at and told at the end.
#[derive(Debug)]
pub(crate) struct Settling<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) desk: &'a Desk<'a>,
    pub(crate) resting: &'a Resting,
    pub(crate) report: &'a mut Report,
}

impl Settling<'_> {
    /// With the jobs that are left, and without any.
    pub(crate) fn run(&mut self) -> Result<()> {
        let jobs = self.come_to_rest()?;
        self.compare_containers(&jobs)?;
        self.compare_addresses(&jobs)?;
        self.see_items(&jobs);
        for job in jobs {
            self.desk.stop(job.name.as_str());
        }
        self.come_to_rest()?;
        self.compare_with_before()
    }

    fn violate(&mut self, kind: &'static str, about: &[&str], text: String) {
        let timeline = self.desk.timeline;
        timeline.note(about.first().copied().unwrap_or("controller"), format!("VIOLATION {kind}: {text}"));
        self.report.violations.push(Violation::now(kind, text, timeline, about));
    }

    /// Waits until lists, states and nodes are as acknowledged; what is not in time is a violation each.
    fn come_to_rest(&mut self) -> Result<Vec<JobView>> {
        let mut open = Vec::new();
        let mut jobs = Vec::new();
        let waited = wait_for("the cluster to come to rest", REST_LIMIT, || {
            std::thread::sleep(Duration::from_millis(200));
            let Ok(list) = self.desk.compare_list() else { return Ok(false) };
            let ledger = self.desk.ledger.lock().expect("nobody panics with the ledger in hand");
            open = unsettled(&list.jobs, &ledger.with(Known::Accepted), &ledger.with(Known::Stopped));
            jobs = list.jobs;
            Ok(open.is_empty())
        });
        if waited.is_err() {
            for (job, text) in open {
                self.violate("acknowledged job lost", &[&job], format!("{job}: {text}"));
            }
        }
        self.ground.await_converged("after the kills", REST_LIMIT)?;
        Ok(jobs)
    }

    /// Processes, Docker's lists and the controller's answer name the same containers.
    fn compare_containers(&mut self, jobs: &[JobView]) -> Result<()> {
        let tasks = jobs.iter().flat_map(|job| job.tasks.iter().map(move |task| (job, task)));
        let wanted: BTreeMap<String, String> = tasks
            .map(|(job, task)| (task.container.clone(), format!("{} {} {}", job.name, task.name, task.node)))
            .collect();
        let told =
            |life: &Life| (life.container.clone(), format!("{} {} {}", life.job, life.task, life.node));
        // Docker says that a container runs a moment before its process has become the program.
        let mut eye = Eye::new(&self.ground.lab);
        let mut running: BTreeMap<_, _> = BTreeMap::new();
        let complete = wait_for("the processes of all containers", PROCESS_LIMIT, || {
            running = eye.look().iter().map(told).collect();
            Ok(wanted.keys().all(|container| running.contains_key(container)))
        });
        if let Err(error) = complete {
            self.desk.timeline.note("controller", format!("{error:#}"));
        }
        let mut listed = BTreeSet::new();
        for node in self.ground.lab.nodes() {
            let filter = "/containers/json?all=1&filters=%7B%22label%22%3A%5B%22edgeloom.task%22%5D%7D";
            let found = docker::ask(&node.docker_socket(), filter)?;
            let found = found.as_array().context("Docker's list is no list")?;
            listed.extend(found.iter().filter_map(|one| Some(one["Id"].as_str()?.to_owned())));
        }
        for (container, task) in wanted.iter().filter(|(container, _)| !running.contains_key(*container)) {
            let job = task.split(' ').next().unwrap_or_default().to_owned();
            self.violate("acknowledged job lost", &[&job], format!("{task}: no process in {container:.12}"));
        }
        let orphans: BTreeSet<&String> =
            running.keys().chain(&listed).filter(|container| !wanted.contains_key(*container)).collect();
        for container in orphans {
            let task = running.get(container).cloned().unwrap_or_else(|| "not running".to_owned());
            let job = task.split(' ').next().unwrap_or_default().to_owned();
            self.violate("orphan", &[&job], format!("container {container:.12}, {task}"));
        }
        (self.report.jobs_at_rest, self.report.containers_at_rest) = (jobs.len(), wanted.len());
        Ok(())
    }

    /// No map entry and no route of any node names an address that no listed job has.
    fn compare_addresses(&mut self, jobs: &[JobView]) -> Result<()> {
        let tasks = jobs.iter().flat_map(|job| &job.tasks);
        let wanted: BTreeSet<String> = tasks.filter_map(|task| Some(task.address?.to_string())).collect();
        for node in self.ground.node_names() {
            for words in [
                &["nft", "list", "table", "ip", "edgeloom"][..],
                &["ip", "-4", "route", "show", "table", "all", "proto", "117"],
            ] {
                let text = self.ground.exec(&node, words)?;
                for address in addresses(&text).difference(&wanted) {
                    let text = format!("{address} in `{}` of {node}", words.join(" "));
                    self.violate("orphan", &[&node], text);
                }
            }
        }
        Ok(())
    }

    /// Every job that is told to run finishes items.
    fn see_items(&mut self, jobs: &[JobView]) {
        let items = |job: &str| self.ground.engines.items(job, "right").map_or(0, |count| count.items);
        let before: Vec<u64> = jobs.iter().map(|job| items(job.name.as_str())).collect();
        let goes_on = |(job, before): &(&JobView, u64)| {
            let name = job.name.as_str();
            wait_for("an item", ITEM_LIMIT, || Ok(items(name) > *before)).is_ok()
        };
        let still: Vec<String> = jobs
            .iter()
            .zip(before)
            .filter(|one| !goes_on(one))
            .map(|(job, _)| job.name.to_string())
            .collect();
        for job in still {
            self.violate(
                "acknowledged job lost",
                &[&job],
                format!("{job} is told to run and finishes nothing"),
            );
        }
    }

    /// Every node is as before the first job.
    fn compare_with_before(&mut self) -> Result<()> {
        for node in self.ground.lab.nodes() {
            let name = &node.spec.name;
            let before = self.resting.get(name).context("every node has a snapshot")?;
            for (kind, lines) in Snapshot::take(&node)?.beyond(before) {
                let (docker, ours): (Vec<_>, Vec<_>) =
                    lines.into_iter().partition(|line| is_of_docker(kind, line));
                self.report.left_by_docker += docker.len();
                for line in ours {
                    self.violate("orphan", &[name], format!("{kind} on {name}: {line}"));
                }
            }
        }
        Ok(())
    }
}

/// Docker, killed while it joins a container to its network, leaves a pair of interfaces behind. They carry no mark
/// of ours and lead nowhere: they are counted, and nobody's to remove but Docker's.
fn is_of_docker(kind: &str, line: &str) -> bool {
    ["links", "qdiscs"].contains(&kind) && line.contains("\"veth")
}

/// Jobs that are not as acknowledged, and how they are.
fn unsettled(jobs: &[JobView], accepted: &[String], stopped: &[String]) -> Vec<(String, String)> {
    let state = |name: &String| {
        let job = jobs.iter().find(|job| job.name.as_str() == name)?;
        Some((job.state, job.reason.clone()))
    };
    let not_running = accepted.iter().filter_map(|name| match state(name) {
        Some((JobState::Running, _)) => None,
        Some((state, reason)) => Some((name.clone(), format!("accepted, and it is {state:?}: {reason}"))),
        None => Some((name.clone(), "accepted, and not listed".to_owned())),
    });
    let not_gone = stopped.iter().filter_map(|name| {
        let (state, reason) = state(name)?;
        Some((name.clone(), format!("its end is acknowledged, and it is {state:?}: {reason}")))
    });
    not_running.chain(not_gone).collect()
}

/// Addresses of tasks in a text.
fn addresses(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    let ours = words.filter(|word| word.starts_with(POOL) && !NO_TASKS.contains(word));
    ours.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_tasks_are_found_in_maps_and_routes() {
        let text = "elements = { 10.77.0.10 . 10.77.3.4 . tcp . 7000 : 4501:1 }\n10.77.0.0/16 dev edgeloom0 src 10.77.0.1\n";
        assert_eq!(addresses(text), ["10.77.0.10", "10.77.3.4"].map(str::to_owned).into());
        assert_eq!(addresses("10.61.1.1 via 10.60.0.1"), BTreeSet::new());
    }

    #[test]
    fn only_pairs_of_interfaces_are_put_down_to_docker() {
        assert!(is_of_docker("links", "\"veth3f36ea4\"") && !is_of_docker("links", "\"edgeloom0\""));
        assert!(!is_of_docker("classes", "\"veth3f36ea4\"") && !is_of_docker("containers", "\"veth\""));
    }

    #[test]
    fn a_job_is_settled_as_it_was_acknowledged() {
        let name = |name: &str| vec![name.to_owned()];
        assert_eq!(unsettled(&[], &name("a"), &[]).len(), 1);
        assert!(unsettled(&[], &[], &name("a")).is_empty());
    }
}
