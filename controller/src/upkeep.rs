//! What an operator does to the state while the controller is down: `repair`, `export`, `import`.

use crate::app::identity_settings;
use crate::config::Config;
use edgeloom_cluster::{Existing, Extent, Outcome, StartError, TransferError};
use edgeloom_identity::{Arrival, Carried, CarryError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A state of a cluster at home is a few megabytes; more than this is another file.
const DOCUMENT_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error(transparent)]
    Carry(#[from] CarryError),
    #[error("the authority in the document does not read: {0}")]
    Authority(serde_json::Error),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// Goes on with what is left of a damaged state.
///
/// # Errors
/// When the state directory cannot be used.
pub fn repair(config: &Config, extent: Extent) -> Result<Outcome, UpkeepError> {
    Ok(edgeloom_cluster::repair(&config.state_dir, extent)?)
}

/// What an export carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    State,
    /// Also the authority with its private key, tokens, certificates and revocations.
    StateAndAuthority,
}

/// What an import came to.
#[derive(Debug)]
pub struct Imported {
    outcome: Outcome,
    /// None: the document carried no authority.
    authority: Option<Arrival>,
}

impl std::fmt::Display for Imported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let authority = match self.authority {
            Some(Arrival::Carried) => "the authority came with it: nodes reconnect as they are",
            Some(Arrival::Present) => {
                "the authority was here already, and stays with what it has given since"
            }
            None => {
                "the document carries no authority: nodes know this controller only if the authority is here already"
            }
        };
        write!(f, "{}\n{authority}", self.outcome)
    }
}

/// Goes on without secrets and logins, whose key is lost; how many there were.
///
/// # Errors
/// When the state does not open.
pub fn forget_secrets(config: &Config) -> Result<usize, UpkeepError> {
    Ok(edgeloom_cluster::forget_secrets(&config.state_dir)?)
}

/// Writes the state to a file, for its owner alone, or to standard output for `-`.
///
/// # Errors
/// When there is no whole state, or the file cannot be written.
pub fn export(config: &Config, content: Content, file: &Path) -> Result<(), UpkeepError> {
    let authority = match content {
        Content::State => None,
        Content::StateAndAuthority => {
            let carried = edgeloom_identity::export(&identity_settings(config).directory)?;
            Some(serde_json::to_value(carried).map_err(UpkeepError::Authority)?)
        }
    };
    let document = edgeloom_cluster::export(&config.state_dir, &config.cluster, authority)?;
    let write = |source| UpkeepError::Write { path: file.to_owned(), source };
    if file == Path::new("-") {
        return std::io::stdout().write_all(&document).map_err(write);
    }
    edgeloom_disk::replace(file, &document).map_err(write)
}

/// Puts an exported state in place, and the authority that it carries before it: the other way round nodes
/// would be refused by a controller that wants them.
///
/// # Errors
/// When the document is refused, or the state directory holds a state already.
pub fn import(config: &Config, file: &Path, existing: Existing) -> Result<Imported, UpkeepError> {
    let read = |source| UpkeepError::Read { path: file.to_owned(), source };
    let mut document = Vec::new();
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(file).map_err(read)?),
    };
    input.take(DOCUMENT_MAX_BYTES).read_to_end(&mut document).map_err(read)?;
    let carried = edgeloom_cluster::authority(&document, &config.cluster)?;
    let authority = carried.map(|carried| bring_authority(config, carried, existing)).transpose()?;
    let outcome = edgeloom_cluster::import(&config.state_dir, &config.cluster, &document, existing)?;
    Ok(Imported { outcome, authority })
}

fn bring_authority(
    config: &Config,
    carried: serde_json::Value,
    existing: Existing,
) -> Result<Arrival, UpkeepError> {
    let carried: Carried = serde_json::from_value(carried).map_err(UpkeepError::Authority)?;
    let existing = match existing {
        Existing::Refuse => edgeloom_identity::Existing::Refuse,
        Existing::Replace => edgeloom_identity::Existing::Replace,
    };
    Ok(edgeloom_identity::import(&identity_settings(config), carried, existing)?)
}
