//! What images, layers and configurations are known by: the SHA-256 of their bytes.
//!
//! In: the text that registries, engines and documents write. Out: its 32 bytes, a third of the text, of which a
//! catalogue holds tens of thousands. Invariant: one digest has one text (OCI image specification, "Digests"), so
//! equal texts and equal digests are the same thing. Who has the bytes themselves hashes them with the feature
//! `sha256`; everybody else needs no cryptography to name an image.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::str::FromStr;

#[cfg(feature = "sha256")]
mod hash;
#[cfg(feature = "sha256")]
pub use hash::{Hash, chain_id};

const PREFIX: &str = "sha256:";
const BYTES: usize = 32;
/// Characters of a refused text that are repeated to its author.
const EXCERPT_CHARS: usize = 80;

/// A SHA-256, written `sha256:<64 hexadecimal digits>`, the one algorithm that every registry and engine has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; BYTES]);

/// Why a text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no digest, it has to be sha256: and 64 hexadecimal digits in lower case")]
pub struct DigestError {
    text: String,
}

impl Digest {
    /// The digits alone, as files and tags are named.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// From the digits alone.
    #[must_use]
    pub fn from_hex(digits: &str) -> Option<Self> {
        let digits = digits.as_bytes();
        if digits.len() != 2 * BYTES {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

/// Lower case only.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes all that is written"));
    text
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digest = text.strip_prefix(PREFIX).and_then(Self::from_hex);
        digest.ok_or_else(|| DigestError { text: text.chars().take(EXCERPT_CHARS).collect() })
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_NOTHING: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_has_one_text() {
        let digest: Digest = OF_NOTHING.parse().unwrap();
        assert_eq!(digest.to_string(), OF_NOTHING);
        assert_eq!(digest.hex(), OF_NOTHING[PREFIX.len()..]);
        assert_eq!(Digest::from_hex(&digest.hex()), Some(digest));
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(
            (json.as_str(), serde_json::from_str(&json).unwrap()),
            (&*format!("{OF_NOTHING:?}"), digest)
        );
    }

    #[test]
    fn nothing_else_is_a_digest() {
        let upper = OF_NOTHING.to_uppercase().replace("SHA", "sha");
        let (longer, wide) = (format!("{OF_NOTHING}0"), format!("sha256:{}", "é".repeat(32)));
        let sha512 = format!("sha512:{}", "0".repeat(128));
        for text in ["", "sha256:", "sha256:00", "../../etc/passwd", &OF_NOTHING[1..], &OF_NOTHING[7..]] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        for text in [upper, longer, wide, sha512, format!("sha256:+{}", "0".repeat(63))] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        let refused = "x".repeat(1_000_000).parse::<Digest>().unwrap_err();
        assert!(refused.to_string().len() < 200, "a refusal repeats an excerpt");
    }
}
