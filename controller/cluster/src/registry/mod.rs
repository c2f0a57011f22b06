//! The registry client: an image's name becomes its manifest's digest and the layers of each platform.
//!
//! Names are asked for each time, so that plan and pull mean the same image; manifests and configurations
//! are immutable by digest and kept. Every answer is bounded in time and bytes and held against its digest.

#[cfg(any(test, feature = "fakes"))]
pub mod fake;
mod manifest;
mod reference;
#[cfg(test)]
mod tests;

use crate::missing::{Layers, sha256};
use crate::model::Image;
use edgeloom_common::desired::ImageRef;
use manifest::{ACCEPT, Config, Manifest};
use reference::Reference;
use reqwest::{Response, StatusCode, header};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The distribution specification asks registries to take manifests up to 4 MiB.
const BODY_MAX: usize = 4 * 1024 * 1024;
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
    /// The registry wants a login that the controller does not have.
    #[error("the registry {registry} denies access to {image}; make the repository public")]
    Denied { image: String, registry: String },
    /// No answer, or none in time.
    #[error("the registry {registry} cannot be reached: {reason}")]
    Unreachable { registry: String, reason: String },
    /// An answer that makes no sense.
    #[error("the registry {registry} answers for {image} what does not read: {reason}")]
    Unreadable { image: String, registry: String, reason: String },
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

    /// Manifest digest and layers of an image, now.
    pub(crate) async fn resolve(&self, image: &str) -> Result<Image, RegistryError> {
        let name = Reference::parse(image).ok_or_else(|| RegistryError::Name { image: image.to_owned() })?;
        let asked = Asked { registry: self, image, name: &name };
        let body = asked.fetch("manifests", &name.version).await?;
        let digest = sha256(&body);
        if name.version.starts_with("sha256:") && name.version != digest {
            return Err(asked.unreadable("the manifest does not match its digest"));
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

/// One image being asked for.
struct Asked<'a> {
    registry: &'a Registry,
    image: &'a str,
    name: &'a Reference,
}

impl Asked<'_> {
    /// The layers by architecture: one, or those of an index that run on Linux.
    async fn platforms(&self, body: &[u8]) -> Result<BTreeMap<String, Layers>, RegistryError> {
        let manifest: Manifest = self.read(body)?;
        if manifest.config.is_some() {
            return Ok(BTreeMap::from([self.platform(&manifest).await?]));
        }
        let mut platforms = BTreeMap::new();
        for entry in &manifest.manifests {
            let runs =
                entry.platform.as_ref().is_some_and(|it| it.os == "linux" && it.architecture != "unknown");
            if runs {
                let manifest: Manifest = self.read(&self.by_digest("manifests", &entry.digest).await?)?;
                let (architecture, layers) = self.platform(&manifest).await?;
                // The first of several variants, as Docker takes it.
                platforms.entry(architecture).or_insert(layers);
            }
        }
        match platforms.is_empty() {
            true => Err(self.unreadable("neither an image nor an index with a Linux platform")),
            false => Ok(platforms),
        }
    }

    async fn platform(&self, manifest: &Manifest) -> Result<(String, Layers), RegistryError> {
        let descriptor =
            manifest.config.as_ref().ok_or_else(|| self.unreadable("a manifest has no configuration"))?;
        let config: Config = self.read(&self.by_digest("blobs", &descriptor.digest).await?)?;
        let layers = manifest::layers(manifest, &config)
            .ok_or_else(|| self.unreadable("manifest and configuration count different layers"))?;
        Ok((config.architecture, layers))
    }

    async fn by_digest(&self, kind: &str, digest: &str) -> Result<Vec<u8>, RegistryError> {
        let hexadecimal =
            digest.strip_prefix("sha256:").filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if hexadecimal.is_none() {
            return Err(self.unreadable("a digest is no sha256"));
        }
        let body = self.fetch(kind, digest).await?;
        match sha256(&body) == digest {
            true => Ok(body),
            false => Err(self.unreadable("a body does not match its digest")),
        }
    }

    async fn fetch(&self, kind: &str, version: &str) -> Result<Vec<u8>, RegistryError> {
        let registry = &self.name.registry;
        let scheme = if self.registry.insecure.contains(registry) { "http" } else { "https" };
        let url = format!("{scheme}://{registry}/v2/{}/{kind}/{version}", self.name.repository);
        let mut answer = self.send(&url, None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let Some(token) = self.token(&answer).await?
        {
            answer = self.send(&url, Some(&token)).await?;
        }
        let (image, registry) = (self.image.to_owned(), registry.clone());
        match answer.status() {
            status if status.is_success() => self.body(answer).await,
            StatusCode::NOT_FOUND => Err(RegistryError::Unknown { image, registry }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(RegistryError::Denied { image, registry })
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(RegistryError::Unreachable { registry, reason: format!("it answers {status}") })
            }
            status => Err(self.unreadable(&format!("it answers {status}"))),
        }
    }

    async fn send(&self, url: &str, token: Option<&str>) -> Result<Response, RegistryError> {
        let mut request = self.registry.http.get(url).header(header::ACCEPT, ACCEPT);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.send().await.map_err(|error| self.unreachable(&error))
    }

    /// A token for everyone, where the registry names who gives it (distribution specification, token
    /// authentication).
    async fn token(&self, answer: &Response) -> Result<Option<String>, RegistryError> {
        let challenge = answer.headers().get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let Some(challenge) = challenge.and_then(|text| text.strip_prefix("Bearer ")) else {
            return Ok(None);
        };
        let field = |name: &str| {
            let rest = challenge.split_once(&format!("{name}=\""))?.1;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let Some(realm) = field("realm") else { return Ok(None) };
        let query: Vec<(&str, String)> =
            ["service", "scope"].into_iter().filter_map(|name| Some((name, field(name)?))).collect();
        let request = self.registry.http.get(realm).query(&query);
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let body: serde_json::Value = self.read(&self.body(answer).await?)?;
        let token = body.get("token").or_else(|| body.get("access_token"));
        Ok(token.and_then(|token| token.as_str()).map(str::to_owned))
    }

    async fn body(&self, mut answer: Response) -> Result<Vec<u8>, RegistryError> {
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            if body.len() + piece.len() > BODY_MAX {
                return Err(self.unreadable(&format!("an answer is over {BODY_MAX} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, RegistryError> {
        serde_json::from_slice(body).map_err(|error| self.unreadable(&error.to_string()))
    }

    fn unreadable(&self, reason: &str) -> RegistryError {
        RegistryError::Unreadable {
            image: self.image.to_owned(),
            registry: self.name.registry.clone(),
            reason: reason.to_owned(),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> RegistryError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        RegistryError::Unreachable { registry: self.name.registry.clone(), reason: cause.to_string() }
    }
}
