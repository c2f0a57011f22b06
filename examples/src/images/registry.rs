//! Pushes an image over a registry's HTTP API (OCI distribution specification 1.1, sections "Pushing blobs" and
//! "Pushing manifests"), over plain HTTP: the registry of a laboratory or of a trusted network.

use super::{ImageSpec, MANIFEST_TYPE, digest};
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

/// Any single request takes at most so long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a push failed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("request to {url} failed")]
    Request { url: String, source: Box<ureq::Error> },
    #[error("{url} answered with status {status}: {body}")]
    Status { url: String, status: u16, body: String },
    #[error("{url} did not say where to upload to")]
    NoLocation { url: String },
    #[error("the registry stored {repository} as {stored}, not as {pushed}")]
    Digest { repository: String, stored: String, pushed: String },
}

/// What the registry holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Of the manifest.
    pub digest: String,
    pub config_digest: String,
    pub config_bytes: u64,
    /// Digest and compressed bytes, lowest first.
    pub layers: Vec<(String, u64)>,
}

/// Pushes `image` to `registry` (`host:port`). Blobs that the repository has already are not sent again.
///
/// # Errors
/// The first request that fails, or an answer that is none.
pub fn push(registry: &str, image: &ImageSpec) -> Result<Pushed, PushError> {
    let settings =
        Agent::config_builder().timeout_global(Some(REQUEST_TIMEOUT)).http_status_as_error(false).build();
    let repository = Repository {
        agent: settings.into(),
        registry: format!("http://{registry}"),
        base: format!("http://{registry}/v2/{}", image.repository),
    };
    for layer in &image.layers {
        repository.push_blob(&layer.digest, &layer.blob)?;
    }
    let config = image.config();
    let config_digest = digest(&config);
    repository.push_blob(&config_digest, &config)?;
    let manifest = image.manifest();
    let pushed = digest(&manifest);
    let stored = repository.push_manifest(&image.tag, &manifest)?;
    if stored.as_ref().is_some_and(|stored| *stored != pushed) {
        let (repository, stored) = (image.repository.clone(), stored.unwrap_or_default());
        return Err(PushError::Digest { repository, stored, pushed });
    }
    let layers = image.layers.iter().map(|layer| (layer.digest.clone(), layer.compressed_bytes())).collect();
    Ok(Pushed { digest: pushed, config_digest, config_bytes: config.len() as u64, layers })
}

#[derive(Debug)]
struct Repository {
    agent: Agent,
    registry: String,
    base: String,
}

impl Repository {
    fn push_blob(&self, digest: &str, blob: &[u8]) -> Result<(), PushError> {
        let url = format!("{}/blobs/{digest}", self.base);
        if answered(&url, self.agent.head(&url).call())?.status().as_u16() == 200 {
            return Ok(());
        }
        let url = format!("{}/blobs/uploads/", self.base);
        let started = expect(&url, 202, self.agent.post(&url).send_empty())?;
        let location = started.headers().get("Location").and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| PushError::NoLocation { url })?;
        // The specification allows a path without host, and a query of the registry's own.
        let location = match location.starts_with('/') {
            true => format!("{}{location}", self.registry),
            false => location.to_owned(),
        };
        let separator = if location.contains('?') { '&' } else { '?' };
        let url = format!("{location}{separator}digest={digest}");
        let request = self.agent.put(&url).content_type("application/octet-stream");
        expect(&url, 201, request.send(blob)).map(drop)
    }

    /// Answers with the digest that the registry computed, if it says so.
    fn push_manifest(&self, tag: &str, manifest: &[u8]) -> Result<Option<String>, PushError> {
        let url = format!("{}/manifests/{tag}", self.base);
        let answer = expect(&url, 201, self.agent.put(&url).content_type(MANIFEST_TYPE).send(manifest))?;
        let stored = answer.headers().get("Docker-Content-Digest").and_then(|value| value.to_str().ok());
        Ok(stored.map(str::to_owned))
    }
}

type Answer = Result<Response<Body>, ureq::Error>;

fn answered(url: &str, answer: Answer) -> Result<Response<Body>, PushError> {
    answer.map_err(|source| PushError::Request { url: url.to_owned(), source: Box::new(source) })
}

fn expect(url: &str, wanted: u16, answer: Answer) -> Result<Response<Body>, PushError> {
    let mut answer = answered(url, answer)?;
    let status = answer.status().as_u16();
    if status == wanted {
        return Ok(answer);
    }
    let body = answer.body_mut().with_config().limit(4096).read_to_string().unwrap_or_default();
    Err(PushError::Status { url: url.to_owned(), status, body })
}
