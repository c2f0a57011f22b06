//! Capacity and use of the file system that holds a path, and what this process writes.

use edgeloom_common::units::Bytes;
use std::path::{Path, PathBuf};

/// Why a file system could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the file system of {}: {cause}", path.display())]
pub struct DiskError {
    pub path: PathBuf,
    pub cause: nix::Error,
}

/// A file system, as statvfs(3) counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Without the blocks reserved for root, which containers cannot have.
    pub capacity: Bytes,
    pub used: Bytes,
}

/// Reads the file system that holds `path`.
///
/// # Errors
/// When the path does not exist.
pub fn read(path: &Path) -> Result<Disk, DiskError> {
    let stat =
        nix::sys::statvfs::statvfs(path).map_err(|cause| DiskError { path: path.to_owned(), cause })?;
    let block = stat.fragment_size();
    let used = stat.blocks().saturating_sub(stat.blocks_free());
    let capacity = used.saturating_add(stat.blocks_available());
    Ok(Disk { capacity: Bytes(capacity.saturating_mul(block)), used: Bytes(used.saturating_mul(block)) })
}

/// Bytes that this process has caused to be written to storage since it started, as the kernel counts them
/// (proc_pid_io(5)): whole pages, file system images in memory left out. None where the kernel does not
/// count (`CONFIG_TASK_IO_ACCOUNTING`).
#[must_use]
pub fn written() -> Option<Bytes> {
    counted(&std::fs::read_to_string("/proc/self/io").ok()?)
}

/// Pages that were dropped before they were written do not count.
fn counted(text: &str) -> Option<Bytes> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let written = value("write_bytes:")?;
    Some(Bytes(written.saturating_sub(value("cancelled_write_bytes:").unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_those_that_reach_storage() {
        let text = "rchar: 3\nwchar: 900\nsyscr: 1\nsyscw: 1\nread_bytes: 7\nwrite_bytes: 12288\ncancelled_write_bytes: 4096\n";
        assert_eq!(counted(text), Some(Bytes(8192)));
        assert_eq!(counted("rchar: 3\n"), None);
        assert!(written().is_some());
    }

    #[test]
    fn the_root_file_system_uses_no_more_than_it_has() {
        let disk = read(Path::new("/")).unwrap();
        assert!(disk.used > Bytes(0) && disk.used <= disk.capacity);
    }

    #[test]
    fn a_missing_path_is_named() {
        let error = read(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
