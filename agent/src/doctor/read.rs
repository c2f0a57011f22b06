//! Looks at the node. Nothing is changed but for the trial of the kernel, on interfaces of its own, and an empty
//! file in the state directory; both are gone afterwards.

mod network;
mod system;

use super::{Readings, Subject, Unread};
use crate::config::{BRIDGE, Config, DOCKER_SOCKET, Link};
use std::path::{Path, PathBuf};
use std::process::Command;

/// As in the shipped agent.toml.
const STATE_DIR: &str = "/var/lib/edgeloom-agent";

/// Where to look, with or without a configuration.
#[derive(Debug, Clone)]
struct Places {
    docker_socket: PathBuf,
    bridge: String,
    state_dir: PathBuf,
    links: Vec<Link>,
}

impl Places {
    fn usual() -> Self {
        Self {
            docker_socket: DOCKER_SOCKET.trim_start_matches("unix://").into(),
            bridge: BRIDGE.to_owned(),
            state_dir: STATE_DIR.into(),
            links: Vec::new(),
        }
    }

    fn of(config: Config) -> Self {
        let Config { docker_socket, bridge, state_dir, links, .. } = config;
        Self { docker_socket, bridge, state_dir, links }
    }
}

/// Reads everything there is to read.
pub(super) async fn readings(subject: Subject) -> Readings {
    let (places, config) = match subject {
        Subject::Unconfigured => (Places::usual(), None),
        Subject::Configured { path, config } => (Places::of(*config), Some(Ok(path))),
        Subject::Refused { problem } => (Places::usual(), Some(Err(problem))),
    };
    let docker = system::docker(&places.docker_socket).await;
    // Sockets follow the thread that opens them, and the rest waits for files: none of it belongs to the runtime.
    let reading = tokio::task::spawn_blocking(move || {
        let kernel = network::kernel(&places);
        Readings {
            config,
            rights: system::rights(),
            vxlan: network::vxlan(),
            cgroup: system::cgroup(),
            clock: system::clock(),
            docker,
            network: network::found(&places),
            filter: output(&["iptables", "-w", "5", "-S"]),
            chains: output(&["nft", "-j", "list", "chains"]),
            port: network::port(&places),
            state_dir: system::state_dir(&places.state_dir),
            kernel,
        }
    });
    match reading.await {
        Ok(readings) => readings,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// What a program prints, or why it does not.
fn output(words: &[&str]) -> Result<String, Unread> {
    let (program, arguments) = words.split_first().ok_or("no program")?;
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", said.lines().next().unwrap_or("it failed without a word")))
}

fn text(path: &Path) -> Result<String, Unread> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
