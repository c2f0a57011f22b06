//! Authority, tokens, certificates and revocations, carried to another machine: whoever has them is the
//! cluster, and its nodes come back without joining again.
//!
//! In: the directory of a controller, which may run, or what was carried. Out: the same in a directory whose
//! controller does not run. What is there of another authority is kept aside, and only if that was asked for.

use crate::authority::Authority;
use crate::disk::{self, DiskError};
use crate::identity::{AUTHORITY, CONTEXT, DAEMON, Kept, OpenError, REGISTRY, Settings, authorities};
use crate::registry::Registry;
use edgeloom_common::ids::ClusterId;
use edgeloom_common::join::Context;
use edgeloom_disk::{Lock, LockError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything that makes a cluster this one. It holds private keys: for its owner alone.
#[derive(Serialize, Deserialize)]
pub struct Carried {
    authority: Kept,
    registry: Registry,
    /// The administrator's, if it is still where it was made.
    #[serde(default)]
    context: Option<Context>,
}

impl std::fmt::Debug for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carried").field("cluster", &self.authority.cluster).finish_non_exhaustive()
    }
}

/// Why nothing was carried.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("{} has no authority", .0.display())]
    Nothing(PathBuf),
    #[error("the authority is of cluster {found}, this controller's is {own}")]
    Cluster { found: ClusterId, own: ClusterId },
    #[error(
        "{} has another authority already; --replace puts the carried one in its place and keeps the old files aside; \
         nodes that joined here since have to join again",
        .0.display()
    )]
    Occupied(PathBuf),
}

/// What an import does with another authority that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Replace,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is in place.
    Carried,
    /// It was here before, with what it has given since, which counts.
    Present,
}

/// What is in a directory.
///
/// # Errors
/// When there is no whole authority in it.
pub fn export(directory: &Path) -> Result<Carried, CarryError> {
    let (authority, registry) = (directory.join(AUTHORITY), directory.join(REGISTRY));
    let Some(kept) = disk::load(&authority)? else {
        return Err(CarryError::Nothing(directory.to_owned()));
    };
    let Some(registry) = disk::load(&registry)? else {
        return Err(DiskError::Missing { path: registry }.into());
    };
    Ok(Carried { authority: kept, registry, context: context(directory) })
}

/// Puts what was carried into a directory whose controller does not run.
///
/// # Errors
/// When it is of another cluster, does not read, or the directory is not free.
pub fn import(settings: &Settings, carried: Carried, existing: Existing) -> Result<Arrival, CarryError> {
    let Carried { authority, registry, context } = carried;
    if authority.cluster != settings.cluster {
        return Err(CarryError::Cluster { found: authority.cluster, own: settings.cluster.clone() });
    }
    let opened = authorities(settings, authority.clone())?;
    let directory = &settings.directory;
    disk::private_directory(directory)?;
    let _lock = Lock::take(directory, DAEMON)?;
    let present = match export(directory) {
        Ok(present) => authorities(settings, present.authority).ok(),
        Err(_) => None,
    };
    if present.is_some_and(|present| same(&present, &opened)) {
        return Ok(Arrival::Present);
    }
    let occupied = [AUTHORITY, REGISTRY].iter().any(|name| directory.join(name).exists());
    if occupied && existing == Existing::Refuse {
        return Err(CarryError::Occupied(directory.clone()));
    }
    // Also what does not read: nothing is thrown away.
    keep_aside(directory)?;
    // In this order, as the first ones are made: neither is ever without the other.
    disk::save(&directory.join(REGISTRY), &registry)?;
    disk::save(&directory.join(AUTHORITY), &authority)?;
    if let Some(context) = context {
        let text = serde_json::to_vec_pretty(&context).expect("a context is texts");
        disk::replace(&directory.join(CONTEXT), &text)?;
    }
    Ok(Arrival::Carried)
}

fn context(directory: &Path) -> Option<Context> {
    serde_json::from_slice(&std::fs::read(directory.join(CONTEXT)).ok()?).ok()
}

/// One of them is among the others: later or earlier in the same cluster's life.
fn same(these: &[Authority], those: &[Authority]) -> bool {
    these.iter().any(|this| those.iter().any(|that| this.fingerprint == that.fingerprint))
}

/// Copies, so that a directory that is read meanwhile has both files.
fn keep_aside(directory: &Path) -> Result<(), DiskError> {
    for name in [REGISTRY, AUTHORITY, CONTEXT] {
        let path = directory.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => disk::replace(&directory.join(format!("{name}.before")), &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(DiskError::Read { path, source }),
        }
    }
    Ok(())
}
