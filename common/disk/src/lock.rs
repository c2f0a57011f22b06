//! One daemon a state directory: two would undo each other's work.

use crate::file::hand_over;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a killed daemon may take to let go: its threads end one after the other, and the last one
/// closes the file.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// A process id with room for white space.
const HOLDER_MAX_BYTES: u64 = 32;

/// Why the directory is not ours to use.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another {daemon} ({holder}) uses {}; stop it first (systemctl stop {daemon})",
        directory.display()
    )]
    Held { daemon: &'static str, holder: Holder, directory: PathBuf },
    #[error("cannot lock {}: {source}", directory.display())]
    Io { directory: PathBuf, source: std::io::Error },
}

/// Who holds a lock, as far as the file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(process) => write!(f, "process {process}"),
            None => f.write_str("of unknown process"),
        }
    }
}

/// Held as long as it lives; the kernel releases it with the file, however the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory, which is made when it is missing, for the daemon of this name.
    ///
    /// # Errors
    /// When another process holds it, or the file cannot be made.
    pub fn take(directory: &Path, daemon: &'static str) -> Result<Self, LockError> {
        let io = |source| LockError::Io { directory: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(io)?;
        let path = directory.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            // What is in it names the one who holds it.
            .truncate(false)
            .open(&path)
            .map_err(io)?;
        hand_over(&path).map_err(io)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    return Err(LockError::Held { daemon, holder, directory: directory.to_owned() });
                }
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
        }
        sign(&mut file).map_err(io)?;
        Ok(Self { _file: file })
    }

    /// Whether a daemon runs on the directory. Nothing is made, and nobody is kept waiting but for a moment.
    pub fn is_held(directory: &Path) -> bool {
        let file = File::open(directory.join("lock"));
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

/// For people only, so nothing is synced.
fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file.take(HOLDER_MAX_BYTES).read_to_string(&mut text);
    Holder(read.ok().and_then(|_| text.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_refused_by_name_until_the_first_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!Lock::is_held(directory.path()));
        let first = Lock::take(directory.path(), "edgeloom-agent").unwrap();
        assert!(Lock::is_held(directory.path()));
        let refused = Lock::take(directory.path(), "edgeloom-agent").unwrap_err().to_string();
        assert!(refused.contains(&format!("(process {})", std::process::id())), "{refused}");
        assert!(refused.contains("systemctl stop edgeloom-agent"), "{refused}");
        drop(first);
        assert!(!Lock::is_held(directory.path()));
        assert!(Lock::take(directory.path(), "edgeloom-agent").is_ok());
    }
}
