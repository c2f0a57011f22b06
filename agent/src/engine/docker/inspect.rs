//! What a pull will meet, as far as the image's registry tells it before: so that nothing is fetched which the engine
//! cannot take, and a refusal gets the registry's reason instead of the daemon's.
//!
//! The daemon may have other ways to an image than the agent (a mirror, an HTTP proxy), so nothing but what the
//! manifest itself says stops a pull.

use super::{Docker, EngineError, Request, store_of};
use bollard::models::SystemInfo;
use edgeloom_blobs::{Digest, HttpError, InspectError, Layers, Upstream};
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::report::ImageStore;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A registry that does not answer by then is the daemon's to wait for.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first Docker whose graph drivers unpack Zstandard (release notes of 23.0).
const ZSTD_SINCE: u32 = 23;
/// ENOSPC, as the daemon writes it.
const FULL: &str = "no space left on device";

/// The engine, as far as it decides how an image is pulled.
pub(super) struct Puller {
    pub(super) upstream: Upstream,
    /// Why it cannot take layers that are packed with Zstandard.
    without_zstd: Option<String>,
}

/// What is known of an image before it is pulled.
pub(super) struct Preview(Option<Result<Layers, InspectError>>);

impl Puller {
    /// None for an image that no registry has.
    pub(super) async fn of(
        docker: &Docker,
        (image, login): (&ImageRef, Option<&Login>),
    ) -> Result<Option<Self>, EngineError> {
        if image.repository.is_empty() {
            return Ok(None);
        }
        let info = docker.client().await?.info().await;
        let info = info.map_err(|error| docker.refusal(Request { verb: "ask", object: "info" }, &error))?;
        let without_zstd = without_zstd(&info);
        let host = image.repository.split('/').next().unwrap_or_default();
        let registries = info.registry_config.and_then(|config| config.index_configs).unwrap_or_default();
        let told = registries.get(host).and_then(|one| one.secure).map(|secure| !secure);
        // As Docker would ask it: in plain text where Docker is told that it may.
        let plain = told.unwrap_or_else(|| is_loopback(host));
        let upstream = Upstream::of(&image.repository, plain, tls(plain), login.cloned());
        Ok(upstream.map(|upstream| Self { upstream, without_zstd }))
    }

    /// Looks at the image; an error is a reason not to begin.
    pub(super) async fn preview(&self, image: &ImageRef) -> Result<Preview, EngineError> {
        let Ok(digest) = image.digest.parse::<Digest>() else { return Ok(Preview(None)) };
        let looked = timeout(PATIENCE, self.upstream.inspect(&digest, architecture())).await.ok();
        if let (Some(Ok(layers)), Some(engine)) = (&looked, &self.without_zstd) {
            for layer in &layers.zstd {
                // Registries mislabel layers: its first bytes decide.
                let begins = timeout(PATIENCE, self.upstream.is_zstd(layer)).await;
                if matches!(begins, Ok(Ok(true))) {
                    let reason = format!(
                        "layer {layer} is packed with zstd, which {engine} cannot take; update Docker to \
                         {ZSTD_SINCE}.0 or later, or push the image with gzip layers"
                    );
                    return Err(EngineError::Pull { image: image.name.clone(), reason });
                }
            }
        }
        Ok(Preview(looked))
    }
}

impl Preview {
    /// The error of a pull with what the preview adds to it.
    pub(super) fn explain(&self, image: &ImageRef, error: EngineError) -> EngineError {
        let reason = match &error {
            EngineError::Pull { reason, .. } | EngineError::Refused { reason, .. } => reason.clone(),
            _ => return error,
        };
        let reason = match &self.0 {
            _ if reason.contains(FULL) => {
                format!("{reason}; free some on the node's disk, the pull is tried again by itself")
            }
            Some(Err(wrong)) if is_of_image(wrong) => wrong.to_string(),
            Some(Ok(layers)) if reason.contains("blob") || reason.contains("404") => foreign(reason, layers),
            _ => reason,
        };
        EngineError::Pull { image: image.name.clone(), reason }
    }
}

/// The registry has answered, and not with this image. What it has for other platforms may do for the daemon.
fn is_of_image(error: &InspectError) -> bool {
    use HttpError::{Content, Status};
    matches!(error, InspectError::Unreadable { .. } | InspectError::Http(Status { .. } | Content { .. }))
}

/// With the layer that is not where the others are, if there is one.
fn foreign(reason: String, layers: &Layers) -> String {
    match layers.elsewhere.first() {
        Some((layer, url)) => format!(
            "{reason}; layer {layer} is a foreign one, which its registry need not have and Docker does not fetch \
             from {url:?}: push it with the image, or take another base"
        ),
        None => reason,
    }
}

/// What the engine is, if it cannot take Zstandard. containerd always can.
fn without_zstd(info: &SystemInfo) -> Option<String> {
    let version = info.server_version.as_deref().unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok())?;
    let graph = store_of(info) == ImageStore::Graphdriver;
    (graph && major < ZSTD_SINCE).then(|| format!("Docker {version}"))
}

/// As images name it; Docker runs where the agent does.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn is_loopback(host: &str) -> bool {
    host.starts_with("127.") || host == "localhost" || host.starts_with("localhost:")
}

/// Whom to trust in registries, read for this pull alone: the machine's list is a quarter of a megabyte.
fn tls(plain: bool) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if !plain {
        let found = rustls_native_certs::load_native_certs();
        found
            .errors
            .iter()
            .for_each(|error| tracing::warn!(%error, "some authorities of this machine do not read"));
        roots.add_parsable_certificates(found.certs);
    }
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
