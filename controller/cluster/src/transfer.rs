//! The state as one document that can be carried elsewhere: `export` and `import`.
//!
//! The document is a line of JSON and a line with its checksum. An export reads the journal as it is, also
//! of a controller that runs, and is the state after some record. An import raises the epoch: nodes take
//! what the imported state wants, whatever they were told since.

use crate::directory::{Directory, check_owner, folder, now_s};
use crate::error::StartError;
use crate::journal;
use crate::model::Model;
use crate::rebuild::rebuild;
use crate::salvage::Outcome;
use edgeloom_common::ids::ClusterId;
use edgeloom_disk::{Unsealed, seal, unseal};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const KIND: &str = "edgeloom-state";
/// Rises when an older import would misread the document.
const VERSION: u32 = 1;
/// A controller that runs may be in the middle of a write: the next look finds it done.
const LOOKS: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Why a state is not taken from one place to another.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{} holds no state", .0.display())]
    Nothing(PathBuf),
    #[error("the document has no checksum at its end: it is cut off, or no export")]
    Cut,
    #[error(
        "the document was changed or damaged: its checksum says {expected:08x}, its text gives {found:08x}"
    )]
    Damaged { expected: u32, found: u32 },
    #[error("the document is no export of a state: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("the document is of kind {0:?}, an export is of {KIND:?}")]
    Kind(String),
    #[error("the document is of version {found}, this controller reads up to {VERSION}; update it first")]
    Version { found: u32 },
    #[error("the document is of cluster {found}, this controller's is {own}")]
    Cluster { found: ClusterId, own: ClusterId },
    #[error(
        "{} holds a state already; --replace puts the document in its place and keeps the old files aside",
        .0.display()
    )]
    Occupied(PathBuf),
}

/// What is done with something of the same name, or in the same place, that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Replace,
}

/// Read first, since the rest may be of another version.
#[derive(Deserialize)]
struct Head {
    kind: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Document {
    kind: String,
    version: u32,
    cluster: ClusterId,
    /// The last record that the state includes.
    sequence: u64,
    state: Model,
    /// What the issuer of certificates gave along, if it was asked; not read here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authority: Option<serde_json::Value>,
}

/// The document of the state in a directory, with what else is to be carried; its controller may run.
///
/// # Errors
/// When there is no state or acknowledged changes of it are lost.
pub fn export(
    path: &Path,
    cluster: &ClusterId,
    authority: Option<serde_json::Value>,
) -> Result<Vec<u8>, TransferError> {
    if !path.is_dir() {
        return Err(TransferError::Nothing(path.to_owned()));
    }
    let disk = folder(path)?;
    let mut looks = 0;
    let (sequence, state) = loop {
        looks += 1;
        let found = journal::read(&disk);
        match rebuild(&found, None) {
            Ok(rebuilt) => break (found.last(), rebuilt.model),
            Err(StartError::Lost(_)) if looks < LOOKS => thread::sleep(LOOK_PAUSE),
            Err(error) => return Err(error.into()),
        }
    };
    if sequence == 0 {
        return Err(TransferError::Nothing(path.to_owned()));
    }
    let (kind, cluster) = (KIND.to_owned(), cluster.clone());
    let document = Document { kind, version: VERSION, cluster, sequence, state, authority };
    Ok(seal(&serde_json::to_vec(&document)?))
}

/// Puts an exported state into a directory whose controller does not run.
///
/// # Errors
/// When the document cannot be believed or is not for this cluster, or the directory is not free.
pub fn import(
    path: &Path,
    cluster: &ClusterId,
    document: &[u8],
    existing: Existing,
) -> Result<Outcome, TransferError> {
    let mut model = read(document, cluster)?.state;
    check_owner(path)?;
    let directory = Directory::open(path)?;
    if existing == Existing::Refuse && !directory.is_empty() {
        return Err(TransferError::Occupied(path.to_owned()));
    }
    if let Ok(rebuilt) = rebuild(&directory.found, directory.stored.clone()) {
        model.epoch = model.epoch.max(rebuilt.model.epoch);
    }
    model.raise_epoch(now_s());
    model.usage.interrupt();
    model.overrules = true;
    directory.begin_anew(&model)?;
    Ok(Outcome::whole(&model))
}

/// What an export carries for the issuer of certificates.
///
/// # Errors
/// When the document cannot be believed or is not for this cluster.
pub fn authority(document: &[u8], own: &ClusterId) -> Result<Option<serde_json::Value>, TransferError> {
    Ok(read(document, own)?.authority)
}

fn read(document: &[u8], own: &ClusterId) -> Result<Document, TransferError> {
    let text = match unseal(document) {
        Unsealed::Sound(text) => text,
        Unsealed::Bare(_) => return Err(TransferError::Cut),
        Unsealed::Damaged { expected, found } => return Err(TransferError::Damaged { expected, found }),
    };
    let head: Head = serde_json::from_slice(text)?;
    if head.kind != KIND {
        return Err(TransferError::Kind(head.kind.chars().take(40).collect()));
    }
    if head.version > VERSION {
        return Err(TransferError::Version { found: head.version });
    }
    let document: Document = serde_json::from_slice(text)?;
    if document.cluster != *own {
        return Err(TransferError::Cluster { found: document.cluster, own: own.clone() });
    }
    Ok(document)
}
