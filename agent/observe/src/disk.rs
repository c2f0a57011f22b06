//! Capacity and use of the file system that holds a path.

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

#[cfg(test)]
mod tests {
    use super::*;

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
