//! Readings of the machine: rights, clock, control groups, disk, Docker.

use super::text;
use crate::doctor::{CgroupMemory, Clock, DockerFound, Rights, StateDir, Unread};
use crate::engine::{ContainerEngine, Docker, EngineError, Owner};
use edgeloom_common::doctor::Space;
use edgeloom_observe::{clock, disk};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who examines a node does not wait for a Docker that hangs.
const DOCKER_PATIENCE: Duration = Duration::from_secs(10);
/// Where Raspberry Pi OS keeps the kernel's command line, newest place first.
const CMDLINE_FILES: [&str; 2] = ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];

pub(super) fn rights() -> Result<Rights, Unread> {
    let status = text(Path::new("/proc/self/status"))?;
    let field = |name: &str, index: usize| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().nth(index));
        word.ok_or_else(|| format!("/proc/self/status has no {name}"))
    };
    // proc_pid_status(5): real, effective, saved and file system user.
    let uid = field("Uid:", 1)?.parse().map_err(|_| "/proc/self/status: Uid is no number")?;
    let capabilities = u64::from_str_radix(field("CapEff:", 0)?, 16);
    Ok(Rights { uid, capabilities: capabilities.map_err(|_| "/proc/self/status: CapEff is no number")? })
}

pub(super) fn clock() -> Clock {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let synchronised = clock::is_synchronised().map_err(|error| format!("the kernel does not say: {error}"));
    Clock { unix_s: since.as_secs(), synchronised }
}

/// Version 2 alone lists its controllers; beside version 1 the kernel's list tells (cgroups(7)).
pub(super) fn cgroup() -> Result<CgroupMemory, Unread> {
    let alone = Path::new("/sys/fs/cgroup/cgroup.controllers");
    let enabled = |line: &str| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("memory") && fields.nth(2) == Some("1")
    };
    let (version, memory) = if alone.exists() {
        (2, text(alone)?.split_whitespace().any(|one| one == "memory"))
    } else {
        (1, text(Path::new("/proc/cgroups"))?.lines().any(enabled))
    };
    Ok(CgroupMemory {
        version,
        memory,
        cmdline_file: CMDLINE_FILES.into_iter().find(|file| Path::new(file).exists()).map(str::to_owned),
    })
}

pub(super) fn state_dir(path: &Path) -> StateDir {
    let space = || Space {
        writable: try_writing(path),
        free_bytes: disk::read(path)
            .map(|disk| disk.capacity.0.saturating_sub(disk.used.0))
            .map_err(|error| error.to_string()),
    };
    StateDir { path: path.to_owned(), found: path.is_dir().then(space) }
}

fn try_writing(directory: &Path) -> Result<(), Unread> {
    let path = directory.join(format!(".doctor-{}", std::process::id()));
    let made = File::options().write(true).create_new(true).open(&path);
    made.and_then(|_| std::fs::remove_file(&path)).map_err(|error| error.to_string())
}

/// Docker's version needs no name of ours, so any will do.
pub(super) async fn docker(socket: &Path) -> Result<DockerFound, Unread> {
    let owner = Owner {
        cluster: "doctor".parse().expect("it is a name"),
        node: "doctor".parse().expect("it is a name"),
    };
    let engine = Docker::new(PathBuf::from(socket), owner);
    let asked = tokio::time::timeout(DOCKER_PATIENCE, engine.version()).await;
    let hangs = |_| format!("docker at {} accepts and says nothing", socket.display());
    let version = asked.map_err(hangs)?.map_err(|error: EngineError| error.to_string())?;
    Ok(DockerFound {
        socket: socket.display().to_string(),
        layers_known: version.read_layers().is_ok(),
        version: version.version,
        driver: version.driver,
        memory_limit: version.memory_limit,
    })
}
