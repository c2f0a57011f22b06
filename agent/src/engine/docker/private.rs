//! A Docker daemon of the test's own: own network, mount and process namespaces, so that nothing of it
//! is seen outside and all of it ends with the test, also where the test panics or is killed. Control
//! groups have no owner that the kernel cleans up after: those of killed tests go at the next start.
//!
//! The tests beside the engine and those of the whole program include this file: it names no other part
//! of the agent.

#[path = "program.rs"]
mod program;

use bollard::{API_DEFAULT_VERSION, Docker as Client};
use edgeloom_common::desired::ImageRef;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Where control groups are mounted; version 1 has a directory for each controller.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The test's process id follows.
const CGROUP_PREFIX: &str = "edgeloom-test-";

/// Longest wait for an answer, seconds.
const ANSWER_TIMEOUT_S: u64 = 120;

/// How the daemon comes by its network.
#[derive(Clone, Copy)]
pub(crate) struct DaemonNetwork<'a> {
    /// The program that enters the network namespace, and its options.
    pub(crate) enter: [&'a str; 2],
    /// Whether the daemon fills the filter and NAT tables: its option.
    pub(crate) tables: &'a str,
}

/// The daemon, ended on drop.
pub(crate) struct PrivateDocker {
    /// `unshare`, whose one child is the daemon; none while it is ended.
    daemon: Option<Child>,
    directory: TempDir,
}

impl PrivateDocker {
    /// Starts a daemon; none, with a word about it, where `EDGELOOM_SKIP_LAB=1` asks for that.
    #[track_caller]
    pub(crate) fn start(network: DaemonNetwork<'_>) -> Option<Self> {
        if !edgeloom_prepare::lab_allowed(&["containerd", "dockerd", "kill", "runc", "setpriv", "unshare"]) {
            return None;
        }
        remove_cgroups(|pid| !Path::new("/proc").join(pid).exists());
        let mut docker = Self { daemon: None, directory: tempfile::tempdir().unwrap() };
        docker.resume(network);
        Some(docker)
    }

    /// Starts the daemon on the data that an earlier one left. What lives in memory on a real machine is gone.
    pub(crate) fn resume(&mut self, network: DaemonNetwork<'_>) {
        for name in ["exec", "pid", "docker.sock"] {
            let path = self.directory.path().join(name);
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
        self.daemon = Some(spawn(self.directory.path(), network));
    }

    /// Sends the daemon a signal and waits for its end, with which everything in its process namespace ends.
    pub(crate) fn end(&mut self, signal: &str) {
        // The daemon is the first process of its namespace: with it, everything in there ends, and only
        // then does `unshare` end. Killing `unshare` instead would not wait for that.
        let Some(mut daemon) = self.daemon.take() else { return };
        let pid = daemon.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let killed =
            Command::new("kill").arg(signal).args(children.unwrap_or_default().split_whitespace()).status();
        if !killed.is_ok_and(|status| status.success()) {
            let _ = daemon.kill();
        }
        let _ = daemon.wait();
    }

    /// The daemon's unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("docker.sock")
    }

    /// Where it keeps images and containers.
    #[allow(dead_code, reason = "not all tests that include this file look there")]
    pub(crate) fn data_root(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A client; asks until the daemon answers, and ends the test if the daemon ended.
    pub(crate) async fn client(&mut self) -> Client {
        loop {
            let client = Client::connect_with_unix(
                self.socket().to_str().unwrap(),
                ANSWER_TIMEOUT_S,
                API_DEFAULT_VERSION,
            );
            // Before the socket exists there is no client either.
            if let Ok(client) = client
                && let Ok(client) = client.negotiate_version().await
            {
                return client;
            }
            let ended = self.daemon.as_mut().and_then(|daemon| daemon.try_wait().unwrap());
            if let Some(status) = ended {
                let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
                panic!("dockerd ended with {status}:\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Imports an image with one static program and returns its id as an image without repository.
    pub(crate) async fn import(&self, client: &Client) -> ImageRef {
        program::import(client, self.directory.path()).await
    }
}

fn spawn(directory: &Path, network: DaemonNetwork<'_>) -> Child {
    let cgroup = format!("{CGROUP_PREFIX}{}", std::process::id());
    let path = |name: &str| directory.join(name).display().to_string();
    // The machine's own configuration is not the test's.
    std::fs::write(path("none.json"), "{}").unwrap();
    let log = std::fs::File::create(path("log")).unwrap();
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .args(network.enter)
        .args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "dockerd"])
        .args(["--data-root", &path("data"), "--exec-root", &path("exec"), "--pidfile", &path("pid")])
        .args(["-H", &format!("unix://{}", path("docker.sock")), "--bridge=none", network.tables])
        .args(["--storage-driver=vfs", "--exec-opt", "native.cgroupdriver=cgroupfs"])
        .args(["--cgroup-parent", &format!("/{cgroup}"), "--config-file", &path("none.json")])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("setpriv is installed")
}

impl Drop for PrivateDocker {
    fn drop(&mut self) {
        self.end("-KILL");
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
