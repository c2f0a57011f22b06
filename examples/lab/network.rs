//! Namespaces, links and the uplink.
//!
//! A link is a bridge in a namespace of its own with one port towards each node, limited on both
//! ports' egress: what a node does to its own interfaces cannot lift the limit.

use crate::command::{feed, run, within};
use crate::lab::{Lab, Node};
use crate::topology::LinkSpec;
use anyhow::{Context, Result, bail};
use edgeloom_common::units::BitRate;
use nix::sched::{CloneFlags, setns};
use std::fmt::Write as _;
use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// tcpmux, which nobody offers.
const UNUSED_PORT: u16 = 1;
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

pub(crate) fn core(id: &str) -> String {
    format!("el{id}-core")
}

pub(crate) fn node(id: &str, node: &str) -> String {
    format!("el{id}-{node}")
}

pub(crate) fn link(id: &str, link: &LinkSpec) -> String {
    format!("el{id}-{}{}", link.between[0], link.between[1])
}

/// A token bucket: 16 KB of burst, or two ticks of a 250 Hz clock; a queue of 100 ms, but never
/// below the 150 KB that a sender with segmentation offload needs.
pub(crate) fn bucket(verb: &str, device: &str, rate: BitRate) -> String {
    let burst = (rate.0 / 8 / 125).max(16_384);
    let limit = (rate.0 / 8 / 10).max(150_000);
    format!("qdisc {verb} dev {device} root tbf rate {}bit burst {burst} limit {limit}\n", rate.0)
}

/// The lab's addresses must mean nothing else on this machine.
pub(crate) fn ensure_free() -> Result<()> {
    for wanted in ["10.60.0.0/24", "10.61.0.0/16", "10.77.0.0/16"] {
        for kind in [["root", wanted], ["match", wanted]] {
            let found = run(&["ip", "-4", "route", "show", "table", "all", "to", kind[0], kind[1]])?;
            if let Some(route) = found.lines().find(|line| !line.starts_with("default")) {
                bail!("the lab needs {wanted}, but this machine has the route `{}`", route.trim());
            }
        }
    }
    Ok(())
}

pub(crate) fn create(lab: &Lab) -> Result<()> {
    let id = &lab.id;
    let core = core(id);
    let mut spaces = vec![core.clone()];
    spaces.extend(lab.nodes().iter().map(Node::namespace));
    spaces.extend(lab.topology.links.iter().map(|one| link(id, one)));
    let lines: String = spaces.iter().map(|name| format!("netns add {name}\n")).collect();
    feed(&["ip", "-batch", "-"], &lines)?;
    let mut lines = format!(
        "link add name el{id}h type veth peer name host netns {core}\naddr add 10.60.0.254/24 dev el{id}h\nlink set el{id}h up\n"
    );
    for node in lab.nodes() {
        writeln!(
            lines,
            "link add name {0} netns {core} type veth peer name up0 netns {1}",
            node.spec.name,
            node.namespace()
        )?;
    }
    for one in &lab.topology.links {
        for (here, there) in [(0, 1), (1, 0)] {
            let (here, there) = (&one.between[here], &one.between[there]);
            let (middle, end) = (link(id, one), node(id, here));
            writeln!(
                lines,
                "link add name {here} netns {middle} type veth peer name to-{there} netns {end}"
            )?;
        }
    }
    feed(&["ip", "-batch", "-"], &lines)?;
    for name in spaces.iter().filter(|name| lab.topology.links.iter().any(|one| &link(id, one) == *name)) {
        let words = within(
            name,
            &[
                "sh",
                "-c",
                "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6",
            ],
        );
        // A kernel without IPv6 has nothing to switch off.
        let _ = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    uplink(lab, &core)?;
    for node in lab.nodes() {
        ends(lab, &node)?;
    }
    for one in &lab.topology.links {
        middle(&link(id, one), one)?;
    }
    Ok(())
}

fn uplink(lab: &Lab, core: &str) -> Result<()> {
    let mut lines = "link set lo up\nlink add name br0 type bridge\naddr add 10.60.0.1/24 dev br0\naddr add 10.60.0.2/24 dev br0\nlink set br0 up\nlink set host master br0 up\n".to_owned();
    let mut limits = String::new();
    for node in lab.nodes() {
        writeln!(lines, "link set dev {} master br0 up", node.spec.name)?;
        limits += &node.spec.uplink.map(|rate| bucket("add", &node.spec.name, rate)).unwrap_or_default();
    }
    feed(&["ip", "-n", core, "-batch", "-"], &lines)?;
    feed(&["tc", "-n", core, "-batch", "-"], &limits)?;
    Ok(())
}

fn ends(lab: &Lab, node: &Node<'_>) -> Result<()> {
    let mut lines =
        format!("link set lo up\naddr add {}/24 dev up0\nlink set up0 up\n", node.uplink_address());
    for (index, one) in lab.topology.links.iter().enumerate() {
        for (here, there) in [(0, 1), (1, 0)] {
            if one.between[here] == node.spec.name {
                let (address, neighbour) = (LinkSpec::addresses(index)[here], &one.between[there]);
                writeln!(lines, "addr add {address}/24 dev to-{neighbour}\nlink set to-{neighbour} up")?;
            }
        }
    }
    feed(&["ip", "-n", &node.namespace(), "-batch", "-"], &lines)?;
    Ok(())
}

fn middle(name: &str, one: &LinkSpec) -> Result<()> {
    let mut lines = "link add name br0 type bridge\nlink set dev br0 up\n".to_owned();
    let mut limits = String::new();
    for port in &one.between {
        writeln!(lines, "link set dev {port} master br0 up")?;
        limits += &bucket("add", port, one.rate);
    }
    feed(&["ip", "-n", name, "-batch", "-"], &lines)?;
    feed(&["tc", "-n", name, "-batch", "-"], &limits)?;
    Ok(())
}

/// Whether a link, or a node's uplink, carries anything.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    Up,
    Down,
}

