//! A sealed text: base64 of `version 1 | key id 8 | nonce 12 | ciphertext | tag 16`.

use crate::key::{Key, KeyId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, NONCE_LEN, Nonce};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

const VERSION: u8 = 1;
const HEAD: usize = 1 + KeyId::BYTES + NONCE_LEN;

/// Encrypted bytes. Not trusted until it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

impl From<String> for Sealed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Sealed> for String {
    fn from(sealed: Sealed) -> Self {
        sealed.0
    }
}

/// Why a sealed text does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    #[error("it was sealed with key {found}, this is key {own}")]
    OtherKey { found: KeyId, own: KeyId },
    #[error("it is of version {found}, this program reads {VERSION}; update it")]
    Version { found: u8 },
    #[error("it was changed since it was written, or was made for something else")]
    Damaged,
}

impl Key {
    /// Seals bytes for one use, which has to be named again to open them: nothing sealed can be put in
    /// another's place.
    #[must_use]
    pub fn seal(&self, purpose: &str, bytes: &[u8]) -> Sealed {
        let mut nonce = [0; NONCE_LEN];
        // 96 random bits: a pair of equal ones is not to be expected below 2^32 sealed texts.
        SystemRandom::new().fill(&mut nonce).expect("the kernel gives random bytes once it is up");
        self.seal_with(nonce, purpose, bytes)
    }

    /// The same, but equal bytes for one use give equal texts, for where every difference has a cost: the nonce is
    /// a keyed hash of what is sealed, as in synthetic initialisation vectors (RFC 5297).
    #[must_use]
    pub fn seal_alike(&self, purpose: &str, bytes: &[u8]) -> Sealed {
        let mut hash = hmac::Context::with_key(&self.nonces);
        // A length before the name keeps it apart from what follows.
        [&(purpose.len() as u64).to_le_bytes()[..], purpose.as_bytes(), bytes]
            .into_iter()
            .for_each(|part| hash.update(part));
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&hash.sign().as_ref()[..NONCE_LEN]);
        self.seal_with(nonce, purpose, bytes)
    }

    fn seal_with(&self, nonce: [u8; NONCE_LEN], purpose: &str, bytes: &[u8]) -> Sealed {
        let mut packed = Vec::with_capacity(HEAD + bytes.len() + self.aead.algorithm().tag_len());
        packed.push(VERSION);
        packed.extend(self.id.0);
        packed.extend(nonce);
        packed.extend(bytes);
        let tag = self.aead.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(purpose.as_bytes()),
            &mut packed[HEAD..],
        );
        packed.extend(tag.expect("what is sealed here is far from ChaCha20's limit of 256 GiB").as_ref());
        Sealed(STANDARD.encode(&packed))
    }

    /// The bytes, if this key has sealed them for this use.
    ///
    /// # Errors
    /// When they are another key's, or not what was sealed.
    pub fn unseal(&self, purpose: &str, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let mut packed = Zeroizing::new(STANDARD.decode(&sealed.0).map_err(|_| UnsealError::Damaged)?);
        let (version, rest) = packed.split_first().ok_or(UnsealError::Damaged)?;
        if *version != VERSION {
            return Err(UnsealError::Version { found: *version });
        }
        let (id, rest) = rest.split_first_chunk().ok_or(UnsealError::Damaged)?;
        let (nonce, _) = rest.split_first_chunk().ok_or(UnsealError::Damaged)?;
        let (found, nonce) = (KeyId(*id), Nonce::assume_unique_for_key(*nonce));
        if found != self.id {
            return Err(UnsealError::OtherKey { found, own: self.id });
        }
        let opened = self.aead.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut packed[HEAD..]);
        let length = opened.map_err(|_| UnsealError::Damaged)?.len();
        packed.drain(..HEAD);
        packed.truncate(length);
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(folder: &tempfile::TempDir, name: &str) -> Key {
        Key::create(&folder.path().join(name)).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_for_its_use() {
        let folder = tempfile::tempdir().unwrap();
        let key = key(&folder, "a");
        for bytes in [&b""[..], b"hunter2", &[0; 70_000]] {
            let sealed = key.seal("secret a", bytes);
            assert_eq!(*key.unseal("secret a", &sealed).unwrap(), bytes);
            assert_eq!(key.unseal("secret b", &sealed), Err(UnsealError::Damaged));
            assert_ne!(key.seal("secret a", bytes), sealed, "equal values do not show");
        }
        let Sealed(text) = key.seal("x", b"hunter2");
        assert!(!text.contains(&STANDARD.encode("hunter2")));
    }

    #[test]
    fn equal_bytes_are_sealed_alike_for_one_use_where_that_is_asked_for() {
        let (key, other) = (Key::derive(&[1; 32]), Key::derive(&[2; 32]));
        let sealed = key.seal_alike("job a", b"plan");
        assert_eq!(key.seal_alike("job a", b"plan"), sealed);
        for different in [
            key.seal_alike("job b", b"plan"),
            key.seal_alike("job a", b"plans"),
            other.seal_alike("job a", b"plan"),
        ] {
            assert_ne!(different, sealed);
        }
        assert_eq!(*Key::derive(&[1; 32]).unseal("job a", &sealed).unwrap(), b"plan");
        assert!(key.unseal("job b", &sealed).is_err() && other.unseal("job a", &sealed).is_err());
    }

    #[test]
    fn a_wrong_key_is_told_from_a_flipped_bit() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (key(&folder, "a"), key(&folder, "b"));
        let sealed = own.seal("x", b"hunter2");
        let told = UnsealError::OtherKey { found: own.id(), own: other.id() };
        assert_eq!(other.unseal("x", &sealed), Err(told));
        let packed = STANDARD.decode(&sealed.0).unwrap();
        for bit in 0..packed.len() * 8 {
            let mut flipped = packed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(own.unseal("x", &Sealed(STANDARD.encode(flipped))).is_err(), "bit {bit}");
        }
        for length in 0..packed.len() {
            assert!(own.unseal("x", &Sealed(STANDARD.encode(&packed[..length]))).is_err(), "{length}");
        }
        assert_eq!(own.unseal("x", &Sealed("no base64!".to_owned())), Err(UnsealError::Damaged));
    }
}
