//! A node's containers of ours: as Docker tells them, with the limits that the kernel enforces.

use super::holding::CONTAINER;
use crate::lab::Node;
use crate::{cgroup, docker};
use anyhow::{Context, Result};
use serde_json::Value;

/// A container of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Container {
    pub(crate) node: String,
    pub(crate) job: String,
    pub(crate) task: String,
    /// Changes when the container is restarted or replaced.
    pub(crate) life: String,
    pub(crate) id: String,
    pub(crate) running: bool,
    /// Processes of its own, 0 when it does not run.
    pub(crate) pid: i32,
    /// How often Docker itself started it again.
    pub(crate) restarts: i64,
    /// Image, specification, address and limits.
    pub(crate) content: String,
}

/// What `of` tells of each thing: kind, content, identity.
pub(super) type Told = (&'static str, String, String);

pub(super) fn of(node: &Node<'_>) -> Result<Vec<Told>> {
    let told = |one: Container| (CONTAINER, one.content, one.life);
    Ok(list(node)?.into_iter().map(told).collect())
}

/// Every container of a task on a node, whether it runs or not.
pub(crate) fn list(node: &Node<'_>) -> Result<Vec<Container>> {
    let found = docker::ask(&node.docker_socket(), "/containers/json?all=1")?;
    let found = found.as_array().context("Docker lists containers")?.iter();
    let ours = found.filter(|one| !one["Labels"]["edgeloom.task"].is_null());
    ours.filter_map(|one| one["Id"].as_str()).map(|id| inspect(node, id)).collect()
}

fn inspect(node: &Node<'_>, id: &str) -> Result<Container> {
    let found = docker::ask(&node.docker_socket(), &format!("/containers/{id}/json"))?;
    let label = |key: &str| text(&found["Config"]["Labels"][key]);
    let (job, task) = (label("edgeloom.job"), label("edgeloom.task"));
    let running = found["State"]["Running"] == true;
    let networks = found["NetworkSettings"]["Networks"].as_object().into_iter().flatten();
    let addresses: Vec<String> = networks.map(|(_, network)| text(&network["IPAddress"])).collect();
    let host = &found["HostConfig"];
    let enforced = if running { cgroup::limits(&node.lab.id, &node.spec.name, id)? } else { String::new() };
    Ok(Container {
        node: node.spec.name.clone(),
        content: format!(
            "{job}/{task} running {running} image {} specification {} address {} docker: quota {} memory {}; \
             kernel: {enforced}",
            text(&found["Config"]["Image"]),
            label("edgeloom.spec"),
            addresses.join(" "),
            host["CpuQuota"],
            host["Memory"],
        ),
        life: format!("{id} since {}", text(&found["State"]["StartedAt"])),
        id: id.to_owned(),
        running,
        pid: i32::try_from(found["State"]["Pid"].as_i64().unwrap_or(0))?,
        restarts: found["RestartCount"].as_i64().unwrap_or(0),
        job,
        task,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
