//! Containers of ours: made from a spec, found by their labels.

use super::{Docker, EngineError, FoundContainer, Request, forgotten, has_status, hosting, limits};
use crate::engine::{FoundLimits, FoundState, Hold, Limits, TaskKey, Times, label};
use bollard::models::{
    ContainerCreateBody, ContainerSummary, ContainerSummaryStateEnum, EndpointIpamConfig, EndpointSettings,
    HostConfig, HostConfigLogConfig, Mount, MountType, NetworkingConfig, RestartPolicy,
    RestartPolicyNameEnum,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions, StopContainerOptionsBuilder,
};
use edgeloom_common::desired::ContainerSpec;
use edgeloom_common::job::SECRETS_FOLDER;
use std::collections::HashMap;

/// Grace between SIGTERM and SIGKILL: tasks are stream stages without state to write back.
const STOP_GRACE_S: i32 = 2;

pub(super) async fn list(docker: &Docker) -> Result<Vec<FoundContainer>, EngineError> {
    let owner = &docker.owner;
    let labels =
        vec![format!("{}={}", label::CLUSTER, owner.cluster), format!("{}={}", label::NODE, owner.node)];
    let filters = HashMap::from([("label", labels)]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let request = Request { verb: "list", object: "containers" };
    let listed = docker.client().await?.list_containers(Some(options)).await;
    let listed = listed.map_err(|error| docker.refusal(request, &error))?;
    let found = listed.into_iter().filter_map(found).collect();
    limits::look_up(docker, found).await
}

/// A listed container, its limits and times not yet looked up; one whose labels do not read was not made by us and is
/// left alone.
fn found(summary: ContainerSummary) -> Option<FoundContainer> {
    let labels = summary.labels?;
    let key =
        TaskKey { job: labels.get(label::JOB)?.parse().ok()?, task: labels.get(label::TASK)?.parse().ok()? };
    let state = match summary.state? {
        ContainerSummaryStateEnum::CREATED => FoundState::Created,
        ContainerSummaryStateEnum::RUNNING => FoundState::Running,
        ContainerSummaryStateEnum::PAUSED => FoundState::Paused,
        ContainerSummaryStateEnum::EXITED => {
            FoundState::Exited(exit_code(summary.status.as_deref().unwrap_or("")))
        }
        ContainerSummaryStateEnum::DEAD => FoundState::Dead,
        _ => FoundState::Changing,
    };
    Some(FoundContainer {
        id: summary.id?,
        key,
        spec_hash: labels.get(label::SPEC)?.clone(),
        address: labels.get(label::ADDRESS).and_then(|address| address.parse().ok()),
        limits: FoundLimits::default(),
        state,
        times: Times::default(),
        hold: Hold::Free,
    })
}

/// The code in `Exited (137) 2 seconds ago`: the list tells it nowhere else, and an inspect for each
/// ended container would cost a request.
fn exit_code(status: &str) -> Option<i32> {
    status.strip_prefix("Exited (")?.split(')').next()?.parse().ok()
}

pub(super) async fn create(
    docker: &Docker,
    spec: &ContainerSpec,
    bridge: &str,
) -> Result<String, EngineError> {
    docker.hosting.check(spec)?;
    let name = TaskKey::of(spec).container_name();
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    let image = docker.name_to_run(&spec.image).await?;
    let body = ContainerCreateBody { image: Some(image), ..body(docker, spec, bridge) };
    let created = docker.client().await?.create_container(Some(options), body).await;
    let created = created
        .map_err(|error| docker.refusal(Request { verb: "create container", object: &name }, &error))?;
    Ok(created.id)
}

fn body(docker: &Docker, spec: &ContainerSpec, bridge: &str) -> ContainerCreateBody {
    let labels = HashMap::from([
        (label::CLUSTER.to_owned(), docker.owner.cluster.to_string()),
        (label::NODE.to_owned(), docker.owner.node.to_string()),
        (label::JOB.to_owned(), spec.job.to_string()),
        (label::TASK.to_owned(), spec.task.to_string()),
        (label::SPEC.to_owned(), spec.spec_hash.clone()),
        (label::ADDRESS.to_owned(), spec.address.to_string()),
    ]);
    let ipam = EndpointIpamConfig { ipv4_address: Some(spec.address.to_string()), ..Default::default() };
    let endpoint = EndpointSettings { ipam_config: Some(ipam), ..Default::default() };
    ContainerCreateBody {
        hostname: Some(spec.task.to_string()),
        cmd: (!spec.command.is_empty()).then(|| spec.command.clone()),
        env: Some(spec.environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(labels),
        exposed_ports: hosting::exposed(spec),
        host_config: Some(HostConfig { mounts: mounts(docker, spec), ..host_config(spec, bridge) }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(bridge.to_owned(), endpoint)])),
        }),
        ..Default::default()
    }
}

