//! Which image layers a node holds, read from the image store's own directories.
//!
//! In: where the store is. Out: what decides what a pull fetches, and the bytes on disk. Two stores, two rooms:
//! `graph` for Docker's graph drivers, `content` for containerd.
//! The API cannot tell this exactly: it does not show layers that only a container or an unfinished
//! pull holds, nor which blobs are known. The layouts are private to the daemons though unchanged for
//! years, so they are probed, and an error tells the caller to fall back to the API.

mod content;
mod graph;

pub use content::read as read_content;
pub use graph::read as read_graph;

use edgeloom_common::digest::Digest;
use edgeloom_common::report::LayerInventory;
use edgeloom_common::units::Bytes;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

/// The most entries of all lists together: as `sha256:<64 hex>` strings in JSON they stay below
/// the MQTT packet limit of 1 MiB.
pub const ENTRIES_MAX: usize = 12_000;

/// What an image store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    pub layers: LayerInventory,
    /// On disk: unpacked layers, or blobs where a blob is kept as it came.
    pub bytes: Bytes,
}

/// Why the image store could not be read exactly.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    #[error("storage driver name {driver:?} is no plain name")]
    Driver { driver: String },
    #[error("{} is missing: the image store has another layout", path.display())]
    Layout { path: PathBuf },
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("the image store holds more than {bound} images, layers and digests")]
    TooMany { bound: usize },
}

/// Room for this many more entries.
struct Room(usize);

impl Room {
    fn take(&mut self) -> Result<(), LayersError> {
        self.0 = self.0.checked_sub(1).ok_or(LayersError::TooMany { bound: ENTRIES_MAX })?;
        Ok(())
    }
}

/// Calls `each` for the entries of `path` that are named by a SHA-256 digest, with the digest as text. A missing
/// directory is empty: it is made with the first entry. Other names are temporary files.
fn digests(
    path: &Path,
    mut each: impl FnMut(String, &DirEntry) -> Result<(), LayersError>,
) -> Result<(), LayersError> {
    let failed = |cause| LayersError::Read { path: path.to_owned(), cause };
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if let Some(digest) = entry.file_name().to_str().and_then(Digest::from_hex) {
            each(digest.to_string(), &entry)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_fits_one_packet_and_one_more_is_refused() {
        let entry = serde_json::to_string(&format!("sha256:{}", "a".repeat(64))).unwrap().len() + 1;
        assert!(ENTRIES_MAX * entry < edgeloom_common::topics::PACKET_MAX * 9 / 10);
        let mut room = Room(1);
        room.take().unwrap();
        assert!(matches!(room.take(), Err(LayersError::TooMany { .. })));
    }
}
