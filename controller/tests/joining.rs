//! From two bare machines to a node that is online over mutual TLS, in four commands; and whoever must not
//! get that far. The machines share a network namespace that has nothing but a loopback.

#[path = "joining/command_line.rs"]
mod command_line;

use edgeloom_agent::config::Config;
use edgeloom_agent::join::{AskError, JoinError, JoinOptions, Joined, Live, Renewal, join, renew_now};
use edgeloom_agent::session::{Credentials, SessionSettings};
use edgeloom_common::secret::Secret;
use edgeloom_prepare::lab_allowed;
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};

const DAEMON: &str = env!("CARGO_BIN_EXE_edgeloom-controller");
const COMMAND_LINE: &str = env!("CARGO_BIN_EXE_edgeloom");

/// A network of the test's own, for its thread and all that it starts.
fn own_network() -> bool {
    if !lab_allowed(&["ip"]) {
        return false;
    }
    unshare(CloneFlags::CLONE_NEWNET).expect("root may make network namespaces");
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    true
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The master: a bare machine with a configuration as it is shipped, but for its folders and ports.
struct Master {
    folder: TempDir,
    child: Child,
    /// `127.0.0.1:port` of the API.
    api: String,
    log: Arc<Mutex<String>>,
}

/// The configuration of a master in a folder of its own; ports of zero are any.
fn configure(cluster: &str, [http, mqtt]: [u16; 2]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let text = format!(
        "cluster = {cluster:?}\nstate_dir = {state:?}\n[http]\nlisten = \"127.0.0.1:{http}\"\n\
         [mqtt]\nlisten = \"127.0.0.1:{mqtt}\"\n[pool]\nnetwork = \"10.77.0.0/16\"\n"
    );
    std::fs::write(folder.path().join("controller.toml"), text).unwrap();
    folder
}

impl Master {
    fn start(cluster: &str) -> Self {
        Self::start_in(configure(cluster, [0, 0]))
    }

    fn start_in(folder: TempDir) -> Self {
        let mut child = Command::new(DAEMON)
            .args(["run", "--config"])
            .arg(folder.path().join("controller.toml"))
            .env_remove("EDGELOOM_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let api = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the daemon ended before it was up");
            let entry: Value = serde_json::from_str(&line).unwrap();
            if let Some(http) = entry["fields"]["http"].as_str() {
                break http.to_owned();
            }
        };
        let text = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&text);
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                written.lock().unwrap().push_str(&line);
            }
        });
        Self { folder, child, api, log: text }
    }

    fn context(&self) -> PathBuf {
        self.folder.path().join("state/identity/admin.json")
    }

    /// The command line as root on the master has it.
    fn command(&self) -> Command {
        let mut command = Command::new(COMMAND_LINE);
        command.env("EDGELOOM_CONTEXT", self.context());
        for variable in ["EDGELOOM_SERVER", "EDGELOOM_TOKEN", "EDGELOOM_CA"] {
            command.env_remove(variable);
        }
        command
    }

    fn edgeloom(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn token(&self, arguments: &[&str]) -> Secret {
        let text = self.edgeloom(&[&["token", "create"], arguments].concat());
        text.trim().to_owned().into()
    }

    /// The secret half of a token is in no log and no event.
    fn keeps_silent_about(&self, token: &Secret) {
        let secret = token.expose().rsplit('.').next().unwrap();
        assert!(!self.log.lock().unwrap().contains(secret), "a secret is in the log");
        assert!(!self.edgeloom(&["events", "-o", "json"]).contains(secret), "a secret is in an event");
    }

    fn is_online(&self, node: &str) -> bool {
        let nodes: Value = serde_json::from_str(&self.edgeloom(&["nodes", "-o", "json"])).unwrap();
        let mut nodes = nodes["nodes"].as_array().unwrap().iter();
        nodes.any(|found| found["name"] == node && found["online"] == true)
    }

    fn wait_until_online(&self, node: &str) {
        while !self.is_online(node) {}
    }

    /// Waits for an event of what was refused that has all these words.
    fn wait_for_refusal(&self, words: &[&str]) {
        loop {
            let events: Value = serde_json::from_str(&self.edgeloom(&["events", "-o", "json"])).unwrap();
            let mut events = events["events"].as_array().unwrap().iter();
            let fits = |event: &&Value| {
                let text = event["text"].as_str().unwrap();
                event["kind"] == "refused" && words.iter().all(|word| text.contains(word))
            };
            if events.any(|event| fits(&event)) {
                return;
            }
        }
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A machine that may become a node; no Docker runs there.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (state, docker) = (folder.path().join("state"), folder.path().join("docker.sock"));
        let text = format!("state_dir = {state:?}\ndocker = \"unix://{}\"\n", docker.display());
        std::fs::write(folder.path().join("agent.toml"), text).unwrap();
        Self { folder }
    }

    /// Another machine with this one's disk.
    fn clone_disk(&self) -> Self {
        let copy = Self::new();
        std::fs::create_dir(copy.state()).unwrap();
        std::fs::copy(self.state().join("identity.json"), copy.state().join("identity.json")).unwrap();
        copy
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("agent.toml")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// What `edgeloom-agent join` does.
    fn join(&self, controller: &str, token: &Secret, node: &str) -> Result<Joined, JoinError> {
        runtime().block_on(join(JoinOptions {
            controller: controller.to_owned(),
            token: token.clone(),
            node: Some(node.parse().unwrap()),
            config: self.config(),
        }))
    }

    fn refused(&self, controller: &str, token: &Secret, node: &str) -> String {
        let error = self.join(controller, token, node).unwrap_err();
        assert!(!error.to_string().contains(token.expose()), "{error}");
        assert!(!self.state().join("identity.json").exists(), "nothing was written");
        match error {
            JoinError::Ask(AskError::Refused(problem)) => problem.code,
            other => other.to_string(),
        }
    }

    /// What `edgeloom-agent run` does.
    fn run(&self) -> Running {
        let config = Config::load(&self.config()).unwrap();
        Running::start(move || async move {
            edgeloom_agent::app::run(config).await.unwrap();
        })
    }

    /// The session alone, as a machine without the right to change its kernel can have it.
    fn talk(&self) -> Running {
        let config = Config::load(&self.config()).unwrap();
        let live: Arc<Live> = Live::open(&self.state()).unwrap().unwrap();
        let controller = config.controller.unwrap();
        let settings = SessionSettings {
            node: config.node,
            host: controller.host,
            port: controller.port,
            credentials: Credentials::Joined(live),
        };
        Running::start(move || async move {
            let (_up, up) = mpsc::channel(1);
            let (down, mut heard) = mpsc::channel(8);
            let listening = async { while heard.recv().await.is_some() {} };
            let (_, unchanging) = watch::channel(0);
            let session = edgeloom_agent::session::run(settings, up, down, unchanging);
            let _ = tokio::join!(session, listening);
        })
    }
}

/// A daemon on a thread of its own, cut off like a killed process when it is dropped.
struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start<F: Future<Output = ()>>(body: impl FnOnce() -> F + Send + 'static) -> Self {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime().block_on(async {
                tokio::select! {
                    () = body() => {}
                    _ = stopped => {}
                }
            });
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the daemon panicked");
    }
}

