//! Nodes n1, n2 and n3 as network namespaces, each with a task's namespace or none behind its bridge, and the
//! agents that run there. All ends with the value; the namespaces of killed tests go at the next start.

use edgeloom_common::desired::{DesiredState, FlowKey, FlowSpec, Pool, Protocol, TaskRoute};
use edgeloom_common::ids::FlowId;
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The tasks behind n1 and n3.
pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(crate) const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
pub(crate) const TASK_PORT: u16 = 7000;
const PREFIX: &str = "elfo";
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// A wait longer than this is a failure; nothing is measured with it.
const PATIENCE: Duration = Duration::from_secs(60);

static BUILT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Triangle {
    /// Of the names of the namespaces.
    prefix: String,
    agents: BTreeMap<&'static str, Child>,
    directory: TempDir,
}

impl Triangle {
    pub(crate) fn build() -> Self {
        remove_namespaces(|pid| !Path::new("/proc").join(pid).exists());
        let number = BUILT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("{PREFIX}{}-{number}", std::process::id());
        let triangle = Self { prefix, agents: BTreeMap::new(), directory: tempfile::tempdir().unwrap() };
        for space in ["n1", "n2", "n3", "s", "r", "m"] {
            run(&["ip", "netns", "add", &triangle.space(space)]);
            triangle.ip(space, "link set lo up");
        }
        triangle.link("n1", "n2", 12);
        triangle.link("n2", "n3", 23);
        triangle.switched_link();
        triangle.attach("n1", "s", SENDER);
        triangle.attach("n3", "r", RECEIVER);
        for words in [
            "add table ip seen",
            "add chain ip seen pass { type filter hook forward priority 0; }",
            "add rule ip seen pass udp dport 7000 counter",
        ] {
            triangle.nft_at_n2(words);
        }
        triangle
    }

    fn space(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn ip(&self, space: &str, words: &str) -> String {
        let space = self.space(space);
        let line: Vec<&str> = ["ip", "-n", &space].into_iter().chain(words.split(' ')).collect();
        run(&line)
    }

    fn link(&self, a: &str, b: &str, net: u8) {
        let other = self.space(b);
        self.ip(a, &format!("link add to-{b} type veth peer name to-{a} netns {other}"));
        for (node, peer) in [(a, b), (b, a)] {
            self.address(node, peer, net);
        }
    }

    fn address(&self, node: &str, peer: &str, net: u8) {
        let host = &node[1..];
        self.ip(node, &format!("addr add 10.61.{net}.{host}/24 dev to-{peer}"));
        self.ip(node, &format!("link set to-{peer} up"));
    }

    /// n1 to n3, over a switch.
    fn switched_link(&self) {
        self.ip("m", "link add switch type bridge");
        self.ip("m", "link set switch up");
        for (node, peer, port) in [("n1", "n3", "port1"), ("n3", "n1", "port3")] {
            let space = self.space(node);
            self.ip("m", &format!("link add {port} type veth peer name to-{peer} netns {space}"));
            self.ip("m", &format!("link set {port} master switch up"));
            self.address(node, peer, 13);
        }
    }

    /// A task behind the bridge of its node, as Docker makes them.
    fn attach(&self, node: &str, task: &str, address: Ipv4Addr) {
        let space = self.space(task);
        self.ip(node, "link add edgeloom0 type bridge");
        self.ip(node, "addr add 10.77.0.1/16 dev edgeloom0");
        self.ip(node, "link set edgeloom0 up");
        self.ip(node, &format!("link add port type veth peer name eth0 netns {space}"));
        self.ip(node, "link set port master edgeloom0 up");
        self.ip(task, &format!("addr add {address}/16 dev eth0"));
        self.ip(task, "link set eth0 up");
        self.ip(task, "route add default via 10.77.0.1");
    }

    /// Starts the agents and waits until all know each other.
    pub(crate) fn start(&mut self) {
        write_identity(self.directory.path());
        for node in NODES {
            fs::create_dir(self.state_dir(node)).unwrap();
            fs::write(self.state_dir(node).join("agent.toml"), self.config(node)).unwrap();
            self.start_agent(node, &document(node));
        }
        for node in NODES {
            for peer in NODES.into_iter().filter(|peer| *peer != node) {
                self.wait_for(node, peer, 1);
            }
        }
    }

    /// Starts a node's agent, in the place of one that may run there, with a document on its disk.
    pub(crate) fn start_agent(&mut self, node: &'static str, document: &DesiredState) {
        self.agents.remove(node).into_iter().for_each(end);
        let bytes = serde_json::to_vec(document).unwrap();
        fs::write(self.state_dir(node).join("desired.json"), bytes).unwrap();
        let agent = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", self.space(node)))
            .args([env!("CARGO_BIN_EXE_edgeloom-agent"), "run", "--config"])
            .arg(self.state_dir(node).join("agent.toml"))
            .env("EDGELOOM_LOG", "info")
            .stdout(Stdio::null())
            .stderr(File::create(self.log(node)).unwrap())
            .spawn();
        self.agents.insert(node, agent.unwrap());
    }

    fn state_dir(&self, node: &str) -> PathBuf {
        self.directory.path().join(node)
    }

    fn log(&self, node: &str) -> PathBuf {
        self.state_dir(node).join("log")
    }

    fn config(&self, node: &str) -> String {
        let at = self.directory.path().display();
        let mut text = format!(
            "cluster = \"home\"\nnode = \"{node}\"\nstate_dir = \"{at}/{node}\"\ndocker = \"unix://{at}/none.sock\"\n\
             [controller]\nhost = \"192.0.2.1\"\nca = \"{at}/ca.pem\"\ncertificate = \"{at}/node.pem\"\nkey = \"{at}/node.key\"\n"
        );
        for peer in NODES.into_iter().filter(|peer| *peer != node) {
            let (own, other) = (&node[1..], &peer[1..]);
            let net = if own < other { format!("{own}{other}") } else { format!("{other}{own}") };
            text += &format!(
                "[[link]]\nneighbour = \"{peer}\"\ninterface = \"to-{peer}\"\n\
                 neighbour_address = \"10.61.{net}.{other}\"\n"
            );
            // The first node's own addresses are those of its interfaces.
            if node != "n1" {
                text += &format!("address = \"10.61.{net}.{own}\"\n");
            }
        }
        text
    }

    /// Waits until `node` has said so often that its neighbour came.
    pub(crate) fn wait_for(&self, node: &str, peer: &str, times: usize) {
        self.wait_for_word(node, &format!("\"neighbour\":\"{peer}\",\"up\":true"), times);
    }

    /// Waits until `node` has said that its neighbour went.
    pub(crate) fn wait_for_loss(&self, node: &str, peer: &str) {
        self.wait_for_word(node, &format!("\"neighbour\":\"{peer}\",\"up\":false"), 1);
    }

    fn wait_for_word(&self, node: &str, said: &str, times: usize) {
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(self.log(node)).unwrap();
            if times <= log.matches(said).count() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{node} did not say {said} {times} times:\n{log}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// A command of ip(8) in the switch of the link n1-n3.
    pub(crate) fn switch(&self, words: &str) {
        self.ip("m", words);
    }

    fn nft_at_n2(&self, words: &str) -> String {
        let space = self.space("n2");
        run(&["ip", "netns", "exec", &space, "nft", words])
    }

    /// Gives n1 another address on its link with n3.
    pub(crate) fn move_n1(&self, address: Ipv4Addr) {
        self.ip("n1", "addr del 10.61.13.1/24 dev to-n3");
        self.ip("n1", &format!("addr add {address}/24 dev to-n3"));
    }

    /// Packets of the stream that n2 has passed on.
    pub(crate) fn passed_by_n2(&self) -> u64 {
        let listing = self.nft_at_n2("list chain ip seen pass");
        let (_, counted) = listing.split_once("counter packets ").unwrap();
        counted.split(' ').next().unwrap().parse().unwrap()
    }

    /// Runs `work` on a thread inside a namespace.
    pub(crate) fn inside<T: Send>(&self, space: &str, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.space(space));
        let inside = || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().unwrap())
    }
}

