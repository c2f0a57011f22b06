//! Why the cluster refuses.

use crate::journal::{JournalError, Loss};
use crate::store::StoreError;
use crate::vault::{NoRoom, Unusable};
use edgeloom_common::ids::{JobName, NodeId, SecretName};
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::view::ProblemItem;
use edgeloom_common::volume::HeldVolume;
use edgeloom_disk::LockError;
use edgeloom_registry::{ClientError, RegistryError};
use std::path::PathBuf;

/// Why the cluster does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory cannot be made.
    #[error("state directory {path}: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
    /// The files that a repair or an import writes have to be the daemon's.
    #[error(
        "{path} belongs to user {owner}; run this as that user: sudo -u '#{owner}' edgeloom-controller …"
    )]
    Owner { path: PathBuf, owner: u32 },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Acknowledged changes are gone: nobody but the operator may go on without them.
    #[error(
        "{0}. Nothing was changed. `edgeloom-controller repair --dry-run` tells what is left; without --dry-run it \
         goes on with that and keeps the files as they are aside; `edgeloom-controller import` goes back to an export"
    )]
    Lost(Box<Loss>),
    /// The journal holds a sound record that says nothing this version knows.
    #[error("journal record {sequence} does not read: {source}; use the version that wrote it")]
    Record { sequence: u64, source: serde_json::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Secrets(#[from] Unusable),
    /// The configured default profile does not exist.
    #[error("there is no profile {profile:?}; use one of: {known}")]
    Profile { profile: String, known: String },
    /// The owner's thread or runtime cannot be made.
    #[error("the cluster's thread does not start: {0}")]
    Thread(std::io::Error),
}

/// Why a job is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("job {0} exists; stop it first or choose another name")]
    Exists(JobName),
    #[error("there is no profile {profile:?}; use one of: {known}")]
    ProfileUnknown { profile: String, known: String },
    #[error("there is no node {0} for the source; `edgeloom nodes` lists those there are")]
    SourceUnknown(NodeId),
    #[error("an image cannot be had")]
    ImageUnknown(Vec<ProblemItem>),
    #[error("the job needs secrets that are not there")]
    SecretUnknown(Vec<ProblemItem>),
    #[error("{0}")]
    RegistryUnreachable(RegistryError),
    #[error("the job fits nowhere")]
    Unplaceable(Vec<ProblemItem>),
    /// After a repair.
    #[error("nodes are asked what they run, since the controller's state was lost; try again in a minute")]
    Gathering,
    /// The state cannot be written, or the cluster has ended.
    #[error("the cluster's state cannot be changed; the controller's log says why")]
    Unavailable,
}

/// Why secrets and logins stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error(
        "there is a secret {0}; --replace gives it another value, which containers find when they are made anew"
    )]
    Exists(SecretName),
    #[error("there is no secret {0}; `edgeloom secret list` lists those there are")]
    Unknown(SecretName),
    #[error("secret {name} is used by {}; stop that first", list(jobs))]
    Used { name: SecretName, jobs: Vec<JobName> },
    #[error("there is no login at {0}; `edgeloom registry list` lists those there are")]
    NoLogin(RegistryHost),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// What the registry says of a login that is not kept.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The state cannot be written, or the cluster has ended.
    #[error("the change cannot be kept; the controller's log says why")]
    Unavailable,
}

/// Why images to hold ready stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefetchError {
    #[error("there is no node {0}; `edgeloom nodes` lists those there are")]
    UnknownNode(NodeId),
    #[error("no node is named; name some, or all")]
    NoNode,
    #[error("{image} is not held ready; `edgeloom prefetch` lists what is")]
    NotHeld { image: String },
    #[error("{max} images are held ready already; release one first")]
    TooMany { max: usize },
    #[error("{0}{advice}", advice = advice(.0))]
    Image(#[from] RegistryError),
    /// The state cannot be written, or the cluster has ended.
    #[error("the change cannot be kept; the controller's log says why")]
    Unavailable,
}

/// Why a volume stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    #[error("node {node} has no volume {volume}; `edgeloom volume list` lists those there are")]
    Unknown { node: NodeId, volume: HeldVolume },
    #[error("volume {0} is of a job that is there; stop it first")]
    Used(HeldVolume),
    #[error("node {0} is offline; its volumes can be removed when it is back")]
    Offline(NodeId),
    /// The cluster has ended.
    #[error("the cluster's state is not available")]
    Unavailable,
}

/// What the reason does not say itself.
fn advice(error: &RegistryError) -> String {
    match error {
        RegistryError::Name { .. } | RegistryError::Unknown { .. } => String::new(),
        other => format!("; {}", other.remedy()),
    }
}

fn list(jobs: &[JobName]) -> String {
    let names: Vec<&str> = jobs.iter().map(JobName::as_str).collect();
    format!("{} {}", if names.len() == 1 { "job" } else { "jobs" }, names.join(", "))
}

/// Why a node is not forgotten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForgetError {
    #[error("there is no node {0}")]
    Unknown(NodeId),
    #[error("node {0} is online; switch it off or purge its agent first")]
    Online(NodeId),
    #[error("job {job} is placed on node {node}; stop it first")]
    Used { node: NodeId, job: JobName },
    /// The state cannot be written, or the cluster has ended.
    #[error("that node {0} is gone cannot be kept; the controller's log says why")]
    Unavailable(NodeId),
}

/// Why a job is not stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    #[error("there is no job {0}")]
    Unknown(JobName),
    /// The state cannot be written, or the cluster has ended.
    #[error("the stop of job {0} cannot be kept; the controller's log says why")]
    Unavailable(JobName),
}

/// Why a node is not cordoned, drained or opened.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    #[error("there is no node {0}")]
    Unknown(NodeId),
    #[error("no node but {0} takes tasks; add another, or open one with `edgeloom uncordon`")]
    Last(NodeId),
    #[error("the cluster's state is not available, node {0} stays as it was")]
    Unavailable(NodeId),
}
