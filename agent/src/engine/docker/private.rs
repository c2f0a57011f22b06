//! A Docker daemon of the test's own: own network, mount and process namespaces, so that nothing of it
//! is seen outside and all of it ends with the test, also where the test panics or is killed. Control
//! groups have no owner that the kernel cleans up after: those of killed tests go at the next start.

use super::Docker;
use crate::engine::fake::owner;
use crate::engine::{ContainerEngine, EngineError};
use bollard::body_full;
use bollard::query_parameters::CreateImageOptionsBuilder;
use edgeloom_common::desired::ImageRef;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A task's program: says something, then waits for SIGTERM, or ends with the code it is given.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
int main(int count, char **words) {
    signal(SIGTERM, end);
    puts("said once");
    fflush(stdout);
    if (count > 1) return atoi(words[1]);
    for (;;) pause();
}
"#;

/// Where control groups are mounted; version 1 has a directory for each controller.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The test's process id follows.
const CGROUP_PREFIX: &str = "edgeloom-test-";

/// The daemon, ended on drop.
pub(in crate::engine) struct PrivateDocker {
    pub(in crate::engine) engine: Docker,
    /// `unshare`, whose one child is the daemon.
    daemon: Child,
    directory: TempDir,
}

impl PrivateDocker {
    /// Starts a daemon; none, with a word about it, where `EDGELOOM_SKIP_LAB=1` asks for that.
    pub(in crate::engine) async fn start() -> Option<Self> {
        if !edgeloom_prepare::lab_allowed(&["containerd", "dockerd", "kill", "runc", "setpriv", "unshare"]) {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        remove_cgroups(|pid| !Path::new("/proc").join(pid).exists());
        let cgroup = format!("{CGROUP_PREFIX}{}", std::process::id());
        let daemon = spawn(directory.path(), &cgroup);
        let engine = Docker::new(directory.path().join("docker.sock"), owner());
        let mut docker = Self { engine, daemon, directory };
        docker.wait().await;
        Some(docker)
    }

    /// Asks until the daemon answers; ends the test if the daemon ended.
    async fn wait(&mut self) {
        while let Err(error) = self.engine.version().await {
            assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
            if let Some(status) = self.daemon.try_wait().unwrap() {
                let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
                panic!("dockerd ended with {status}:\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Imports an image with one static program and returns its id as an image without repository.
    pub(in crate::engine) async fn import(&self) -> ImageRef {
        let program = compile(self.directory.path());
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_path_with_name(program, "app").unwrap();
        let options = CreateImageOptionsBuilder::new().from_src("-").build();
        let body = body_full(archive.into_inner().unwrap().into());
        let client = self.engine.client().await.unwrap();
        let lines: Vec<_> = client.create_image(Some(options), Some(body), None).collect().await;
        let id = lines
            .into_iter()
            .find_map(|line| line.unwrap().status.filter(|status| status.starts_with("sha256:")));
        ImageRef { repository: String::new(), digest: id.unwrap(), name: "app".to_owned() }
    }
}

fn spawn(directory: &Path, cgroup: &str) -> Child {
    let path = |name: &str| directory.join(name).display().to_string();
    // The machine's own configuration is not the test's.
    std::fs::write(path("none.json"), "{}").unwrap();
    let log = std::fs::File::create(path("log")).unwrap();
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare"])
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "dockerd"])
        .args(["--data-root", &path("data"), "--exec-root", &path("exec"), "--pidfile", &path("pid")])
        .args(["-H", &format!("unix://{}", path("docker.sock")), "--bridge=none", "--iptables=false"])
        .args(["--storage-driver=vfs", "--exec-opt", "native.cgroupdriver=cgroupfs"])
        .args(["--cgroup-parent", &format!("/{cgroup}"), "--config-file", &path("none.json")])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("setpriv, unshare and dockerd are installed")
}

fn compile(directory: &Path) -> PathBuf {
    let (source, program) = (directory.join("app.c"), directory.join("app"));
    std::fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(status.success(), "cc makes a static program");
    program
}

impl Drop for PrivateDocker {
    fn drop(&mut self) {
        // The daemon is the first process of its namespace: with it, everything in there ends, and only
        // then does `unshare` end. Killing `unshare` instead would not wait for that.
        let pid = self.daemon.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let killed =
            Command::new("kill").arg("-KILL").args(children.unwrap_or_default().split_whitespace()).status();
        if !killed.is_ok_and(|status| status.success()) {
            let _ = self.daemon.kill();
        }
        let _ = self.daemon.wait();
        let own = std::process::id().to_string();
        remove_cgroups(|pid| pid == own);
    }
}

/// Removes the control groups of the chosen tests.
fn remove_cgroups(is_chosen: impl Fn(&str) -> bool) {
    let root = Path::new(CGROUPS);
    for parent in directories(root).into_iter().chain([root.to_owned()]) {
        for group in directories(&parent) {
            let name = group.file_name().unwrap_or_default().to_string_lossy();
            if name.strip_prefix(CGROUP_PREFIX).is_some_and(&is_chosen) {
                remove_tree(&group);
            }
        }
    }
}

/// Control groups hold files that cannot be removed: only directories go, from the innermost on.
fn remove_tree(group: &Path) {
    directories(group).iter().for_each(|inner| remove_tree(inner));
    if let Err(error) = std::fs::remove_dir(group) {
        eprintln!("control group {} stays: {error}", group.display());
    }
}

fn directories(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}
