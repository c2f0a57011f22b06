//! A Docker daemon of the test's own: own network, mount and process namespaces, so that nothing of it
//! is seen outside and all of it ends with the test, also where the test panics or is killed. Control
//! groups have no owner that the kernel cleans up after: those of killed tests go at the next start.
//!
//! The tests beside the engine and those of the whole program include this file: it names no other part
//! of the agent.

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker as Client, body_full};
use edgeloom_common::desired::ImageRef;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A task's program: says something, then waits for SIGTERM, or ends with the code it is given, after it
/// has taken so many MiB and burnt so many milliseconds.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
int main(int count, char **words) {
    signal(SIGTERM, end);
    puts("said once");
    fflush(stdout);
    if (count > 3) {
        memset(malloc((size_t)atoi(words[3]) << 20), 1, (size_t)atoi(words[3]) << 20);
        puts("memory taken");
        fflush(stdout);
    }
    if (count > 2) while (clock() / (CLOCKS_PER_SEC / 1000) < atoi(words[2])) {}
    if (count > 1) return atoi(words[1]);
    for (;;) pause();
}
"#;

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
        let program = compile(self.directory.path());
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_path_with_name(program, "app").unwrap();
        let options = CreateImageOptionsBuilder::new().from_src("-").build();
        let body = body_full(archive.into_inner().unwrap().into());
        let lines: Vec<_> = client.create_image(Some(options), Some(body), None).collect().await;
        let id = lines
            .into_iter()
            .find_map(|line| line.unwrap().status.filter(|status| status.starts_with("sha256:")));
        ImageRef { repository: String::new(), digest: id.unwrap(), name: "app".to_owned() }
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

fn compile(directory: &Path) -> PathBuf {
    let (source, program) = (directory.join("app.c"), directory.join("app"));
    std::fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(status.success(), "cc makes a static program");
    program
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
