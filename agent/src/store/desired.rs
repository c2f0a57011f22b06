//! The desired state in force, as a JSON file that is kept twice.
//!
//! Each copy is replaced in one rename and carries its checksum. Where one is damaged the other serves; where
//! one is older, a power cut came between the two. What was damaged is kept aside, the last one of each.
//! The values that the document names stand in the same file, sealed: they belong to this document alone, and no
//! power cut parts them.

#[cfg(test)]
mod tests;

use edgeloom_common::confidential::Confidential;
use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_disk::{Disk, Folder, Unsealed, seal, unseal};
use edgeloom_sealing::{Key, KeyError, Sealed};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A delivery is a packet of at most 1 MiB, and sealing adds a third to its values; twice that is none of ours.
const FILE_MAX_BYTES: u64 = 2 << 20;
/// In the order in which they are written.
const COPIES: [&str; 2] = ["desired.json", "desired.copy.json"];

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("cannot write {}: {source}; the state would be lost at the next start", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} does not read: {flaw}; going on without a desired state until the controller sends one", path.display())]
    Damaged { path: PathBuf, flaw: Flaw },
    #[error("secrets are not kept, so tasks would wait for the controller after a restart: {0}")]
    Key(#[from] KeyError),
}

/// Why the values beside a document stay closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Closed {
    #[error(
        "the values of secrets and logins do not open: {0}; tasks that start wait until the controller sends them"
    )]
    Key(String),
    #[error("{} is missing, so the values of secrets and logins do not open; tasks that start wait until the controller sends them", .0.display())]
    NoKey(PathBuf),
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
    pub(crate) confidential: Confidential,
    /// What was wrong with the copy that does not serve.
    pub(crate) remark: Option<Remark>,
    pub(crate) closed: Option<Closed>,
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
    /// Made when there is something to seal for the first time.
    key: PathBuf,
}

/// What one copy holds.
enum Found {
    Absent,
    Sound(Box<Kept>),
    Damaged(Vec<u8>, Flaw),
}

/// A copy that reads.
struct Kept {
    document: DesiredState,
    sealed: Option<Sealed>,
    /// As it is to be written, with its checksum.
    bytes: Vec<u8>,
}

/// As it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    document: &'a DesiredState,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
}

/// The part of it that is no document; absent in files of a version before.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    sealed: Option<Sealed>,
}

impl DesiredFile {
    /// The file in the state directory, which is made when it is missing, and the key that seals its values.
    pub(crate) fn open(directory: &Path, key: PathBuf) -> Result<Self, StateError> {
        let write = |source| StateError::Write { path: directory.to_owned(), source };
        let folder = Folder::open(directory).map_err(write)?.reading_at_most(FILE_MAX_BYTES);
        Ok(Self { directory: directory.to_owned(), disk: Arc::new(folder), key })
    }

    /// The document on disk; none when there was never one. A copy that is damaged, missing or older is
    /// made equal to the one that serves.
    pub(crate) fn load(&self) -> Result<Option<Loaded>, StateError> {
        let mut flaws = Vec::new();
        let mut newest: Option<Kept> = None;
        for name in COPIES {
            match self.look(name) {
                Found::Absent => {}
                Found::Sound(copy) => {
                    let version = copy.document.version();
                    let newer = newest.as_ref().is_none_or(|known| known.document.version() < version);
                    newest = if newer { Some(*copy) } else { newest };
                }
                Found::Damaged(bytes, flaw) => {
                    self.keep_aside(name, &bytes);
                    flaws.push((self.directory.join(name), flaw));
                }
            }
        }
        let flaw = flaws.into_iter().next();
        let Some(Kept { document, sealed, bytes }) = newest else {
            return flaw.map_or(Ok(None), |(path, flaw)| Err(StateError::Damaged { path, flaw }));
        };
        self.even_out(&bytes);
        let serves = document.version();
        let remark = flaw.map(|(path, flaw)| Remark { path, flaw: flaw.to_string(), serves });
        let opened = sealed.map_or_else(|| Ok(Confidential::default()), |it| self.unseal(&document, &it));
        let (confidential, closed) = match opened {
            Ok(confidential) => (confidential, None),
            Err(closed) => (Confidential::default(), Some(closed)),
        };
        Ok(Some(Loaded { document, confidential, remark, closed }))
    }

