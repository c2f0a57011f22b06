//! What runs in a container: image, command, environment, resources and secrets, of tasks and sources alike.

use super::fields::{self, Fields};
use super::problems::{Place, Problems, excerpt};
use super::tree::{Node, Value};
use super::words::ImageName;
use super::{Program, Resources};
use crate::ids::SecretName;
use crate::units::{Bytes, MilliCores};
use std::collections::{BTreeMap, BTreeSet};

/// The fields that only a container has.
pub(super) const PROGRAM_FIELDS: &[&str] = &["image", "command", "environment", "resources", "secrets"];

/// What a task gets that asks for nothing: a tenth of a core.
pub const CPU_DEFAULT: MilliCores = MilliCores(100);

/// What a task gets that asks for nothing.
pub const MEMORY_DEFAULT: Bytes = Bytes(64 << 20);

/// Docker takes no smaller CPU limit.
const CPU_MIN: MilliCores = MilliCores(10);

/// Docker takes no smaller memory limit.
const MEMORY_MIN: Bytes = Bytes(6 << 20);

const COMMAND_MAX: usize = 256;
const ENVIRONMENT_MAX: usize = 256;
const VARIABLE_MAX_BYTES: usize = 128;
const SECRETS_MAX: usize = 32;
/// Names with this prefix are how a task learns its neighbours.
const RESERVED_PREFIX: &str = "EDGELOOM_";

const RESOURCE_FIELDS: &[&str] = &["cpu", "memory", "storage"];

/// Reads the container fields of a task or source.
pub(super) fn program(fields: &Fields<'_>, problems: &mut Problems) -> Option<Program> {
    let image = fields
        .required("image", "write an image, for instance `registry.lan:5000/vision/detect:1.2`", problems)
        .and_then(|(node, place)| {
            let remedy = "write `registry:port/repository:tag`, in lower case and without spaces";
            fields::parsed::<ImageName>(node, &place, remedy, problems)
        });
    let command =
        fields.optional("command").map_or(Some(Vec::new()), |(node, place)| command(node, &place, problems));
    let environment = fields
        .optional("environment")
        .map_or(Some(BTreeMap::new()), |(node, place)| environment(node, &place, problems));
    let resources = fields
        .optional("resources")
        .map_or(Some(default_resources()), |(node, place)| resources(node, &place, problems));
    let secrets = fields
        .optional("secrets")
        .map_or(Some(BTreeSet::new()), |(node, place)| secrets(node, &place, problems));
    Some(Program {
        image: image?.0,
        command: command?,
        environment: environment?,
        resources: resources?,
        secrets: secrets?,
    })
}

/// The arguments of a list.
pub(super) fn command(node: &Node, place: &Place, problems: &mut Problems) -> Option<Vec<String>> {
    if matches!(node.value, Value::Text(_)) {
        problems.add(place, "is one text, a list is wanted", "write `[\"/app\", \"detect\"]`; no shell runs");
        return None;
    }
    let arguments = fields::list(node, place, COMMAND_MAX, problems)?;
    let read = arguments.into_iter().map(|(node, place)| fields::long_text(node, &place, problems));
    let read: Vec<Option<&str>> = read.collect();
    read.into_iter().map(|argument| argument.map(str::to_owned)).collect()
}

fn environment(node: &Node, place: &Place, problems: &mut Problems) -> Option<BTreeMap<String, String>> {
    let variables = Fields::any(node, place, problems)?;
    let count = variables.iter().count();
    if count > ENVIRONMENT_MAX {
        let problem = format!("has {count} variables, at most {ENVIRONMENT_MAX} are allowed");
        problems.add(place, problem, "put them into a file of the image");
        return None;
    }
    let mut read = BTreeMap::new();
    for (key, node, place) in variables.iter() {
        if matches!(node.value, Value::Null) {
            problems.add(&place, "has no value", "write a value, `\"\"` for an empty one");
        } else if let (true, Some(value)) =
            (variable_name(key, &place, problems), fields::long_text(node, &place, problems))
        {
            read.insert(key.to_owned(), value.to_owned());
        }
    }
    Some(read)
}

fn variable_name(key: &str, place: &Place, problems: &mut Problems) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.is_empty()
        || key.len() > VARIABLE_MAX_BYTES
        || !key.chars().all(allowed)
        || key.starts_with(|c: char| c.is_ascii_digit())
    {
        let problem = format!("{:?} is no name of a variable", excerpt(key));
        problems.add(place, problem, "use letters, digits and `_`, and start with no digit");
        return false;
    }
    if key.starts_with(RESERVED_PREFIX) {
        let problem = format!("names that start with {RESERVED_PREFIX} are set by the controller");
        problems.add(place, problem, "choose another name");
        return false;
    }
    true
}

/// Compose's short form: the names alone.
fn secrets(node: &Node, place: &Place, problems: &mut Problems) -> Option<BTreeSet<SecretName>> {
    let remedy = "write names of secrets, for instance `secrets: [camera-password]`";
    let mut read = BTreeSet::new();
    for (node, place) in fields::list(node, place, SECRETS_MAX, problems)? {
        if let Value::Map(_) = &node.value {
            let problem = "Compose's long form of secrets is not supported by this version";
            problems.add(&place, problem, remedy);
        } else if let Some(name) = fields::parsed::<SecretName>(node, &place, remedy, problems)
            && let Some(twice) = read.replace(name)
        {
            problems.add(&place, format!("secret {twice} is listed twice"), "remove one of them");
        }
    }
    Some(read)
}

fn default_resources() -> Resources {
    Resources {
        cpu: CPU_DEFAULT,
        memory: MEMORY_DEFAULT,
        storage: Bytes(0),
        cpu_sized: true,
        memory_sized: true,
    }
}

fn resources(node: &Node, place: &Place, problems: &mut Problems) -> Option<Resources> {
    let fields = Fields::open(node, place, RESOURCE_FIELDS, problems)?;
    let mut read = default_resources();
    if let Some((node, place)) = fields.optional("cpu") {
        let remedy = "write cores, for instance `500m` or `0.5`";
        read.cpu = fields::parsed(node, &place, remedy, problems)?;
        read.cpu_sized = false;
        if read.cpu < CPU_MIN {
            problems.add(&place, format!("{} is below the least limit, {CPU_MIN}", read.cpu), remedy);
        }
    }
    if let Some((node, place)) = fields.optional("memory") {
        let remedy = "write bytes with a unit, for instance `256MiB`";
        read.memory = fields::parsed(node, &place, remedy, problems)?;
        read.memory_sized = false;
        if read.memory < MEMORY_MIN {
            problems.add(&place, format!("{} is below the least limit, 6MiB", read.memory), remedy);
        }
    }
    if let Some((node, place)) = fields.optional("storage") {
        let remedy = "write bytes with a unit, for instance `1GiB`";
        read.storage = fields::parsed(node, &place, remedy, problems)?;
    }
    Some(read)
}
