//! The one Docker network of the node: bridge and network of the same name, the whole pool as subnet.

use super::{Docker, EngineError, Request, has_status, ports};
use crate::engine::{NetworkFlaw, NetworkSpec, label};
use bollard::Docker as Client;
use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;
use std::collections::HashMap;

/// From this API version on Docker drops direct routing to unpublished ports unless told otherwise.
const GATEWAY_MODE_API: (usize, usize) = (1, 48);
const OPTION: &str = "com.docker.network.bridge.";
const GATEWAY_MODE: &str = "gateway_mode_ipv4";
const DIRECT: &str = "nat-unprotected";

pub(super) async fn ensure(
    docker: &Docker,
    wanted: &NetworkSpec,
) -> Result<Option<NetworkFlaw>, EngineError> {
    let client = docker.client().await?;
    if let Some(found) = inspect(docker, &client, &wanted.bridge).await? {
        if !is_ours(docker, &found) {
            let node = docker.owner.node.clone();
            return Err(EngineError::ForeignNetwork { name: wanted.bridge.clone(), node });
        }
        if addresses(&found) == (subnet(wanted), wanted.pool.gateway.to_string()) {
            ports::drop_orphans(docker, &wanted.bridge, running(&found)).await;
            let name = wanted.bridge.clone();
            match running(&found) {
                _ if routes_directly(api(&client), found.options.as_ref()) => return Ok(None),
                0 => {}
                containers => return Ok(Some(NetworkFlaw::NoDirectRouting { name, containers })),
            }
        }
        refuse_if_used(wanted, &found)?;
        remove(docker, &wanted.bridge).await?;
    }
    create(docker, &client, wanted).await.map(|()| None)
}

fn api(client: &Client) -> (usize, usize) {
    let version = client.client_version();
    (version.major_version, version.minor_version)
}

/// What other nodes send reaches the containers.
fn routes_directly(api: (usize, usize), options: Option<&HashMap<String, String>>) -> bool {
    let mode = options.and_then(|options| options.get(&format!("{OPTION}{GATEWAY_MODE}")));
    api < GATEWAY_MODE_API || mode.is_some_and(|mode| mode == DIRECT || mode == "routed")
}

/// Containers that run on it; stopped ones are not listed.
fn running(found: &NetworkInspect) -> usize {
    found.containers.as_ref().map_or(0, HashMap::len)
}

async fn inspect(
    docker: &Docker,
    client: &Client,
    name: &str,
) -> Result<Option<NetworkInspect>, EngineError> {
    match client.inspect_network(name, None::<InspectNetworkOptions>).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if has_status(&error, 404) => Ok(None),
        Err(error) => Err(docker.refusal(Request { verb: "inspect network", object: name }, &error)),
    }
}

fn is_ours(docker: &Docker, found: &NetworkInspect) -> bool {
    found
        .labels
        .as_ref()
        .and_then(|labels| labels.get(label::NODE))
        .is_some_and(|node| *node == docker.owner.node.as_str())
}

fn subnet(wanted: &NetworkSpec) -> String {
    format!("{}/{}", wanted.pool.network, wanted.pool.prefix_len)
}

/// Subnet and gateway as found.
fn addresses(found: &NetworkInspect) -> (String, String) {
    let config =
        found.ipam.as_ref().and_then(|ipam| ipam.config.as_ref()).and_then(|configs| configs.first());
    config
        .map(|config| (config.subnet.clone().unwrap_or_default(), config.gateway.clone().unwrap_or_default()))
        .unwrap_or_default()
}

fn refuse_if_used(wanted: &NetworkSpec, found: &NetworkInspect) -> Result<(), EngineError> {
    match running(found) {
        0 => Ok(()),
        containers => Err(EngineError::NetworkInUse {
            name: wanted.bridge.clone(),
            found: addresses(found).0,
            wanted: subnet(wanted),
            containers,
        }),
    }
}

async fn create(docker: &Docker, client: &Client, wanted: &NetworkSpec) -> Result<(), EngineError> {
    let option = |key: &str, value: &str| (format!("{OPTION}{key}"), value.to_owned());
    let mut options =
        HashMap::from([option("name", &wanted.bridge), option("enable_ip_masquerade", "false")]);
    if GATEWAY_MODE_API <= api(client) {
        options.extend([option(GATEWAY_MODE, DIRECT)]);
    }
    let config = IpamConfig {
        subnet: Some(subnet(wanted)),
        gateway: Some(wanted.pool.gateway.to_string()),
        ..Default::default()
    };
    let request = NetworkCreateRequest {
        name: wanted.bridge.clone(),
        driver: Some("bridge".to_owned()),
        ipam: Some(Ipam { config: Some(vec![config]), ..Default::default() }),
        options: Some(options),
        labels: Some(HashMap::from([
            (label::NODE.to_owned(), docker.owner.node.to_string()),
            (label::CLUSTER.to_owned(), docker.owner.cluster.to_string()),
        ])),
        ..Default::default()
    };
    let created = client.create_network(request).await;
    created
        .map(drop)
        .map_err(|error| docker.refusal(Request { verb: "create network", object: &wanted.bridge }, &error))
}

pub(super) async fn remove(docker: &Docker, name: &str) -> Result<(), EngineError> {
    let client = docker.client().await?;
    match inspect(docker, &client, name).await? {
        Some(found) if is_ours(docker, &found) => {}
        _ => return Ok(()),
    }
    match client.remove_network(name).await {
        Err(error) if !has_status(&error, 404) => {
            Err(docker.refusal(Request { verb: "remove network", object: name }, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_kept_from_before_docker_28_is_found_out_by_its_options() {
        let options = |mode: Option<&str>| {
            let key = "com.docker.network.bridge.gateway_mode_ipv4".to_owned();
            mode.map(|mode| HashMap::from([(key, mode.to_owned())]))
        };
        for (api, mode, direct) in [
            ((1, 47), None, true),
            ((1, 48), None, false),
            ((1, 48), Some("nat"), false),
            ((1, 48), Some("nat-unprotected"), true),
            ((2, 0), Some("routed"), true),
        ] {
            assert_eq!(routes_directly(api, options(mode).as_ref()), direct, "{api:?} {mode:?}");
        }
    }
}
