//! Power cuts, restarts of Docker and of the agent: the document on disk alone brings everything back, and
//! nothing that runs is touched.

use super::private::{DaemonNetwork, PrivateDocker};
use super::site::Site;
use super::{
    FLOW_NEXT_HOP, TRIAL_MAX, check_accept, check_container, check_routes, check_shaping, container,
    converged, document, flow_next_hop, settle,
};
use bollard::Docker as Client;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{InspectContainerOptions, StopContainerOptions};
use edgeloom_common::desired::{ContainerSpec, DesiredState};
use edgeloom_common::units::MilliCores;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What the agent says when everything is as the document wants.
const CONVERGED: &str = "the node is as desired";

/// A node with a document applied, whose agent has ended.
struct Machine {
    site: Site,
    docker: PrivateDocker,
    client: Client,
    document: DesiredState,
}

impl Machine {
    async fn new(grow: impl FnOnce(&mut DesiredState)) -> Self {
        let site = Site::new();
        let mut docker = PrivateDocker::start(Self::network(&site.entry())).expect("the lab is allowed");
        let client = docker.client().await;
        let mut document = document(docker.import(&client).await);
        grow(&mut document);
        site.configure(&docker.socket());
        converged(&site.apply(&document));
        Self { site, docker, client, document }
    }

    fn network(entry: &str) -> DaemonNetwork<'_> {
        DaemonNetwork { enter: ["nsenter", entry], tables: "--iptables=true" }
    }

    async fn resume(&mut self) {
        self.docker.resume(Self::network(&self.site.entry()));
        self.client = self.docker.client().await;
    }

    /// Waits until the container runs.
    async fn running(&self) -> ContainerInspectResponse {
        loop {
            let found =
                self.client.inspect_container(super::CONTAINER, None::<InspectContainerOptions>).await;
            if let Ok(found) = found
                && found.state.as_ref().unwrap().running == Some(true)
            {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the kernel has what the bridge needs, which follows Docker's start.
    async fn bridge_answers(&self) {
        let answers = || self.site.inside("cat /proc/sys/net/ipv4/conf/edgeloom0/proxy_arp").trim() == "1";
        // `iptables` itself refuses to list what Docker is changing.
        let pool = "ip saddr 10.77.0.0/16 ip daddr 10.77.0.0/16 ";
        let accepted = || self.site.inside("nft list ruleset").contains(pool);
        // Links that have just come up may be silent for long enough, on a busy machine, to be led around.
        let led_around = || flow_next_hop(&self.site) != FLOW_NEXT_HOP;
        while !answers() || !accepted() || led_around() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        check_accept(&self.site);
        check_shaping(&self.site);
        check_routes(&self.site);
    }
}

fn started(found: &ContainerInspectResponse) -> (Option<String>, Option<String>) {
    (found.id.clone(), found.state.as_ref().unwrap().started_at.clone())
}

async fn a_power_cut(machine: &mut Machine) {
    let before = container(&machine.client).await;
    machine.docker.end("-KILL");
    machine.site.reboot();
    let agent = machine.site.run();
    // The network first, and without Docker.
    while !machine.site.inside("tc class show dev to-n2").contains("4501:1 ") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    machine.resume().await;
    let after = machine.running().await;
    check_container(&after, &machine.document.containers[0]);
    agent.says(CONVERGED);
    settle(&machine.client).await;
    machine.bridge_answers().await;
    assert_eq!(after.id, before.id);
}

async fn a_restart_of_docker(machine: &mut Machine, signal: &str) {
    let agent = machine.site.run();
    agent.says(CONVERGED);
    let before = machine.running().await;
    machine.docker.end(signal);
    machine.site.inside("iptables -F DOCKER-USER");
    machine.site.inside("ip link del edgeloom0");
    machine.resume().await;
    let after = machine.running().await;
    machine.bridge_answers().await;
    check_container(&after, &machine.document.containers[0]);
    assert_eq!(after.id, before.id);
}

async fn a_restart_of_the_agent(machine: &Machine) {
    let before = machine.running().await;
    let seen = machine.site.seen();
    for _ in 0..3 {
        machine.site.run().says(CONVERGED);
        assert_eq!(started(&machine.running().await), started(&before));
    }
    assert_eq!(machine.site.seen(), seen);
}

async fn a_network_made_anew(machine: &Machine) {
    let before = machine.running().await;
    machine.client.stop_container(super::CONTAINER, None::<StopContainerOptions>).await.unwrap();
    machine.client.remove_network("edgeloom0").await.unwrap();
    let agent = machine.site.run();
    let after = machine.running().await;
    agent.says(CONVERGED);
    check_container(&after, &machine.document.containers[0]);
    machine.bridge_answers().await;
    assert_ne!(after.id, before.id, "what was made for another network cannot be started");
}

async fn trial() {
    let mut machine = Machine::new(|_| {}).await;
    a_power_cut(&mut machine).await;
    a_restart_of_docker(&mut machine, "-KILL").await;
    a_restart_of_docker(&mut machine, "-TERM").await;
    a_restart_of_the_agent(&machine).await;
    a_network_made_anew(&machine).await;
}

#[tokio::test]
async fn everything_comes_back_without_the_controller() {
    if edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "nsenter", "tc"]) {
        tokio::time::timeout(TRIAL_MAX, trial()).await.expect("a daemon that hangs fails the test");
    }
}

/// Containers on the node whose agent is restarted.
const CONTAINERS: u8 = 10;

#[tokio::test]
async fn an_agent_that_starts_again_finds_ten_containers_as_they_are() {
    if !edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "nsenter", "tc"]) {
        return;
    }
    let trial = async {
        let machine = Machine::new(|document| {
            let first = document.containers[0].clone();
            document.containers.extend((1..CONTAINERS).map(|number| ContainerSpec {
                task: format!("camera-{number}").parse().unwrap(),
                address: Ipv4Addr::new(10, 77, 1, number),
                cpu: MilliCores(50),
                ..first.clone()
            }));
        });
        let machine = machine.await;
        let before = started(&machine.running().await);
        for _ in 0..5 {
            let took = machine.site.run().says(CONVERGED);
            println!("from its start to the node as desired: {} ms", took.as_millis());
        }
        assert_eq!(started(&machine.running().await), before);
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}
