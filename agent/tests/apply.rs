//! The built program on a real kernel and a real Docker: a document written by hand is applied, applied
//! again, defended against documents that must not take its place, and purged. What became of it is read
//! with other programs than ours.

#[path = "../src/engine/docker/private.rs"]
mod private;
#[path = "apply/pulls.rs"]
mod pulls;
#[path = "apply/reboot.rs"]
mod reboot;
#[path = "apply/site.rs"]
mod site;

use bollard::Docker as Client;
use bollard::models::{ContainerInspectResponse, NetworkCreateRequest};
use bollard::query_parameters::{
    InspectContainerOptions, InspectNetworkOptions, ListContainersOptionsBuilder,
};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef};
use edgeloom_common::report::{ContainerPhase, Observed};
use edgeloom_common::units::{Bytes, MilliCores};
use private::{DaemonNetwork, PrivateDocker};
use serde_json::{Value, json};
use site::Site;
use std::collections::BTreeMap;
use std::process::Output;
use std::time::Duration;

const DOCUMENT: &str = include_str!("../../examples/desired/flows.json");
const CONTAINER: &str = "edgeloom_crossing_camera";
/// The sender of the shaped flow.
const CAMERA: &str = "10.77.0.10";
const DETECT: &str = "10.77.0.20";
/// The sender of the flow that passes this node.
const GATE: &str = "10.77.0.30";
/// Many times what a slow disk needs: a bound for a daemon that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);
/// Marks of the first and the second neighbour.
const MARKS: [u32; 2] = [0x4500_0001, 0x4500_0002];

/// The example, with the flow's sender on this node.
fn document(image: ImageRef) -> DesiredState {
    let camera = ContainerSpec {
        job: "crossing".parse().unwrap(),
        task: "camera".parse().unwrap(),
        spec_hash: "first".to_owned(),
        image,
        command: vec!["/app".to_owned()],
        environment: BTreeMap::from([("EDGELOOM_TASK".to_owned(), "camera".to_owned())]),
        cpu: MilliCores(250),
        memory: Bytes(32 << 20),
        address: CAMERA.parse().unwrap(),
        hosts: BTreeMap::from([("detect".to_owned(), DETECT.parse().unwrap())]),
        secrets: BTreeMap::new(),
        to_end: None,
        ports: Vec::new(),
        mounts: Vec::new(),
    };
    let images = vec![camera.image.clone()];
    DesiredState { images, containers: vec![camera], ..serde_json::from_str(DOCUMENT).unwrap() }
}

/// What the agent printed, having converged.
fn converged(output: &Output) -> Observed {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", String::from_utf8_lossy(&output.stdout));
    let observed: Observed = serde_json::from_slice(&output.stdout).unwrap();
    assert!(observed.converged && observed.network_applied, "{observed:?}");
    assert_eq!(observed.problems, Vec::<String>::new());
    observed
}

async fn container(client: &Client) -> ContainerInspectResponse {
    client.inspect_container(CONTAINER, None::<InspectContainerOptions>).await.unwrap()
}

/// Docker makes some of its chains with its first network and keeps them.
async fn settle(client: &Client) {
    let network = NetworkCreateRequest { name: "settling".to_owned(), ..Default::default() };
    client.create_network(network).await.unwrap();
    client.remove_network("settling").await.unwrap();
}

