//! `agent.toml`: what the file says, checked as a whole, so that every problem is told at once.
//!
//! [`Config::load`] reads the file once; afterwards each part of the agent gets its own values and
//! nobody reads the file again. Unknown keys are refused: a typing error must not become a default.

mod controller;
mod images;
mod layers;
mod place;

pub use controller::{Controller, IdentityFiles};
pub use images::{Bound, ImageSettings, Scope};
pub use layers::LayerSettings;
pub use place::Place;

use crate::join::Membership;
use crate::secrets::RUNTIME_DIR;
use crate::store::SECRETS_KEY;
use controller::RawController;
use edgeloom_common::ids::{ClusterId, NameError, NodeId};
use edgeloom_common::job::{Taint, TaintError};
use edgeloom_common::units::{BitRate, UnitError};
use images::RawImages;
use layers::RawLayers;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

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

/// One thing wrong in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// A name of a cluster or node that is none.
    #[error("{key}: {source}")]
    Name { key: String, source: NameError },
    /// A rate that does not read.
    #[error("{key}: {source}")]
    Rate { key: String, source: UnitError },
    /// A taint that does not read.
    #[error("{key}: {source}; write it like gpu=yes:no_schedule")]
    Taint { key: String, source: TaintError },
    /// No IPv4 address.
    #[error("{key}: {value:?} is no IPv4 address of a host, write it like 10.61.1.1")]
    Address { key: String, value: String },
    /// Not a name that the kernel takes for an interface.
    #[error(
        "{key}: {value:?} is no interface name: 1 to {INTERFACE_NAME_MAX} characters without '/', ':' and blanks"
    )]
    Interface { key: String, value: String },
    /// The same value twice where it has to be unique.
    #[error("{key}: {value:?} appears a second time")]
    Duplicate { key: String, value: String },
    /// A link to ourselves.
    #[error("{key}: the neighbour {node} is this node itself")]
    OwnNeighbour { key: String, node: NodeId },
    /// Docker over something else than a unix socket.
    #[error("docker: {value:?} is no unix socket, write it like {DOCKER_SOCKET}")]
    Docker { value: String },
    /// A path that depends on where the daemon was started.
    #[error("{key}: {} is not an absolute path", value.display())]
    RelativePath { key: &'static str, value: PathBuf },
    /// A cgroup outside the mount.
    #[error("cgroup: {value:?} has to be relative to the cgroup mount and without '..'")]
    Cgroup { value: String },
    /// No word for a hardware class.
    #[error(
        "class: {value:?} is no word of 1 to {CLASS_MAX} of a-z, 0-9, '.', '_' and '-', write it like pi4"
    )]
    Class { value: String },
    /// No host to connect to.
    #[error("controller.host is empty")]
    Host,
    /// Neither written nor known from joining.
    #[error("{key}: is missing; write it, or join a cluster with `edgeloom-agent join CONTROLLER TOKEN`")]
    NotJoined { key: &'static str },
    /// Another than the certificate's.
    #[error(
        "{key}: {written:?} is written, but this machine joined as {joined:?}; correct it, or join again"
    )]
    JoinedAs { key: &'static str, written: String, joined: String },
    /// One or two of three.
    #[error("controller: ca, certificate and key belong together; write all three, or none after joining")]
    SomeFiles,
    /// Port 0, where neighbours get layers.
    #[error("layers.port is 0; leave it out for the usual one")]
    LayerPort,
    /// Bounds of which one is never reached.
    #[error(
        "images.gc_low is {low} and gc_high {high}; write both in % or both in bytes, gc_low below gc_high"
    )]
    Bounds { low: Bound, high: Bound },
    /// A size that does not read.
    #[error("{key}: {source}")]
    Bytes { key: &'static str, source: UnitError },
    /// Port 0.
    #[error("controller.port is 0, the usual one is {CONTROLLER_PORT}")]
    Port,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} has {bytes} bytes, at most {FILE_MAX_BYTES} are read", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{}: {source}", path.display())]
    Syntax { path: PathBuf, source: Box<toml::de::Error> },
    #[error("{} has {} problem(s):{}", path.display(), problems.len(), bullets(problems))]
    Invalid { path: PathBuf, problems: Vec<ConfigProblem> },
}

fn bullets(problems: &[ConfigProblem]) -> String {
    problems.iter().map(|problem| format!("\n  - {problem}")).collect()
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
            }),
            _ => Err(check.problems),
        }
    }
}

/// Gathers problems while the values are read.
#[derive(Default)]
struct Check {
    problems: Vec<ConfigProblem>,
}

impl Check {
    fn taints(&mut self, written: &[String]) -> Vec<Taint> {
        let mut read = Vec::new();
        for (index, text) in written.iter().enumerate() {
            match text.parse() {
                Ok(taint) => read.push(taint),
                Err(source) => {
                    self.problems.push(ConfigProblem::Taint { key: format!("taints[{index}]"), source });
                }
            }
        }
        read
    }

