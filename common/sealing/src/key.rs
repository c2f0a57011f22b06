//! The key and its file: 64 hexadecimal digits in a line, mode 0600.

use ring::aead::{CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Of the key's random text.
const KEY_BYTES: usize = 32;
/// A line of 64 digits and whatever editors add.
const FILE_MAX: u64 = 128;
/// Everybody else's bits. The group's are let pass: systemd gives credentials to a service by an access list,
/// whose mask shows there.
const OTHERS: u32 = 0o007;

/// Which key: tells a wrong one from damaged bytes. It is derived, and gives nothing of the key away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId(pub(crate) [u8; KeyId::BYTES]);

impl KeyId {
    pub(crate) const BYTES: usize = 8;
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("every user reads {}; `chmod 600` it", path.display())]
    Public { path: PathBuf },
    #[error("{} holds no key: it is one line of 64 hexadecimal digits, as `openssl rand -hex 32` prints", path.display())]
    Form { path: PathBuf },
    #[error("the system gives no random bytes")]
    Random,
}

/// What seals and opens.
#[derive(Clone)]
pub struct Key {
    pub(crate) id: KeyId,
    pub(crate) aead: LessSafeKey,
    /// Makes nonces of what is sealed.
    pub(crate) nonces: hmac::Key,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Key {
    /// The key of a file; none if there is none.
    ///
    /// # Errors
    /// When the file is there and cannot serve.
    pub fn open(path: &Path) -> Result<Option<Self>, KeyError> {
        let read = |source| KeyError::Read { path: path.to_owned(), source };
        let Some(text) = edgeloom_disk::read(path, FILE_MAX).map_err(read)?.map(Zeroizing::new) else {
            return Ok(None);
        };
        let mode = std::fs::metadata(path).map_err(read)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(KeyError::Public { path: path.to_owned() });
        }
        let material = parse(&text).ok_or_else(|| KeyError::Form { path: path.to_owned() })?;
        Ok(Some(Self::derive(&material)))
    }

    /// A new key, which is on the medium before it is used.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let mut material = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new().fill(material.as_mut()).map_err(|_| KeyError::Random)?;
        // Room for all of it: a buffer that grows leaves copies behind.
        let mut text = Zeroizing::new(Vec::with_capacity(2 * KEY_BYTES + 1));
        for byte in material.iter() {
            text.extend([byte >> 4, byte & 0xf].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        text.push(b'\n');
        let written = edgeloom_disk::replace(path, &text);
        written.map_err(|source| KeyError::Write { path: path.to_owned(), source })?;
        Ok(Self::derive(&material))
    }

    /// The key of a file, which is made if there is none.
    ///
    /// # Errors
    /// When the file cannot serve or be written.
    pub fn open_or_create(path: &Path) -> Result<Self, KeyError> {
        Self::open(path)?.map_or_else(|| Self::create(path), Ok)
    }

    /// Which key this is.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// A key that comes from another one, which nobody but its owner knows.
    #[must_use]
    pub fn derive(material: &[u8; KEY_BYTES]) -> Self {
        let root = Salt::new(HKDF_SHA256, b"edgeloom sealing").extract(material);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        expand(&root, b"key", key.as_mut());
        let mut nonces = Zeroizing::new([0; KEY_BYTES]);
        expand(&root, b"nonces", nonces.as_mut());
        let mut id = [0; KeyId::BYTES];
        expand(&root, b"id", &mut id);
        let aead = UnboundKey::new(&CHACHA20_POLY1305, key.as_ref()).expect("a key of ChaCha20 has 32 bytes");
        let nonces = hmac::Key::new(hmac::HMAC_SHA256, nonces.as_ref());
        Self { id: KeyId(id), aead: LessSafeKey::new(aead), nonces }
    }
}

/// RFC 5869.
fn expand(root: &Prk, purpose: &[u8], out: &mut [u8]) {
    struct Length(usize);
    impl ring::hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let expanded = root.expand(&[purpose], Length(out.len())).and_then(|okm| okm.fill(out));
    expanded.expect("SHA-256 expands to 255 times 32 bytes");
}

fn parse(text: &[u8]) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let digits = text.trim_ascii();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut material = Zeroizing::new([0; KEY_BYTES]);
    for (byte, pair) in material.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(material)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.key");
        assert!(Key::open(&path).unwrap().is_none());
        let made = Key::open_or_create(&path).unwrap();
        assert_eq!(Key::open_or_create(&path).unwrap().id(), made.id());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let other = Key::create(&folder.path().join("other.key")).unwrap();
        assert_ne!(other.id(), made.id());
    }

    #[test]
    fn what_is_no_private_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.key");
        let sound = "0123456789abcdefABCDEF0123456789".repeat(2);
        for bad in ["", "00", &sound[1..], &sound.replace('a', "g"), &format!("{sound}0"), &"ä".repeat(32)] {
            edgeloom_disk::replace(&path, bad.as_bytes()).unwrap();
            assert!(matches!(Key::open(&path), Err(KeyError::Form { .. })), "{bad:?}");
        }
        edgeloom_disk::replace(&path, format!("  {sound}\r\n").as_bytes()).unwrap();
        assert!(Key::open(&path).unwrap().is_some());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
        assert!(matches!(Key::open(&path), Err(KeyError::Public { .. })));
    }
}
