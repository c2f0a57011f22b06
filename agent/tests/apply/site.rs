//! A node of the test's own: a network namespace with links to two neighbours, and the agent's
//! configuration and documents in a temporary folder. Everything ends with the value, also where the test
//! panics; the namespaces of killed tests go at the next start.

use edgeloom_common::desired::DesiredState;
use edgeloom_disk::{Unsealed, seal, unseal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The test's process id follows.
const PREFIX: &str = "eltest";
/// Several tests of one program.
static BUILT: AtomicU32 = AtomicU32::new(0);
/// A wait longer than this is a failure; nothing is measured with it.
const PATIENCE: Duration = Duration::from_secs(120);
/// What is looked at from outside, line by line: everything that the agent may change.
const SEEN: &str = "ip -br link
ip -j -4 address
ip -j -4 route show table all
ip -j -4 rule
tc qdisc show
tc class show dev to-n2
tc class show dev to-n3
nft -s list ruleset
grep -r . /proc/sys/net/ipv4/conf /proc/sys/net/ipv4/ip_forward";

/// The node.
pub(crate) struct Site {
    node: String,
    neighbours: String,
    directory: TempDir,
}

impl Site {
    /// Makes node n1, linked to n2 (10.61.1.0/30) and to n3 (10.61.1.4/30).
    pub(crate) fn new() -> Self {
        remove_namespaces(|pid| !Path::new("/proc").join(pid).exists());
        let number = BUILT.fetch_add(1, Ordering::Relaxed);
        let node = format!("{PREFIX}{}-{number}", std::process::id());
        let site = Self { neighbours: format!("{node}-n"), node, directory: tempfile::tempdir().unwrap() };
        site.boot();
        site
    }

    /// Gives the node its interfaces, and nothing else.
    fn boot(&self) {
        for name in [&self.node, &self.neighbours] {
            run(&["ip", "netns", "add", name]);
            run(&["ip", "-n", name, "link", "set", "lo", "up"]);
        }
        // No agent answers there, and refusals of probes count as signs of life: the kernel would limit them to one a second.
        run(&["ip", "netns", "exec", &self.neighbours, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0"]);
        self.link("to-n2", ["10.61.1.1/30", "10.61.1.2/30"]);
        self.link("to-n3", ["10.61.1.5/30", "10.61.1.6/30"]);
    }

    /// All that the kernel held is gone.
    pub(crate) fn reboot(&self) {
        for name in [&self.node, &self.neighbours] {
            run(&["ip", "netns", "del", name]);
        }
        self.boot();
    }

    /// One name serves at both ends.
    fn link(&self, name: &str, addresses: [&str; 2]) {
        let (node, neighbours) = (&self.node, &self.neighbours);
        run(&[
            "ip", "-n", node, "link", "add", name, "type", "veth", "peer", "name", name, "netns", neighbours,
        ]);
        for (space, address) in [node, neighbours].into_iter().zip(addresses) {
            run(&["ip", "-n", space, "address", "add", address, "dev", name]);
            run(&["ip", "-n", space, "link", "set", name, "up"]);
        }
    }

    /// How a program enters the node's network.
    pub(crate) fn entry(&self) -> String {
        format!("--net=/run/netns/{}", self.node)
    }

    /// What a program prints inside.
    pub(crate) fn inside(&self, line: &str) -> String {
        let entry = self.entry();
        let words: Vec<&str> = ["nsenter", &entry].into_iter().chain(line.split_whitespace()).collect();
        run(&words)
    }

    /// What a program prints inside, as JSON.
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.inside(line)).unwrap()
    }

    /// Links, addresses, routes, rules, queues, classes, firewall and sysctls.
    pub(crate) fn seen(&self) -> Vec<String> {
        let look = |line: &str| {
            let text = self.inside(line);
            text.lines().map(|found| format!("{line}: {found}")).collect::<Vec<_>>()
        };
        SEEN.lines().flat_map(look).collect()
    }

    fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// The document on the agent's disk.
    pub(crate) fn held(&self) -> Option<DesiredState> {
        let bytes = std::fs::read(self.state_dir().join("desired.json")).ok()?;
        let Unsealed::Sound(text) = unseal(&bytes) else { panic!("the file on disk has no checksum") };
        Some(serde_json::from_slice(text).unwrap())
    }

    /// Writes agent.toml for node n1 of cluster home, whose controller is out of reach: there is not even a
    /// certificate.
    pub(crate) fn configure(&self, docker: &Path) {
        let mut text = format!(
            "cluster = \"home\"\nnode = \"n1\"\nstate_dir = {:?}\ndocker = \"unix://{}\"\n\
             [controller]\nhost = \"192.0.2.1\"\nca = \"/none/ca\"\ncertificate = \"/none/pem\"\nkey = \"/none/key\"\n",
            self.state_dir(),
            docker.display()
        );
        for (neighbour, ours, theirs) in [("n2", 1, 2), ("n3", 5, 6)] {
            text += &format!(
                "[[link]]\nneighbour = \"{neighbour}\"\ninterface = \"to-{neighbour}\"\n\
                 address = \"10.61.1.{ours}\"\nneighbour_address = \"10.61.1.{theirs}\"\n\
                 capacity = \"20Mbit/s\"\n"
            );
        }
        std::fs::write(self.directory.path().join("agent.toml"), text).unwrap();
    }

    /// Adds to agent.toml.
    pub(crate) fn configure_further(&self, text: &str) {
        let text = std::fs::read_to_string(self.path("agent.toml")).unwrap() + text;
        self.write("agent.toml", &text);
    }

    /// The document lies on the disk when the agent starts.
    pub(crate) fn hold(&self, document: &DesiredState) {
        std::fs::create_dir_all(self.state_dir()).unwrap();
        let text = seal(&serde_json::to_vec(document).unwrap());
        std::fs::write(self.state_dir().join("desired.json"), text).unwrap();
    }

    /// In the site's own folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn apply(&self, document: &DesiredState) -> Output {
        let file = self.directory.path().join("document.json");
        std::fs::write(&file, serde_json::to_vec(document).unwrap()).unwrap();
        self.agent("apply", &[&file])
    }

    pub(crate) fn purge(&self) -> Output {
        self.agent("purge", &[])
    }

    fn agent(&self, verb: &str, files: &[&Path]) -> Output {
        self.command(verb).args(files).output().unwrap()
    }

    fn command(&self, verb: &str) -> Command {
        let mut agent = Command::new("nsenter");
        agent.arg(self.entry()).args([env!("CARGO_BIN_EXE_edgeloom-agent"), verb, "--config"]);
        // What it logs is looked at, whatever the caller of the tests wants to see.
        agent.arg(self.directory.path().join("agent.toml")).env_remove("EDGELOOM_LOG");
        agent
    }

    /// Starts the daemon, with a log of its own.
    pub(crate) fn run(&self) -> Agent {
        let log = self.directory.path().join("log");
        let file = std::fs::File::create(&log).unwrap();
        let child = self.command("run").stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Agent { child, log, begun: Instant::now() }
    }
}

/// The daemon, killed on drop.
pub(crate) struct Agent {
    child: Child,
    log: PathBuf,
    begun: Instant,
}

impl Agent {
    /// Waits until it has said so; the time since its start.
    pub(crate) fn says(&self, text: &str) -> Duration {
        loop {
            let said = std::fs::read_to_string(&self.log).unwrap();
            if said.contains(text) {
                return self.begun.elapsed();
            }
            assert!(self.begun.elapsed() < PATIENCE, "{text:?} is not said:\n{said}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for name in [&self.node, &self.neighbours] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// Removes the namespaces of the chosen tests, and with them the links.
fn remove_namespaces(is_chosen: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(&is_chosen) {
            // Another test program may have been faster.
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

/// Runs a program that has to succeed and returns what it prints.
fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
