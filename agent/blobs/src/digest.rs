//! What a blob is known by.

use ring::digest::{Context, SHA256};
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

const PREFIX: &str = "sha256:";

/// A SHA-256, written `sha256:<64 hexadecimal digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The text is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no digest, it has to be sha256: and 64 hexadecimal digits in lower case")]
pub struct DigestError {
    text: String,
}

impl Digest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = Hash::new();
        hash.update(bytes);
        hash.end()
    }

    /// The digits alone: a file's name.
    pub(crate) fn hex(&self) -> String {
        hex(&self.0)
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let lower = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if text.len() != 64 || !text.as_bytes().iter().all(lower) {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digest = text.strip_prefix(PREFIX).and_then(Self::from_hex);
        digest.ok_or_else(|| DigestError { text: text.chars().take(100).collect() })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes all"));
    text
}

/// A digest in the making.
#[derive(Clone)]
pub(crate) struct Hash(Context);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}

impl Hash {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn end(self) -> Digest {
        Digest(self.0.finish().as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_and_nothing_else_is_one() {
        let of_nothing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), of_nothing);
        assert_eq!(of_nothing.parse::<Digest>().unwrap(), Digest::of(b""));
        let upper = of_nothing.to_uppercase();
        for text in ["", "sha256:", "sha256:00", "../../etc/passwd", &of_nothing[7..], upper.as_str()] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        assert!(format!("sha256:{}", "é".repeat(32)).parse::<Digest>().is_err());
    }
}
