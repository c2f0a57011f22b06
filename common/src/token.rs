//! Tokens as text: `el1.<authority and cluster>.<id>.<secret>` lets a node join, `ela1.<id>.<secret>`
//! speaks to the API.
//!
//! The id is no secret: people read it in lists and revoke by it. A joining token carries the SHA-256 of
//! the certificate of the cluster's authority, so that a node knows whom to trust before the first byte;
//! nothing is trusted because it was seen first.

use crate::digest::hex;
use crate::ids::{ClusterId, NameError};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const JOIN_PREFIX: &str = "el1";
const API_PREFIX: &str = "ela1";
/// Bytes of a SHA-256.
const FINGERPRINT_LEN: usize = 32;
/// Random bytes of an id.
pub const ID_LEN: usize = 6;
/// Random bytes of a secret: too many to guess, so a plain hash of it may be kept.
pub const SECRET_LEN: usize = 24;
/// Far above the longest token.
const TEXT_MAX: usize = 512;

/// Why a text is no token. The text itself is never repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Another prefix or number of parts.
    #[error("that is no {wanted} token: it begins with `{prefix}.` and has {parts} parts with dots between")]
    Shape { wanted: &'static str, prefix: &'static str, parts: usize },
    /// A part that does not read, as after a bad copy.
    #[error("the token's {part} does not read; was it copied as a whole?")]
    Part { part: &'static str },
    /// The cluster's name in it is none.
    #[error("the token's cluster: {0}")]
    Cluster(#[from] NameError),
}

/// Which token, in lists and logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId(String);

impl TokenId {
    /// From random bytes.
    #[must_use]
    pub fn new(random: [u8; ID_LEN]) -> Self {
        Self(hex(&random))
    }
}

impl FromStr for TokenId {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        if text.len() != 2 * ID_LEN || !text.chars().all(hex) {
            return Err(TokenError::Part { part: "id" });
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for TokenId {
    type Error = TokenError;
    fn try_from(text: String) -> Result<Self, TokenError> {
        text.parse()
    }
}

impl From<TokenId> for String {
    fn from(id: TokenId) -> Self {
        id.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The SHA-256 of an authority's certificate, DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; FINGERPRINT_LEN]);

/// The secret half as its text.
#[must_use]
pub fn secret_text(random: [u8; SECRET_LEN]) -> Secret {
    URL_SAFE_NO_PAD.encode(random).into()
}

fn secret(text: &str) -> Result<Secret, TokenError> {
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(bytes) if bytes.len() == SECRET_LEN => Ok(text.to_owned().into()),
        _ => Err(TokenError::Part { part: "secret" }),
    }
}

/// What a node joins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinToken {
    pub cluster: ClusterId,
    /// Of the authority that signed the controller's own certificate.
    pub authority: Fingerprint,
    pub id: TokenId,
    pub secret: Secret,
}

impl JoinToken {
    /// The text for a command line.
    #[must_use]
    pub fn text(&self) -> Secret {
        let mut place = self.authority.0.to_vec();
        place.extend_from_slice(self.cluster.as_str().as_bytes());
        let place = URL_SAFE_NO_PAD.encode(place);
        format!("{JOIN_PREFIX}.{place}.{}.{}", self.id, self.secret.expose()).into()
    }
}

impl FromStr for JoinToken {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let shape = TokenError::Shape { wanted: "joining", prefix: JOIN_PREFIX, parts: 4 };
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [JOIN_PREFIX, place, id, secret_part] = parts.as_slice() else { return Err(shape) };
        if text.len() > TEXT_MAX {
            return Err(shape);
        }
        let unreadable = || TokenError::Part { part: "cluster" };
        let place = URL_SAFE_NO_PAD.decode(place).map_err(|_| unreadable())?;
        let (authority, cluster) = place.split_first_chunk::<FINGERPRINT_LEN>().ok_or_else(unreadable)?;
        let cluster = std::str::from_utf8(cluster).map_err(|_| unreadable())?.parse()?;
        let authority = Fingerprint(*authority);
        Ok(Self { cluster, authority, id: id.parse()?, secret: secret(secret_part)? })
    }
}

/// What a client of the API shows as its bearer token (RFC 6750).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    pub id: TokenId,
    pub secret: Secret,
}

impl ApiToken {
    /// The text for the `Authorization` header.
    #[must_use]
    pub fn text(&self) -> Secret {
        format!("{API_PREFIX}.{}.{}", self.id, self.secret.expose()).into()
    }
}

impl FromStr for ApiToken {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let shape = TokenError::Shape { wanted: "API", prefix: API_PREFIX, parts: 3 };
        let parts: Vec<&str> = text.trim().split('.').collect();
        match parts.as_slice() {
            [API_PREFIX, id, secret_part] if text.len() <= TEXT_MAX => {
                Ok(Self { id: id.parse()?, secret: secret(secret_part)? })
            }
            _ => Err(shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joining() -> JoinToken {
        JoinToken {
            cluster: "home".parse().unwrap(),
            authority: Fingerprint([7; 32]),
            id: TokenId::new([1, 2, 3, 4, 5, 0xab]),
            secret: secret_text([9; SECRET_LEN]),
        }
    }

    #[test]
    fn tokens_read_back_and_hide_their_secret() {
        let token = joining();
        assert_eq!(token.text().expose().parse(), Ok(token.clone()));
        assert!(!format!("{token:?}").contains(token.secret.expose()));
        let api = ApiToken { id: token.id.clone(), secret: token.secret.clone() };
        assert_eq!(api.text().expose().parse(), Ok(api.clone()));
        assert!(matches!(api.text().expose().parse::<JoinToken>(), Err(TokenError::Shape { .. })));
        assert!(matches!(token.text().expose().parse::<ApiToken>(), Err(TokenError::Shape { .. })));
    }

    #[test]
    fn a_token_cut_anywhere_is_refused_without_repeating_it() {
        let whole = joining().text();
        for length in 0..whole.expose().len() {
            let cut = &whole.expose()[..length];
            let error = cut.parse::<JoinToken>().unwrap_err().to_string();
            assert!(length < 60 || !error.contains(cut), "{error}");
        }
    }

    proptest! {
        #[test]
        fn hostile_text_is_an_error_not_a_panic(text in ".{0,200}") {
            let _ = text.parse::<JoinToken>();
            let _ = format!("el1.{text}").parse::<JoinToken>();
            let _ = format!("ela1.{text}").parse::<ApiToken>();
        }
    }
}