/// Docker does not restart our containers: after a reboot the network has to stand before they start,
/// and that order is the agent's.
fn host_config(spec: &ContainerSpec, bridge: &str) -> HostConfig {
    let limits = limits::in_words(Limits::of(spec));
    HostConfig {
        cpu_period: limits.cpu_period,
        cpu_quota: limits.cpu_quota,
        memory: limits.memory,
        memory_swap: limits.memory_swap,
        init: Some(false),
        network_mode: Some(bridge.to_owned()),
        extra_hosts: Some(spec.hosts.iter().map(|(name, address)| format!("{name}:{address}")).collect()),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(log_files()),
        port_bindings: hosting::bindings(spec),
        ..Default::default()
    }
}

fn mounts(docker: &Docker, spec: &ContainerSpec) -> Option<Vec<Mount>> {
    let all: Vec<Mount> = secrets(docker, spec).into_iter().chain(hosting::mounts(docker, spec)).collect();
    (!all.is_empty()).then_some(all)
}

/// The folder is mounted, not each file: one that a restart of the machine has emptied is filled again before
/// the container starts.
fn secrets(docker: &Docker, spec: &ContainerSpec) -> Option<Mount> {
    let mount = || Mount {
        typ: Some(MountType::BIND),
        source: Some(docker.secrets.of(&TaskKey::of(spec)).display().to_string()),
        target: Some(SECRETS_FOLDER.to_owned()),
        read_only: Some(true),
        ..Default::default()
    };
    (!spec.secrets.is_empty()).then(mount)
}

/// Bounded, so that a task that talks all the time cannot fill the node's disk: 30 MB for each.
pub(super) fn log_files() -> HostConfigLogConfig {
    let options = [("max-size", "10m"), ("max-file", "3")];
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(options.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
    }
}

/// Docker refuses to start what runs without its knowledge: that is ended first. Not before the refusal, since an
/// earlier request that is still being worked on has processes as well, and this one then waits for it and succeeds.
pub(super) async fn start(docker: &Docker, id: &str) -> Result<(), EngineError> {
    match request_start(docker, id).await {
        Err(EngineError::Refused { .. }) if 0 < forgotten::end(id).await? => request_start(docker, id).await,
        answer => answer,
    }
}

async fn request_start(docker: &Docker, id: &str) -> Result<(), EngineError> {
    match docker.client().await?.start_container(id, None::<StartContainerOptions>).await {
        Err(error) if !has_status(&error, 304) => {
            let refusal = docker.refusal(Request { verb: "start container", object: id }, &error);
            Err(if is_network_gone(&refusal) {
                EngineError::NetworkGone { id: id.to_owned() }
            } else {
                refusal
            })
        }
        _ => Ok(()),
    }
}

/// Docker's words for it: `network 5f0c… not found`, in later versions after a colon.
fn is_network_gone(refusal: &EngineError) -> bool {
    let EngineError::Refused { status: 404, reason, .. } = refusal else { return false };
    reason.split_once("network ").is_some_and(|(_, rest)| rest.contains("not found"))
}

/// Docker answers the question only when a start that is under way is done.
pub(super) async fn resume(docker: &Docker, found: &FoundContainer) -> Result<(), EngineError> {
    match limits::times(docker, &found.id).await? {
        Some(times) if times.started_ms != found.times.started_ms => {
            tracing::info!(container = found.id, "docker has started it meanwhile, as it was asked before");
            Ok(())
        }
        _ => start(docker, &found.id).await,
    }
}

pub(super) async fn stop(docker: &Docker, id: &str) -> Result<(), EngineError> {
    let grace = StopContainerOptionsBuilder::new().t(STOP_GRACE_S).build();
    match docker.client().await?.stop_container(id, Some(grace)).await {
        Err(error) if !has_status(&error, 304) && !has_status(&error, 404) => {
            Err(docker.refusal(Request { verb: "stop container", object: id }, &error))
        }
        _ => Ok(()),
    }
}

pub(super) async fn remove(docker: &Docker, id: &str) -> Result<(), EngineError> {
    stop(docker, id).await?;
    // While there still is a container to find them by.
    forgotten::end(id).await?;
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match docker.client().await?.remove_container(id, Some(options)).await {
        // 409: a removal is on its way already.
        Err(error) if !has_status(&error, 404) && !has_status(&error, 409) => {
            Err(docker.refusal(Request { verb: "remove container", object: id }, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_read_from_the_status() {
        assert_eq!(exit_code("Exited (137) 2 seconds ago"), Some(137));
        assert_eq!(exit_code("Up 3 minutes"), None);
    }

    #[test]
    fn a_network_that_is_gone_is_told_from_a_container_that_is() {
        let refused = |status, reason: &str| {
            let (object, reason) = (String::new(), reason.to_owned());
            is_network_gone(&EngineError::Refused { verb: "start container", object, status, reason })
        };
        assert!(refused(404, "network 5f0c not found"));
        assert!(refused(404, "failed to set up container networking: network 5f0c not found"));
        assert!(!refused(404, "No such container: network"));
        assert!(!refused(500, "network 5f0c not found"));
    }

    #[test]
    fn a_container_with_foreign_labels_is_not_ours() {
        let labels = HashMap::from([(label::JOB.to_owned(), "Not A Name".to_owned())]);
        assert_eq!(found(ContainerSummary { labels: Some(labels), ..Default::default() }), None);
    }
}
