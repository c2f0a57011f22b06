//! Verdicts on the machine: configuration, rights, clock, disk, Docker, memory limits.

use crate::doctor::{CgroupMemory, Clock, DockerFound, Rights, StateDir, Unread};
use edgeloom_common::doctor::{Check, TIME_SERVICE, judge_year};
use std::path::PathBuf;

/// Capabilities that the agent uses (capability.h), and for what.
const CAPABILITIES: [(u32, &str, &str); 4] = [
    (12, "CAP_NET_ADMIN", "shaping and routes"),
    (13, "CAP_NET_RAW", "announcing moved tasks"),
    (2, "CAP_DAC_READ_SEARCH", "reading Docker's layers"),
    (5, "CAP_KILL", "ending what Docker forgot"),
];
/// The oldest Docker that is known to do.
const DOCKER_MIN: (u32, u32) = (20, 10);
/// From this version on Docker keeps others than its own bridges' hosts from reaching containers.
const DOCKER_GATEWAY_MODES: u32 = 28;

pub(super) fn config(config: Option<&Result<PathBuf, Unread>>) -> Check {
    const CHECK: &str = "configuration";
    match config {
        Some(Ok(path)) => Check::ok(CHECK, format!("{} reads", path.display())),
        Some(Err(problem)) => Check::fail(CHECK, problem.as_str(), "correct the file"),
        None => Check::unknown(
            CHECK,
            "there is none: the usual places are looked at, and no links",
            "name one with --config, or write /etc/edgeloom/agent.toml",
        ),
    }
}

pub(super) fn rights(rights: Result<&Rights, &Unread>) -> Check {
    const CHECK: &str = "rights";
    let Rights { uid, capabilities } = match rights {
        Ok(rights) => rights,
        Err(unread) => return Check::unknown(CHECK, unread.as_str(), "is /proc mounted?"),
    };
    let missing: Vec<String> = CAPABILITIES
        .iter()
        .filter(|(bit, ..)| capabilities & (1 << bit) == 0)
        .map(|(_, name, what)| format!("{name} ({what})"))
        .collect();
    if missing.is_empty() {
        return Check::ok(CHECK, format!("user {uid} has what the agent needs"));
    }
    let seen = format!("user {uid} lacks {}", missing.join(", "));
    Check::fail(CHECK, seen, "run it as root, or with the capabilities of edgeloom-agent.service")
}

pub(super) fn clock(clock: &Clock) -> Check {
    const CHECK: &str = "clock";
    judge_year(clock.unix_s).unwrap_or_else(|| match &clock.synchronised {
        Ok(true) => Check::ok(CHECK, "synchronised"),
        Ok(false) => Check::warn(CHECK, "nobody keeps it synchronised", TIME_SERVICE),
        Err(unread) => Check::unknown(CHECK, unread.as_str(), TIME_SERVICE),
    })
}

pub(super) fn state_dir(state_dir: &StateDir) -> Check {
    let path = state_dir.path.display().to_string();
    let absent = || {
        let remedy = "the unit makes it at its first start: systemctl start edgeloom-agent";
        Check::warn("state directory", format!("{path} does not exist"), remedy)
    };
    state_dir.found.as_ref().map_or_else(absent, |space| space.judge(&path, "edgeloom-agent"))
}

pub(super) fn docker(docker: Result<&DockerFound, &Unread>) -> Check {
    const CHECK: &str = "docker";
    let DockerFound { socket, version, .. } = match docker {
        Ok(found) => found,
        Err(unread) => {
            let remedy = "apt-get install docker.io, systemctl start docker, and join the group docker";
            return Check::fail(CHECK, unread.as_str(), remedy);
        }
    };
    let seen = format!("{version} answers at {socket}");
    match major_minor(version) {
        None => Check::unknown(
            CHECK,
            format!("{seen}; its version is not understood"),
            "20.10 or newer is needed",
        ),
        Some(found) if found < DOCKER_MIN => Check::fail(CHECK, seen, "upgrade Docker to 20.10 or newer"),
        Some((major, _)) if DOCKER_GATEWAY_MODES <= major => Check::ok(
            CHECK,
            format!(
                "{seen}; the agent's network asks for gateway mode nat-unprotected, which 28 and newer need"
            ),
        ),
        Some(_) => Check::ok(CHECK, seen),
    }
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn store(docker: Result<&DockerFound, &Unread>) -> Check {
    const CHECK: &str = "image store";
    match docker {
        Ok(DockerFound { driver, layers_known: true, .. }) => {
            Check::ok(CHECK, format!("{driver}: layers are counted exactly"))
        }
        Ok(DockerFound { driver, .. }) => Check::warn(
            CHECK,
            format!(
                "{driver}: layers are known from Docker's API alone, so some pulls are predicted wrongly"
            ),
            "let the agent read Docker's directory: run it as root, or with CAP_DAC_READ_SEARCH",
        ),
        Err(_) => Check::unknown(CHECK, "Docker was not asked", "see docker above"),
    }
}

/// Raspberry Pi OS boots with the memory controller off, and Docker then drops limits without an error.
pub(super) fn memory(cgroup: Result<&CgroupMemory, &Unread>, docker: Result<&DockerFound, &Unread>) -> Check {
    const CHECK: &str = "memory limits";
    let CgroupMemory { version, memory, cmdline_file } = match cgroup {
        Ok(found) => found,
        Err(unread) => return Check::unknown(CHECK, unread.as_str(), "is /proc mounted?"),
    };
    if !memory {
        let file = cmdline_file.as_deref().unwrap_or("the kernel's command line (GRUB_CMDLINE_LINUX)");
        let seen = "the kernel's memory controller is off: containers run without memory limits";
        return Check::fail(
            CHECK,
            seen,
            format!("add `cgroup_enable=memory cgroup_memory=1` to {file} and reboot"),
        );
    }
    match docker {
        Ok(DockerFound { memory_limit: true, .. }) => {
            Check::ok(CHECK, format!("control groups version {version} limit memory, and Docker says so"))
        }
        Ok(_) => Check::fail(
            CHECK,
            "the kernel limits memory, but Docker says that it does not",
            "restart Docker, and see the warnings of `docker info`",
        ),
        Err(_) => Check::unknown(
            CHECK,
            format!("control groups version {version} limit memory; Docker was not asked"),
            "see docker above",
        ),
    }
}