    /// The document on disk, for who only looks: an agent may be at work on the same files.
    pub(crate) fn peek(&self) -> Option<DesiredState> {
        let sound = COPIES.into_iter().filter_map(|name| match self.look(name) {
            Found::Sound(copy) => Some(copy.document),
            Found::Absent | Found::Damaged(..) => None,
        });
        sound.max_by_key(DesiredState::version)
    }

    fn look(&self, name: &str) -> Found {
        let Some((bytes, error)) = self.disk.read(name) else { return Found::Absent };
        if let Some(error) = error {
            return Found::Damaged(bytes, Flaw::Unreadable(error));
        }
        match unseal(&bytes) {
            // A version before this one wrote no checksum.
            Unsealed::Sound(text) | Unsealed::Bare(text) => match read(text) {
                Ok(kept) => Found::Sound(Box::new(kept)),
                Err(error) => Found::Damaged(bytes, Flaw::Syntax(error)),
            },
            Unsealed::Damaged { .. } => Found::Damaged(bytes, Flaw::Checksum),
        }
    }

    fn unseal(&self, document: &DesiredState, sealed: &Sealed) -> Result<Confidential, Closed> {
        let told = |error: &dyn std::fmt::Display| Closed::Key(error.to_string());
        let key = Key::open(&self.key).map_err(|error| told(&error))?;
        let key = key.ok_or_else(|| Closed::NoKey(self.key.clone()))?;
        let text = key.unseal(&purpose(document), sealed).map_err(|error| told(&error))?;
        // What is wrong with the text is not said: it is the values.
        serde_json::from_slice(&text).map_err(|_| told(&"they are of another version"))
    }

    /// A copy that cannot be written serves as it is: the next document is written to both anyway.
    fn even_out(&self, bytes: &[u8]) {
        for name in COPIES {
            let same = self.disk.read(name).is_some_and(|(found, _)| found == bytes);
            let evened = if same { Ok(()) } else { self.disk.replace(name, bytes) };
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

    /// Replaces the document and its values: after a power cut it is the old one or the new one, whole.
    pub(crate) fn save(
        &self,
        document: &DesiredState,
        confidential: &Confidential,
    ) -> Result<(), StateError> {
        let sealed = if confidential.is_empty() { None } else { Some(self.seal(document, confidential)?) };
        let written = serde_json::to_vec(&Written { document, sealed }).expect("a document is plain data");
        let bytes = seal(&written);
        for name in COPIES {
            let written = self.disk.replace(name, &bytes);
            written.map_err(|source| StateError::Write { path: self.directory.join(name), source })?;
        }
        Ok(())
    }

    fn seal(&self, document: &DesiredState, confidential: &Confidential) -> Result<Sealed, StateError> {
        let text = serde_json::to_vec(confidential).expect("values are texts");
        Ok(Key::open_or_create(&self.key)?.seal(&purpose(document), &Zeroizing::new(text)))
    }

    /// Forgets the document.
    pub(crate) fn remove(&self) -> Result<(), StateError> {
        for name in COPIES {
            let gone = self.disk.discard(name).and_then(|()| self.disk.remove(name));
            let gone = gone.and_then(|()| self.disk.remove(&damaged_name(name)));
            gone.map_err(|source| StateError::Write { path: self.directory.join(name), source })?;
        }
        // A key that is elsewhere is the operator's.
        if self.key.parent() == Some(self.directory.as_path()) {
            let gone = edgeloom_disk::remove(&self.key);
            gone.map_err(|source| StateError::Write { path: self.key.clone(), source })?;
        }
        Ok(())
    }
}

fn read(text: &[u8]) -> serde_json::Result<Kept> {
    let document = serde_json::from_slice(text)?;
    let Beside { sealed } = serde_json::from_slice(text)?;
    Ok(Kept { document, sealed, bytes: seal(text.trim_ascii_end()) })
}

/// Values of another node, or of another cluster, do not open here.
fn purpose(document: &DesiredState) -> String {
    format!("desired {} {}", document.cluster, document.node)
}

fn damaged_name(name: &str) -> String {
    format!("{name}.damaged")
}
