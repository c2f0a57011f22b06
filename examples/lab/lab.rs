//! The lab as a whole: up, down, and where everything of it is.
//!
//! Invariant: whatever exists of a lab can be found from its id alone (names of namespaces and
//! cgroups, the mark in the processes' environment, directories), so a crashed `up` is reaped too.

use crate::joining::CONTROLLER;
use crate::topology::{NodeSpec, Topology};
use crate::{build, cgroup, command, configs, docker, network, processes};
use anyhow::{Context, Result, bail, ensure};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STATE: &str = "/var/lib/edgeloom-lab";
const RUN: &str = "/run/edgeloom-lab";
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Without controller and agents.
    pub(crate) bare: bool,
}

#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) id: String,
    pub(crate) topology: Topology,
    _lock: Flock<File>,
}

/// One node of a lab and where its things are.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) spec: &'a NodeSpec,
    pub(crate) index: usize,
}

impl Node<'_> {
    pub(crate) fn namespace(&self) -> String {
        network::node(&self.lab.id, &self.spec.name)
    }
    pub(crate) fn state(&self) -> PathBuf {
        self.lab.state().join(&self.spec.name)
    }
    /// Where Docker's data is when it is not mounted.
    fn disk(&self) -> PathBuf {
        self.state().join("disk.img")
    }
    pub(crate) fn docker_socket(&self) -> PathBuf {
        self.lab.run().join(format!("{}.sock", self.spec.name))
    }
    pub(crate) fn pid_file(&self, daemon: &str) -> PathBuf {
        self.lab.run().join(format!("{}-{daemon}.pid", self.spec.name))
    }
    pub(crate) fn uplink_address(&self) -> String {
        format!("10.60.0.{}", 11 + self.index)
    }
}

impl Lab {
    pub(crate) fn state(&self) -> PathBuf {
        Path::new(STATE).join(&self.id)
    }
    pub(crate) fn run(&self) -> PathBuf {
        Path::new(RUN).join(&self.id)
    }
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.state().join("log").join(name)
    }

    pub(crate) fn nodes(&self) -> Vec<Node<'_>> {
        let specs = self.topology.nodes.iter().enumerate();
        specs.map(|(index, spec)| Node { lab: self, spec, index }).collect()
    }

    pub(crate) fn node(&self, name: &str) -> Result<Node<'_>> {
        let index = self.topology.index(name)?;
        Ok(Node { lab: self, spec: &self.topology.nodes[index], index })
    }

    /// The lab that is up.
    pub(crate) fn load() -> Result<Self> {
        let lock = lock()?;
        let id = ids().into_iter().next().context("no lab is up; start one with `cargo lab up`")?;
        let path = Path::new(STATE).join(&id).join("topology.toml");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("lab {id} is half made; take it away with `cargo lab down --all`"))?;
        Ok(Self { id, topology: Topology::parse(&text)?, _lock: lock })
    }

    /// Builds the lab; what a failed attempt made is taken away again.
    pub(crate) fn up(topology: &Topology, text: &str, options: &Options) -> Result<Self> {
        let lock = lock()?;
        if let Some(id) = ids().first() {
            bail!("lab {id} is up already, and there is one at a time; `cargo lab down` takes it down");
        }
        network::ensure_free()?;
        let mut random = [0_u8; 2];
        std::io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut random)?;
        let id = format!("{:02x}{:02x}", random[0], random[1]);
        let lab = Self { id, topology: topology.clone(), _lock: lock };
        match lab.build(text, options) {
            Ok(()) => Ok(lab),
            Err(error) => Err(lab.abandon(error)),
        }
    }

    fn build(&self, text: &str, options: &Options) -> Result<()> {
        let binaries = if options.bare { None } else { Some(build::all(&build::Build::Release)?) };
        let start = Instant::now();
        let step = |name: &str| eprintln!("[{:6.1} s] {name}", start.elapsed().as_secs_f64());
        fs::create_dir_all(self.state().join("log"))?;
        fs::create_dir_all(self.run())?;
        fs::write(self.state().join("topology.toml"), text)?;
        step("namespaces and links");
        network::create(self)?;
        step("cgroups, file systems and configurations");
        for node in self.nodes() {
            cgroup::create(&self.id, node.spec)?;
            file_system(&node)?;
        }
        configs::write(self)?;
        step("registry and Docker daemons");
        self.start_registry()?;
        self.start_containerd()?;
        for node in self.nodes() {
            self.start_docker(&node)?;
        }
        for node in self.nodes() {
            docker::wait(&node.docker_socket(), PATIENCE).with_context(|| {
                format!("see {}", self.log(&format!("{}-docker.log", node.spec.name)).display())
            })?;
        }
        if let Some(binaries) = binaries {
            step("controller and agents");
            binaries.install(self)?;
            self.start_cluster()?;
        }
        step("up");
        Ok(())
    }

    /// Keeps the logs of a lab that goes down, for whoever looks for what went wrong.
    pub(crate) fn keep_logs(&self) -> Option<PathBuf> {
        let log = Path::new("/tmp").join(format!("edgeloom-lab-{}-log", self.id));
        fs::rename(self.state().join("log"), &log).is_ok().then_some(log)
    }

    /// Takes away all but the logs of a lab that did not come up, and says where they are.
    pub(crate) fn abandon(self, error: anyhow::Error) -> anyhow::Error {
        let error = match self.keep_logs() {
            Some(log) => error.context(format!("logs are in {}", log.display())),
            None => error,
        };
        match reap(&self.id) {
            Ok(()) => error,
            Err(stays) => error.context(format!("lab {} is not down: {stays:#}", self.id)),
        }
    }

    pub(crate) fn down(self) -> Result<()> {
        reap(&self.id)
    }

    pub(crate) fn print_status(&self) {
        println!("lab {}: registry 10.60.0.1:5000, controller https://{CONTROLLER}:7070", self.id);
        // A bare lab has no controller to talk to.
        if self.context().exists() {
            println!("  export {}", self.login());
        }
        for (name, file) in
            [("registry", "registry.pid"), ("containerd", "containerd.pid"), ("controller", "controller.pid")]
        {
            println!("  {name:<12} {}", running(&self.run().join(file), &self.id));
        }
        for node in self.nodes() {
            let docker = running(&node.pid_file("docker"), &self.id);
            let agent = running(&node.pid_file("agent"), &self.id);
            println!(
                "  {:<12} {}  docker {docker}, agent {agent}, {} cores, {} MiB; docker socket {}",
                node.spec.name,
                node.uplink_address(),
                node.spec.cores,
                node.spec.memory_mib,
                node.docker_socket().display()
            );
        }
        for link in &self.topology.links {
            println!("  link {}-{} {}", link.between[0], link.between[1], link.rate);
        }
    }
}

