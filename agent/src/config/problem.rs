//! What is wrong with a configuration, and why there is none.

use super::{Bound, CLASS_MAX, CONTROLLER_PORT, DOCKER_SOCKET, FILE_MAX_BYTES, INTERFACE_NAME_MAX};
use edgeloom_common::ids::{NameError, NodeId};
use edgeloom_common::job::TaintError;
use edgeloom_common::units::UnitError;
use std::path::PathBuf;

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
    /// A folder that no message could name.
    #[error("volumes.allow: a folder's name is no text")]
    VolumeFolder,
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
