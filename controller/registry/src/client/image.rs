//! An image of a registry: is it what it was, and what is it made of.

use super::answer::{Answer, Question, Redirects};
use super::asked::Asked;
use crate::error::RegistryError;
use crate::manifest::{self, Manifest, ManifestError, Platform, Single};
use edgeloom_common::digest::Digest;
use futures_util::future::try_join_all;
use reqwest::header::{ETAG, HeaderName};
use reqwest::{Method, StatusCode};
use std::time::Duration;
use tokio::time::timeout;

/// The distribution specification's name of a manifest.
const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// Blobs of an image that are looked for at once.
const BLOBS_AT_ONCE: usize = 4;
/// For all that an image is made of.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// What a tag names now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    /// What it named before.
    Same,
    Digest {
        digest: Digest,
        /// Where it is something else than the digest.
        etag: Option<String>,
    },
    /// The registry does not tell without sending the manifest.
    Untold,
}

/// An image as its registry has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) digest: Digest,
    pub(crate) etag: Option<String>,
    pub(crate) platforms: Vec<Platform>,
    /// What is wrong with some of its platforms, while others are sound.
    pub(crate) flaw: Option<RegistryError>,
}

/// A manifest as it came.
#[derive(Debug)]
pub(crate) struct Body {
    digest: Digest,
    etag: Option<String>,
    bytes: Vec<u8>,
}

impl Body {
    /// Its name.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// With the entity tag that its tag has.
    pub(crate) fn with_etag(self, etag: Option<String>) -> Self {
        Self { etag, ..self }
    }
}

/// The entity tag, unless it is the digest in quotation marks, as most registries have it.
fn etag(answer: &Answer, digest: Digest) -> Option<String> {
    let etag = answer.header(ETAG)?;
    (etag != format!("\"{digest}\"")).then(|| etag.to_owned())
}

