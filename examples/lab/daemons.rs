//! Starting and ending the lab's daemons.

use crate::command::{Daemon, start, within};
use crate::lab::{Lab, Node};
use crate::{cgroup, configs, docker, network, processes};
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the agent's unit sets the allocator.
const ALLOCATOR: [&str; 3] = ["MALLOC_ARENA_MAX=1", "MALLOC_TRIM_THRESHOLD_=32768", "MALLOC_TOP_PAD_=16384"];
const PATIENCE: Duration = Duration::from_secs(20);

impl Lab {
    fn launch(&self, name: &str, words: &[String], cgroup_files: &[PathBuf]) -> Result<u32> {
        let pid_file = self.run().join(format!("{name}.pid"));
        if let Some(pid) = processes::of_file(&pid_file, &self.id) {
            bail!("{name} is running already ({pid})");
        }
        let (out, err) = (self.log(&format!("{name}.out")), self.log(&format!("{name}.log")));
        start(&Daemon { words, out: &out, err: &err, pid_file: &pid_file, cgroup_files, lab: &self.id })
    }

    /// What was delivered.
    pub(crate) fn registry_log(&self) -> PathBuf {
        self.log("registry.out")
    }

    /// When it was delivered.
    pub(crate) fn registry_times(&self) -> PathBuf {
        self.log("registry.log")
    }

    pub(crate) fn start_registry(&self) -> Result<u32> {
        let config = self.state().join("registry.yml").display().to_string();
        self.launch(
            "registry",
            &within(&network::core(&self.id), &["docker-registry", "serve", &config]),
            &[],
        )
    }

    pub(crate) fn start_containerd(&self) -> Result<u32> {
        let config = self.state().join("containerd.toml").display().to_string();
        let pid =
            self.launch("containerd", &["containerd".to_owned(), "--config".to_owned(), config], &[])?;
        wait_for(&self.run().join("containerd.sock"))?;
        Ok(pid)
    }

    pub(crate) fn start_controller(&self) -> Result<u32> {
        let binary = self.state().join("edgeloom-controller").display().to_string();
        let config = self.state().join("controller.toml").display().to_string();
        self.launch(
            "controller",
            &within(&network::core(&self.id), &[&binary, "run", "--config", &config]),
            &[],
        )
    }

    /// SIGKILL: the lab shows what a crash does.
    pub(crate) fn kill_controller(&self) -> Result<()> {
        self.finish("controller", Signal::SIGKILL)
    }

    pub(crate) fn start_agent(&self, node: &Node<'_>) -> Result<u32> {
        let name = &node.spec.name;
        let binary = node.state().join("edgeloom-agent").display().to_string();
        let config = node.state().join("agent.toml").display().to_string();
        // As in the unit.
        let words = [&["env"], &ALLOCATOR[..], &[&binary, "run", "--config", &config]].concat();
        let words = within(&node.namespace(), &words);
        self.launch(&format!("{name}-agent"), &words, &cgroup::entry_files(&self.id, name))
    }

    pub(crate) fn kill_agent(&self, node: &Node<'_>) -> Result<()> {
        self.finish(&format!("{}-agent", node.spec.name), Signal::SIGKILL)
    }

    pub(crate) fn start_docker(&self, node: &Node<'_>) -> Result<u32> {
        let (name, run) = (&node.spec.name, self.run().display().to_string());
        let space = format!("el{}{name}", self.id);
        // One that was killed left it, and another process may have its number by now: Docker would not start.
        let pid_file = self.run().join(format!("{name}-dockerd.pid"));
        fs::remove_file(&pid_file).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let options = [
            format!("--config-file={}", node.docker_config().display()),
            format!("--containerd={run}/containerd.sock"),
            format!("--containerd-namespace={space}"),
            format!("--containerd-plugins-namespace={space}-plugins"),
            format!("--data-root={}/docker", node.state().display()),
            format!("--exec-root={run}/{name}-exec"),
            format!("--pidfile={}", pid_file.display()),
            format!("--host=unix://{}", node.docker_socket().display()),
            format!("--cgroup-parent=/{}/{name}", cgroup::top(&self.id)),
            "--exec-opt=native.cgroupdriver=cgroupfs".to_owned(),
            "--insecure-registry=10.60.0.1:5000".to_owned(),
            "--bridge=none".to_owned(),
            "--userland-proxy=false".to_owned(),
        ];
        let words: Vec<&str> = std::iter::once("dockerd").chain(options.iter().map(String::as_str)).collect();
        self.launch(&format!("{name}-docker"), &within(&node.namespace(), &words), &[])
    }

    /// Containers go on where Docker is told so, as it is from the beginning.
    pub(crate) fn stop_docker(&self, node: &Node<'_>, signal: Signal) -> Result<()> {
        self.finish(&format!("{}-docker", node.spec.name), signal)
    }

    fn finish(&self, name: &str, signal: Signal) -> Result<()> {
        let pid = processes::of_file(&self.run().join(format!("{name}.pid")), &self.id);
        processes::end(&[pid.with_context(|| format!("{name} is not running"))?], signal, PATIENCE)
    }
}

impl Node<'_> {
    pub(crate) fn docker_config(&self) -> PathBuf {
        self.state().join("docker.json")
    }

    /// Whether containers outlive Docker from now on: a running daemon reads its file again on SIGHUP.
    pub(crate) fn set_live_restore(&self, wanted: bool) -> Result<()> {
        std::fs::write(self.docker_config(), configs::docker(wanted))?;
        let pid =
            processes::of_file(&self.pid_file("docker"), &self.lab.id).context("Docker is not running")?;
        Ok(kill(Pid::from_raw(pid), Signal::SIGHUP)?)
    }

    /// Waits until the node's Docker answers.
    pub(crate) fn docker_ready(&self) -> Result<()> {
        docker::wait(&self.docker_socket(), PATIENCE)
    }
}

fn wait_for(path: &Path) -> Result<()> {
    for _ in 0..400 {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("{} does not answer", path.display())
}
