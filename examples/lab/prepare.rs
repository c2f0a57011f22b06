//! What the lab needs of the machine: programs, installed by apt when missing, and kernel features.

use crate::command::run;
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Program and the Debian package it comes with. The Docker client is not among them.
const PROGRAMS: [(&str, &str); 10] = [
    ("dockerd", "docker.io"),
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("docker-registry", "docker-registry"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nsenter", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
];
const POLICY: &str = "/usr/sbin/policy-rc.d";

fn present(program: &str) -> bool {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists())
}

pub(crate) fn prepare() -> Result<()> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| !present(program)).collect();
    if !missing.is_empty() {
        let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        packages.sort_unstable();
        packages.dedup();
        let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
        if std::env::var("EDGELOOM_NO_INSTALL").is_ok_and(|value| value == "1") {
            bail!(
                "missing: {} (packages {}); EDGELOOM_NO_INSTALL=1 forbids installing them",
                programs.join(", "),
                packages.join(" ")
            );
        }
        install(&packages)?;
    }
    kernel()
}

fn install(packages: &[&str]) -> Result<()> {
    eprintln!("installing {}", packages.join(" "));
    // Debian starts services as it installs them; the lab runs its own and wants no others.
    let ours = !Path::new(POLICY).exists();
    if ours {
        std::fs::write(POLICY, "#!/bin/sh\nexit 101\n").context(POLICY)?;
        std::fs::set_permissions(POLICY, std::fs::Permissions::from_mode(0o755))?;
    }
    let result = apt(&["update", "-q"]).and_then(|()| {
        let words = ["install", "-q", "-y", "--no-install-recommends"];
        apt(&words.iter().chain(packages).copied().collect::<Vec<_>>())
    });
    if ours {
        std::fs::remove_file(POLICY).context(POLICY)?;
    }
    result
}

fn apt(words: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::io::stderr())
        .status()
        .context("apt-get does not start: the lab installs on Debian")?;
    ensure!(status.success(), "apt-get {} failed ({status})", words.join(" "));
    Ok(())
}

/// Tries each feature in a namespace that goes away with the shell.
fn kernel() -> Result<()> {
    let trials = [
        ("veth", "ip link add name probe0 type veth peer name probe1"),
        ("bridge", "ip link add name probe0 type bridge"),
        (
            "HTB",
            "ip link add name probe0 type veth peer name probe1 && tc qdisc add dev probe0 root handle 1: htb && tc class add dev probe0 classid 1:1 parent 1: htb rate 1mbit",
        ),
        (
            "tbf",
            "ip link add name probe0 type veth peer name probe1 && tc qdisc add dev probe0 root tbf rate 1mbit burst 16384 limit 150000",
        ),
        (
            "nft maps",
            "nft add table ip t && nft 'add map ip t m { type ipv4_addr . ipv4_addr . inet_proto . inet_service : mark ; }'",
        ),
    ];
    let mut failed = Vec::new();
    for (name, script) in trials {
        if let Err(error) = run(&["unshare", "--net", "sh", "-c", script]) {
            failed.push(format!("{name}: {error}"));
        }
    }
    ensure!(failed.is_empty(), "the kernel lacks what the lab needs:\n{}", failed.join("\n"));
    Ok(())
}
