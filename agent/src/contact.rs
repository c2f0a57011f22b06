//! When the controller was heard of last, on disk: some containers must not run for long without it, whether
//! or not the agent was restarted meanwhile.
//!
//! Times count from the machine's boot, a clock that nobody sets. Whoever does not know takes it for too long:
//! after a reboot, or where the file does not read or fails its checksum, such containers wait for the controller.

use crate::store::StateError;
use edgeloom_disk::{Unsealed, seal, unseal};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const UPTIME: &str = "/proc/uptime";
/// The record is some eighty bytes.
const BYTES_MAX: u64 = 4096;

/// What an earlier run of the agent knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Past {
    /// There was none that kept it.
    Nothing,
    /// It had a session when it ended: the time without counts from the new start.
    Session,
    /// It had none for so long.
    Silence(Duration),
    /// The machine was off for nobody knows how long.
    Unknown,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    boot: String,
    /// Seconds from boot to the last word of the controller; none: there is a session.
    heard_s: Option<u64>,
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct ContactFile {
    path: PathBuf,
}

impl ContactFile {
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self { path: directory.join("contact.json") }
    }

    pub(crate) fn load(&self) -> Past {
        let bytes = match edgeloom_disk::read(&self.path, BYTES_MAX) {
            Ok(None) => return Past::Nothing,
            Err(_) => return Past::Unknown,
            Ok(Some(bytes)) => bytes,
        };
        let record = match unseal(&bytes) {
            // A version before this one wrote no checksum.
            Unsealed::Sound(text) | Unsealed::Bare(text) => serde_json::from_slice::<Record>(text).ok(),
            Unsealed::Damaged { .. } => None,
        };
        let record = record.filter(|record| boot() == Some(record.boot.clone()));
        match record.map(|record| record.heard_s) {
            None => Past::Unknown,
            Some(None) => Past::Session,
            Some(Some(heard)) => uptime()
                .and_then(|uptime| uptime.checked_sub(Duration::from_secs(heard)))
                .map_or(Past::Unknown, Past::Silence),
        }
    }

    /// Keeps that nothing was heard for so long; none: there is a session.
    pub(crate) fn save(&self, silence: Option<Duration>) -> Result<(), StateError> {
        let heard = silence.and_then(|silence| uptime()?.checked_sub(silence)).map(|heard| heard.as_secs());
        let record = Record { boot: boot().unwrap_or_default(), heard_s: heard };
        let bytes = serde_json::to_vec(&record).expect("text and a number");
        edgeloom_disk::replace(&self.path, &seal(&bytes)).map_err(|source| self.write_error(source))
    }

    pub(crate) fn remove(&self) -> Result<(), StateError> {
        edgeloom_disk::remove(&self.path).map_err(|source| self.write_error(source))
    }

    fn write_error(&self, source: std::io::Error) -> StateError {
        StateError::Write { path: self.path.clone(), source }
    }
}

fn boot() -> Option<String> {
    Some(std::fs::read_to_string(BOOT_ID).ok()?.trim().to_owned())
}

fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string(UPTIME).ok()?;
    Duration::try_from_secs_f64(text.split(' ').next()?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_without_the_controller_goes_on_while_no_agent_runs() {
        let directory = tempfile::tempdir().unwrap();
        let file = ContactFile::in_directory(directory.path());
        assert_eq!(file.load(), Past::Nothing);
        file.save(None).unwrap();
        assert_eq!(file.load(), Past::Session);
        let silence = Duration::from_secs(1);
        file.save(Some(silence)).unwrap();
        assert!(matches!(file.load(), Past::Silence(found) if silence <= found));
        file.remove().unwrap();
        assert_eq!(file.load(), Past::Nothing);
    }

    #[test]
    fn a_flipped_bit_or_a_cut_never_makes_the_silence_shorter() {
        let directory = tempfile::tempdir().unwrap();
        let file = ContactFile::in_directory(directory.path());
        file.save(Some(Duration::from_secs(1))).unwrap();
        let whole = std::fs::read(&file.path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file.path, flipped).unwrap();
            assert_eq!(file.load(), Past::Unknown, "bit {bit}");
        }
        for length in 0..whole.len() {
            std::fs::write(&file.path, &whole[..length]).unwrap();
            let bare = length + 1 >= whole.len() - "\ncrc32 01234567".len();
            let past = file.load();
            assert!(past == Past::Unknown || (bare && matches!(past, Past::Silence(_))), "cut at {length}");
        }
    }

    #[test]
    fn after_a_reboot_or_with_a_damaged_file_nobody_knows() {
        let directory = tempfile::tempdir().unwrap();
        let file = ContactFile::in_directory(directory.path());
        for text in [r#"{"boot":"another","heard_s":null}"#, "{", r#"{"boot":"#] {
            std::fs::write(&file.path, text).unwrap();
            assert_eq!(file.load(), Past::Unknown, "{text}");
        }
    }
}
