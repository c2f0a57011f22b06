//! What a task takes of its node beside resources, as a user writes it: ports and volumes.

use super::fields::{self, Fields};
use super::graph::Draft;
use super::problems::{Place, Problems, excerpt};
use super::tree::Node;
use super::{HostPort, Mount, Origin, Protocol, SECRETS_FOLDER, is_within};
use crate::ids::{TaskName, VolumeName};
use std::collections::BTreeMap;

const PORTS_MAX: usize = 32;
const MOUNTS_MAX: usize = 32;
const PORT_FIELDS: &[&str] = &["host", "container", "protocol"];
const VOLUME_FIELDS: &[&str] = &["name", "host", "path", "read_only"];

const PORTS_REMEDY: &str = "write `ports: [{ host: 8080, container: 80 }]`";
const VOLUMES_REMEDY: &str = "write `volumes: [{ name: data, path: /data }]`";

/// Ports of a node that no task may have, with whose they are.
const RESERVED: &[(u16, Protocol, &str)] = &[
    (22, Protocol::Tcp, "the node's remote login"),
    (7117, Protocol::Udp, "the agent's probes of links"),
    (7118, Protocol::Tcp, "the agent's layer store"),
];
/// Folders of a container that are the system's, or hold its secrets.
const TAKEN: &[&str] = &["/proc", "/sys", "/dev", SECRETS_FOLDER];

/// `{ host: 8080, container: 80, protocol: tcp }`, each host port once.
pub(super) fn ports(node: &Node, place: &Place, problems: &mut Problems) -> Vec<HostPort> {
    let mut read: Vec<HostPort> = Vec::new();
    for (node, place) in fields::list(node, place, PORTS_MAX, problems).unwrap_or_default() {
        let Some(port) = port(node, &place, problems) else { continue };
        if read.iter().any(|other| other.clashes(&port)) {
            let problem = format!("port {} of the host is listed twice", port.port);
            problems.add(&place, problem, "remove one of them, or choose another `host`");
        } else {
            read.push(port);
        }
    }
    read
}

fn port(node: &Node, place: &Place, problems: &mut Problems) -> Option<HostPort> {
    let fields = Fields::open(node, place, PORT_FIELDS, problems)?;
    let mut number = |name: &str| {
        let (node, place) = fields.required(name, PORTS_REMEDY, problems)?;
        let text = fields::text(node, &place, problems)?;
        let port = text.parse::<u16>().ok().filter(|port| *port > 0);
        if port.is_none() {
            let problem = format!("{:?} is no port", excerpt(text));
            problems.add(&place, problem, "write a number from 1 to 65535");
        }
        port
    };
    let (host, container) = (number("host"), number("container"));
    let protocol = match fields.optional("protocol") {
        None => Some(Protocol::Tcp),
        Some((node, place)) => match fields::text(node, &place, problems)? {
            "tcp" => Some(Protocol::Tcp),
            "udp" => Some(Protocol::Udp),
            other => {
                let problem = format!("{:?} is no protocol of a port", excerpt(other));
                problems.add(&place, problem, "write `tcp` or `udp`");
                None
            }
        },
    };
    let port = HostPort { port: host?, protocol: protocol?, container: container? };
    let reserved =
        RESERVED.iter().find(|(number, protocol, _)| (*number, *protocol) == (port.port, port.protocol));
    if let Some((_, _, whose)) = reserved {
        problems.add(
            place,
            format!("port {} of the host is for {whose}", port.port),
            "choose another `host`",
        );
        return None;
    }
    Some(port)
}

/// `{ name: data, path: /data }` or `{ host: /srv/models, path: /models, read_only: true }`.
pub(super) fn mounts(node: &Node, place: &Place, problems: &mut Problems) -> Vec<Mount> {
    let mut read: Vec<Mount> = Vec::new();
    for (node, place) in fields::list(node, place, MOUNTS_MAX, problems).unwrap_or_default() {
        let Some(mount) = mount(node, &place, problems) else { continue };
        if read.iter().any(|other| other.path == mount.path) {
            let problem = format!("two volumes are at {:?}", excerpt(&mount.path));
            problems.add(&place, problem, "choose another `path`");
        } else if read.iter().any(|other| other.from == mount.from) {
            problems.add(&place, "is listed twice", "remove one of them");
        } else {
            read.push(mount);
        }
    }
    read
}

fn mount(node: &Node, place: &Place, problems: &mut Problems) -> Option<Mount> {
    let fields = Fields::open(node, place, VOLUME_FIELDS, problems)?;
    let path = fields
        .required("path", VOLUMES_REMEDY, problems)
        .and_then(|(node, place)| folder(node, &place, problems));
    let taken: Vec<String> = TAKEN.iter().map(ToString::to_string).collect();
    let path = path.filter(|(path, place)| {
        let free = path != "/" && !is_within(path, &taken) && path != "/run";
        if !free {
            let problem = format!("{:?} of the container is the system's", excerpt(path));
            problems.add(place, problem, "choose another `path`");
        }
        free
    });
    let name = fields.optional("name");
    let from = match (name, fields.optional("host")) {
        (Some((node, place)), None) => {
            let remedy = "write a name such as `data`, or a folder of the node as `host: /srv/data`";
            fields::parsed::<VolumeName>(node, &place, remedy, problems).map(Origin::Volume)
        }
        (None, Some((node, place))) => folder(node, &place, problems).map(|(path, _)| Origin::Host(path)),
        _ => {
            problems.add(place, "has to have either `name` or `host`", VOLUMES_REMEDY);
            None
        }
    };
    let read_only = fields.optional("read_only").map_or(Some(false), |(node, place)| {
        fields::parsed::<bool>(node, &place, "write `read_only: true` or `read_only: false`", problems)
    });
    Some(Mount { from: from?, path: path?.0, read_only: read_only? })
}

/// An absolute path that says where it leads, without a `/` at its end.
fn folder(node: &Node, place: &Place, problems: &mut Problems) -> Option<(String, Place)> {
    let text = fields::text(node, place, problems)?;
    let plain = text.split('/').all(|name| name != "." && name != "..");
    if !text.starts_with('/') || !plain || text.contains("//") || text.contains([':', ',']) {
        let problem = format!("{:?} is no path of a folder", excerpt(text));
        problems.add(place, problem, "write it from `/` on, without `..`, `:` and `,`");
        return None;
    }
    let bare = if text == "/" { text } else { text.trim_end_matches('/') };
    Some((bare.to_owned(), place.clone()))
}

/// Each task has volumes of its own: two with the same name would look as if they were one.
pub(super) fn check(drafts: &BTreeMap<TaskName, Draft>, problems: &mut Problems) {
    let mut owners: BTreeMap<&VolumeName, &TaskName> = BTreeMap::new();
    for (task, draft) in drafts {
        for mount in &draft.placement.mounts {
            let Origin::Volume(name) = &mount.from else { continue };
            if let Some(owner) = owners.insert(name, task) {
                let problem = format!("volume {name} is task {owner}'s already, and tasks share no volume");
                problems.add(
                    &draft.place,
                    problem,
                    "rename it, or mount a folder of the node: `host: /srv/…`",
                );
            }
        }
    }
}
