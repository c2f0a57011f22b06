//! The agent as it is installed: unit, user, files and sysctls under a real systemd, next to a real Docker,
//! with no controller to talk to. It comes up from what its disk holds, and whatever becomes of it, the
//! container and the flow stay as they are.

#[path = "systemd/node.rs"]
mod node;
#[path = "../src/engine/docker/program.rs"]
mod program;

use edgeloom_common::doctor::Verdict;
use node::{Node, UNIT};
use std::time::Duration;

/// Many times what a loaded machine needs.
const LIMIT: Duration = Duration::from_secs(120);

/// CAP_DAC_READ_SEARCH, CAP_KILL, CAP_NET_ADMIN, CAP_NET_RAW (capability.h).
const CAPABILITIES: u64 = 1 << 2 | 1 << 5 | 1 << 12 | 1 << 13;

#[tokio::test]
async fn the_unit_comes_up_is_watched_and_leaves_containers_alone() {
    let Some(node) = Node::boot().await else { return };
    let cgroup = node.machine.cgroup().to_owned();

    is_ready_as_the_user_it_should_be(&node);
    let life = node.container_runs().await;
    node.flow_is_shaped();

    node.machine.replaces_what_hangs(UNIT, LIMIT);
    assert_eq!(node.container_runs().await, life, "the watchdog touched the container");

    no_number_of_failures_is_the_last(&node);
    assert_eq!(node.container_runs().await, life, "failures touched the container");

    node.machine.run(&["systemctl", "stop", UNIT]);
    assert_eq!(node.machine.property(UNIT, "Result"), "success");
    assert_eq!(node.container_runs().await, life, "stopping touched the container");
    node.flow_is_shaped();

    node.machine.run(&["systemctl", "start", UNIT]);
    assert_eq!(node.container_runs().await, life, "starting touched the container");

    each_capability_is_needed(&node);
    the_doctor_finds_a_well_node(&node);
    drop(node);
    assert!(!cgroup.exists(), "the machine left {}", cgroup.display());
}

/// `systemctl start` came back, so the agent has told that it is ready.
fn is_ready_as_the_user_it_should_be(node: &Node) {
    let machine = &node.machine;
    assert_eq!(machine.property(UNIT, "ActiveState"), "active");
    assert_eq!(machine.property(UNIT, "SubState"), "running");
    assert_eq!(machine.property(UNIT, "KillMode"), "process");
    machine.run(&["grep", "-x", "WatchdogSec=30", &machine.property(UNIT, "FragmentPath")]);
    assert_eq!(machine.complaints(UNIT), "");
    assert!(machine.property(UNIT, "StatusText").starts_with("generation 2: "));
    let pid = machine.property(UNIT, "MainPID");
    let status = machine.run(&["cat", &format!("/proc/{pid}/status")]);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    for set in ["CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(&field(set), 16).unwrap(), CAPABILITIES, "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Uid:"), machine.run(&["id", "-u", "edgeloom-agent"]).trim());
    let stat = |path: &str| machine.run(&["stat", "-c", "%a %U", path]).trim().to_owned();
    assert_eq!(stat("/var/lib/edgeloom-agent"), "700 edgeloom-agent");
    assert_eq!(stat("/etc/edgeloom/node.key"), "640 root");
    assert_eq!(machine.run(&["cat", "/proc/sys/net/ipv4/conf/all/rp_filter"]).trim(), "2");
}

/// More in a row than systemd allows by default (5 in 10 s).
fn no_number_of_failures_is_the_last(node: &Node) {
    let machine = &node.machine;
    for failure in 2..=9 {
        machine.run(&["systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT]);
        machine.await_that("systemd starts the agent again", LIMIT, || {
            machine.property(UNIT, "NRestarts") == failure.to_string()
                && machine.property(UNIT, "ActiveState") == "active"
        });
    }
}

/// What the program can do with all three, and what it says where one is missing.
fn each_capability_is_needed(node: &Node) {
    node.machine.run(&["systemctl", "stop", UNIT]);
    assert_eq!(node.problems("net_admin,net_raw,dac_read_search"), Vec::<String>::new());
    let without = node.problems("net_raw,dac_read_search");
    assert!(without.iter().any(|problem| problem.contains("CAP_NET_ADMIN")), "{without:?}");
    let without = node.problems("net_admin,net_raw");
    assert!(without.iter().any(|problem| problem.contains("from Docker's API alone")), "{without:?}");
    let refusal = "tasks that left cannot be announced";
    let said = node.lead_flow_anew("net_admin,net_raw,dac_read_search");
    assert!(!said.contains(refusal), "{said}");
    let said = node.lead_flow_anew("net_admin,dac_read_search");
    assert!(said.contains(refusal), "{said}");
    node.machine.run(&["systemctl", "start", UNIT]);
}

/// All but what the machine around decides: its clock, its modules and its memory controller.
fn the_doctor_finds_a_well_node(node: &Node) {
    let around = ["clock", "memory limits", "kernel: vxlan", "kernel: fq_codel"];
    let found = node.examination();
    let ill = found.checks.iter().filter(|check| check.verdict != Verdict::Ok);
    let ill: Vec<_> = ill.filter(|check| !around.contains(&check.check.as_str())).collect();
    assert!(ill.is_empty(), "{ill:#?}");
    let port = found.checks.iter().find(|check| check.check == "port of link probes").unwrap();
    assert!(port.seen.contains("while the agent runs"), "{port:?}");
}
