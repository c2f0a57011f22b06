//! Verdicts on kernel and network.

use crate::doctor::{ForwardingFound, NetworkFound, PortFound, Readings, Unread};
use edgeloom_common::doctor::Check;
use edgeloom_net::{NetCapabilities, Prefix};
use edgeloom_observe::links::PORT;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// The pool of controller.toml as it is shipped.
const POOL_USUAL: Prefix = Prefix { address: Ipv4Addr::new(10, 77, 0, 0), len: 16 };
/// What every IPv6 link carries; less on IPv4 is a mistake more often than not.
const MTU_MIN: u32 = 1280;

/// Reads one feature off what the kernel can do.
type Offers = fn(&NetCapabilities) -> bool;

pub(super) fn kernel(kernel: Result<&NetCapabilities, &Unread>) -> Vec<Check> {
    const ROOT: &str = "run it as root, or with CAP_NET_ADMIN";
    let features: [(&str, &str, Offers); 4] = [
        ("kernel: htb", "modprobe sch_htb; without it rates of flows are not enforced", |can| can.htb),
        ("kernel: fq_codel", "modprobe sch_fq_codel; plain queues are used instead", |can| can.fq_codel),
        (
            "kernel: nftables maps",
            "modprobe nf_tables nft_chain_nat; without it flows take the main route",
            |can| can.nft_maps,
        ),
        ("kernel: forwarding", "put net.ipv4.ip_forward=1 into /etc/sysctl.d", |can| can.ip_forward),
    ];
    let judged = features.into_iter().map(|(check, remedy, offered)| match kernel {
        Err(unread) => Check::unknown(check, unread.as_str(), ROOT),
        Ok(can) if offered(can) => Check::ok(check, "tried, works"),
        // The kernel was not tried: its words are those of the trial.
        Ok(can) => match can.problems.iter().find(|problem| problem.contains("cannot be tried")) {
            Some(problem) => Check::unknown(check, problem.as_str(), ROOT),
            // Plain queues do, as well as they can.
            None if check.ends_with("fq_codel") => Check::warn(check, "the kernel lacks it", remedy),
            None => Check::fail(check, "the kernel lacks it", remedy),
        },
    });
    judged.collect()
}

/// Listing rules is refused by a kernel without them.
pub(super) fn policy_routing(network: Result<&NetworkFound, &Unread>) -> Check {
    const CHECK: &str = "kernel: policy routing";
    match network {
        Ok(_) => Check::ok(CHECK, "rules can be listed"),
        Err(unread) => Check::unknown(
            CHECK,
            unread.as_str(),
            "run it as root; a kernel without CONFIG_IP_MULTIPLE_TABLES cannot lead flows along paths",
        ),
    }
}

pub(super) fn vxlan(vxlan: Result<&Option<String>, &Unread>) -> Check {
    const CHECK: &str = "kernel: vxlan";
    let remedy = "only links over foreign routers need it: apt-get install linux-modules-extra, or build it";
    match vxlan {
        Ok(Some(place)) => Check::ok(CHECK, format!("found as {place}")),
        Ok(None) => Check::warn(CHECK, "neither loaded, built in, nor among the kernel's modules", remedy),
        Err(unread) => Check::unknown(CHECK, unread.as_str(), remedy),
    }
}

pub(super) fn port(port: Result<&PortFound, &Unread>) -> Check {
    const CHECK: &str = "port of link probes";
    match port {
        Ok(PortFound::Free) => Check::ok(CHECK, format!("UDP {PORT} is free")),
        Ok(PortFound::Ours) => Check::ok(CHECK, format!("UDP {PORT} is in use while the agent runs")),
        Ok(PortFound::Taken) => Check::fail(
            CHECK,
            format!("UDP {PORT} is taken, and the agent does not run"),
            format!("see who has it: ss -ulpn sport = {PORT}"),
        ),
        Err(unread) => {
            Check::unknown(CHECK, unread.as_str(), "run it in the network that the agent is to use")
        }
    }
}

pub(super) fn links(network: Result<&NetworkFound, &Unread>) -> Check {
    const CHECK: &str = "links";
    let network = match network {
        Ok(network) => network,
        Err(unread) => return Check::unknown(CHECK, unread.as_str(), "run it as root"),
    };
    let with = |up: Option<bool>| {
        let chosen = network.links.iter().filter(|link| link.up == up);
        chosen.map(|link| link.interface.as_str()).collect::<Vec<_>>()
    };
    let (missing, down) = (with(None), with(Some(false)));
    if network.links.is_empty() {
        Check::unknown(CHECK, "none is configured", "write a [[link]] for each neighbour into agent.toml")
    } else if !missing.is_empty() {
        let remedy = "correct `interface` in agent.toml, or plug it in; see `ip -br link`";
        Check::fail(CHECK, format!("no such interface: {}", missing.join(", ")), remedy)
    } else if !down.is_empty() {
        Check::warn(
            CHECK,
            format!("down: {}", down.join(", ")),
            "ip link set dev <interface> up, or see the cable",
        )
    } else {
        Check::ok(CHECK, format!("{} up", network.links.len()))
    }
}