/// The bridge has its carrier a moment after its first container started.
async fn wait_for_carrier(site: &Site) {
    while !site.inside("ip -j link show dev edgeloom0").contains("LOWER_UP") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn check_container(found: &ContainerInspectResponse, wanted: &ContainerSpec) {
    assert_eq!(found.state.as_ref().unwrap().running, Some(true));
    let limits = found.host_config.as_ref().unwrap();
    assert_eq!((limits.cpu_quota, limits.cpu_period), (Some(25_000), Some(100_000)));
    assert_eq!(limits.memory, Some(32 << 20));
    assert_eq!(limits.extra_hosts, Some(vec![format!("detect:{DETECT}")]));
    let config = found.config.as_ref().unwrap();
    let labels = config.labels.as_ref().unwrap();
    let label = |name: &str| labels[&format!("edgeloom.{name}")].as_str();
    assert_eq!(["cluster", "node", "job", "task"].map(label), ["home", "n1", "crossing", "camera"]);
    assert_eq!((label("spec"), label("address")), (wanted.spec_hash.as_str(), CAMERA));
    assert!(config.env.as_ref().unwrap().contains(&"EDGELOOM_TASK=camera".to_owned()));
    let networks = found.network_settings.as_ref().unwrap().networks.as_ref().unwrap();
    assert_eq!(networks.keys().collect::<Vec<_>>(), ["edgeloom0"]);
    assert_eq!(networks["edgeloom0"].ip_address.as_deref(), Some(CAMERA));
}

/// The elements of a map of our table.
fn elements(site: &Site, map: &str) -> Value {
    let table = site.json("nft -j list table ip edgeloom");
    let objects = table["nftables"].as_array().unwrap();
    let map = objects.iter().find(|object| object["map"]["name"] == map).unwrap();
    let mut elements = map["map"]["elem"].as_array().unwrap().clone();
    elements.sort_by_key(Value::to_string);
    Value::Array(elements)
}

fn key(source: &str) -> Value {
    json!({ "concat": [source, DETECT, "tcp", 7000] })
}

fn check_shaping(site: &Site) {
    let classes = site.inside("tc -s class show dev to-n2");
    let line = |class: &str| classes.lines().find(|line| line.starts_with(&format!("class htb {class} ")));
    let flow = line("4501:1").unwrap();
    assert!(flow.contains("parent 4501:ffff") && flow.contains("rate 8Mbit ceil 8Mbit"), "{flow}");
    assert!(line("4501:ffff").unwrap().contains("rate 20Mbit ceil 20Mbit"), "{classes}");
    let passing = site.inside("tc -s class show dev to-n3");
    assert!(!passing.contains("class htb 4501:1 "), "what passes is not shaped: {passing}");
    assert_eq!(elements(site, "flow_class"), json!([[key(CAMERA), "4501:1"]]));
    assert_eq!(elements(site, "flow_mark"), json!([[key(CAMERA), MARKS[0]], [key(GATE), MARKS[1]]]));
}

/// Docker drops what it does not know: the pool's own traffic needs its accept.
fn check_accept(site: &Site) {
    let rules = site.inside("iptables -S DOCKER-USER");
    let accept = "-A DOCKER-USER -s 10.77.0.0/16 -d 10.77.0.0/16 -m comment --comment edgeloom -j ACCEPT";
    assert_eq!(rules.lines().filter(|rule| *rule == accept).count(), 1, "{rules}");
}

/// The address on the link that the kernel sends a packet for the detector to; `packet` in words of ip-route(8).
fn next_hop(site: &Site, packet: &str) -> Value {
    let found = site.json(&format!("ip -j -4 route get {DETECT} {packet}"));
    found[0]["gateway"].clone()
}

/// Where the camera's flow goes while its way is whole.
const FLOW_NEXT_HOP: &str = "10.61.1.2";

fn flow_next_hop(site: &Site) -> Value {
    next_hop(site, &format!("from {CAMERA} iif edgeloom0 mark {}", MARKS[0]))
}

fn check_routes(site: &Site) {
    assert_eq!(next_hop(site, &format!("from {CAMERA} iif edgeloom0")), "10.61.1.6", "the main way");
    assert_eq!(flow_next_hop(site), FLOW_NEXT_HOP, "the flow's");
    assert_eq!(next_hop(site, &format!("from {GATE} iif to-n2 mark {}", MARKS[1])), "10.61.1.6");
    let routes = site.json("ip -j -4 route show table main proto 117");
    let tasks = routes.as_array().unwrap().iter().map(|route| (&route["dst"], &route["gateway"]));
    let tasks: Vec<_> = tasks.collect();
    assert_eq!(tasks, [(&json!(DETECT), &json!("10.61.1.6")), (&json!(GATE), &json!("10.61.1.2"))]);
    let rules = site.json("ip -j -4 rule");
    let ours =
        rules.as_array().unwrap().iter().filter(|rule| {
            rule["priority"].as_u64().is_some_and(|priority| (4500..5000).contains(&priority))
        });
    let ours: Vec<_> = ours.map(|rule| [&rule["iif"], &rule["fwmark"], &rule["table"]]).collect();
    let [first, second] = [json!("0x45000001"), json!("0x45000002")];
    let wanted = [
        [&json!("to-n2"), &first, &json!("main")],
        [&json!("to-n3"), &second, &json!("main")],
        [&Value::Null, &first, &json!("45001")],
        [&Value::Null, &second, &json!("45002")],
    ];
    assert_eq!(ours, wanted);
}

/// Documents that must not take the place of the one held, and what is said of each.
fn wrong(held: &DesiredState) -> [(DesiredState, &'static str); 4] {
    let mut outside = held.clone();
    outside.generation += 1;
    outside.containers[0].address = "10.78.0.10".parse().unwrap();
    [
        (DesiredState { generation: 1, ..held.clone() }, "desired state 1.1 refused, 1.2 is held"),
        (
            DesiredState { cluster: "other".parse().unwrap(), generation: 3, ..held.clone() },
            "desired state of cluster other refused, this node belongs to home",
        ),
        (
            DesiredState { node: "n2".parse().unwrap(), generation: 3, ..held.clone() },
            "desired state of node n2 refused, this node is n1",
        ),
        (outside, "address 10.78.0.10 is outside the pool"),
    ]
}

/// The test's way: each step begins where the one before ended.
struct Trial {
    site: Site,
    client: Client,
    document: DesiredState,
}

impl Trial {
    /// Applies for the first time and returns the container.
    async fn apply(&self) -> ContainerInspectResponse {
        let observed = converged(&self.site.apply(&self.document));
        let created = container(&self.client).await;
        assert_eq!(observed.version, self.document.version());
        let [state] = observed.containers.as_slice() else { panic!("{observed:?}") };
        assert_eq!((state.phase, Some(&state.container_id)), (ContainerPhase::Running, created.id.as_ref()));
        check_container(&created, &self.document.containers[0]);
        check_shaping(&self.site);
        check_accept(&self.site);
        check_routes(&self.site);
        wait_for_carrier(&self.site).await;
        created
    }

    /// What must not change by a repeat or a refusal: container, kernel, document. Start time and process
    /// are part of the container's state, handles part of the table.
    async fn standing(&self) -> (ContainerInspectResponse, Vec<String>, Value, Option<DesiredState>) {
        let table = self.site.json("nft -j list table ip edgeloom");
        (container(&self.client).await, self.site.seen(), table, self.site.held())
    }

    async fn refuse(&self) {
        let standing = self.standing().await;
        for (wrong, why) in wrong(&self.document) {
            let output = self.site.apply(&wrong);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{why}: {errors}");
            assert!(errors.contains(why) && output.stdout.is_empty(), "{why}: {errors}");
            assert_eq!(self.standing().await, standing, "{why}");
        }
    }

    async fn purge(&self) {
        let purged = self.site.purge();
        assert!(purged.status.success(), "{}", String::from_utf8_lossy(&purged.stderr));
        let all = ListContainersOptionsBuilder::new().all(true).build();
        assert_eq!(self.client.list_containers(Some(all)).await.unwrap(), []);
        assert!(self.client.inspect_network("edgeloom0", None::<InspectNetworkOptions>).await.is_err());
        assert_eq!(self.site.held(), None);
    }
}

async fn trial() {
    let site = Site::new();
    let network = DaemonNetwork { enter: ["nsenter", &site.entry()], tables: "--iptables=true" };
    let mut docker = PrivateDocker::start(network).expect("the lab is allowed");
    let client = docker.client().await;
    let document = document(docker.import(&client).await);
    settle(&client).await;
    site.configure(&docker.socket());
    let before = site.seen();
    let trial = Trial { site, client, document };

    let created = trial.apply().await;
    let standing = trial.standing().await;
    assert_eq!((&standing.0.id, &standing.3), (&created.id, &Some(trial.document.clone())));
    converged(&trial.site.apply(&trial.document));
    assert_eq!(trial.standing().await, standing);
    trial.refuse().await;
    trial.purge().await;
    assert_eq!(trial.site.seen(), before);
}

#[tokio::test]
async fn a_document_is_applied_kept_defended_and_purged() {
    if edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "nsenter", "tc"]) {
        tokio::time::timeout(TRIAL_MAX, trial()).await.expect("a daemon that hangs fails the test");
    }
}
