//! Digests of bytes, whole or as they come.

use super::Digest;
use ring::digest::{Context, SHA256};
use std::fmt;

impl Digest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = Hash::default();
        hash.update(bytes);
        hash.end()
    }
}

/// A digest in the making.
#[derive(Clone)]
pub struct Hash(Context);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Hash {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    #[must_use]
    pub fn end(self) -> Digest {
        Digest(self.0.finish().as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// The name of a layer with all below it: `sha256(below + " " + content)`, the lowest one's being its content's
/// (OCI image specification, "Layer ChainID").
#[must_use]
pub fn chain_id(below: Option<&str>, content: &str) -> String {
    let Some(below) = below else { return content.to_owned() };
    Digest::of(format!("{below} {content}").as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_same_at_once_and_in_pieces() {
        let of_nothing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), of_nothing);
        let mut hash = Hash::default();
        hash.update(b"hello ");
        hash.update(b"world");
        assert_eq!(hash.end(), Digest::of(b"hello world"));
    }

    #[test]
    fn a_chain_is_the_hash_of_two_texts() {
        assert_eq!(chain_id(None, "sha256:a"), "sha256:a");
        assert_eq!(chain_id(Some("sha256:a"), "sha256:b"), Digest::of(b"sha256:a sha256:b").to_string());
    }
}
