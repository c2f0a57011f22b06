//! The content store of containerd: one file a blob, named by its digest.
//!
//! In: the root of containerd. Out: the digests of all blobs, manifests and configurations among them: a pull
//! fetches exactly those that are absent (containerd, `docs/content-flow.md`). Blobs that are still arriving lie
//! elsewhere.

use super::{ENTRIES_MAX, LayersError, Room, Stored, digests};
use edgeloom_common::report::LayerInventory;
use edgeloom_common::units::Bytes;
use std::path::Path;

const BLOBS: &str = "io.containerd.content.v1.content/blobs/sha256";

/// Reads the content store below containerd's root directory.
///
/// # Errors
/// When the layout is not the known one, does not read, or holds too much for one message.
pub fn read(root: &Path) -> Result<Stored, LayersError> {
    let store = root.join("io.containerd.content.v1.content");
    if !store.is_dir() {
        return Err(LayersError::Layout { path: store });
    }
    let mut room = Room(ENTRIES_MAX);
    let (mut inventory, mut bytes) = (LayerInventory::default(), 0_u64);
    digests(&root.join(BLOBS), |digest, entry| {
        room.take()?;
        bytes = bytes.saturating_add(entry.metadata().map_or(0, |file| file.len()));
        inventory.known_digests.push(digest);
        Ok(())
    })?;
    inventory.known_digests.sort_unstable();
    Ok(Stored { layers: inventory, bytes: Bytes(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_listed_with_their_bytes_and_another_layout_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(read(root.path()), Err(LayersError::Layout { .. })));
        std::fs::create_dir_all(root.path().join(BLOBS)).unwrap();
        for (digit, bytes) in [("b", 3), ("a", 4)] {
            std::fs::write(root.path().join(BLOBS).join(digit.repeat(64)), vec![0; bytes]).unwrap();
        }
        std::fs::write(root.path().join(BLOBS).join("ref-1"), "x").unwrap();
        let Stored { layers: found, bytes } = read(root.path()).unwrap();
        assert_eq!(found.known_digests, ["a", "b"].map(|digit| format!("sha256:{}", digit.repeat(64))));
        assert_eq!(bytes, Bytes(7));
        assert!(found.chain_ids.is_empty() && found.image_ids.is_empty());
    }
}
