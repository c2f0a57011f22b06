//! What a container gets of its node beside resources: ports of its addresses, volumes and folders.
//!
//! A volume is `edgeloom_<job>_<task>_<name>`, carries the marks of its owner and outlives containers and jobs; only
//! `purge` and whoever asks for it by name remove it. A folder of the node is mounted where agent.toml allows that, looked at where its links lead.

use super::{Docker, EngineError, Request, has_status};
use crate::engine::{TaskKey, label};
use bollard::models::{Mount as Mounted, MountType, MountVolumeOptions, PortBinding, PortMap};
use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptions};
use edgeloom_common::desired::ContainerSpec;
use edgeloom_common::ids::VolumeName;
use edgeloom_common::job::{HostPort, Mount, Origin, Protocol};
use edgeloom_common::volume::HeldVolume;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What this node lets containers have.
#[derive(Debug, Clone, Default)]
pub struct Hosting {
    /// Folders, with all below them.
    pub folders: Vec<PathBuf>,
    /// TCP ports on which the agent listens itself.
    pub own_ports: Vec<u16>,
}

impl Hosting {
    /// Why the container cannot have what it asks for.
    pub(crate) fn check(&self, spec: &ContainerSpec) -> Result<(), EngineError> {
        let own = |port: &&HostPort| port.protocol == Protocol::Tcp && self.own_ports.contains(&port.port);
        if let Some(HostPort { port, .. }) = spec.ports.iter().find(own) {
            return Err(EngineError::OwnPort { port: *port });
        }
        let folders = spec.mounts.iter().filter_map(|mount| match &mount.from {
            Origin::Host(folder) => Some(folder),
            Origin::Volume(_) => None,
        });
        folders.into_iter().try_for_each(|folder| self.allows(folder))
    }

    fn allows(&self, folder: &str) -> Result<(), EngineError> {
        let closed =
            |reason: &str| EngineError::HostFolder { folder: folder.to_owned(), reason: reason.to_owned() };
        let real = Path::new(folder).canonicalize().map_err(|error| closed(&error.to_string()))?;
        let within =
            |allowed: &PathBuf| allowed.canonicalize().is_ok_and(|allowed| real.starts_with(allowed));
        if self.folders.iter().any(within) {
            return Ok(());
        }
        Err(closed(
            "agent.toml does not allow it; add it to `allow` below [volumes] if containers may have it",
        ))
    }
}

/// Ports that Docker has to know of, each once.
pub(super) fn exposed(spec: &ContainerSpec) -> Option<Vec<String>> {
    let mut ports: Vec<String> = spec.ports.iter().map(inner).collect();
    ports.sort();
    ports.dedup();
    (!ports.is_empty()).then_some(ports)
}

pub(super) fn bindings(spec: &ContainerSpec) -> Option<PortMap> {
    let mut bindings = PortMap::new();
    for port in &spec.ports {
        let binding = PortBinding { host_ip: None, host_port: Some(port.port.to_string()) };
        bindings.entry(inner(port)).or_insert_with(|| Some(Vec::new())).get_or_insert_default().push(binding);
    }
    (!bindings.is_empty()).then_some(bindings)
}

fn inner(port: &HostPort) -> String {
    let protocol = match port.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    format!("{}/{protocol}", port.container)
}

pub(super) fn mounts(docker: &Docker, spec: &ContainerSpec) -> Vec<Mounted> {
    let mounted = |mount: &Mount| {
        let (typ, source, volume_options) = match &mount.from {
            Origin::Host(folder) => (MountType::BIND, folder.clone(), None),
            Origin::Volume(name) => {
                let options = MountVolumeOptions { labels: Some(labels(docker, spec)), ..Default::default() };
                (MountType::VOLUME, volume(&TaskKey::of(spec), name), Some(options))
            }
        };
        Mounted {
            typ: Some(typ),
            source: Some(source),
            target: Some(mount.path.clone()),
            read_only: Some(mount.read_only),
            volume_options,
            ..Default::default()
        }
    };
    spec.mounts.iter().map(mounted).collect()
}

/// `_` is in no name, so no two are the same.
pub(crate) fn volume(task: &TaskKey, name: &VolumeName) -> String {
    format!("{}_{name}", task.container_name())
}

fn labels(docker: &Docker, spec: &ContainerSpec) -> HashMap<String, String> {
    let labels = [
        (label::CLUSTER, docker.owner.cluster.to_string()),
        (label::NODE, docker.owner.node.to_string()),
        (label::JOB, spec.job.to_string()),
        (label::TASK, spec.task.to_string()),
    ];
    labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Volumes that are told of; a node that holds more is nobody's plan.
const VOLUMES_MAX: usize = 1024;

/// The owner's volumes.
pub(super) async fn volumes(docker: &Docker) -> Result<Vec<HeldVolume>, EngineError> {
    let names = listed(docker).await?;
    let mut held: Vec<HeldVolume> = names.iter().filter_map(|name| held(name)).collect();
    held.sort();
    if held.len() > VOLUMES_MAX {
        tracing::warn!(bound = VOLUMES_MAX, held = held.len(), "not all volumes are told of");
        held.truncate(VOLUMES_MAX);
    }
    Ok(held)
}

/// Of a name as [`volume`] makes them.
pub(super) fn held(name: &str) -> Option<HeldVolume> {
    name.strip_prefix("edgeloom_")?.replace('_', "/").parse().ok()
}

/// Removes one of the owner's volumes with all that is in it; gone already is well.
pub(super) async fn remove_volume(docker: &Docker, held: &HeldVolume) -> Result<(), EngineError> {
    let task = TaskKey { job: held.job.clone(), task: held.task.clone() };
    let name = volume(&task, &held.volume);
    match listed(docker).await?.contains(&name) {
        true => remove(docker, &name).await,
        false => Ok(()),
    }
}

/// Removes the owner's volumes with all that is in them.
pub(super) async fn remove_volumes(docker: &Docker) -> Result<(), EngineError> {
    for name in listed(docker).await? {
        remove(docker, &name).await?;
    }
    Ok(())
}

async fn listed(docker: &Docker) -> Result<Vec<String>, EngineError> {
    let owner = &docker.owner;
    let labels =
        vec![format!("{}={}", label::CLUSTER, owner.cluster), format!("{}={}", label::NODE, owner.node)];
    let options = ListVolumesOptionsBuilder::new().filters(&HashMap::from([("label", labels)])).build();
    let listed = docker.client().await?.list_volumes(Some(options)).await;
    let listed =
        listed.map_err(|error| docker.refusal(Request { verb: "list", object: "volumes" }, &error))?;
    Ok(listed.volumes.unwrap_or_default().into_iter().map(|volume| volume.name).collect())
}

async fn remove(docker: &Docker, name: &str) -> Result<(), EngineError> {
    match docker.client().await?.remove_volume(name, None::<RemoveVolumeOptions>).await {
        Err(error) if !has_status(&error, 404) => {
            Err(docker.refusal(Request { verb: "remove volume", object: name }, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
