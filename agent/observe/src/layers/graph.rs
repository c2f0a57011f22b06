//! The store of a graph driver: `image/<driver>` below Docker's root.
//!
//! In: `imagedb/content` (configurations), `layerdb` (layers by chain id, with the digest of their content and
//! their size), `distribution/diffid-by-digest` (what blobs were once pulled as). Out: layer *i* of a pull is
//! skipped when its blob digest is known *and* its chain id is in the layer store, and the first miss fetches
//! all above. Docker never forgets a digest, so only those count whose content some layer still has.

use super::{ENTRIES_MAX, LayersError, Room, Stored, digests};
use edgeloom_common::report::LayerInventory;
use edgeloom_common::units::Bytes;
use std::collections::HashSet;
use std::fs::DirEntry;
use std::path::Path;

/// A digest or a number, with room to spare: no file that is read here is longer.
const FILE_MAX_BYTES: u64 = 256;

/// Reads the layer store of `driver` (for instance `overlay2`) below Docker's root directory.
///
/// # Errors
/// When the layout is not the known one, does not read, or holds too much for one message.
pub fn read(docker_root: &Path, driver: &str) -> Result<Stored, LayersError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if driver.is_empty() || !driver.chars().all(plain) {
        return Err(LayersError::Driver { driver: driver.chars().take(64).collect() });
    }
    let store = docker_root.join("image").join(driver);
    let images = store.join("imagedb/content/sha256");
    let layers = store.join("layerdb");
    for path in [&images, &layers] {
        if !path.is_dir() {
            return Err(LayersError::Layout { path: path.clone() });
        }
    }
    let mut room = Room(ENTRIES_MAX);
    let mut inventory = LayerInventory::default();
    digests(&images, |id, _| {
        inventory.image_ids.push(id);
        room.take()
    })?;
    let (mut contents, mut bytes) = (HashSet::new(), 0_u64);
    digests(&layers.join("sha256"), |chain, entry| {
        room.take()?;
        contents.extend(text(entry, "diff"));
        let size = text(entry, "size").and_then(|size| size.parse().ok()).unwrap_or(0);
        bytes = bytes.saturating_add(size);
        inventory.chain_ids.push(chain);
        Ok(())
    })?;
    digests(&store.join("distribution/diffid-by-digest/sha256"), |digest, entry| {
        if text(entry, "").is_some_and(|content| contents.contains(&content)) {
            room.take()?;
            inventory.known_digests.push(digest);
        }
        Ok(())
    })?;
    let lists = [&mut inventory.image_ids, &mut inventory.chain_ids, &mut inventory.known_digests];
    lists.into_iter().for_each(|list| list.sort_unstable());
    Ok(Stored { layers: inventory, bytes: Bytes(bytes) })
}

/// The one line of a small file in the entry, or of the entry itself; none of one that is just being removed.
fn text(entry: &DirEntry, name: &str) -> Option<String> {
    let path = if name.is_empty() { entry.path() } else { entry.path().join(name) };
    if std::fs::metadata(&path).ok()?.len() > FILE_MAX_BYTES {
        return None;
    }
    Some(std::fs::read_to_string(path).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn hex(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn named(digit: char) -> String {
        format!("sha256:{}", hex(digit))
    }

    /// A store as dockerd leaves it after its first start.
    fn fresh_store() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("image/overlay2");
        fs::create_dir_all(store.join("imagedb/content/sha256")).unwrap();
        fs::create_dir_all(store.join("layerdb")).unwrap();
        (root, store)
    }

    fn layer(store: &Path, chain: char, content: char, size: &str) {
        let folder = store.join("layerdb/sha256").join(hex(chain));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("diff"), named(content)).unwrap();
        fs::write(folder.join("size"), size).unwrap();
    }

    #[test]
    fn a_fresh_store_is_empty() {
        let (root, _) = fresh_store();
        assert_eq!(read(root.path(), "overlay2").unwrap(), Stored::default());
    }

    #[test]
    fn images_chains_and_digests_are_listed_in_order_without_temporary_files() {
        let (root, store) = fresh_store();
        fs::write(store.join("imagedb/content/sha256").join(hex('c')), "{}").unwrap();
        layer(&store, 'b', '1', "700");
        layer(&store, 'a', '2', "50\n");
        fs::create_dir_all(store.join("layerdb/tmp/write-set-1")).unwrap();
        let digests = store.join("distribution/diffid-by-digest/sha256");
        fs::create_dir_all(&digests).unwrap();
        fs::write(digests.join(hex('d')), named('1')).unwrap();
        fs::write(digests.join(format!(".tmp-{}", hex('e'))), "").unwrap();

        let Stored { layers, bytes } = read(root.path(), "overlay2").unwrap();
        assert_eq!(layers.image_ids, [named('c')]);
        assert_eq!(layers.chain_ids, [named('a'), named('b')]);
        assert_eq!(layers.known_digests, [named('d')]);
        assert_eq!(bytes, Bytes(750));
    }

    #[test]
    fn a_digest_counts_only_while_a_layer_has_its_content() {
        let (root, store) = fresh_store();
        layer(&store, 'a', '1', "1");
        let digests = store.join("distribution/diffid-by-digest/sha256");
        fs::create_dir_all(&digests).unwrap();
        for (digest, content) in [('c', '1'), ('d', '2'), ('e', '1')] {
            fs::write(digests.join(hex(digest)), named(content)).unwrap();
        }
        fs::write(digests.join(hex('f')), "x".repeat(10_000)).unwrap();
        assert_eq!(read(root.path(), "overlay2").unwrap().layers.known_digests, [named('c'), named('e')]);
    }

    #[test]
    fn another_layout_is_an_error_and_not_an_empty_store() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(read(root.path(), "overlay2"), Err(LayersError::Layout { .. })));
        for driver in ["", "..", "a/b"] {
            assert!(matches!(read(root.path(), driver), Err(LayersError::Driver { .. })), "{driver}");
        }
    }
}