impl Drop for Triangle {
    fn drop(&mut self) {
        std::mem::take(&mut self.agents).into_values().for_each(end);
        let prefix = self.prefix[PREFIX.len()..].to_owned();
        remove_spaces(|rest| rest.starts_with(&prefix));
    }
}

fn end(mut agent: Child) {
    let _ = agent.kill();
    let _ = agent.wait();
}

/// What a node should be: the flow goes n1, n3; both ways between the tasks lead around over n2.
pub(crate) fn document(node: &str) -> DesiredState {
    let pool =
        Pool { network: Ipv4Addr::new(10, 77, 0, 0), prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let empty = DesiredState::empty("home".parse().unwrap(), node.parse().unwrap(), pool);
    let id = FlowId { job: "j".parse().unwrap(), from: "a".parse().unwrap(), to: "b".parse().unwrap() };
    let key = FlowKey {
        source: SENDER,
        destination: RECEIVER,
        protocol: Protocol::Udp,
        destination_port: TASK_PORT,
    };
    let path = ["n1", "n3"].map(|node| node.parse().unwrap()).to_vec();
    let flow = FlowSpec { id, key, next_hop: "n3".parse().unwrap(), rate: None, path };
    let route = |address, via: &str| vec![TaskRoute { address, via: via.parse().unwrap() }];
    match node {
        "n1" => DesiredState {
            flows: vec![flow],
            routes: route(RECEIVER, "n3"),
            alternates: route(RECEIVER, "n2"),
            generation: 1,
            ..empty
        },
        "n2" => DesiredState {
            routes: [route(SENDER, "n1"), route(RECEIVER, "n3")].concat(),
            generation: 1,
            ..empty
        },
        _ => DesiredState {
            routes: route(SENDER, "n1"),
            alternates: route(SENDER, "n2"),
            generation: 1,
            ..empty
        },
    }
}

/// An authority, a certificate and its key, for a controller that is never reached.
fn write_identity(directory: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["n1".to_owned()]).unwrap();
    for name in ["ca.pem", "node.pem"] {
        fs::write(directory.join(name), made.cert.pem()).unwrap();
    }
    fs::write(directory.join("node.key"), made.signing_key.serialize_pem()).unwrap();
}

fn remove_namespaces(is_chosen: impl Fn(&str) -> bool) {
    remove_spaces(|rest| rest.split_once('-').is_some_and(|(pid, _)| is_chosen(pid)));
}

fn remove_spaces(is_chosen: impl Fn(&str) -> bool) {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(PREFIX).is_some_and(&is_chosen) {
            // Another test may have been faster.
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
