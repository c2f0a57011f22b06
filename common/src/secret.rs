//! A text that must not be seen: it prints as nothing, and leaves no copy in memory when it is dropped.

use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// A token, a key, a password. It has no `Display`, so it reaches no log by accident; serialising it is
/// for files and bodies that are meant to carry it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself, where it is used.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.expose().to_owned()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_nothing_however_deep_it_sits() {
        let secret = Secret::from("hunter2".to_owned());
        assert!(!format!("{:?} {:#?}", secret, Some(vec![&secret])).contains("hunter2"));
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"hunter2\"");
    }
}