#[test]
fn four_commands_bring_a_bare_machine_online_over_mutual_tls() {
    if !own_network() {
        return;
    }
    // edgeloom-controller run
    let master = Master::start("home");
    // edgeloom token create
    let token = master.token(&[]);
    // edgeloom-agent join
    let machine = Machine::new();
    let joined = machine.join(&master.api, &token, "n1").unwrap();
    assert!(matches!(&joined, Joined::Now { node, .. } if node.as_str() == "n1"), "{joined:?}");
    // edgeloom-agent run
    let running = machine.run();
    master.wait_until_online("n1");

    // Once more changes nothing, even though the token is used up and the machine has it all already.
    drop(running);
    let before = std::fs::read(machine.state().join("identity.json")).unwrap();
    let again = machine.join(&master.api, &token, "n1").unwrap();
    assert!(matches!(again, Joined::Before { .. }), "{again:?}");
    assert_eq!(std::fs::read(machine.state().join("identity.json")).unwrap(), before);
}

/// What an operator does while the controller is down, or beside it.
fn upkeep(folder: &TempDir, arguments: &[&str], file: &Path) -> Output {
    let (command, options) = arguments.split_first().unwrap();
    let mut daemon = Command::new(DAEMON);
    daemon.args([command, "--config"]).arg(folder.path().join("controller.toml"));
    daemon.args(options).arg(file).env_remove("EDGELOOM_LOG").output().unwrap()
}

