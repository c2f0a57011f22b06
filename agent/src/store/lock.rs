//! One agent a state directory: two would undo each other's work.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a killed agent may take to let go: its threads end one after the other, and the last one
/// closes the file.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Why the directory is not ours to use.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another agent runs on {}; stop it first (systemctl stop edgeloom-agent)", directory.display())]
    Held { directory: PathBuf },
    #[error("cannot lock {}: {source}", directory.display())]
    Io { directory: PathBuf, source: std::io::Error },
}

/// Held as long as it lives; the kernel releases it with the file, however the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory, which is made when it is missing.
    pub(crate) fn take(directory: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { directory: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(io)?;
        let file = File::create(directory.join("lock")).map_err(io)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held { directory: directory.to_owned() });
                }
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_agent_is_refused_until_the_first_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path()).unwrap();
        assert!(matches!(Lock::take(directory.path()), Err(LockError::Held { .. })));
        drop(first);
        assert!(Lock::take(directory.path()).is_ok());
    }
}
