//! The state directory as it is found, and its repair.
//!
//! ```text
//! journal, journal.copy       the same records twice: the truth
//! journal*.damaged-N          what a damaged or replaced file held; never deleted
//! store/                      sled: the state as of some record; may be deleted at any time
//! usage/                      closed records of what containers used, the newest of 90 days
//! lock                        held by the one controller that runs here
//! ```

use crate::error::StartError;
use crate::journal::{self, Found, Journal};
use crate::model::{Event, Model};
use crate::rebuild::{Rebuilt, rebuild};
use crate::salvage::{Outcome, Salvage, salvage};
use crate::state::State;
use crate::store::Store;
use edgeloom_disk::{Folder, Lock};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The daemon that a lock is for, as its service is called.
const DAEMON: &str = "edgeloom-controller";

/// What is there; nothing is changed yet but a store that does not open.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) lock: Lock,
    pub(crate) disk: Folder,
    pub(crate) found: Found,
    pub(crate) store: Store,
    /// The store's copy of the state, and which record it stands for.
    pub(crate) stored: Option<(u64, Model)>,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self, StartError> {
        let disk = folder(path)?;
        let lock = Lock::take(path, DAEMON)?;
        let found = journal::read(&disk);
        let store = Store::open(&path.join("store"))?;
        let stored = store.load();
        Ok(Self { lock, disk, found, store, stored })
    }

    /// Nothing was ever kept here.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.stored.is_none()
    }

    /// Above every sequence that was ever given.
    pub(crate) fn beyond(&self) -> u64 {
        let stored = self.stored.as_ref().map_or(0, |(sequence, _)| *sequence);
        self.found.beyond().max(stored + 1)
    }

    /// Puts a state in the place of everything, which is kept aside.
    pub(crate) fn begin_anew(self, model: &Model) -> Result<(), StartError> {
        let sequence = self.beyond();
        Journal::begin_anew(Box::new(self.disk), &self.found, sequence, &snapshot(model))?;
        Ok(())
    }
}

pub(crate) fn folder(path: &Path) -> Result<Folder, StartError> {
    Folder::open(path).map_err(|source| StartError::Directory { path: path.to_owned(), source })
}

/// The whole state as one record.
pub(crate) fn snapshot(model: &Model) -> Vec<u8> {
    let event = Event::Snapshot(Box::new(model.clone()));
    serde_json::to_vec(&event).expect("an event is plain data with text keys")
}

/// What another user's process writes the controller cannot read: it would stop at the next start.
pub(crate) fn check_owner(path: &Path) -> Result<(), StartError> {
    let (Ok(ours), Ok(theirs)) = (std::fs::metadata("/proc/self"), std::fs::metadata(path)) else {
        // What is not there yet is made by us; the rest is told when it is opened.
        return Ok(());
    };
    if ours.uid() == theirs.uid() {
        return Ok(());
    }
    Err(StartError::Owner { path: path.to_owned(), owner: theirs.uid() })
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Goes on without secrets and logins, whose key is lost; how many there were.
///
/// # Errors
/// When the state does not open or cannot be written.
pub fn forget_secrets(path: &Path) -> Result<usize, StartError> {
    check_owner(path)?;
    let mut state = State::open(path)?;
    let count = state.model.vault.count();
    state.commit(Event::SecretsForgotten)?;
    Ok(count)
}

/// How far a repair goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Only tells what it would come to.
    Look,
    /// Damaged files are kept aside and what is left takes their place.
    Replace,
    /// Also where nothing is lost here: nodes that hold newer documents follow what is left.
    Overrule,
    /// Also where nothing is lost here: what nodes hold in newer documents comes back.
    Regain,
}

/// Goes on with what is left of a state of which acknowledged changes are lost.
///
/// # Errors
/// When the directory cannot be used, or a record was written by a newer version.
pub fn repair(path: &Path, extent: Extent) -> Result<Outcome, StartError> {
    check_owner(path)?;
    let directory = Directory::open(path)?;
    let empty = directory.is_empty();
    let loss = match rebuild(&directory.found, directory.stored.clone()) {
        // Where nothing is, everything is lost.
        Ok(Rebuilt { mut model, .. }) if extent == Extent::Regain || (empty && extent == Extent::Replace) => {
            model.begin_regain(BTreeSet::new(), BTreeSet::new());
            directory.begin_anew(&model)?;
            return Ok(Outcome::from_nodes(&model));
        }
        Ok(Rebuilt { mut model, .. }) if extent == Extent::Overrule => {
            model.raise_epoch(now_s());
            model.overrules = true;
            directory.begin_anew(&model)?;
            return Ok(Outcome::whole(&model));
        }
        // What one copy lacks the next start takes from the other.
        Ok(rebuilt) => return Ok(Outcome::whole(&rebuilt.model)),
        Err(StartError::Lost(loss)) => *loss,
        Err(error) => return Err(error),
    };
    let Salvage { model, outcome } = salvage(&directory.found, directory.stored.clone(), loss)?;
    if extent != Extent::Look {
        directory.begin_anew(&model)?;
    }
    Ok(outcome)
}
