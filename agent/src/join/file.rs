//! The membership as one file, replaced in one rename: certificate and key never belong to different
//! renewals. It carries its checksum: a flipped bit must not make it another node's.

use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::secret::Secret;
use edgeloom_disk::{Unsealed, seal, unseal};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Two authorities, one certificate and one key are a few kilobytes.
const FILE_MAX: u64 = 256 * 1024;

/// Why the membership does not read or write.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{} is damaged ({flaw}); join again: `edgeloom-agent join CONTROLLER TOKEN`, with a token made by `edgeloom token create --node NAME --replace`", path.display()
    )]
    Damaged { path: PathBuf, flaw: Flaw },
    #[error("{} holds no certificate and key that fit", path.display())]
    Unfit { path: PathBuf },
}

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    #[error("it was changed since it was written")]
    Checksum,
    #[error("{0}")]
    Syntax(serde_json::Error),
}

/// What makes this machine a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Membership {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Where the controller was when we joined; agent.toml may say another place.
    pub host: String,
    pub api_port: u16,
    pub mqtt_port: u16,
    /// PEM.
    pub(crate) certificate: String,
    /// PEM.
    pub(crate) key: Secret,
    /// PEM of every authority to trust.
    pub(crate) authorities: String,
    /// The last time that a controller told us, in seconds since 1970.
    pub(crate) good_s: u64,
}

impl Membership {
    pub(crate) fn path(state_dir: &Path) -> PathBuf {
        state_dir.join("identity.json")
    }

    /// The membership in a state directory; none if the machine has not joined.
    ///
    /// # Errors
    /// When there is a file that does not read.
    pub fn load(state_dir: &Path) -> Result<Option<Self>, MembershipError> {
        let path = Self::path(state_dir);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let read = match unseal(&bytes) {
            // A version before this one wrote no checksum.
            Unsealed::Sound(text) | Unsealed::Bare(text) => {
                serde_json::from_slice(text).map_err(Flaw::Syntax)
            }
            Unsealed::Damaged { .. } => Err(Flaw::Checksum),
        };
        read.map(Some).map_err(|flaw| MembershipError::Damaged { path, flaw })
    }

    pub(crate) fn save(&self, state_dir: &Path) -> Result<(), MembershipError> {
        let text = serde_json::to_vec_pretty(self).expect("a membership is texts and numbers");
        replace(&Self::path(state_dir), &seal(&text))
    }
}

/// The whole file; none if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, MembershipError> {
    edgeloom_disk::read(path, FILE_MAX)
        .map_err(|source| MembershipError::Read { path: path.to_owned(), source })
}

/// Replaces a private file.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), MembershipError> {
    edgeloom_disk::replace(path, bytes)
        .map_err(|source| MembershipError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn membership() -> Membership {
        Membership {
            cluster: "home".parse().unwrap(),
            node: "n1".parse().unwrap(),
            host: "master".to_owned(),
            api_port: 7070,
            mqtt_port: 8883,
            certificate: "C".to_owned(),
            key: "the key itself".to_owned().into(),
            authorities: "A".to_owned(),
            good_s: 7,
        }
    }

    #[test]
    fn a_membership_is_private_whole_or_damaged_and_never_shows_its_key() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Membership::load(directory.path()).unwrap().is_none());
        membership().save(directory.path()).unwrap();
        let path = Membership::path(directory.path());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let loaded = Membership::load(directory.path()).unwrap().unwrap();
        assert_eq!(loaded.key.expose(), "the key itself");
        assert!(!format!("{loaded:?}").contains("the key itself"));
        let whole = std::fs::read(&path).unwrap();
        // Without its last line it is a file of the version before, and whole.
        let bare = whole.len() - "\ncrc32 01234567\n".len();
        for length in (0..whole.len()).filter(|length| *length != bare && *length != bare + 1) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let cut = Membership::load(directory.path());
            assert!(matches!(cut, Err(MembershipError::Damaged { .. })), "cut at {length}");
        }
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, flipped).unwrap();
            let flipped = Membership::load(directory.path());
            assert!(matches!(flipped, Err(MembershipError::Damaged { .. })), "bit {bit}");
        }
    }
}