fn running(file: &Path, lab: &str) -> String {
    processes::of_file(file, lab).map_or_else(|| "stopped".to_owned(), |pid| format!("running ({pid})"))
}

/// Held while a command works on the lab.
fn lock() -> Result<Flock<File>> {
    fs::create_dir_all(RUN)?;
    let file = File::create(Path::new(RUN).join("lock"))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| anyhow::anyhow!("another lab command is at work; there is one lab at a time"))
}

fn is_id(name: &str) -> bool {
    name.len() == 4 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Every lab with anything left: state, run directory, namespace or cgroup.
fn ids() -> Vec<String> {
    let names = |dir: &str, prefix: &str| -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| {
            Some(entry.file_name().to_str()?.strip_prefix(prefix)?.split('-').next()?.to_owned())
        };
        entries.filter_map(name).filter(|id| is_id(id)).collect()
    };
    let mut ids = names(STATE, "");
    ids.extend(names(RUN, ""));
    ids.extend(names("/run/netns", "el"));
    ids.extend(names("/sys/fs/cgroup", "edgeloom-lab-"));
    ids.extend(names("/sys/fs/cgroup/memory", "edgeloom-lab-"));
    ids.sort();
    ids.dedup();
    ids
}

pub(crate) fn down_all() -> Result<()> {
    let _lock = lock()?;
    for id in ids() {
        reap(&id)?;
    }
    Ok(())
}

/// Takes away everything that carries the id.
fn reap(id: &str) -> Result<()> {
    ensure!(is_id(id), "{id:?} is no lab id");
    eprintln!("taking lab {id} down");
    halt(id)?;
    for dir in [Path::new(STATE).join(id), Path::new(RUN).join(id)] {
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
        }
    }
    Ok(())
}

/// Ends all processes and takes away what is in the kernel; files stay. Docker goes before the containers, so
/// that it does not start them again.
pub(crate) fn halt(id: &str) -> Result<()> {
    let mut tries = 0;
    loop {
        let mut pids = processes::marked(id);
        pids.extend(cgroup::members(id));
        if pids.is_empty() {
            break;
        }
        tries += 1;
        ensure!(tries < 10, "lab {id}: processes {pids:?} come back");
        processes::end(&pids, Signal::SIGKILL, PATIENCE)?;
    }
    unmount(id)?;
    network::remove(id)?;
    for _ in 0..50 {
        cgroup::remove(id);
        if cgroup::left(id).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    ensure!(cgroup::left(id).is_empty(), "lab {id}: cgroups stay: {:?}", cgroup::left(id));
    Ok(())
}

fn unmount(id: &str) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let ours = [format!("{STATE}/{id}/"), format!("{RUN}/{id}/")];
    let targets = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut targets: Vec<&str> =
        targets.filter(|target| ours.iter().any(|dir| target.starts_with(dir.as_str()))).collect();
    // The later a mount, the deeper it lies.
    targets.reverse();
    for target in targets {
        unmount_one(target)?;
    }
    Ok(())
}

/// A killed process lets go of its files a moment after it is gone from the process list.
fn unmount_one(target: &str) -> Result<()> {
    let start = Instant::now();
    while let Err(error) = command::run(&["umount", target]) {
        if start.elapsed() > PATIENCE {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The node's disk: a file system of the size the topology says.
fn file_system(node: &Node<'_>) -> Result<()> {
    fs::create_dir_all(node.state().join("docker"))?;
    let image = node.disk();
    File::create(&image)?.set_len(node.spec.disk_mib << 20)?;
    let image = image.to_str().context("state path")?;
    command::run(&["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", image])?;
    mount(node)
}

pub(crate) fn mount(node: &Node<'_>) -> Result<()> {
    let (image, data) = (node.disk(), node.state().join("docker"));
    let words = [image.to_str(), data.to_str()].into_iter().collect::<Option<Vec<_>>>();
    let words = words.context("state path")?;
    command::run(&[&["mount", "-o", "loop"], &words[..]].concat())?;
    Ok(())
}
