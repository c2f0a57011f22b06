//! The one Docker network of the node: bridge and network of the same name, the whole pool as subnet.

use super::{Docker, EngineError, Request, has_status};
use crate::engine::{NetworkSpec, label};
use bollard::Docker as Client;
use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;
use std::collections::HashMap;

/// From this API version on Docker drops direct routing to unpublished ports unless told otherwise.
const GATEWAY_MODE_API: (usize, usize) = (1, 48);

pub(super) async fn ensure(docker: &Docker, wanted: &NetworkSpec) -> Result<(), EngineError> {
    let client = docker.client().await?;
    if let Some(found) = inspect(docker, &client, &wanted.bridge).await? {
        if !is_ours(docker, &found) {
            let node = docker.owner.node.clone();
            return Err(EngineError::ForeignNetwork { name: wanted.bridge.clone(), node });
        }
        if addresses(&found) == (subnet(wanted), wanted.pool.gateway.to_string()) {
            return Ok(());
        }
        refuse_if_used(wanted, &found)?;
        remove(docker, &wanted.bridge).await?;
    }
    create(docker, &client, wanted).await
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
    let containers = found.containers.as_ref().map_or(0, HashMap::len);
    match containers {
        0 => Ok(()),
        _ => Err(EngineError::NetworkInUse {
            name: wanted.bridge.clone(),
            found: addresses(found).0,
            wanted: subnet(wanted),
            containers,
        }),
    }
}

async fn create(docker: &Docker, client: &Client, wanted: &NetworkSpec) -> Result<(), EngineError> {
    let option = |key: &str, value: &str| (format!("com.docker.network.bridge.{key}"), value.to_owned());
    let mut options =
        HashMap::from([option("name", &wanted.bridge), option("enable_ip_masquerade", "false")]);
    let api = client.client_version();
    if GATEWAY_MODE_API <= (api.major_version, api.minor_version) {
        options.extend([option("gateway_mode_ipv4", "nat-unprotected")]);
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
