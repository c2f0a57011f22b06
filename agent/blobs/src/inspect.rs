//! A look at an image before it is pulled: what of it not every engine can take, and what not every registry has.

use crate::http::HttpError;
use crate::manifest::{Manifest, Named};
use crate::upstream::Upstream;
use edgeloom_common::digest::Digest;
use http_body_util::BodyExt;

/// How a Zstandard frame begins (RFC 8878, section 3.1.1).
const ZSTD: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// Of an address for people.
const URL_MAX: usize = 200;

/// Why an image cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("manifest {digest} cannot be read: {reason}")]
    Unreadable { digest: Digest, reason: String },
    #[error("index {digest} has no image for linux/{architecture}")]
    Platform { digest: Digest, architecture: String },
}

/// Layers that are not as usual.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Packed with Zstandard, by what the manifest says.
    pub zstd: Vec<Digest>,
    /// Their registry need not have them; where the manifest says that they are.
    pub elsewhere: Vec<(Digest, String)>,
}

impl Upstream {
    /// Looks at an image, or at the one for this architecture if it is an index.
    ///
    /// # Errors
    /// When the registry does not give the manifest, or gives one that is none.
    pub async fn inspect(&self, image: &Digest, architecture: &str) -> Result<Layers, InspectError> {
        let mut manifest = self.read(image).await?;
        if manifest.config.is_none() && !manifest.manifests.is_empty() {
            let mut fits = manifest.manifests.iter().filter(|it| it.runs_on(architecture));
            let below = fits.next().and_then(Named::digest).ok_or_else(|| InspectError::Platform {
                digest: *image,
                architecture: architecture.to_owned(),
            })?;
            manifest = self.read(&below).await?;
        }
        let mut layers = Layers::default();
        for (named, digest) in manifest.layers.iter().filter_map(|it| Some((it, it.digest()?))) {
            if named.is_zstd() {
                layers.zstd.push(digest);
            }
            layers
                .elsewhere
                .extend(named.elsewhere().map(|url| (digest, url.chars().take(URL_MAX).collect())));
        }
        Ok(layers)
    }

    /// Whether a blob begins as Zstandard does.
    ///
    /// # Errors
    /// When the registry does not give it.
    pub async fn is_zstd(&self, blob: &Digest) -> Result<bool, HttpError> {
        let mut body = self.blob(blob, 0).await?.into_body();
        let mut first = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            first.extend(frame.data_ref().into_iter().flatten().take(ZSTD.len()));
            if first.len() >= ZSTD.len() {
                break;
            }
        }
        Ok(first.starts_with(&ZSTD))
    }

    async fn read(&self, digest: &Digest) -> Result<Manifest, InspectError> {
        let bytes = self.manifest(digest).await?;
        Manifest::read(&bytes)
            .map_err(|error| InspectError::Unreadable { digest: *digest, reason: error.to_string() })
    }
}
