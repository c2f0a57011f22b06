//! Ports whose other end is in a namespace that a process is in, that is mounted where Docker looks, or elsewhere.

use super::namespace::{Namespace, lab, sh};
use crate::remove_orphans;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that ends with its owner.
struct Process(Child);

impl Process {
    /// Runs a script that says when it is ready, in namespaces of its own as `options` of unshare(1) say.
    fn start(options: &[&str], script: &str) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare"]).args(options).args(["sh", "-ec"]);
        let script = format!("{script}; echo ready; exec sleep 1000");
        let mut child = command.arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn pid(&self) -> i32 {
        self.0.id().try_into().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Mounts a new network namespace where nobody else sees it.
fn mounting(path: &str) -> Process {
    Process::start(&["--mount"], &format!(": > {path}; unshare --net mount --bind /proc/self/ns/net {path}"))
}

fn ports() -> Vec<String> {
    let mut ports: Vec<_> = sh("ip -o link show master br0")
        .lines()
        .filter_map(|line| line.split([' ', '@']).nth(1))
        .map(str::to_owned)
        .collect();
    ports.sort();
    ports
}

#[test]
fn only_ports_go_whose_other_end_is_nobody_s() {
    if !lab() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let namespace = Namespace::new();
    namespace.run(|| {
        let inhabited = Process::start(&["--net"], ":");
        let docker = mounting(&path("docker"));
        let other = mounting(&path("other"));
        let ends = [
            ("held", format!("/proc/{}/root{}", other.pid(), path("other"))),
            ("lives", format!("/proc/{}/ns/net", inhabited.pid())),
            ("mounted", format!("/proc/{}/root{}", docker.pid(), path("docker"))),
        ];
        sh("ip link add br0 type bridge; ip link set br0 up; ip link add near type veth peer name far; \
            ip link set near master br0");
        for (name, end) in &ends {
            sh(&format!(
                "ip link add {name} type veth peer name end; ip link set {name} master br0 up; \
                 ip link set end netns {end}"
            ));
        }
        let all = ["held", "lives", "mounted", "near"];
        assert_eq!(ports(), all);
        assert!(remove_orphans("br0", all.len(), &[docker.pid()]).unwrap().is_empty(), "none is too many");
        assert!(remove_orphans("br1", 0, &[docker.pid()]).unwrap().is_empty());
        assert!(remove_orphans("br0", 2, &[docker.pid(), other.pid()]).unwrap().is_empty());
        remove_orphans("br0", 2, &[i32::MAX]).unwrap_err();
        assert_eq!(ports(), all);
        assert_eq!(remove_orphans("br0", 2, &[docker.pid()]).unwrap(), ["held"]);
        assert_eq!(ports(), ["lives", "mounted", "near"]);
        assert!(remove_orphans("br0", 2, &[docker.pid()]).unwrap().is_empty());
    });
}
