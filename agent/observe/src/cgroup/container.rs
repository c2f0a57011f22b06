//! The control group of one container: its processor time so far and its peak memory.
//!
//! The engine names the group after the container's id, below a parent that only the engine's
//! configuration knows, so the group is looked for by name. It lives from before the program starts to
//! just after it ended; whoever wants the last figures has to read until the group is gone.

use super::files::{self, Files};
use edgeloom_common::units::Bytes;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MOUNTS: &str = "/sys/fs/cgroup";
/// Where Docker puts containers unless told otherwise.
const USUAL_PARENTS: [&str; 2] = ["docker", "system.slice"];
/// Directories that are looked through: a node has some hundreds.
const DIRECTORIES_MAX: usize = 8192;

/// Figures since the group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    pub cpu: Duration,
    pub memory_peak: Bytes,
}

/// The group of one container.
#[derive(Debug)]
pub struct ContainerGroup {
    files: Files,
    /// The highest memory that was seen, for kernels that do not keep the peak themselves.
    memory_seen: Bytes,
}

impl ContainerGroup {
    /// Looks for the group of the container `id` (64 hexadecimal digits).
    #[must_use]
    pub fn find(id: &str) -> Option<Self> {
        Self::below(Path::new(MOUNTS), id)
    }

    fn below(mounts: &Path, id: &str) -> Option<Self> {
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        // Version 1 has the same tree below each controller.
        let root = [mounts.join("cpuacct"), mounts.to_owned()].into_iter().find(|root| root.is_dir())?;
        let names = [id.to_owned(), format!("docker-{id}.scope")];
        let path = usual(&root, &names).or_else(|| search(&root, &names))?;
        let path = path.strip_prefix(&root).ok()?.to_str()?;
        Some(Self { files: files::find(mounts, path)?, memory_seen: Bytes(0) })
    }

    /// The figures now; none once the group is gone.
    pub fn read(&mut self) -> Option<Use> {
        let cpu = self.files.cpu_time().ok()?;
        let memory = self.files.memory_peak().or_else(|_| self.files.memory_used()).ok()?;
        self.memory_seen = self.memory_seen.max(memory);
        Some(Use { cpu, memory_peak: self.memory_seen })
    }
}

fn usual(root: &Path, names: &[String]) -> Option<PathBuf> {
    let below =
        |parent: &str| names.iter().map(|name| root.join(parent).join(name)).find(|path| path.is_dir());
    USUAL_PARENTS.iter().find_map(|parent| below(parent))
}

/// Breadth first: containers are not deep.
fn search(root: &Path, names: &[String]) -> Option<PathBuf> {
    let mut open = VecDeque::from([root.to_owned()]);
    let mut looked = 0;
    while let Some(directory) = open.pop_front() {
        looked += 1;
        if DIRECTORIES_MAX < looked {
            return None;
        }
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if names.iter().any(|name| entry.file_name() == name.as_str()) {
                return Some(entry.path());
            }
            open.push_back(entry.path());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::write;
    use std::fs;

    const V1: &[(&str, &str)] = &[
        ("cpu/lab/n1/c0ffee/cpu.cfs_quota_us", "-1\n"),
        ("cpuacct/lab/n1/c0ffee/cpuacct.usage", "5000000000\n"),
        ("memory/lab/n1/c0ffee/memory.limit_in_bytes", "8388608\n"),
        ("memory/lab/n1/c0ffee/memory.max_usage_in_bytes", "7000000\n"),
    ];
    const V2: &[(&str, &str)] = &[
        ("system.slice/docker-c0ffee.scope/cpu.max", "max 100000\n"),
        ("system.slice/docker-c0ffee.scope/cpu.stat", "usage_usec 5000000\nuser_usec 1\n"),
        ("system.slice/docker-c0ffee.scope/memory.max", "max\n"),
        ("system.slice/docker-c0ffee.scope/memory.peak", "7000000\n"),
    ];

    #[test]
    fn both_versions_read_the_same_and_end_with_the_group() {
        for (files, group) in [(V1, "cpuacct/lab"), (V2, "system.slice")] {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), files);
            let mut found = ContainerGroup::below(root.path(), "c0ffee").unwrap();
            let wanted = Use { cpu: Duration::from_secs(5), memory_peak: Bytes(7_000_000) };
            assert_eq!(found.read(), Some(wanted));
            fs::remove_dir_all(root.path().join(group)).unwrap();
            assert_eq!(found.read(), None);
        }
    }

    #[test]
    fn without_a_kept_peak_the_highest_reading_counts() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &V2[..3]);
        let mut found = ContainerGroup::below(root.path(), "c0ffee").unwrap();
        let mut peak = |current: &str| {
            write(
                root.path(),
                &[
                    ("system.slice/docker-c0ffee.scope/memory.current", current),
                    ("system.slice/docker-c0ffee.scope/memory.stat", "inactive_file 10\n"),
                ],
            );
            found.read().unwrap().memory_peak
        };
        assert_eq!([peak("110"), peak("510"), peak("210")], [Bytes(100), Bytes(500), Bytes(500)]);
    }

    #[test]
    fn a_name_that_is_no_id_is_not_looked_for() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), V1);
        for id in ["", "..", "n1/c0ffee", "badc0ffee"] {
            assert!(ContainerGroup::below(root.path(), id).is_none(), "{id}");
        }
    }
}
