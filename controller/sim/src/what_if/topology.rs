//! The cluster file: nodes and links.
//!
//! ```toml
//! [[nodes]]
//! name = "cam-1"
//! cores = 4
//! core_speed = 0.8       # 1 by default: a reference core
//! memory = "4GiB"        # or memory_mib = 4096
//! disk = "32GB"          # or disk_mib; without it images always fit
//! class = "pi4"          # the node's name by default
//! labels = { camera = "true" }
//!
//! [[links]]
//! between = ["cam-1", "hub"]
//! rate = "20Mbit/s"      # of the wire, each way
//! duplex = "half"        # full by default
//! ```
//!
//! Files of the laboratory read too; `uplink` and `declared` change nothing here.

use edgeloom_common::ids::NodeId;
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_common::view::ProblemItem;
use edgeloom_sched::snapshot::{Hosting, Link, Node};
use std::collections::BTreeMap;
use toml::de::DeTable;

use super::fields::{Fields, Found, Reading};
use super::links::links;

const NODES_MAX: usize = 1000;
pub(super) const LINKS_MAX: usize = 10_000;
const NODE_FIELDS: &[&str] =
    &["name", "cores", "core_speed", "memory", "memory_mib", "disk", "disk_mib", "class", "labels", "uplink"];
const NAME: &str = "write a node's name, as n1";
const SIZE: &str = "write bytes with a unit, as 4GiB";
const MIB: f64 = 1_048_576.0;
/// 1 EiB, in MiB: more is a slip of the pen.
const MIB_MAX: f64 = 1_099_511_627_776.0;

/// Nodes and links of a user's cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
}

/// Reads a cluster file.
///
/// # Errors
/// Every problem of the file, in the order of its lines.
pub fn cluster(text: &str) -> Result<Cluster, Vec<ProblemItem>> {
    let mut reading = Reading::new(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or_default();
        reading.add(&span, "", error.message().to_owned(), "write TOML");
    }
    let fields = reading.fields(root.get_ref(), (0..0, String::new()), &["nodes", "links"]);
    let entries = reading.list(&fields, "nodes", "write [[nodes]] with name, cores and memory");
    if entries.is_empty() || entries.len() > NODES_MAX {
        let problem = format!("{} nodes", entries.len());
        reading.add(&(0..0), "nodes", problem, "write 1 to 1000 [[nodes]] with name, cores and memory");
    }
    let nodes = nodes(&mut reading, entries);
    let entries = reading.list(&fields, "links", "write [[links]] with between and rate");
    if entries.len() > LINKS_MAX {
        reading.add(&(0..0), "links", format!("{} links", entries.len()), "write at most 10000");
    }
    let links = links(&mut reading, entries, &nodes);
    let nodes = nodes.into_iter().filter_map(|(_, node)| node).collect();
    reading.finish(Cluster { nodes, links })
}

/// Names, also of nodes with something wrong about them: links to those are no further problem.
pub(super) type Named = Vec<(NodeId, Option<Node>)>;

fn nodes(reading: &mut Reading<'_>, entries: Vec<Found<'_>>) -> Named {
    let mut nodes = Named::new();
    for entry in entries.into_iter().take(NODES_MAX) {
        let Some(fields) = reading.open(entry, NODE_FIELDS) else { continue };
        let Some(id) = reading.required::<NodeId>(&fields, "name", NAME) else { continue };
        if nodes.iter().any(|(known, _)| *known == id) {
            reading.add(
                fields.span(),
                &fields.path,
                format!("node {id} appears twice"),
                "give it another name",
            );
        }
        let node = node(reading, &fields, &id);
        nodes.push((id, node));
    }
    nodes
}

fn node(reading: &mut Reading<'_>, fields: &Fields<'_>, id: &NodeId) -> Option<Node> {
    if fields.value("cores").is_none() {
        reading.missing(fields, "cores", "write the cores that containers may use, as 4 or 0.4");
    }
    if fields.value("memory").or(fields.value("memory_mib")).is_none() {
        reading.missing(fields, "memory", SIZE);
    }
    let cores = reading.number(fields, "cores", (0.001, 100_000.0));
    let core_speed = match fields.value("core_speed") {
        Some(_) => reading.number(fields, "core_speed", (0.001, 1000.0)),
        None => Some(1.0),
    };
    let memory = size(reading, fields, "memory");
    let disk = size(reading, fields, "disk");
    let class = reading.parsed::<String>(fields, "class", "write a name, as \"pi4\"");
    let labels = labels(reading, fields);
    Some(Node {
        id: id.clone(),
        ready: true,
        class: class.unwrap_or_else(|| id.to_string()),
        labels,
        cpu: millicores(cores?),
        core_speed: core_speed?,
        memory: memory?,
        disk: disk.unwrap_or(Bytes(u64::from(u32::MAX) << 20)),
        shapes_flows: true,
        hosting: Hosting::default(),
    })
}

/// `memory = "4GiB"` or `memory_mib = 4096`.
fn size(reading: &mut Reading<'_>, fields: &Fields<'_>, key: &str) -> Option<Bytes> {
    let mebibytes = reading.number(fields, &format!("{key}_mib"), (1.0, MIB_MAX));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 1 to 2^60")]
    let mebibytes = mebibytes.map(|mebibytes| Bytes((mebibytes * MIB) as u64));
    reading.parsed(fields, key, SIZE).or(mebibytes)
}

fn labels(reading: &mut Reading<'_>, fields: &Fields<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some((value, path)) = fields.value("labels") else { return labels };
    let Some(table) = value.get_ref().as_table() else {
        reading.add(&value.span(), &path, "no table".to_owned(), "write { camera = \"true\" }");
        return labels;
    };
    for (key, value) in table {
        match value.get_ref().as_str() {
            Some(text) => drop(labels.insert(key.get_ref().to_string(), text.to_owned())),
            None => reading.add(&value.span(), &path, "no text".to_owned(), "write { camera = \"true\" }"),
        }
    }
    labels
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 0.001 to 100000 cores")]
fn millicores(cores: f64) -> MilliCores {
    MilliCores((cores * 1000.0).round() as u32)
}
