//! `agent.toml`: what the file says, checked as a whole, so that every problem is told at once.
//!
//! [`Config::load`] reads the file once; afterwards each part of the agent gets its own values and
//! nobody reads the file again. Unknown keys are refused: a typing error must not become a default.

mod check;
mod controller;
mod images;
mod layers;
mod place;
mod problem;
mod volumes;

pub use controller::{Controller, IdentityFiles};
pub use images::{Bound, ImageSettings, Scope};
pub use layers::LayerSettings;
pub use place::Place;
pub use problem::{ConfigError, ConfigProblem};

use crate::join::Membership;
use crate::secrets::RUNTIME_DIR;
use crate::store::SECRETS_KEY;
use check::Check;
use controller::RawController;
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::job::Taint;
use edgeloom_common::units::BitRate;
use images::RawImages;
use layers::RawLayers;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use volumes::RawVolumes;

/// Where the unit looks for the configuration.
pub const CONFIG_USUAL: &str = "/etc/edgeloom/agent.toml";
/// The longest interface name of Linux (IFNAMSIZ of net/if.h, less the closing zero).
const INTERFACE_NAME_MAX: usize = 15;
const CLASS_MAX: usize = 63;
/// A configuration is a page or two; more is a wrong file.
const FILE_MAX_BYTES: u64 = 1 << 20;
const STATE_DIR: &str = "/var/lib/edgeloom-agent";
pub(crate) const DOCKER_SOCKET: &str = "unix:///var/run/docker.sock";
pub(crate) const BRIDGE: &str = "edgeloom0";
const CONTROLLER_PORT: u16 = 8883;

/// The checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    pub cluster: ClusterId,
    pub node: NodeId,
    pub state_dir: PathBuf,
    /// A folder in memory, where containers find their secrets.
    pub runtime_dir: PathBuf,
    /// The file of the key that seals what only this node may read; below the state directory unless it is named.
    pub secrets_key: PathBuf,
    /// Path of Docker's unix socket.
    pub docker_socket: PathBuf,
    /// Name of the Docker network and of its bridge.
    pub bridge: String,
    /// The cgroup to count instead of the machine, relative to the cgroup mount.
    pub cgroup: Option<String>,
    /// The hardware class; none: what the machine says of itself.
    pub class: Option<String>,
    pub controller: Option<Controller>,
    pub labels: BTreeMap<String, String>,
    /// What keeps tasks away that do not tolerate it.
    pub taints: Vec<Taint>,
    pub links: Vec<Link>,
    pub layers: LayerSettings,
    pub images: ImageSettings,
    /// Folders that containers may mount, with all below them.
    pub volumes: Vec<PathBuf>,
}

/// A link to a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub neighbour: NodeId,
    pub interface: String,
    /// Ours; none: what the interface has, also when that changes.
    pub address: Option<Ipv4Addr>,
    /// As long as the controller knows no newer one.
    pub neighbour_address: Ipv4Addr,
    /// Declared wire rate.
    pub capacity: Option<BitRate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    cluster: Option<String>,
    node: Option<String>,
    state_dir: PathBuf,
    runtime_dir: Option<PathBuf>,
    secrets_key: Option<PathBuf>,
    docker: Option<String>,
    bridge: Option<String>,
    cgroup: Option<String>,
    class: Option<String>,
    controller: Option<RawController>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<String>,
    #[serde(default, rename = "link")]
    links: Vec<RawLink>,
    #[serde(default)]
    layers: RawLayers,
    #[serde(default)]
    images: RawImages,
    #[serde(default)]
    volumes: RawVolumes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    neighbour: String,
    interface: String,
    address: Option<String>,
    neighbour_address: String,
    capacity: Option<String>,
}

/// The file as it is written.
fn read(path: &Path) -> Result<RawConfig, ConfigError> {
    let read = |source| ConfigError::Read { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(read)?.len();
    if FILE_MAX_BYTES < bytes {
        return Err(ConfigError::TooLarge { path: path.to_owned(), bytes });
    }
    let text = std::fs::read_to_string(path).map_err(read)?;
    toml::from_str(&text)
        .map_err(|source| ConfigError::Syntax { path: path.to_owned(), source: Box::new(source) })
}

impl Config {
    /// Reads and checks the file. What it leaves out of who we are, joining has written.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let raw = read(path)?;
        // A node goes on alone without its membership, if the file says who it is.
        let joined = Membership::load(&raw.state_dir).unwrap_or_else(|error| {
            tracing::error!(%error, "no membership");
            None
        });
        Self::check(raw, joined.as_ref())
            .map_err(|problems| ConfigError::Invalid { path: path.to_owned(), problems })
    }

    fn check(raw: RawConfig, joined: Option<&Membership>) -> Result<Self, Vec<ConfigProblem>> {
        let mut check = Check::default();
        let cluster = check.own("cluster", raw.cluster.as_deref(), joined.map(|joined| &joined.cluster));
        let node = check.own("node", raw.node.as_deref(), joined.map(|joined| &joined.node));
        check.absolute("state_dir", &raw.state_dir);
        let runtime_dir = raw.runtime_dir.unwrap_or_else(|| RUNTIME_DIR.into());
        check.absolute("runtime_dir", &runtime_dir);
        if let Some(path) = &raw.secrets_key {
            check.absolute("secrets_key", path);
        }
        let secrets_key = raw.secrets_key.unwrap_or_else(|| raw.state_dir.join(SECRETS_KEY));
        let bridge = raw.bridge.unwrap_or_else(|| BRIDGE.to_owned());
        check.interface("bridge", &bridge);
        let docker = raw.docker.unwrap_or_else(|| DOCKER_SOCKET.to_owned());
        let docker_socket = check.docker_socket(&docker);
        if let Some(cgroup) = &raw.cgroup {
            check.cgroup(cgroup);
        }
        if let Some(class) = &raw.class {
            check.class(class);
        }
        let controller = raw.controller.map(|controller| check.controller(controller));
        let controller = controller.or_else(|| {
            let Membership { host, mqtt_port, .. } = joined?.clone();
            Some(Controller { host, port: mqtt_port, files: None })
        });
        let links = check.links(&raw.links, node.as_ref());
        let layers = check.layers(&raw.layers);
        let images = check.images(&raw.images);
        let volumes = check.volumes(raw.volumes);
        let taints = check.taints(&raw.taints);
        match (cluster, node) {
            (Some(cluster), Some(node)) if check.problems.is_empty() => Ok(Self {
                cluster,
                node,
                state_dir: raw.state_dir,
                runtime_dir,
                secrets_key,
                docker_socket,
                bridge,
                cgroup: raw.cgroup,
                class: raw.class,
                controller,
                labels: raw.labels,
                taints,
                links,
                layers,
                images,
                volumes,
            }),
            _ => Err(check.problems),
        }
    }
}

#[cfg(test)]
mod tests;