impl Asked<'_> {
    /// What a tag names, by a request without a body; `unless` is the entity tag of what it named before.
    pub(crate) async fn head(&self, tag: &str, unless: Option<&str>) -> Result<Head, RegistryError> {
        let url = self.url(&format!("{}/manifests/{tag}", self.part))?;
        let question = Question { method: Method::HEAD, url, unless, redirects: Redirects::Within };
        let answer = self.ask(question).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            return Ok(Head::Same);
        }
        let Some(text) = answer.header(DIGEST) else { return Ok(Head::Untold) };
        let digest =
            text.parse().map_err(|error: edgeloom_common::digest::DigestError| self.broken(error.into()))?;
        Ok(Head::Digest { digest, etag: etag(&answer, digest) })
    }

    /// The manifest that a tag names.
    pub(crate) async fn by_tag(&self, tag: &str) -> Result<Body, RegistryError> {
        let answer = self.part_of("manifests", tag, Redirects::Within).await?;
        let digest = Digest::of(&answer.body);
        Ok(Body { digest, etag: etag(&answer, digest), bytes: answer.body })
    }

    /// The manifest of a digest, held against it.
    pub(crate) async fn by_digest(&self, digest: Digest) -> Result<Body, RegistryError> {
        let bytes = self.verified("manifests", digest, Redirects::Within).await;
        let bytes = bytes.map_err(|error| self.missing(error, "manifest", digest))?;
        Ok(Body { digest, etag: None, bytes })
    }

    /// The layers by platform; blobs are looked for unless `is_known` says that they are there. Each answer may take
    /// its time, all together not as many times as long.
    pub(crate) async fn found(
        &self,
        body: Body,
        is_known: &(dyn Fn(&manifest::Layer) -> bool + Sync),
    ) -> Result<Found, RegistryError> {
        let found = timeout(LOOK_MAX, self.all_found(body, is_known)).await;
        let slow = || format!("it does not tell all of {} within {} s", self.subject, LOOK_MAX.as_secs());
        found.unwrap_or_else(|_| Err(self.silent(slow())))
    }

    async fn all_found(
        &self,
        body: Body,
        is_known: &(dyn Fn(&manifest::Layer) -> bool + Sync),
    ) -> Result<Found, RegistryError> {
        let Body { digest, etag, bytes } = body;
        let entries = match manifest::manifest(&bytes).map_err(|error| self.broken(error))? {
            Manifest::Image(single) => {
                let platforms = vec![self.platform(&single, is_known).await?];
                return Ok(Found { digest, etag, platforms, flaw: None });
            }
            Manifest::Index(entries) => entries,
        };
        let (mut platforms, mut flaw) = (Vec::<Platform>::new(), None);
        for (entry, _) in entries {
            match self.entry(entry, is_known).await {
                // The first of several variants, as Docker takes it.
                Ok(platform) if platforms.iter().any(|it| it.architecture == platform.architecture) => {}
                Ok(platform) => platforms.push(platform),
                Err(error @ RegistryError::Unreachable { .. }) => return Err(error),
                Err(error) => drop(flaw.get_or_insert(error)),
            }
        }
        match flaw {
            Some(error) if platforms.is_empty() => Err(error),
            flaw => Ok(Found { digest, etag, platforms, flaw }),
        }
    }

    async fn entry(
        &self,
        digest: Digest,
        is_known: &(dyn Fn(&manifest::Layer) -> bool + Sync),
    ) -> Result<Platform, RegistryError> {
        let body = self.by_digest(digest).await?;
        let single = manifest::platform_manifest(&body.bytes).map_err(|error| self.broken(error))?;
        self.platform(&single, is_known).await
    }

    async fn platform(
        &self,
        single: &Single,
        is_known: &(dyn Fn(&manifest::Layer) -> bool + Sync),
    ) -> Result<Platform, RegistryError> {
        let digest = single.config.digest;
        let config = self.verified("blobs", digest, Redirects::Anywhere).await;
        let config = config.map_err(|error| self.missing(error, "configuration", digest))?;
        let platform = manifest::platform(single, &config).map_err(|error| self.broken(error))?;
        let mut unknown: Vec<Digest> = Vec::new();
        for layer in &platform.layers {
            if !is_known(layer) && !unknown.contains(&layer.blob.digest) {
                unknown.push(layer.blob.digest);
            }
        }
        for some in unknown.chunks(BLOBS_AT_ONCE) {
            let looked: Vec<_> = some.iter().map(|digest| self.look_for(*digest)).collect();
            try_join_all(looked).await?;
        }
        Ok(platform)
    }

    /// Whether a blob is there. Only that it is not counts: registries that keep blobs elsewhere answer requests
    /// without a body in many ways.
    async fn look_for(&self, digest: Digest) -> Result<(), RegistryError> {
        let url = self.url(&format!("{}/blobs/{digest}", self.part))?;
        let question = Question { method: Method::HEAD, url, unless: None, redirects: Redirects::Answer };
        match self.ask(question).await {
            Err(error @ RegistryError::Unknown { .. }) => Err(self.missing(error, "layer", digest)),
            Err(error @ RegistryError::Unreachable { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    async fn verified(
        &self,
        kind: &str,
        digest: Digest,
        redirects: Redirects,
    ) -> Result<Vec<u8>, RegistryError> {
        let body = self.part_of(kind, &digest.to_string(), redirects).await?.body;
        let found = Digest::of(&body);
        match found == digest {
            true => Ok(body),
            false => Err(self.unreadable(&format!("it sends {found} for {digest}"))),
        }
    }

    async fn part_of(
        &self,
        kind: &str,
        version: &str,
        redirects: Redirects,
    ) -> Result<Answer, RegistryError> {
        let url = self.url(&format!("{}/{kind}/{version}", self.part))?;
        self.ask(Question { method: Method::GET, url, unless: None, redirects }).await
    }

    fn broken(&self, error: ManifestError) -> RegistryError {
        self.unreadable(&error.to_string())
    }

    /// The image is there, a part of it is not.
    fn missing(&self, error: RegistryError, what: &str, digest: Digest) -> RegistryError {
        match error {
            RegistryError::Unknown { .. } => {
                self.unreadable(&format!("its {what} {digest} is missing there"))
            }
            error => error,
        }
    }
}
