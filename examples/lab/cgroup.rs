//! A node's share of the machine: a cgroup with a CPU quota and a memory limit, v1 and v2.
//!
//! The limits are written before a container exists: v1 refuses a parent quota below a child's.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
const PERIOD_US: f64 = 100_000.0;

pub(crate) fn top(lab: &str) -> String {
    format!("edgeloom-lab-{lab}")
}

fn unified() -> bool {
    Path::new(ROOT).join("cgroup.controllers").exists()
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("writing {value:?} to {}", path.display()))
}

/// Makes the node's cgroup and the one of its agent below it.
pub(crate) fn create(lab: &str, node: &crate::topology::NodeSpec) -> Result<()> {
    let name = format!("{}/{}", top(lab), node.name);
    let quota = (node.cores * PERIOD_US).round().to_string();
    let memory = (node.memory_mib << 20).to_string();
    if unified() {
        let node_dir = Path::new(ROOT).join(&name);
        fs::create_dir_all(node_dir.join("agent")).with_context(|| name.clone())?;
        for dir in [Path::new(ROOT), &Path::new(ROOT).join(top(lab)), &node_dir] {
            write(&dir.join("cgroup.subtree_control"), "+cpu +memory")?;
        }
        write(&node_dir.join("cpu.max"), &format!("{quota} 100000"))?;
        return write(&node_dir.join("memory.max"), &memory);
    }
    for controller in ["cpu", "cpuacct", "memory"] {
        let dir = Path::new(ROOT).join(controller).join(&name).join("agent");
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    let file = |controller: &str, file: &str| Path::new(ROOT).join(controller).join(&name).join(file);
    write(&file("cpu", "cpu.cfs_period_us"), "100000")?;
    write(&file("cpu", "cpu.cfs_quota_us"), &quota)?;
    write(&file("memory", "memory.limit_in_bytes"), &memory)
}

/// Where to write a process id, so that the node's quota counts it.
pub(crate) fn entry_files(lab: &str, node: &str) -> Vec<PathBuf> {
    let tail = format!("{}/{node}/agent/cgroup.procs", top(lab));
    if unified() {
        return vec![Path::new(ROOT).join(tail)];
    }
    ["cpu", "cpuacct", "memory"]
        .iter()
        .map(|controller| Path::new(ROOT).join(controller).join(&tail))
        .collect()
}

/// The lab's cgroups in every hierarchy.
fn tops(lab: &str) -> Vec<PathBuf> {
    let mut parents = vec![PathBuf::from(ROOT)];
    parents.extend(fs::read_dir(ROOT).into_iter().flatten().flatten().map(|entry| entry.path()));
    parents.into_iter().map(|parent| parent.join(top(lab))).filter(|path| path.is_dir()).collect()
}

fn below(dir: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), visit);
        }
    }
    visit(dir);
}

/// Every process below the lab's cgroups: containers do not carry the mark.
pub(crate) fn members(lab: &str) -> Vec<i32> {
    let mut pids = Vec::new();
    for top in tops(lab) {
        below(&top, &mut |dir| {
            let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
            pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        });
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// A node's containers by their ids, and the processes of each.
pub(crate) fn containers(lab: &str, node: &str) -> Vec<(String, Vec<i32>)> {
    let root = if unified() { PathBuf::from(ROOT) } else { Path::new(ROOT).join("memory") };
    let entries = fs::read_dir(root.join(top(lab)).join(node)).into_iter().flatten().flatten();
    let container = |entry: fs::DirEntry| {
        let id = entry.file_name().into_string().ok()?;
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let text = fs::read_to_string(entry.path().join("cgroup.procs")).ok().filter(|_| is_id)?;
        Some((id, text.lines().filter_map(|line| line.parse().ok()).collect()))
    };
    entries.filter_map(container).collect()
}

pub(crate) fn remove(lab: &str) {
    for top in tops(lab) {
        // What is still busy shows up as a leftover; `down` looks again.
        below(&top, &mut |dir| drop(fs::remove_dir(dir)));
    }
}

pub(crate) fn left(lab: &str) -> Vec<PathBuf> {
    tops(lab)
}

/// What the kernel enforces on a container, which Docker names by its id.
pub(crate) fn limits(lab: &str, node: &str, container: &str) -> Result<String> {
    let read = |controller: &str, file: &str| -> Result<String> {
        let path = Path::new(ROOT).join(controller).join(top(lab)).join(node).join(container).join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(text.trim().to_owned())
    };
    if unified() {
        return Ok(format!("cpu {} memory {}", read("", "cpu.max")?, read("", "memory.max")?));
    }
    Ok(format!(
        "cpu {} {} memory {}",
        read("cpu", "cpu.cfs_quota_us")?,
        read("cpu", "cpu.cfs_period_us")?,
        read("memory", "memory.limit_in_bytes")?
    ))
}

/// One file of a container's group, or of the node's own where none is named: of version 1 by its controller and
/// name, of version 2 by its name.
fn read(place: (&str, &str, Option<&str>), v1: (&str, &str), v2: &str) -> Result<String> {
    let (lab, node, container) = place;
    let (root, file) = match unified() {
        true => (PathBuf::from(ROOT), v2),
        false => (Path::new(ROOT).join(v1.0), v1.1),
    };
    let path = root.join(top(lab)).join(node).join(container.unwrap_or_default()).join(file);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// A container's limit on processor time in thousandths of a core; none where it has none.
pub(crate) fn cpu_limit(lab: &str, node: &str, container: &str) -> Result<Option<u32>> {
    let place = (lab, node, Some(container));
    let quota = read(place, ("cpu", "cpu.cfs_quota_us"), "cpu.max")?;
    let mut words = quota.split_whitespace();
    let quota = words.next().and_then(|quota| quota.parse::<u32>().ok());
    let period = match words.next() {
        Some(period) => period.to_owned(),
        None => read(place, ("cpu", "cpu.cfs_period_us"), "cpu.max")?,
    };
    let period: u32 = period.trim().parse().context("the period of a limit")?;
    Ok(quota.map(|quota| quota * 1000 / period.max(1)))
}

/// Processor time in microseconds of a group and all below it, gone ones too: of a container, or of the node.
pub(crate) fn cpu_us(lab: &str, node: &str, container: Option<&str>) -> Result<u64> {
    let text = read((lab, node, container), ("cpuacct", "cpuacct.usage"), "cpu.stat")?;
    match text.lines().find_map(|line| line.strip_prefix("usage_usec ")) {
        Some(us) => us.trim().parse().context("usage_usec"),
        None => Ok(text.trim().parse::<u64>().context("cpuacct.usage")? / 1000),
    }
}
