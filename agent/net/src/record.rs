//! The values of sysctls before we first changed them, kept in one file in the state directory so that
//! a purge can put them back, whichever agent run changed them.

use crate::error::NetError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
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
        match std::fs::remove_file(&self.path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(NetError::Record { path: self.path.clone(), source })
            }
            _ => Ok(()),
        }
    }

    /// Written beside, synced and renamed, so that a crash leaves the old record or the new one.
    fn save(&self) -> std::io::Result<()> {
        let folder = self.path.parent().expect("the path was joined to a folder");
        std::fs::create_dir_all(folder)?;
        let beside = self.path.with_extension("json.new");
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(&self.document)?)?;
        file.sync_all()?;
        std::fs::rename(&beside, &self.path)?;
        std::fs::File::open(folder)?.sync_all()
    }
}

fn read(path: &Path) -> std::io::Result<Document> {
    let size = std::fs::metadata(path)?.len();
    if size > SIZE_MAX {
        return Err(std::io::Error::new(ErrorKind::InvalidData, format!("{size} bytes, at most {SIZE_MAX}")));
    }
    let document: Document = serde_json::from_slice(&std::fs::read(path)?)?;
    // The keys become paths below /proc/sys when they are restored.
    let escapes = |key: &String| !key.starts_with("net/ipv4/") || key.split('/').any(|part| part == "..");
    match document.sysctls.keys().find(|key| escapes(key)) {
        Some(key) => {
            Err(std::io::Error::new(ErrorKind::InvalidData, format!("{key:?} is no network sysctl")))
        }
        None => Ok(document),
    }
}