    fn name<T: std::str::FromStr<Err = NameError>>(&mut self, key: &str, value: &str) -> Option<T> {
        value
            .parse()
            .map_err(|source| self.problems.push(ConfigProblem::Name { key: key.to_owned(), source }))
            .ok()
    }

    fn address(&mut self, key: String, value: &str) -> Option<Ipv4Addr> {
        match value.parse::<Ipv4Addr>() {
            Ok(address)
                if !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast() =>
            {
                Some(address)
            }
            _ => {
                self.problems.push(ConfigProblem::Address { key, value: value.to_owned() });
                None
            }
        }
    }

    fn interface(&mut self, key: &str, value: &str) {
        let allowed = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
        let fits = (1..=INTERFACE_NAME_MAX).contains(&value.len());
        if !fits || !value.chars().all(allowed) || value == "." || value == ".." {
            self.problems.push(ConfigProblem::Interface { key: key.to_owned(), value: value.to_owned() });
        }
    }

    fn absolute(&mut self, key: &'static str, value: &Path) {
        if !value.is_absolute() {
            self.problems.push(ConfigProblem::RelativePath { key, value: value.to_owned() });
        }
    }

    fn docker_socket(&mut self, value: &str) -> PathBuf {
        let path = value.strip_prefix("unix://").map(PathBuf::from).filter(|path| path.is_absolute());
        path.unwrap_or_else(|| {
            self.problems.push(ConfigProblem::Docker { value: value.to_owned() });
            PathBuf::new()
        })
    }

    fn cgroup(&mut self, value: &str) {
        if value.is_empty() || value.starts_with('/') || value.split('/').any(|part| part == "..") {
            self.problems.push(ConfigProblem::Cgroup { value: value.to_owned() });
        }
    }

    fn class(&mut self, value: &str) {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if !(1..=CLASS_MAX).contains(&value.len()) || !value.chars().all(allowed) {
            self.problems.push(ConfigProblem::Class { value: value.to_owned() });
        }
    }

    /// A name of ours: from the file, from joining, and the same if both have it.
    fn own<T>(&mut self, key: &'static str, written: Option<&str>, joined: Option<&T>) -> Option<T>
    where
        T: std::str::FromStr<Err = NameError> + PartialEq + Clone + std::fmt::Display,
    {
        let Some(written) = written else {
            if joined.is_none() {
                self.problems.push(ConfigProblem::NotJoined { key });
            }
            return joined.cloned();
        };
        let name = self.name::<T>(key, written)?;
        if let Some(joined) = joined.filter(|joined| **joined != name) {
            let (written, joined) = (written.to_owned(), joined.to_string());
            self.problems.push(ConfigProblem::JoinedAs { key, written, joined });
        }
        Some(name)
    }

    fn links(&mut self, raw: &[RawLink], own: Option<&NodeId>) -> Vec<Link> {
        let mut neighbours = BTreeSet::new();
        let mut links = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            let Some(link) = self.link(index, raw) else {
                continue;
            };
            let key = format!("link[{index}].neighbour");
            if own == Some(&link.neighbour) {
                self.problems.push(ConfigProblem::OwnNeighbour { key, node: link.neighbour.clone() });
            } else if !neighbours.insert(link.neighbour.clone()) {
                self.problems.push(ConfigProblem::Duplicate { key, value: link.neighbour.to_string() });
            }
            links.push(link);
        }
        self.unique_addresses(&links);
        links
    }

    fn link(&mut self, index: usize, raw: &RawLink) -> Option<Link> {
        let key = |field: &str| format!("link[{index}].{field}");
        let neighbour = self.name(&key("neighbour"), &raw.neighbour);
        self.interface(&key("interface"), &raw.interface);
        let address = raw.address.as_ref().map(|address| self.address(key("address"), address));
        let neighbour_address = self.address(key("neighbour_address"), &raw.neighbour_address);
        let capacity = raw.capacity.as_deref().map(str::parse::<BitRate>).transpose();
        let capacity = capacity
            .map_err(|source| self.problems.push(ConfigProblem::Rate { key: key("capacity"), source }))
            .ok()?;
        Some(Link {
            neighbour: neighbour?,
            interface: raw.interface.clone(),
            // One that does not read is a problem, none is not.
            address: address.map_or(Some(None), |address| address.map(Some))?,
            neighbour_address: neighbour_address?,
            capacity,
        })
    }

