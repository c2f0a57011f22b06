//! Registries of images by the name that logins are kept under.

use crate::job::words::is_host;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Docker Hub, as an image's name says it.
const HUB: &str = "docker.io";
/// Where Docker Hub's API is.
const HUB_API: &str = "registry-1.docker.io";
/// Other names that people and programs have for it.
const HUB_TOO: [&str; 2] = ["index.docker.io", HUB_API];
/// A DNS name and a port.
const HOST_MAX: usize = 253 + 6;

/// A registry: `host` or `host:port`. All names of Docker Hub are one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RegistryHost(String);

/// Why a text names no registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no registry; write host or host:port, for instance registry.lan:5000")]
pub struct RegistryHostError {
    text: String,
}

impl RegistryHost {
    /// The registry of an image's name, with or without tag and digest; none if that is none.
    #[must_use]
    pub fn of_image(name: &str) -> Option<Self> {
        locate(name).map(|(host, _)| host)
    }

    /// Host and port where its API is.
    #[must_use]
    pub fn api(&self) -> &str {
        if self.0 == HUB { HUB_API } else { &self.0 }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The registry of an image's name, and the rest as that registry knows it, both as Docker reads them: without a
/// registry it is Docker Hub, where `library/` stands before a bare name. None if the registry's name is none.
#[must_use]
pub fn locate(name: &str) -> Option<(RegistryHost, String)> {
    let is_host = |part: &str| part.contains(['.', ':']) || part == "localhost";
    let (host, rest) = match name.split_once('/').filter(|(host, _)| is_host(host)) {
        Some((host, rest)) => (host.parse().ok()?, rest),
        None => (RegistryHost(HUB.to_owned()), name),
    };
    let bare = host.0 == HUB && !rest.contains('/');
    Some((host, if bare { format!("library/{rest}") } else { rest.to_owned() }))
}

impl FromStr for RegistryHost {
    type Err = RegistryHostError;
    fn from_str(text: &str) -> Result<Self, RegistryHostError> {
        if HOST_MAX < text.len() || !is_host(text) {
            return Err(RegistryHostError { text: text.chars().take(80).collect() });
        }
        let host = text.to_ascii_lowercase();
        Ok(Self(if HUB_TOO.contains(&host.as_str()) { HUB.to_owned() } else { host }))
    }
}

impl TryFrom<String> for RegistryHost {
    type Error = RegistryHostError;
    fn try_from(text: String) -> Result<Self, RegistryHostError> {
        text.parse()
    }
}

impl From<RegistryHost> for String {
    fn from(host: RegistryHost) -> Self {
        host.0
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_and_a_login_name_a_registry_alike() {
        let of = |name: &str| RegistryHost::of_image(name).map(String::from);
        assert_eq!(of("10.0.0.1:5000/a/b:1").as_deref(), Some("10.0.0.1:5000"));
        assert_eq!(of("Reg.Lan/a@sha256:00").as_deref(), Some("reg.lan"));
        for hub in ["redis:7", "library/redis", "docker.io/library/redis", "registry-1.docker.io/x"] {
            assert_eq!(of(hub).as_deref(), Some("docker.io"), "{hub}");
        }
        assert_eq!("index.docker.io".parse(), Ok(RegistryHost(HUB.to_owned())));
    }

    #[test]
    fn a_repository_is_what_its_registry_calls_it() {
        let read = |name: &str| locate(name).map(|(host, rest)| format!("{} {rest}", host.api()));
        for (name, place) in [
            ("10.0.0.1:5000/a/b", "10.0.0.1:5000 a/b"),
            ("localhost/x", "localhost x"),
            ("redis", "registry-1.docker.io library/redis"),
            ("docker.io/redis", "registry-1.docker.io library/redis"),
            ("index.docker.io/a/b", "registry-1.docker.io a/b"),
            ("a/b", "registry-1.docker.io a/b"),
        ] {
            assert_eq!(read(name).as_deref(), Some(place), "{name}");
        }
        assert_eq!(locate("re g.lan/x"), None);
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in ["", "https://reg.lan", "reg.lan/x", "reg lan", "-a", "reg:0", "reg:99999", "u@reg"] {
            assert!(bad.parse::<RegistryHost>().is_err(), "{bad}");
        }
        assert_eq!(RegistryHost::of_image("re g.lan/x"), None);
    }
}
