//! The desired state in force, as a JSON file that is kept twice.
//!
//! Each copy is replaced in one rename and carries its checksum. Where one is damaged the other serves; where
//! one is older, a power cut came between the two. What was damaged is kept aside, the last one of each.

#[cfg(test)]
mod tests;

use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_disk::{Disk, Folder, Unsealed, seal, unseal};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The controller refuses documents over 512 KiB; twice that is no document of ours.
const FILE_MAX_BYTES: u64 = 1 << 20;
/// In the order in which they are written.
const COPIES: [&str; 2] = ["desired.json", "desired.copy.json"];

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("cannot write {}: {source}; the state would be lost at the next start", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} does not read: {flaw}; going on without a desired state until the controller sends one", path.display())]
    Damaged { path: PathBuf, flaw: Flaw },
}

/// What is wrong with a copy.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    #[error("{0}")]
    Unreadable(io::Error),
    #[error("it was changed since it was written")]
    Checksum,
    #[error("{0}")]
    Syntax(serde_json::Error),
}

/// A document from the disk.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) document: DesiredState,
    /// What was wrong with the copy that does not serve.
    pub(crate) remark: Option<Remark>,
}

/// One copy was damaged; nothing is lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    path: PathBuf,
    flaw: String,
    serves: Version,
}

impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, flaw, serves: Version { epoch, generation } } = self;
        write!(
            f,
            "{} was damaged ({flaw}) and is written anew from its copy, {epoch}.{generation} (epoch.generation); \
             if this comes again, replace the disk",
            path.display()
        )
    }
}

/// The file and its directory.
#[derive(Debug, Clone)]
pub(crate) struct DesiredFile {
    directory: PathBuf,
    disk: Arc<dyn Disk>,
}

/// What one copy holds.
enum Found {
    Absent,
    Sound(Box<DesiredState>),
    Damaged(Vec<u8>, Flaw),
}

impl DesiredFile {
    /// The file in the state directory, which is made when it is missing.
    pub(crate) fn open(directory: &Path) -> Result<Self, StateError> {
        let write = |source| StateError::Write { path: directory.to_owned(), source };
        let folder = Folder::open(directory).map_err(write)?.reading_at_most(FILE_MAX_BYTES);
        Ok(Self { directory: directory.to_owned(), disk: Arc::new(folder) })
    }

    /// The document on disk; none when there was never one. A copy that is damaged, missing or older is
    /// made equal to the one that serves.
    pub(crate) fn load(&self) -> Result<Option<Loaded>, StateError> {
        let mut flaws = Vec::new();
        let mut newest: Option<DesiredState> = None;
        for name in COPIES {
            match self.look(name) {
                Found::Absent => {}
                Found::Sound(document) => {
                    let newer = newest.as_ref().is_none_or(|known| known.version() < document.version());
                    newest = if newer { Some(*document) } else { newest };
                }
                Found::Damaged(bytes, flaw) => {
                    self.keep_aside(name, &bytes);
                    flaws.push((self.directory.join(name), flaw));
                }
            }
        }
        let flaw = flaws.into_iter().next();
        let Some(document) = newest else {
            return flaw.map_or(Ok(None), |(path, flaw)| Err(StateError::Damaged { path, flaw }));
        };
        self.even_out(&document);
        let serves = document.version();
        let remark = flaw.map(|(path, flaw)| Remark { path, flaw: flaw.to_string(), serves });
        Ok(Some(Loaded { document, remark }))
    }

    /// The document on disk, for who only looks: an agent may be at work on the same files.
    pub(crate) fn peek(&self) -> Option<DesiredState> {
        let sound = COPIES.into_iter().filter_map(|name| match self.look(name) {
            Found::Sound(document) => Some(*document),
            Found::Absent | Found::Damaged(..) => None,
        });
        sound.max_by_key(DesiredState::version)
    }

    fn look(&self, name: &str) -> Found {
        let Some((bytes, error)) = self.disk.read(name) else { return Found::Absent };
        if let Some(error) = error {
            return Found::Damaged(bytes, Flaw::Unreadable(error));
        }
        let read = match unseal(&bytes) {
            // A version before this one wrote no checksum.
            Unsealed::Sound(text) | Unsealed::Bare(text) => {
                serde_json::from_slice(text).map_err(Flaw::Syntax)
            }
            Unsealed::Damaged { .. } => Err(Flaw::Checksum),
        };
        match read {
            Ok(document) => Found::Sound(Box::new(document)),
            Err(flaw) => Found::Damaged(bytes, flaw),
        }
    }

    /// A copy that cannot be written serves as it is: the next document is written to both anyway.
    fn even_out(&self, document: &DesiredState) {
        let Ok(bytes) = sealed(document) else { return };
        for name in COPIES {
            let same = self.disk.read(name).is_some_and(|(found, _)| found == bytes);
            let evened = if same { Ok(()) } else { self.disk.replace(name, &bytes) };
            if let Err(error) = evened {
                tracing::warn!(%error, name, "the copy of the desired state is not written");
            }
        }
    }

    fn keep_aside(&self, name: &str, bytes: &[u8]) {
        if let Err(error) = self.disk.replace(&damaged_name(name), bytes) {
            tracing::warn!(%error, name, "the damaged file is not kept aside");
        }
    }

    /// Replaces the document: after a power cut it is the old one or the new one, whole.
    pub(crate) fn save(&self, document: &DesiredState) -> Result<(), StateError> {
        for name in COPIES {
            let written = sealed(document).and_then(|bytes| self.disk.replace(name, &bytes));
            written.map_err(|source| StateError::Write { path: self.directory.join(name), source })?;
        }
        Ok(())
    }

    /// Forgets the document.
    pub(crate) fn remove(&self) -> Result<(), StateError> {
        for name in COPIES {
            let gone = self.disk.discard(name).and_then(|()| self.disk.remove(name));
            let gone = gone.and_then(|()| self.disk.remove(&damaged_name(name)));
            gone.map_err(|source| StateError::Write { path: self.directory.join(name), source })?;
        }
        Ok(())
    }
}

fn sealed(document: &DesiredState) -> io::Result<Vec<u8>> {
    Ok(seal(&serde_json::to_vec(document)?))
}

fn damaged_name(name: &str) -> String {
    format!("{name}.damaged")
}
