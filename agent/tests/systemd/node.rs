//! A node as an administrator makes it: the shipped files in their places, Docker, one link, and a desired
//! state on the disk that wants one container and one shaped flow.

use crate::{LIMIT, program};
use bollard::query_parameters::InspectContainerOptions;
use bollard::{API_DEFAULT_VERSION, Docker};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef};
use edgeloom_common::doctor::Examination;
use edgeloom_common::report::Inventory;
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_machine::{Machine, Parts};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use std::time::Instant;

pub(crate) const UNIT: &str = "edgeloom-agent.service";
const DOCUMENT: &str = include_str!("../../../examples/desired/flows.json");
const CONTAINER: &str = "edgeloom_crossing_camera";
/// Times that let a test end soon; what they are in the shipped unit is looked at by `systemctl show` alone.
const QUICK: &str = "[Service]\nWatchdogSec=3\nRestartSec=100ms\n";
const CONFIG: &str = r#"
cluster = "home"
node = "n1"
state_dir = "/var/lib/edgeloom-agent"
docker = "unix:///run/docker.sock"
[controller]
host = "127.0.0.1"
port = 8883
ca = "/etc/edgeloom/ca.pem"
certificate = "/etc/edgeloom/node.pem"
key = "/etc/edgeloom/node.key"
[[link]]
neighbour = "n2"
interface = "to-n2"
address = "10.61.1.1"
neighbour_address = "10.61.1.2"
capacity = "20Mbit/s"
"#;

/// Which container, and since when it runs.
pub(crate) type Life = (String, String);

pub(crate) struct Node {
    pub(crate) machine: Machine,
    docker: Docker,
}

impl Node {
    /// Boots it and starts the agent; none where tests like this are skipped.
    pub(crate) async fn boot() -> Option<Self> {
        let parts = Parts::gather(&["containerd", "dockerd", "iptables", "runc", "tc"])?;
        install(&parts);
        let machine = parts.boot();
        for words in [
            ["ip", "link", "add", "to-n2", "type", "veth", "peer", "name", "n2-end"].as_slice(),
            &["ip", "address", "add", "10.61.1.1/30", "dev", "to-n2"],
            &["ip", "link", "set", "to-n2", "up"],
            &["ip", "link", "set", "n2-end", "up"],
            &["systemctl", "start", "docker.service"],
        ] {
            machine.run(words);
        }
        let socket = machine.path("/run/docker.sock");
        let docker = Docker::connect_with_unix(socket.to_str().unwrap(), 120, API_DEFAULT_VERSION).unwrap();
        let docker = docker.negotiate_version().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let document = document(program::import(&docker, folder.path()).await);
        let state_dir = machine.path("/var/lib/edgeloom-agent");
        std::fs::create_dir_all(&state_dir).unwrap();
        std::fs::write(state_dir.join("desired.json"), serde_json::to_vec(&document).unwrap()).unwrap();
        machine.run(&["systemctl", "start", UNIT]);
        Some(Self { machine, docker })
    }

    /// Waits for the container, and says which life of it this is.
    pub(crate) async fn container_runs(&self) -> Life {
        let begun = Instant::now();
        loop {
            let found = self.docker.inspect_container(CONTAINER, None::<InspectContainerOptions>).await;
            let state = found.as_ref().ok().and_then(|found| found.state.clone()).unwrap_or_default();
            if state.running == Some(true) {
                return (found.unwrap().id.unwrap(), state.started_at.unwrap());
            }
            if LIMIT < begun.elapsed() {
                panic!("{found:?}\n{}", self.machine.run(&["journalctl", "--no-pager", "--unit", UNIT]));
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// The kernel has the flow's class, its mark and its route.
    pub(crate) fn flow_is_shaped(&self) {
        let classes = self.machine.run(&["tc", "class", "show", "dev", "to-n2"]);
        assert!(classes.contains("rate 8Mbit"), "{classes}");
        let routes = self.machine.run(&["ip", "route", "show", "table", "all", "proto", "117"]);
        assert!(routes.contains("10.77.0.20"), "{routes}");
    }

    /// What `probe` complains of with these capabilities.
    pub(crate) fn problems(&self, capabilities: &str) -> Vec<String> {
        let output = self.agent(capabilities, &["probe"]);
        let inventory: Inventory = serde_json::from_slice(&output.stdout).unwrap();
        inventory.capabilities.problems
    }

    /// Takes the route to the flow's destination away and has the document applied again with these
    /// capabilities; what the program says meanwhile.
    pub(crate) fn lead_flow_anew(&self, capabilities: &str) -> String {
        self.machine.run(&["ip", "route", "del", "10.77.0.20", "proto", "117"]);
        // Without its seal.
        self.machine.run(&["sh", "-c", "head -n1 /var/lib/edgeloom-agent/desired.json > /run/document.json"]);
        let output = self.agent(capabilities, &["apply", "/run/document.json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    /// What `doctor` finds with the unit's rights, while the agent runs.
    pub(crate) fn examination(&self) -> Examination {
        let output = self.agent("net_admin,net_raw,dac_read_search,kill", &["doctor", "--output=json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the program as the unit's user with these capabilities.
    fn agent(&self, capabilities: &str, words: &[&str]) -> Output {
        let all: String = capabilities.split(',').map(|name| format!(",+{name}")).collect();
        let given = format!("-all{all}");
        let sets = ["inh-caps", "ambient-caps", "bounding-set"].map(|set| format!("--{set}={given}"));
        let user = ["setpriv", "--reuid=edgeloom-agent", "--regid=edgeloom-agent", "--groups=docker"];
        let program = ["edgeloom-agent"].into_iter().chain(words.iter().copied());
        let words = user.into_iter().chain(sets.iter().map(String::as_str)).chain(program);
        let words: Vec<&str> = words.chain(["--config=/etc/edgeloom/agent.toml"]).collect();
        self.machine.attempt(&words)
    }
}

fn install(parts: &Parts) {
    parts.install_agent(Path::new(env!("CARGO_BIN_EXE_edgeloom-agent")));
    parts.install_docker("{}");
    parts.write("/etc/systemd/system/edgeloom-agent.service.d/quick.conf", QUICK);
    parts.write("/etc/edgeloom/agent.toml", CONFIG);
    let certificate = rcgen::generate_simple_self_signed(vec!["n1".to_owned()]).unwrap();
    parts.write("/etc/edgeloom/ca.pem", &certificate.cert.pem());
    parts.write("/etc/edgeloom/node.pem", &certificate.cert.pem());
    parts.write("/etc/edgeloom/node.key", &certificate.signing_key.serialize_pem());
}

/// The example's shaped flow and its sender.
fn document(image: ImageRef) -> DesiredState {
    let mut document: DesiredState = serde_json::from_str(DOCUMENT).unwrap();
    document.flows.truncate(1);
    document.routes.truncate(1);
    document.routes[0].via = "n2".parse().unwrap();
    document.images = vec![image.clone()];
    document.containers = vec![ContainerSpec {
        job: "crossing".parse().unwrap(),
        task: "camera".parse().unwrap(),
        spec_hash: "first".to_owned(),
        image,
        command: vec!["/app".to_owned()],
        environment: BTreeMap::new(),
        cpu: MilliCores(250),
        memory: Bytes(32 << 20),
        address: "10.77.0.10".parse().unwrap(),
        hosts: BTreeMap::new(),
        secrets: BTreeMap::new(),
        to_end: None,
        ports: Vec::new(),
        mounts: Vec::new(),
    }];
    document
}
