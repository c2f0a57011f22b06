//! The control files of a group, in both versions.

use super::{CgroupError, share};
use edgeloom_common::units::{Bytes, MilliCores};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest control file that is read; `memory.stat` has about 3 KB.
const FILE_MAX: u64 = 64 * 1024;

/// Where a version keeps its files.
#[derive(Debug)]
pub(crate) enum Files {
    V1 { cpu: PathBuf, cpuacct: PathBuf, memory: PathBuf },
    V2 { group: PathBuf },
}

/// The group's files below `mounts`, of the version that has them all.
pub(super) fn find(mounts: &Path, path: &str) -> Option<Files> {
    let below = |controller: &str| mounts.join(controller).join(path);
    let v1 = Files::V1 { cpu: below("cpu"), cpuacct: below("cpuacct"), memory: below("memory") };
    let v2 = Files::V2 { group: mounts.join(path) };
    [v1, v2].into_iter().find(Files::complete)
}

impl Files {
    /// The files of the groups that a process is in, from its `cgroup` file (cgroups(7)): a line
    /// `hierarchy:controllers:path` each, with no controllers in version 2.
    pub(crate) fn of_member(mounts: &Path, membership: &str) -> Option<Self> {
        let group = |controller: &str| {
            membership.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let (controllers, path) = (fields.next()?, fields.next()?);
                let found = controllers.split(',').any(|name| name == controller);
                let mount = if controllers.is_empty() { mounts.to_owned() } else { mounts.join(controllers) };
                found.then(|| mount.join(path.trim_start_matches('/')))
            })
        };
        let v1 = || {
            let cpuacct = group("cpuacct")?;
            Some(Self::V1 {
                cpu: group("cpu").unwrap_or_else(|| cpuacct.clone()),
                cpuacct,
                memory: group("memory")?,
            })
        };
        v1().or_else(|| Some(Self::V2 { group: group("")? }))
    }

    fn complete(&self) -> bool {
        match self {
            Self::V1 { cpu, cpuacct, memory } => {
                cpu.join("cpu.cfs_quota_us").exists()
                    && cpuacct.join("cpuacct.usage").exists()
                    && memory.join("memory.limit_in_bytes").exists()
            }
            Self::V2 { group } => group.join("cpu.max").exists() && group.join("memory.max").exists(),
        }
    }

    pub(super) fn cpu_quota(&self) -> Result<Option<MilliCores>, CgroupError> {
        let (quota, period) = match self {
            Self::V1 { cpu, .. } => {
                let file = cpu.join("cpu.cfs_quota_us");
                let quota = text(&file)?;
                // -1 stands for no quota.
                let quota = if quota.starts_with('-') { None } else { Some(number(&file, &quota)?) };
                (quota, value(&cpu.join("cpu.cfs_period_us"))?)
            }
            Self::V2 { group } => {
                let file = group.join("cpu.max");
                let line = text(&file)?;
                let (quota, period) = line.split_once(' ').unwrap_or((&line, "100000"));
                (unless_max(&file, quota)?, number(&file, period)?)
            }
        };
        Ok(quota.map(|quota| share(Duration::from_micros(quota), Duration::from_micros(period))))
    }

    pub(crate) fn cpu_time(&self) -> Result<Duration, CgroupError> {
        match self {
            Self::V1 { cpuacct, .. } => Ok(Duration::from_nanos(value(&cpuacct.join("cpuacct.usage"))?)),
            Self::V2 { group } => Ok(Duration::from_micros(field(&group.join("cpu.stat"), "usage_usec")?)),
        }
    }

    pub(super) fn memory_limit(&self) -> Result<Option<Bytes>, CgroupError> {
        let file = match self {
            Self::V1 { memory, .. } => memory.join("memory.limit_in_bytes"),
            Self::V2 { group } => group.join("memory.max"),
        };
        Ok(unless_max(&file, &text(&file)?)?.map(Bytes))
    }

    /// The highest use since the group was made; Linux keeps it in version 2 from 5.19 on.
    pub(super) fn memory_peak(&self) -> Result<Bytes, CgroupError> {
        let file = match self {
            Self::V1 { memory, .. } => memory.join("memory.max_usage_in_bytes"),
            Self::V2 { group } => group.join("memory.peak"),
        };
        value(&file).map(Bytes)
    }

    pub(crate) fn memory_used(&self) -> Result<Bytes, CgroupError> {
        let (used, inactive) = match self {
            Self::V1 { memory, .. } => (
                value(&memory.join("memory.usage_in_bytes"))?,
                field(&memory.join("memory.stat"), "total_inactive_file")?,
            ),
            Self::V2 { group } => {
                (value(&group.join("memory.current"))?, field(&group.join("memory.stat"), "inactive_file")?)
            }
        };
        Ok(Bytes(used.saturating_sub(inactive)))
    }
}

pub(crate) fn text(file: &Path) -> Result<String, CgroupError> {
    use std::io::Read as _;
    let read = || {
        let mut text = String::new();
        std::fs::File::open(file)?.take(FILE_MAX).read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    };
    read().map_err(|cause| CgroupError::Read { file: file.to_owned(), cause })
}

fn number(file: &Path, text: &str) -> Result<u64, CgroupError> {
    text.parse()
        .map_err(|_| CgroupError::Number { file: file.to_owned(), text: text.chars().take(40).collect() })
}

fn unless_max(file: &Path, text: &str) -> Result<Option<u64>, CgroupError> {
    if text == "max" { Ok(None) } else { number(file, text).map(Some) }
}

fn value(file: &Path) -> Result<u64, CgroupError> {
    number(file, &text(file)?)
}

/// The value of `name` in a file of `name value` lines; zero where the kernel does not list it.
fn field(file: &Path, name: &str) -> Result<u64, CgroupError> {
    let text = text(file)?;
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name);
    found.map_or(Ok(0), |(_, value)| number(file, value))
}