    /// Our own address may serve several links of one LAN; a neighbour's may not.
    fn unique_addresses(&mut self, links: &[Link]) {
        let own: BTreeSet<Ipv4Addr> = links.iter().filter_map(|link| link.address).collect();
        let mut seen = BTreeSet::new();
        for (index, link) in links.iter().enumerate() {
            if own.contains(&link.neighbour_address) || !seen.insert(link.neighbour_address) {
                let key = format!("link[{index}].neighbour_address");
                self.problems
                    .push(ConfigProblem::Duplicate { key, value: link.neighbour_address.to_string() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        cluster = "home"
        node = "n1"
        state_dir = "/var/lib/edgeloom-agent"
        [labels]
        camera = "true"
        [[link]]
        neighbour = "n2"
        interface = "n1-n2"
        address = "10.61.1.1"
        neighbour_address = "10.61.1.2"
        capacity = "20Mbit/s"
    "#;

    fn read(text: &str) -> Result<Config, Vec<ConfigProblem>> {
        Config::check(toml::from_str(text).unwrap(), None)
    }

    #[test]
    fn a_good_file_gets_the_defaults() {
        let config = read(GOOD).unwrap();
        assert_eq!(config.docker_socket, Path::new("/var/run/docker.sock"));
        assert_eq!(config.bridge, "edgeloom0");
        assert_eq!(config.links[0].capacity, Some(BitRate(20_000_000)));
        assert!(config.controller.is_none());
        assert_eq!(config.links[0].address, Some(Ipv4Addr::new(10, 61, 1, 1)));
        let own = read(&GOOD.replace("        address = \"10.61.1.1\"\n", "")).unwrap();
        assert_eq!(own.links[0].address, None);
    }

    #[test]
    fn taints_are_names_with_effects() {
        let with = |taints: &str| read(&GOOD.replace("        [labels]", &format!("{taints}\n[labels]")));
        let config = with("taints = [\"gpu=yes\", \"slow:prefer_no_schedule\"]").unwrap();
        assert_eq!(config.taints.len(), 2);
        let problems = with("taints = [\"gpu:never\"]").unwrap_err();
        assert!(problems[0].to_string().starts_with("taints[0]: \"never\" is no effect"), "{problems:?}");
    }

    fn joined() -> Membership {
        let text = r#"{"cluster":"home","node":"n1","host":"master","api_port":7070,"mqtt_port":8883,
            "certificate":"","key":"","authorities":"","good_s":0}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_joining_gave_need_not_be_written() {
        let bare = "state_dir = \"/var/lib/edgeloom-agent\"";
        let problems = read(bare).unwrap_err();
        assert!(matches!(problems[0], ConfigProblem::NotJoined { key: "cluster" }), "{problems:?}");
        let config = Config::check(toml::from_str(bare).unwrap(), Some(&joined())).unwrap();
        assert_eq!((config.cluster.as_str(), config.node.as_str()), ("home", "n1"));
        let controller = Controller { host: "master".to_owned(), port: 8883, files: None };
        assert_eq!(config.controller, Some(controller));
        let other = GOOD.replace("node = \"n1\"", "node = \"n9\"");
        let problems = Config::check(toml::from_str(&other).unwrap(), Some(&joined())).unwrap_err();
        assert!(matches!(problems[0], ConfigProblem::JoinedAs { key: "node", .. }), "{problems:?}");
        let some = format!("{GOOD}\n[controller]\nhost = \"m\"\nca = \"/ca.pem\"");
        assert_eq!(read(&some).unwrap_err(), [ConfigProblem::SomeFiles]);
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let bad = r#"
            cluster = "Home"
            node = "n1"
            state_dir = "state"
            docker = "tcp://10.0.0.1:2375"
            bridge = "a-name-longer-than-15"
            cgroup = "../up"
            class = "Pi 4"
            [[link]]
            neighbour = "n1"
            interface = "a/b"
            address = "10.61.1"
            neighbour_address = "10.61.1.2"
            capacity = "20M"
        "#;
        let problems = read(bad).unwrap_err();
        assert_eq!(problems.len(), 9, "{problems:?}");
    }

    #[test]
    fn a_neighbour_appears_once_and_is_not_the_node_itself() {
        let twice = format!(
            "{GOOD}\n[[link]]\nneighbour = \"n2\"\ninterface = \"x\"\naddress = \"10.61.2.1\"\nneighbour_address = \"10.61.1.2\"\n\
             [[link]]\nneighbour = \"n1\"\ninterface = \"y\"\naddress = \"10.61.3.1\"\nneighbour_address = \"10.61.3.2\""
        );
        let problems = read(&twice).unwrap_err();
        assert!(matches!(&problems[0], ConfigProblem::Duplicate { value, .. } if value == "n2"));
        assert!(matches!(&problems[1], ConfigProblem::OwnNeighbour { .. }));
        assert!(matches!(&problems[2], ConfigProblem::Duplicate { value, .. } if value == "10.61.1.2"));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = format!("nod = \"x\"\n{GOOD}");
        assert!(toml::from_str::<RawConfig>(&text).is_err());
    }
}
