//! Digests as bytes: a third of their text, of which a catalogue holds tens of thousands.

use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;

/// The sha256 of a blob or of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// Why a text is no digest; sha256 is the one algorithm that every registry and engine has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no digest of the form sha256:<64 hexadecimal digits>")]
pub struct DigestError {
    text: String,
}

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(<Sha256 as sha2::Digest>::digest(bytes).into())
    }
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let read = || {
            let digits = text.strip_prefix("sha256:")?.as_bytes();
            let mut bytes = [0; 32];
            // Only as specified, in lower case: one digest has one text (OCI image specification, "Digests").
            let digit = |byte: u8| match byte {
                b'0'..=b'9' => Some(byte - b'0'),
                b'a'..=b'f' => Some(byte - b'a' + 10),
                _ => None,
            };
            if digits.len() != 2 * bytes.len() {
                return None;
            }
            for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = digit(pair[0])? << 4 | digit(pair[1])?;
            }
            Some(Self(bytes))
        };
        read().ok_or_else(|| DigestError { text: text.chars().take(80).collect() })
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
        f.write_str("sha256:")?;
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

    #[test]
    fn a_digest_has_one_text() {
        let digest = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((digest.to_string().as_str(), text.parse()), (text, Ok(digest)));
        let upper = text.to_uppercase().replace("SHA", "sha");
        for bad in ["", "sha256:", "sha256:00", "sha512:00", &text[1..], &upper, &format!("{text}0")] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