#[test]
fn a_replaced_master_is_the_same_cluster_and_nodes_come_back_as_they_are() {
    if !own_network() {
        return;
    }
    let master = Master::start("home");
    let machine = Machine::new();
    machine.join(&master.api, &master.token(&[]), "n1").unwrap();
    let identity = std::fs::read(machine.state().join("identity.json")).unwrap();
    let _running = machine.run();
    master.wait_until_online("n1");
    let read = master.edgeloom(&["token", "create", "--api", "read", "--note", "the wall"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("cluster.json");
    let exported = upkeep(&master.folder, &["export", "--with-authority"], &file);
    assert!(exported.status.success(), "{}", errors(&exported));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(read.trim()), "tokens are hashes");
    let port = |address: &str| address.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let ports = [port(&master.api), Config::load(&machine.config()).unwrap().controller.unwrap().port];
    // The old master burns down.
    drop(master);

    let folder = configure("home", ports);
    let other = configure("away", [0, 0]);
    let refused = errors(&upkeep(&other, &["import"], &file));
    assert!(refused.contains("of cluster home"), "{refused}");
    assert!(!other.path().join("state/identity/authority").exists(), "nothing is begun");
    let imported = upkeep(&folder, &["import"], &file);
    assert!(imported.status.success(), "{}", errors(&imported));
    let told = String::from_utf8(imported.stdout).unwrap();
    assert!(told.contains("nodes reconnect as they are"), "{told}");
    let master = Master::start_in(folder);
    master.wait_until_online("n1");
    assert_eq!(std::fs::read(machine.state().join("identity.json")).unwrap(), identity);
    assert!(master.edgeloom(&["token", "list"]).contains("the wall"));
    let mut reader = master.command();
    reader.env("EDGELOOM_TOKEN", read.trim()).arg("jobs");
    assert!(reader.output().unwrap().status.success(), "the token of before is good here");
}

#[test]
fn used_foreign_and_misdirected_tokens_bring_nobody_in() {
    if !own_network() {
        return;
    }
    let (master, elsewhere) = (Master::start("home"), Master::start("away"));
    let (first, second) = (Machine::new(), Machine::new());
    let once = master.token(&[]);
    first.join(&master.api, &once, "n1").unwrap();
    assert_eq!(second.refused(&master.api, &once, "n2"), "join.used");
    // At a controller of another cluster, the token does not even leave the machine.
    let token = master.token(&["--uses", "5"]);
    let text = second.refused(&elsewhere.api, &token, "n2");
    assert!(text.contains("nothing was sent to it"), "{text}");
    assert_eq!(second.refused(&master.api, &token, "n1"), "join.name-taken");
    assert_eq!(second.refused(&master.api, &master.token(&["--node", "n7"]), "n2"), "join.other-node");
    let brief = master.token(&["--lifetime", "1s"]);
    while second.refused(&master.api, &brief, "n1") != "join.expired" {}
    let admin: Value = serde_json::from_slice(&std::fs::read(master.context()).unwrap()).unwrap();
    let admin: Secret = admin["token"].as_str().unwrap().to_owned().into();
    assert!(second.refused(&master.api, &admin, "n2").contains("no joining token"));
    // None of it used up anything.
    second.join(&master.api, &token, "n2").unwrap();
    for token in [&once, &token, &brief, &admin] {
        master.keeps_silent_about(token);
    }
}

#[test]
fn a_clone_of_a_nodes_disk_gets_no_session_and_the_node_keeps_its_own() {
    if !own_network() {
        return;
    }
    let master = Master::start("home");
    let machine = Machine::new();
    machine.join(&master.api, &master.token(&[]), "n1").unwrap();
    let _running = machine.run();
    master.wait_until_online("n1");
    let copy = machine.clone_disk();
    let clone = copy.talk();
    master.wait_for_refusal(&["n1", "connected already"]);
    drop(clone);
    let events = master.edgeloom(&["events"]);
    assert_eq!(events.matches("node-down").count(), 0, "{events}");
    assert!(master.is_online("n1"));
}

#[test]
fn a_revoked_node_is_off_at_once_and_comes_back_by_joining_again() {
    if !own_network() {
        return;
    }
    let master = Master::start("home");
    let machine = Machine::new();
    machine.join(&master.api, &master.token(&[]), "n1").unwrap();
    let talking = machine.talk();
    master.wait_until_online("n1");
    assert!(master.edgeloom(&["node", "revoke", "n1"]).contains("1 certificate"));
    while master.is_online("n1") {}
    master.wait_for_refusal(&["n1", "was revoked"]);
    drop(talking);
    let again = master.token(&["--node", "n1", "--replace"]);
    assert!(matches!(machine.join(&master.api, &again, "n1").unwrap(), Joined::Now { .. }));
    let _talking = machine.talk();
    master.wait_until_online("n1");
}

#[test]
fn a_rotation_reaches_a_node_over_its_live_link() {
    if !own_network() {
        return;
    }
    let master = Master::start("home");
    let machine = Machine::new();
    machine.join(&master.api, &master.token(&[]), "n1").unwrap();
    let renew = || {
        let live = Live::open(&machine.state()).unwrap().unwrap();
        runtime().block_on(renew_now(&live, "127.0.0.1")).unwrap()
    };
    assert_eq!(renew(), Renewal::NotDue);
    let before = std::fs::read(machine.state().join("identity.json")).unwrap();
    assert!(master.edgeloom(&["authority", "rotate"]).contains("1 node(s)"));
    assert_eq!(renew(), Renewal::Renewed);
    assert_ne!(std::fs::read(machine.state().join("identity.json")).unwrap(), before);
    assert_eq!(renew(), Renewal::NotDue);
    let _talking = machine.talk();
    master.wait_until_online("n1");
}
