//! Which image layers a node holds, read from the graph driver's own directories.
//!
//! In: Docker's root directory and driver name. Out: image ids, chain ids and known blob digests, as
//! far as they decide what a pull fetches: layer *i* is skipped when its blob digest is known *and*
//! its chain id is in the layer store, and the first miss fetches all above.
//! The API cannot tell this exactly: it does not show layers that only a container or an unfinished
//! pull holds, nor which digests are known. The layout is private to dockerd though unchanged for
//! years, so it is probed, and an error tells the caller to fall back to the API.

use edgeloom_common::report::LayerInventory;
use std::io;
use std::path::{Path, PathBuf};

/// The most entries of all three lists together: as `sha256:<64 hex>` strings in JSON they stay below
/// the MQTT packet limit of 1 MiB.
const ENTRIES_MAX: usize = 12_000;

/// Why the layer store could not be read exactly.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    #[error("storage driver name {driver:?} is no plain name")]
    Driver { driver: String },
    #[error("{} is missing: the layer store has another layout", path.display())]
    Layout { path: PathBuf },
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("the layer store holds more than {bound} images, layers and digests")]
    TooMany { bound: usize },
}

/// Reads the layer store of `driver` (for instance `overlay2`) below Docker's root directory.
///
/// # Errors
/// When the layout is not the known one, does not read, or holds too much for one message.
pub fn read(docker_root: &Path, driver: &str) -> Result<LayerInventory, LayersError> {
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
    let mut room = ENTRIES_MAX;
    Ok(LayerInventory {
        image_ids: digests(&images, &mut room)?,
        chain_ids: digests(&layers.join("sha256"), &mut room)?,
        known_digests: digests(&store.join("distribution/diffid-by-digest/sha256"), &mut room)?,
    })
}

/// The entries of `path` that are named by a SHA-256 digest, sorted. A missing directory is empty:
/// dockerd makes it with the first entry. Other names are temporary files.
fn digests(path: &Path, room: &mut usize) -> Result<Vec<String>, LayersError> {
    let failed = |cause| LayersError::Read { path: path.to_owned(), cause };
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str().filter(|name| is_sha256(name)) else {
            continue;
        };
        *room = room.checked_sub(1).ok_or(LayersError::TooMany { bound: ENTRIES_MAX })?;
        found.push(format!("sha256:{name}"));
    }
    found.sort_unstable();
    Ok(found)
}

fn is_sha256(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn hex(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    /// A store as dockerd leaves it after its first start.
    fn fresh_store() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("image/overlay2");
        fs::create_dir_all(store.join("imagedb/content/sha256")).unwrap();
        fs::create_dir_all(store.join("layerdb")).unwrap();
        (root, store)
    }

    #[test]
    fn a_fresh_store_is_empty() {
        let (root, _) = fresh_store();
        assert_eq!(read(root.path(), "overlay2").unwrap(), LayerInventory::default());
    }

    #[test]
    fn images_chains_and_digests_are_listed_in_order_without_temporary_files() {
        let (root, store) = fresh_store();
        fs::write(store.join("imagedb/content/sha256").join(hex('c')), "{}").unwrap();
        for digit in ['b', 'a'] {
            fs::create_dir_all(store.join("layerdb/sha256").join(hex(digit))).unwrap();
        }
        fs::create_dir_all(store.join("layerdb/tmp/write-set-1")).unwrap();
        let digests = store.join("distribution/diffid-by-digest/sha256");
        fs::create_dir_all(&digests).unwrap();
        fs::write(digests.join(hex('d')), "sha256:0").unwrap();
        fs::write(digests.join(format!(".tmp-{}", hex('e'))), "").unwrap();

        let layers = read(root.path(), "overlay2").unwrap();
        assert_eq!(layers.image_ids, [format!("sha256:{}", hex('c'))]);
        assert_eq!(layers.chain_ids, [format!("sha256:{}", hex('a')), format!("sha256:{}", hex('b'))]);
        assert_eq!(layers.known_digests, [format!("sha256:{}", hex('d'))]);
    }

    #[test]
    fn another_layout_is_an_error_and_not_an_empty_store() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(read(root.path(), "overlay2"), Err(LayersError::Layout { .. })));
        for driver in ["", "..", "a/b"] {
            assert!(matches!(read(root.path(), driver), Err(LayersError::Driver { .. })), "{driver}");
        }
    }

    #[test]
    fn a_full_list_fits_one_packet_and_one_more_is_refused() {
        let entry = serde_json::to_string(&format!("sha256:{}", hex('a'))).unwrap().len() + 1;
        assert!(ENTRIES_MAX * entry < edgeloom_common::topics::PACKET_MAX * 9 / 10);

        let (_root, store) = fresh_store();
        let images = store.join("imagedb/content/sha256");
        for digit in ['a', 'b'] {
            fs::write(images.join(hex(digit)), "{}").unwrap();
        }
        assert!(matches!(digests(&images, &mut 1), Err(LayersError::TooMany { .. })));
        assert_eq!(digests(&images, &mut 2).unwrap().len(), 2);
    }
}
