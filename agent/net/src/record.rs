//! The values of sysctls before we first changed them, kept in one file in the state directory so that
//! a purge can put them back, whichever agent run changed them. The file carries its checksum; a damaged one
//! is moved aside and begun anew, since nothing but a purge needs it.

use crate::error::NetError;
use edgeloom_disk::{Unsealed, seal, unseal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A record larger than this was not written by us.
const SIZE_MAX: u64 = 1 << 20;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    sysctls: BTreeMap<String, String>,
}

/// The record and where it is kept.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    document: Document,
}

impl Record {
    /// Opens the record, empty when there is none yet.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, NetError> {
        let path = state_dir.join("sysctl.json");
        let document = match read(&path) {
            Ok(document) => document,
            Err(error) if error.kind() == ErrorKind::NotFound => Document::default(),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let aside = path.with_extension("json.damaged");
                std::fs::rename(&path, &aside)
                    .map_err(|source| NetError::Record { path: path.clone(), source })?;
                tracing::error!(%error, aside = %aside.display(), "the sysctls as they were before the agent are not known any more; a purge leaves them as they are now");
                Document::default()
            }
            Err(source) => return Err(NetError::Record { path, source }),
        };
        Ok(Self { path, document })
    }

    /// The keys and values as they were found.
    pub(crate) fn sysctls(&self) -> &BTreeMap<String, String> {
        &self.document.sysctls
    }

    /// Adds values for keys that have none yet, and has them on disk before it returns.
    pub(crate) fn keep(&mut self, found: impl IntoIterator<Item = (String, String)>) -> Result<(), NetError> {
        let before = self.document.sysctls.len();
        for (key, value) in found {
            self.document.sysctls.entry(key).or_insert(value);
        }
        if self.document.sysctls.len() == before {
            return Ok(());
        }
        self.save().map_err(|source| NetError::Record { path: self.path.clone(), source })
    }

    /// Forgets everything.
    pub(crate) fn remove(&mut self) -> Result<(), NetError> {
        self.document.sysctls.clear();
        for path in [self.path.with_extension("json.damaged"), self.path.clone()] {
            edgeloom_disk::remove(&path).map_err(|source| NetError::Record { path, source })?;
        }
        Ok(())
    }

    fn save(&self) -> std::io::Result<()> {
        let folder = self.path.parent().expect("the path was joined to a folder");
        std::fs::create_dir_all(folder)?;
        edgeloom_disk::replace(&self.path, &seal(&serde_json::to_vec_pretty(&self.document)?))
    }
}

fn read(path: &Path) -> std::io::Result<Document> {
    let size = std::fs::metadata(path)?.len();
    if size > SIZE_MAX {
        return Err(std::io::Error::new(ErrorKind::InvalidData, format!("{size} bytes, at most {SIZE_MAX}")));
    }
    let bytes = std::fs::read(path)?;
    let text = match unseal(&bytes) {
        // A version before this one wrote no checksum.
        Unsealed::Sound(text) | Unsealed::Bare(text) => text,
        Unsealed::Damaged { .. } => {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "changed since it was written"));
        }
    };
    let document: Document =
        serde_json::from_slice(text).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
    // The keys become paths below /proc/sys when they are restored.
    let escapes = |key: &String| !key.starts_with("net/ipv4/") || key.split('/').any(|part| part == "..");
    match document.sysctls.keys().find(|key| escapes(key)) {
        Some(key) => {
            Err(std::io::Error::new(ErrorKind::InvalidData, format!("{key:?} is no network sysctl")))
        }
        None => Ok(document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_is_never_put_back_into_the_kernel() {
        let folder = std::env::temp_dir().join(format!("edgeloom-record-{}", std::process::id()));
        let mut record = Record::open(&folder).unwrap();
        record.keep([("net/ipv4/ip_forward".to_owned(), "0".to_owned())]).unwrap();
        let path = folder.join("sysctl.json");
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, flipped).unwrap();
            assert!(Record::open(&folder).unwrap().sysctls().is_empty(), "bit {bit}");
        }
        std::fs::write(&path, whole).unwrap();
        assert_eq!(Record::open(&folder).unwrap().sysctls()["net/ipv4/ip_forward"], "0");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