/// A bridge that takes larger packets than a link makes relays fragment, or drop.
pub(super) fn mtu(network: Result<&NetworkFound, &Unread>) -> Check {
    const CHECK: &str = "mtu";
    let network = match network {
        Ok(network) => network,
        Err(unread) => return Check::unknown(CHECK, unread.as_str(), "run it as root"),
    };
    let links = network.links.iter().filter_map(|link| Some((link.mtu?, link.interface.as_str())));
    let Some((mtu, interface)) = links.min() else {
        return Check::unknown(CHECK, "no link has one", "see links above");
    };
    let seen = format!("{interface} takes {mtu} bytes, the least of all links");
    match network.bridge_mtu {
        _ if mtu < MTU_MIN => {
            Check::warn(CHECK, seen, format!("ip link set dev {interface} mtu 1500, if the wire takes it"))
        }
        None => Check::unknown(
            CHECK,
            format!("{seen}; there is no bridge {} yet", network.bridge),
            "look again when the agent has run",
        ),
        Some(bridge) if mtu < bridge => Check::warn(
            CHECK,
            format!("{seen}, but bridge {} gives {bridge}", network.bridge),
            format!("set {{\"mtu\": {mtu}}} in /etc/docker/daemon.json, or raise the link's"),
        ),
        Some(bridge) => Check::ok(CHECK, format!("{seen}; bridge {} gives {bridge}", network.bridge)),
    }
}

pub(super) fn pool(network: Result<&NetworkFound, &Unread>) -> Check {
    const CHECK: &str = "address pool";
    let network = match network {
        Ok(network) => network,
        Err(unread) => return Check::unknown(CHECK, unread.as_str(), "run it as root"),
    };
    let pool = network.pool.unwrap_or(POOL_USUAL);
    let foreign = network.routes.iter().filter(|(_, interface)| *interface != network.bridge);
    let overlaps: Vec<String> = foreign
        .filter(|(route, _)| route.overlaps(pool))
        .map(|(route, interface)| format!("{route} on {interface}"))
        .collect();
    let whose = if network.pool.is_some() { "the cluster's" } else { "the usual" };
    if overlaps.is_empty() {
        return match network.pool {
            Some(_) => Check::ok(CHECK, format!("{pool} overlaps with no route")),
            None => Check::unknown(
                CHECK,
                format!("{whose} {pool} overlaps with no route; the cluster's is not known yet"),
                "look again when the controller has been reached",
            ),
        };
    }
    let seen = format!("{whose} {pool} overlaps with {}", overlaps.join(", "));
    let remedy = "choose another [pool] in controller.toml, before jobs run, or renumber that network";
    Check::fail(CHECK, seen, remedy)
}

/// A chain of nftables that packets pass on their way through.
#[derive(Debug, Deserialize)]
struct Chain {
    family: String,
    table: String,
    name: String,
    #[serde(default)]
    hook: String,
    #[serde(default)]
    policy: String,
}

#[derive(Debug, Deserialize)]
struct Listing {
    nftables: Vec<serde_json::Value>,
}

/// A drop in any base chain wins over an accept in another; only those of the `iptables` program get our accept.
pub(super) fn firewall(readings: &Readings) -> Check {
    const CHECK: &str = "firewall";
    let forwarding = match &readings.network {
        Ok(network) => &network.forwarding,
        Err(unread) => return Check::unknown(CHECK, unread.as_str(), "run it as root"),
    };
    match readings.chains.as_ref().map(|text| dropping(text)) {
        Ok(Some(foreign)) if !foreign.is_empty() => {
            let seen = format!("forwarded packets are dropped by default in {}", foreign.join(", "));
            return Check::fail(CHECK, seen, "let that firewall accept what goes from pool to pool");
        }
        Ok(None) => {
            return Check::unknown(CHECK, "what nft lists is not understood", "see `nft list chains`");
        }
        _ => {}
    }
    let rules = match &readings.filter {
        Ok(rules) => rules,
        Err(unread) => {
            return Check::unknown(CHECK, unread.as_str(), "apt-get install iptables; run it as root");
        }
    };
    if let Err(unread) = &readings.chains {
        let seen = format!("only iptables was looked at: {unread}");
        return Check::unknown(CHECK, seen, "apt-get install nftables; run it as root");
    }
    let docker_user = rules.lines().any(|line| line == "-N DOCKER-USER");
    match forwarding {
        ForwardingFound { chain: None, .. } => Check::ok(CHECK, "nothing drops forwarded packets by default"),
        ForwardingFound { chain: Some(chain), accepted: true } => {
            Check::ok(CHECK, format!("{chain} has the agent's accept for the pool"))
        }
        ForwardingFound { chain: Some(chain), accepted: false } if docker_user => {
            Check::ok(CHECK, format!("{chain} is there; the agent puts its accept in when flows need it"))
        }
        ForwardingFound { chain: Some(chain), accepted: false } => Check::warn(
            CHECK,
            format!("{chain} drops by default and Docker's DOCKER-USER is missing"),
            "start Docker with its iptables option on; the agent accepts the pool in FORWARD until then",
        ),
    }
}

/// Base chains of others that drop what is forwarded; the iptables program's table is judged by its rules.
fn dropping(listing: &str) -> Option<Vec<String>> {
    let listing: Listing = serde_json::from_str(listing).ok()?;
    let chains = listing.nftables.iter().filter_map(|entry| Chain::deserialize(entry.get("chain")?).ok());
    let foreign = chains.filter(|chain| {
        let iptables = chain.family == "ip" && chain.table == "filter" && chain.name == "FORWARD";
        chain.hook == "forward" && chain.policy == "drop" && chain.family != "ip6" && !iptables
    });
    Some(foreign.map(|chain| format!("{} {} {}", chain.family, chain.table, chain.name)).collect())
}
