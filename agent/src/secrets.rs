//! Files that containers find their secrets in: made before a container starts, gone with it.
//!
//! In: a task and its values. Out: a folder for the task, which Docker mounts at `/run/secrets`, read-only.
//! Invariant: the folder is in memory (tmpfs), below one that only the agent and root can enter; where it is not,
//! nothing is written, and the task waits.

use crate::engine::TaskKey;
use edgeloom_common::confidential::Value;
use edgeloom_common::ids::{NodeId, SecretName};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where systemd gives the daemon a folder in memory.
pub(crate) const RUNTIME_DIR: &str = "/run/edgeloom-agent";
/// For the agent alone.
const PRIVATE: u32 = 0o700;
/// A container's programs may run as any user.
const ENTERED_BY_ALL: u32 = 0o755;
/// As Compose and Swarm give them.
const READ_BY_ALL: u32 = 0o444;
/// File systems that are in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The values of one task's secrets.
pub(crate) type Values = BTreeMap<SecretName, Value>;

/// Why a task's files are not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretFilesError {
    #[error("cannot write secrets to {}: {reason}", path.display())]
    Write { path: PathBuf, reason: String },
    #[error(
        "{} is on a disk ({kind}), and secrets are kept in memory alone; mount a tmpfs there, or name a folder on one as `runtime_dir`",
        path.display()
    )]
    OnDisk { path: PathBuf, kind: String },
}

/// The folders of this node's tasks.
#[derive(Debug, Clone)]
pub(crate) struct SecretFiles {
    folder: PathBuf,
}

impl SecretFiles {
    /// Below the runtime directory, by node: several agents may share a machine.
    pub(crate) fn new(runtime_dir: &Path, node: &NodeId) -> Self {
        Self { folder: runtime_dir.join("secrets").join(node.as_str()) }
    }

    /// What a task's container mounts.
    pub(crate) fn of(&self, task: &TaskKey) -> PathBuf {
        self.folder.join(task.container_name())
    }

    /// Makes the task's folder hold these values and nothing else. A folder that is there stays the same one,
    /// since a container that was made for it mounts it.
    pub(crate) fn write(&self, task: &TaskKey, values: &Values) -> Result<(), SecretFilesError> {
        if values.is_empty() {
            return Ok(());
        }
        let folder = self.of(task);
        let failed =
            |error: io::Error| SecretFilesError::Write { path: folder.clone(), reason: error.to_string() };
        DirBuilder::new().recursive(true).mode(PRIVATE).create(&self.folder).map_err(failed)?;
        self.check_in_memory()?;
        fill(&folder, values).map_err(failed)
    }

    /// Forgets a task's values; none are no error.
    pub(crate) fn remove(&self, task: &TaskKey) {
        remove(&self.of(task));
    }

    /// Forgets the values of all other tasks.
    pub(crate) fn retain(&self, tasks: &BTreeSet<TaskKey>) {
        let kept: BTreeSet<PathBuf> = tasks.iter().map(|task| self.of(task)).collect();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| !kept.contains(path)).for_each(|path| remove(&path));
    }

    fn check_in_memory(&self) -> Result<(), SecretFilesError> {
        let failed = |error: io::Error| SecretFilesError::Write {
            path: self.folder.clone(),
            reason: error.to_string(),
        };
        let path = self.folder.canonicalize().map_err(failed)?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(failed)?;
        let kind = file_system(&mounts, &path).unwrap_or("unknown");
        if IN_MEMORY.contains(&kind) {
            return Ok(());
        }
        Err(SecretFilesError::OnDisk { path, kind: kind.to_owned() })
    }
}

fn fill(folder: &Path, values: &Values) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(ENTERED_BY_ALL))?;
    for entry in fs::read_dir(folder)? {
        // Written anew below, so that a file never changes under a reader.
        fs::remove_file(entry?.path())?;
    }
    for (name, value) in values {
        let path = folder.join(name.as_str());
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&value.expose())?;
        file.set_permissions(Permissions::from_mode(READ_BY_ALL))?;
    }
    Ok(())
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "secrets of a task that is gone are still there");
    }
}

/// The file system that a path is on: that of the longest mount point above it, the last one of equal ones
/// (`proc_pid_mountinfo(5)`). Mount points with blanks, which are written in octal, are none of ours.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (before, after) = line.split_once(" - ")?;
        Some((Path::new(before.split(' ').nth(4)?), after.split(' ').next()?))
    };
    let above = mounts.lines().filter_map(mount).filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        23 22 0:21 / /run rw,nosuid shared:2 - tmpfs tmpfs rw,size=1k\n\
        24 23 8:2 / /run/media rw - vfat /dev/sdb1 rw\n\
        25 22 8:3 / /srv rw - ext4 /dev/sdc1 rw\n\
        26 25 0:30 / /srv rw master:1 - tmpfs over rw\n";

    #[test]
    fn the_nearest_mount_tells_the_file_system() {
        for (path, kind) in [
            ("/run/edgeloom-agent/secrets", "tmpfs"),
            ("/run/media/stick", "vfat"),
            ("/runs", "ext4"),
            ("/srv/x", "tmpfs"),
            ("/var/lib", "ext4"),
        ] {
            assert_eq!(file_system(MOUNTS, Path::new(path)), Some(kind), "{path}");
        }
        assert_eq!(file_system("", Path::new("/run")), None);
    }

    #[test]
    fn a_folder_on_a_disk_gets_no_secret() {
        let disk = tempfile::tempdir().unwrap();
        let files = SecretFiles::new(disk.path(), &"n1".parse().unwrap());
        let task = TaskKey { job: "j".parse().unwrap(), task: "t".parse().unwrap() };
        files.write(&task, &Values::new()).unwrap();
        let values = Values::from([("password".parse().unwrap(), Value::new(b"hunter2").unwrap())]);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = disk.path().canonicalize().unwrap();
        let in_memory = file_system(&mounts, &place).is_some_and(|kind| IN_MEMORY.contains(&kind));
        match files.write(&task, &values) {
            Ok(()) => assert!(in_memory),
            Err(error) => assert!(!in_memory && !files.of(&task).exists(), "{error}"),
        }
    }

    #[test]
    fn a_task_finds_its_values_as_they_are_and_none_that_it_had() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("edgeloom_j_t");
        let value = |text: &str| Value::new(text.as_bytes()).unwrap();
        let names: [SecretName; 2] = ["password".parse().unwrap(), "token".parse().unwrap()];
        let first = Values::from([(names[0].clone(), value("old")), (names[1].clone(), value("t"))]);
        fill(&folder, &first).unwrap();
        fill(&folder, &Values::from([(names[0].clone(), value("new"))])).unwrap();
        let file = folder.join("password");
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o444);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn what_belongs_to_no_task_goes() {
        let place = tempfile::tempdir().unwrap();
        let files = SecretFiles::new(place.path(), &"n1".parse().unwrap());
        let task = |name: &str| TaskKey { job: "j".parse().unwrap(), task: name.parse().unwrap() };
        for name in ["a", "b"] {
            fs::create_dir_all(files.of(&task(name))).unwrap();
        }
        files.retain(&BTreeSet::from([task("a")]));
        assert!(files.of(&task("a")).exists() && !files.of(&task("b")).exists());
        files.remove(&task("a"));
        files.remove(&task("a"));
        assert!(!files.of(&task("a")).exists());
    }
}
