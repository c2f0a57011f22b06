//! What an operator does to the state while the controller is down: `repair`, `export`, `import`.

use crate::config::Config;
use edgeloom_cluster::{Existing, Extent, Outcome, StartError, TransferError};
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

/// Writes the state to a file, for its owner alone, or to standard output for `-`.
///
/// # Errors
/// When there is no whole state, or the file cannot be written.
pub fn export(config: &Config, file: &Path) -> Result<(), UpkeepError> {
    let document = edgeloom_cluster::export(&config.state_dir, &config.cluster)?;
    let write = |source| UpkeepError::Write { path: file.to_owned(), source };
    if file == Path::new("-") {
        return std::io::stdout().write_all(&document).map_err(write);
    }
    edgeloom_disk::replace(file, &document).map_err(write)
}

/// Puts an exported state in place.
///
/// # Errors
/// When the document is refused, or the state directory holds a state already.
pub fn import(config: &Config, file: &Path, existing: Existing) -> Result<Outcome, UpkeepError> {
    let read = |source| UpkeepError::Read { path: file.to_owned(), source };
    let mut document = Vec::new();
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(file).map_err(read)?),
    };
    input.take(DOCUMENT_MAX_BYTES).read_to_end(&mut document).map_err(read)?;
    Ok(edgeloom_cluster::import(&config.state_dir, &config.cluster, &document, existing)?)
}
