//! The topology file: which nodes there are, what each has, and the links between them.
//!
//! Everything is checked before anything is built: unknown keys, names that interfaces cannot
//! carry, links to nowhere, and quotas that the machine's two cores could not honour.

use anyhow::{Context, Result, bail, ensure};
use edgeloom_common::units::BitRate;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// More would make the nodes compete for the machine instead of meeting their own quota.
const CORES_MAX: f64 = 1.6;
const NODES_MAX: usize = 16;

/// The default topology.
pub(crate) const DIAMOND: &str = include_str!("topologies/diamond.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topology {
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) links: Vec<LinkSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    #[serde(default = "cores")]
    pub(crate) cores: f64,
    #[serde(default = "mebibytes")]
    pub(crate) memory_mib: u64,
    #[serde(default = "mebibytes")]
    pub(crate) disk_mib: u64,
    /// Rate of the node's uplink in both directions; unlimited when left out.
    #[serde(default, deserialize_with = "optional_rate")]
    pub(crate) uplink: Option<BitRate>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkSpec {
    pub(crate) between: [String; 2],
    #[serde(deserialize_with = "rate")]
    pub(crate) rate: BitRate,
    /// Whether the agents are told the rate. Left to themselves they measure it, and see it change.
    #[serde(default = "yes")]
    pub(crate) declared: bool,
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<BitRate, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn optional_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BitRate>, D::Error> {
    rate(from).map(Some)
}

fn yes() -> bool {
    true
}

fn cores() -> f64 {
    0.4
}

fn mebibytes() -> u64 {
    1024
}

impl Topology {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let topology: Self = toml::from_str(text).context("the topology does not read")?;
        topology.check()?;
        Ok(topology)
    }

    fn check(&self) -> Result<()> {
        ensure!(
            (1..=NODES_MAX).contains(&self.nodes.len()),
            "1 to {NODES_MAX} nodes, not {}",
            self.nodes.len()
        );
        let mut names = BTreeSet::new();
        for node in &self.nodes {
            check_node(node)?;
            ensure!(names.insert(node.name.as_str()), "node {} appears twice", node.name);
        }
        let total: f64 = self.nodes.iter().map(|node| node.cores).sum();
        ensure!(total <= CORES_MAX + 1e-9, "the nodes have {total} cores together, at most {CORES_MAX}");
        let mut pairs = BTreeSet::new();
        for link in &self.links {
            let [a, b] = &link.between;
            for end in [a, b] {
                ensure!(names.contains(end.as_str()), "link {a}-{b}: there is no node {end}");
            }
            ensure!(a != b, "link {a}-{b} leads nowhere");
            ensure!(pairs.insert((a.min(b), a.max(b))), "link {a}-{b} appears twice");
            check_rate(link.rate).with_context(|| format!("link {a}-{b}"))?;
        }
        ensure!(self.links.len() < 255, "at most 254 links");
        Ok(())
    }

    pub(crate) fn index(&self, name: &str) -> Result<usize> {
        match self.nodes.iter().position(|node| node.name == name) {
            Some(index) => Ok(index),
            None => bail!("there is no node {name}"),
        }
    }

    /// Which link joins the two, in either order.
    pub(crate) fn link(&self, a: &str, b: &str) -> Result<usize> {
        let joins = |link: &LinkSpec| link.between == [a, b] || link.between == [b, a];
        self.links.iter().position(joins).with_context(|| format!("there is no link {a}-{b}"))
    }
}

impl LinkSpec {
    /// Addresses of the two ends of link `index`, a /24 each: their ends may get others.
    pub(crate) fn addresses(index: usize) -> [Ipv4Addr; 2] {
        let third = u8::try_from(index + 1).expect("checked: at most 254 links");
        [Ipv4Addr::new(10, 61, third, 1), Ipv4Addr::new(10, 61, third, 2)]
    }
}

/// What a bucket with its burst and its queue can still carry.
pub(crate) fn check_rate(rate: BitRate) -> Result<()> {
    ensure!(rate.0 >= 100_000, "less than 100 kbit/s");
    Ok(())
}

/// Letters and then digits, so that two names in a row stay readable apart.
fn check_node(node: &NodeSpec) -> Result<()> {
    let name = &node.name;
    let letters = name.chars().take_while(char::is_ascii_lowercase).count();
    let digits = name[letters..].chars().filter(char::is_ascii_digit).count();
    let whole = letters + digits == name.len();
    ensure!(
        whole && (1..=6).contains(&letters) && (1..=2).contains(&digits),
        "node {name:?}: a name is 1 to 6 small letters and 1 or 2 digits, like n1"
    );
    ensure!(node.cores >= 0.05, "node {name}: at least 0.05 cores");
    ensure!(node.memory_mib >= 64, "node {name}: at least 64 MiB of memory");
    ensure!(node.disk_mib >= 128, "node {name}: at least 128 MiB of disk");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_of_the_tree_reads() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/topologies");
        for file in std::fs::read_dir(folder).unwrap() {
            Topology::parse(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        }
    }

    #[test]
    fn too_many_cores_an_unknown_node_and_an_unknown_key_are_refused() {
        let many = DIAMOND.replace("cores = 0.4", "cores = 0.5");
        assert!(Topology::parse(&many).unwrap_err().to_string().contains("at most 1.6"));
        let nowhere = DIAMOND.replace("[\"n2\", \"n3\"]", "[\"n2\", \"n9\"]");
        assert!(Topology::parse(&nowhere).unwrap_err().to_string().contains("no node n9"));
        assert!(Topology::parse(&DIAMOND.replace("memory_mib", "memory")).is_err());
    }
}
