//! The registry client: an image's name becomes its manifest's digest and the layers of each platform.
//!
//! Names are asked for each time, so that plan and pull mean the same image; manifests and configurations
//! are immutable by digest and kept. Every answer is bounded in time and bytes and held against its digest.

mod asked;
#[cfg(any(test, feature = "fakes"))]
pub mod fake;
mod manifest;
mod reference;
#[cfg(test)]
mod tests;

use crate::missing::{Layers, sha256};
use crate::model::Image;
use asked::Asked;
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::registry::RegistryHost;
use manifest::{Config, Manifest};
use reference::Reference;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Images whose layers are kept.
const CACHE_MAX: usize = 1024;

/// Why an image cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The text is no image name.
    #[error("{image:?} is no image name; write registry:port/repository:tag")]
    Name { image: String },
    /// The registry answers that it has no such image.
    #[error("the registry {registry} has no image {image}; push it or correct the name")]
    Unknown { image: String, registry: String },
    /// The registry wants a login that there is not, or gives its user less.
    #[error("the registry {registry} denies {who} access to {image}")]
    Denied { image: String, registry: String, who: String },
    /// User name and password do not go together.
    #[error("the registry {registry} refuses the login of user {username:?}")]
    LoginRefused { registry: String, username: String },
    /// No answer, or none in time.
    #[error("the registry {registry} cannot be reached: {reason}")]
    Unreachable { registry: String, reason: String },
    /// An answer that makes no sense.
    #[error("the registry {registry} answers for {image} what does not read: {reason}")]
    Unreadable { image: String, registry: String, reason: String },
}

impl RegistryError {
    /// What a user does about it.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Denied { registry, .. } => {
                format!(
                    "log in as somebody who may: `edgeloom registry login {registry}`, or make the repository public"
                )
            }
            Self::LoginRefused { registry, .. } => {
                format!("log in again: `edgeloom registry login {registry}`")
            }
            _ => "name an image that its registry has".to_owned(),
        }
    }
}

/// Resolves names.
#[derive(Debug)]
pub(crate) struct Registry {
    http: reqwest::Client,
    insecure: Vec<String>,
    cache: Mutex<BTreeMap<String, BTreeMap<String, Layers>>>,
}

/// The TLS set-up of the client failed.
#[derive(Debug, thiserror::Error)]
#[error("the registry client does not start: {0}")]
pub struct ClientError(#[from] reqwest::Error);

impl Registry {
    /// A client; `insecure` names the registries (host:port) spoken to in plain HTTP.
    pub(crate) fn new(insecure: Vec<String>) -> Result<Self, ClientError> {
        // A second call finds the provider installed, which is all that is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::limited(3))
            .build()?;
        Ok(Self { http, insecure, cache: Mutex::default() })
    }

    /// Whether a registry honours a login (distribution specification, API version check).
    pub(crate) async fn check(&self, host: &RegistryHost, login: &Login) -> Result<(), RegistryError> {
        let host = host.api();
        let asked = Asked { registry: self, image: "a login", host, login: Some(login) };
        asked.fetch(&asked.url("")).await.map(drop)
    }

    /// Manifest digest and layers of an image, now.
    pub(crate) async fn resolve(&self, image: &str, login: Option<&Login>) -> Result<Image, RegistryError> {
        let name = Reference::parse(image).ok_or_else(|| RegistryError::Name { image: image.to_owned() })?;
        let asked = Asked { registry: self, image, host: &name.registry, login };
        let asked = Repository { asked, name: &name };
        let body = asked.part("manifests", &name.version).await?;
        let digest = sha256(&body);
        if name.version.starts_with("sha256:") && name.version != digest {
            return Err(asked.asked.unreadable("the manifest does not match its digest"));
        }
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        let platforms = match known {
            Some(platforms) => platforms,
            None => asked.platforms(&body).await?,
        };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= CACHE_MAX {
            cache.clear();
        }
        cache.insert(digest.clone(), platforms.clone());
        let reference = ImageRef { repository: name.name.clone(), digest, name: image.to_owned() };
        Ok(Image { reference, platforms })
    }
}

/// One repository being asked.
struct Repository<'a> {
    asked: Asked<'a>,
    name: &'a Reference,
}

impl Repository<'_> {
    /// The layers by architecture: one, or those of an index that run on Linux.
    async fn platforms(&self, body: &[u8]) -> Result<BTreeMap<String, Layers>, RegistryError> {
        let manifest: Manifest = self.asked.read(body)?;
        if manifest.config.is_some() {
            return Ok(BTreeMap::from([self.platform(&manifest).await?]));
        }
        let mut platforms = BTreeMap::new();
        for entry in &manifest.manifests {
            let runs =
                entry.platform.as_ref().is_some_and(|it| it.os == "linux" && it.architecture != "unknown");
            if runs {
                let body = self.by_digest("manifests", &entry.digest).await?;
                let (architecture, layers) = self.platform(&self.asked.read(&body)?).await?;
                // The first of several variants, as Docker takes it.
                platforms.entry(architecture).or_insert(layers);
            }
        }
        match platforms.is_empty() {
            true => Err(self.asked.unreadable("neither an image nor an index with a Linux platform")),
            false => Ok(platforms),
        }
    }

    async fn platform(&self, manifest: &Manifest) -> Result<(String, Layers), RegistryError> {
        let unreadable = |reason| self.asked.unreadable(reason);
        let descriptor =
            manifest.config.as_ref().ok_or_else(|| unreadable("a manifest has no configuration"))?;
        let config: Config = self.asked.read(&self.by_digest("blobs", &descriptor.digest).await?)?;
        let layers = manifest::layers(manifest, &config)
            .ok_or_else(|| unreadable("manifest and configuration count different layers"))?;
        Ok((config.architecture, layers))
    }

    async fn by_digest(&self, kind: &str, digest: &str) -> Result<Vec<u8>, RegistryError> {
        let hexadecimal =
            digest.strip_prefix("sha256:").filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if hexadecimal.is_none() {
            return Err(self.asked.unreadable("a digest is no sha256"));
        }
        let body = self.part(kind, digest).await?;
        match sha256(&body) == digest {
            true => Ok(body),
            false => Err(self.asked.unreadable("a body does not match its digest")),
        }
    }

    async fn part(&self, kind: &str, version: &str) -> Result<Vec<u8>, RegistryError> {
        let path = format!("{}/{kind}/{version}", self.name.repository);
        self.asked.fetch(&self.asked.url(&path)).await
    }
}