impl State {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

pub(crate) fn set_link(lab: &Lab, index: usize, state: State) -> Result<()> {
    let one = &lab.topology.links[index];
    for port in &one.between {
        run(&["ip", "-n", &link(&lab.id, one), "link", "set", port, state.word()])?;
    }
    Ok(())
}

/// Cuts a link in its middle, or mends it: its ends keep their carrier.
pub(crate) fn set_middle(lab: &Lab, index: usize, state: State) -> Result<()> {
    run(&["ip", "-n", &link(&lab.id, &lab.topology.links[index]), "link", "set", "br0", state.word()])?;
    Ok(())
}

/// Limits both directions of a link anew; what waits in its queues stays.
pub(crate) fn set_rate(lab: &Lab, index: usize, rate: BitRate) -> Result<()> {
    let one = &lab.topology.links[index];
    let limits: String = one.between.iter().map(|port| bucket("change", port, rate)).collect();
    feed(&["tc", "-n", &link(&lab.id, one), "-batch", "-"], &limits)?;
    Ok(())
}

pub(crate) fn set_uplink(lab: &Lab, node: &str, state: State) -> Result<()> {
    run(&["ip", "-n", &core(&lab.id), "link", "set", node, state.word()])?;
    Ok(())
}

/// Gives an interface another address, as when a lease is not renewed.
pub(crate) fn set_address(namespace: &str, interface: &str, (from, to): (&str, &str)) -> Result<()> {
    run(&["ip", "-n", namespace, "addr", "del", from, "dev", interface])?;
    run(&["ip", "-n", namespace, "addr", "add", to, "dev", interface])?;
    Ok(())
}

/// Whether somebody answers at an address within a second, if only that nothing listens on that port.
pub(crate) fn answers(namespace: &str, address: Ipv4Addr) -> Result<bool> {
    let path = format!("/run/netns/{namespace}");
    let ask = move || -> Result<bool> {
        setns(&File::open(&path).context(path)?, CloneFlags::CLONE_NEWNET)?;
        match TcpStream::connect_timeout(&(address, UNUSED_PORT).into(), ANSWER_LIMIT) {
            Ok(_) => Ok(true),
            Err(error) => Ok(error.kind() == std::io::ErrorKind::ConnectionRefused),
        }
    };
    // A thread that entered a namespace stays there.
    std::thread::spawn(ask).join().expect("asking does not panic")
}

/// Deletes the lab's namespaces, and with them everything inside.
pub(crate) fn remove(id: &str) -> Result<()> {
    let prefix = format!("el{id}-");
    let host = format!("el{id}h");
    if std::path::Path::new("/sys/class/net").join(&host).exists() {
        run(&["ip", "link", "del", &host])?;
    }
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str().filter(|name| name.starts_with(&prefix)) {
            run(&["ip", "netns", "del", name])?;
        }
    }
    Ok(())
}
