//! `edgeloom-agent doctor`: what stands in this node's way, with the remedy.
//!
//! Two halves: `read` looks at kernel, Docker, files and network and changes none of them (but for the trial of
//! the kernel, on interfaces of its own); `judge` turns the [`Readings`] into verdicts and looks at nothing.
//! It works without a configuration, without Docker and without rights: what cannot be read becomes `unknown`.

mod judge;
mod read;
#[cfg(test)]
mod tests;

use crate::config::Config;
use edgeloom_common::doctor::{Examination, Space};
use edgeloom_net::{NetCapabilities, Prefix};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Why something could not be read, in words.
type Unread = String;

/// Everything that is judged.
#[derive(Debug, Clone)]
struct Readings {
    /// Where the configuration is, and what is wrong with it; none without one.
    config: Option<Result<PathBuf, Unread>>,
    rights: Result<Rights, Unread>,
    kernel: Result<NetCapabilities, Unread>,
    /// Where the kernel's VXLAN was found.
    vxlan: Result<Option<String>, Unread>,
    cgroup: Result<CgroupMemory, Unread>,
    clock: Clock,
    docker: Result<DockerFound, Unread>,
    network: Result<NetworkFound, Unread>,
    filter: Result<String, Unread>,
    /// The chains of nftables, as `nft -j list chains` tells them.
    chains: Result<String, Unread>,
    port: Result<PortFound, Unread>,
    state_dir: StateDir,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rights {
    uid: u32,
    /// Effective capabilities, a bit each (capability.h).
    capabilities: u64,
}

/// Whether the kernel limits the memory of containers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CgroupMemory {
    /// 1 or 2.
    version: u8,
    /// The memory controller is there.
    memory: bool,
    /// The file that holds the kernel's command line on a Raspberry Pi, where there is one.
    cmdline_file: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Clock {
    unix_s: u64,
    synchronised: Result<bool, Unread>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct DockerFound {
    socket: String,
    version: String,
    driver: String,
    /// The image store can be read.
    layers_known: bool,
    memory_limit: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NetworkFound {
    bridge: String,
    bridge_mtu: Option<u32>,
    links: Vec<LinkFound>,
    /// The pool of the desired state on disk; none before the first one.
    pool: Option<Prefix>,
    /// Routes of others, and their interfaces.
    routes: BTreeSet<(Prefix, String)>,
    forwarding: ForwardingFound,
}

/// What the agent itself sees of the filter table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ForwardingFound {
    /// The chain that needs an accept for the pool, if one does.
    chain: Option<String>,
    /// The accept is there.
    accepted: bool,
}

/// A configured link.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LinkFound {
    interface: String,
    /// None: there is no such interface.
    up: Option<bool>,
    mtu: Option<u32>,
}

/// The port of the link probes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PortFound {
    Free,
    /// By the agent that holds the state directory.
    Ours,
    Taken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StateDir {
    path: PathBuf,
    /// None: it does not exist.
    found: Option<Space>,
}

/// Which configuration to look at.
#[derive(Debug)]
pub enum Subject {
    /// None was named, and the usual one does not exist.
    Unconfigured,
    Configured {
        path: PathBuf,
        config: Box<Config>,
    },
    /// It does not read; the rest is looked at as if there were none.
    Refused {
        problem: String,
    },
}

/// Looks at everything and judges it.
pub async fn examine(subject: Subject) -> Examination {
    Examination { checks: judge::checks(&read::readings(subject).await) }
}
