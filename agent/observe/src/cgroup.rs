//! CPU and memory of one control group, where a node is a share of a machine: /proc shows the whole
//! machine there, and only the group's own files know its quota, limit and use.
//!
//! Both versions are read (kernel documentation, admin-guide/cgroup-v1 and cgroup-v2):
//! version 1 with `cpu`, `cpuacct` and `memory` mounted apart, version 2 with one tree.

pub mod container;
pub(crate) mod files;

use crate::machine::{Machine, MachineError};
use crate::meter::{Capacity, Load};
use edgeloom_common::units::MilliCores;
use files::Files;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) const MOUNTS: &str = "/sys/fs/cgroup";

/// Why a control group could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error("cgroup {path:?} must be a relative path without '..'")]
    Path { path: String },
    #[error("there is no cgroup {path:?} with cpu and memory control below {}", mounts.display())]
    Missing { path: String, mounts: PathBuf },
    #[error("cannot read {}: {cause}", file.display())]
    Read { file: PathBuf, cause: std::io::Error },
    #[error("{} does not hold a number where one belongs: {text:?}", file.display())]
    Number { file: PathBuf, text: String },
    #[error("{} is of a process outside the container", file.display())]
    Foreign { file: PathBuf },
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// A control group, and its CPU time at the last reading.
#[derive(Debug)]
pub struct Cgroup {
    files: Files,
    /// What the group has where it is not limited.
    machine: Capacity,
    before: Instant,
    cpu_time: Duration,
}

impl Cgroup {
    /// The group at `path` below the usual mounts.
    ///
    /// # Errors
    /// When the path leaves the mounts, or neither version has such a group.
    pub fn open(path: &str) -> Result<Self, CgroupError> {
        Self::below(Path::new(MOUNTS), path)
    }

    fn below(mounts: &Path, path: &str) -> Result<Self, CgroupError> {
        if path.is_empty() || !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(CgroupError::Path { path: path.to_owned() });
        }
        let files = files::find(mounts, path)
            .ok_or_else(|| CgroupError::Missing { path: path.to_owned(), mounts: mounts.to_owned() })?;
        let machine = Machine::open()?.capacity();
        let cpu_time = files.cpu_time()?;
        Ok(Self { files, machine, before: Instant::now(), cpu_time })
    }

    /// Quota and limit, or the machine's where there is none.
    ///
    /// # Errors
    /// When a control file has gone or does not read.
    pub fn capacity(&self) -> Result<Capacity, CgroupError> {
        let cpu = self.files.cpu_quota()?.map_or(self.machine.cpu, |quota| quota.min(self.machine.cpu));
        let memory = self.files.memory_limit()?.map_or(self.machine.memory, |l| l.min(self.machine.memory));
        Ok(Capacity { cpu, memory })
    }

    /// CPU used since the reading before; memory without the file cache that the kernel drops first.
    ///
    /// # Errors
    /// When a control file has gone or does not read.
    pub fn load(&mut self) -> Result<Load, CgroupError> {
        let (now, cpu_time) = (Instant::now(), self.files.cpu_time()?);
        let cpu = share(cpu_time.saturating_sub(self.cpu_time), now - self.before);
        (self.before, self.cpu_time) = (now, cpu_time);
        Ok(Load { cpu, memory: self.files.memory_used()? })
    }
}

/// Thousandths of a core that `used` CPU time is of `elapsed` wall time.
pub(crate) fn share(used: Duration, elapsed: Duration) -> MilliCores {
    if elapsed.is_zero() {
        return MilliCores(0);
    }
    let milli = used.as_nanos().saturating_mul(1000) / elapsed.as_nanos();
    MilliCores(u32::try_from(milli).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::Bytes;
    use std::fs;

    pub(super) fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    const V1: &[(&str, &str)] = &[
        ("cpu/lab/n1/cpu.cfs_quota_us", "40000\n"),
        ("cpu/lab/n1/cpu.cfs_period_us", "100000\n"),
        ("cpuacct/lab/n1/cpuacct.usage", "5000000000\n"),
        ("memory/lab/n1/memory.limit_in_bytes", "8388608\n"),
        ("memory/lab/n1/memory.usage_in_bytes", "5000000\n"),
        ("memory/lab/n1/memory.stat", "cache 9\ninactive_file 1\ntotal_inactive_file 1000000\n"),
    ];
    const V2: &[(&str, &str)] = &[
        ("lab/n1/cpu.max", "40000 100000\n"),
        ("lab/n1/cpu.stat", "usage_usec 5000000\nuser_usec 1\n"),
        ("lab/n1/memory.max", "8388608\n"),
        ("lab/n1/memory.current", "5000000\n"),
        ("lab/n1/memory.stat", "anon 9\ninactive_file 1000000\n"),
    ];

    #[test]
    fn both_versions_read_the_same() {
        for files in [V1, V2] {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), files);
            let mut group = Cgroup::below(root.path(), "lab/n1").unwrap();
            let capacity = group.capacity().unwrap();
            assert_eq!(capacity, Capacity { cpu: MilliCores(400), memory: Bytes(8_388_608) });
            assert_eq!(group.cpu_time, Duration::from_secs(5));
            assert_eq!(group.load().unwrap(), Load { cpu: MilliCores(0), memory: Bytes(4_000_000) });
        }
    }

    #[test]
    fn a_group_without_limits_has_what_the_machine_has() {
        let machine = Machine::open().unwrap().capacity();
        let unlimited_v1 = [
            ("cpu/lab/n1/cpu.cfs_quota_us", "-1\n"),
            ("memory/lab/n1/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let unlimited_v2 = [("lab/n1/cpu.max", "max 100000\n"), ("lab/n1/memory.max", "max\n")];
        for (files, unlimited) in [(V1, unlimited_v1), (V2, unlimited_v2)] {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), files);
            write(root.path(), &unlimited);
            assert_eq!(Cgroup::below(root.path(), "lab/n1").unwrap().capacity().unwrap(), machine);
        }
    }

    #[test]
    fn cpu_use_is_the_difference_of_two_readings() {
        assert_eq!(share(Duration::from_millis(250), Duration::from_secs(1)), MilliCores(250));
        assert_eq!(share(Duration::from_secs(3), Duration::from_secs(2)), MilliCores(1500));
        assert_eq!(share(Duration::from_secs(3), Duration::ZERO), MilliCores(0));
    }

    #[test]
    fn wrong_paths_and_files_are_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        for path in ["", "/lab", "lab/../n1"] {
            assert!(matches!(Cgroup::below(root.path(), path), Err(CgroupError::Path { .. })), "{path}");
        }
        assert!(matches!(Cgroup::below(root.path(), "lab/n1"), Err(CgroupError::Missing { .. })));
        write(root.path(), V2);
        write(root.path(), &[("lab/n1/memory.current", "many\n")]);
        let error = Cgroup::below(root.path(), "lab/n1").unwrap().load().unwrap_err();
        assert!(error.to_string().contains("memory.current"), "{error}");
    }
}
