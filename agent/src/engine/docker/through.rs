//! Pulls through the layer store. Docker knows such an image by the store's address, which the next start of the
//! agent changes; so it is given a name in its own repository: the tag `edgeloom-<first digits of the digest>`.

use super::{Docker, EngineError, Request, has_status, streams};
use crate::engine::PullProgress;
use crate::engine::image::OWN_TAG;
use bollard::auth::DockerCredentials;
use bollard::query_parameters::{RemoveImageOptions, TagImageOptionsBuilder};
use edgeloom_blobs::{Digest, Proxy, Ticket, Upstream};
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::ImageRef;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::sync::watch;

/// Digits of the digest in the tag: no two images of a repository share them.
const DIGITS: usize = 32;

/// The tag under which a pulled image is found again.
fn tag(image: &ImageRef) -> String {
    let hex = image.digest.trim_start_matches("sha256:");
    format!("{OWN_TAG}{}", &hex[..hex.len().min(DIGITS)])
}

/// The name with that tag; none for an image that no registry has.
pub(in crate::engine) fn tagged(image: &ImageRef) -> Option<String> {
    (!image.repository.is_empty()).then(|| format!("{}:{}", image.repository, tag(image)))
}

pub(super) async fn pull(
    docker: &Docker,
    proxy: &Proxy,
    (image, digest, login): (&ImageRef, &Digest, Option<&Login>),
    progress: &watch::Sender<PullProgress>,
) -> Result<(), EngineError> {
    let ticket = proxy.admit(upstream(docker, image, login).await?);
    let reference = ticket.reference(digest);
    streams::fetch(docker, (&reference, Some(credentials(&ticket))), progress).await?;
    let counts = ticket.counts();
    tracing::info!(
        image = %image.name,
        registry_bytes = counts.registry.0,
        neighbour_bytes = counts.neighbours.0,
        kept_bytes = counts.kept.0,
        "image pulled"
    );
    name(docker, image, &reference).await
}

/// Gives the image its own name, and takes the store's away.
async fn name(docker: &Docker, image: &ImageRef, reference: &str) -> Result<(), EngineError> {
    let client = docker.client().await?;
    let refused = |error| docker.refusal(Request { verb: "tag image", object: &image.name }, &error);
    let options = TagImageOptionsBuilder::new().repo(&image.repository).tag(&tag(image)).build();
    client.tag_image(reference, Some(options)).await.map_err(refused)?;
    match client.remove_image(reference, None::<RemoveImageOptions>, None).await {
        Err(error) if !has_status(&error, 404) => Err(refused(error)),
        _ => Ok(()),
    }
}

fn credentials(ticket: &Ticket) -> DockerCredentials {
    let (user, token) = ticket.login();
    DockerCredentials {
        username: Some(user.to_owned()),
        password: Some(token.expose().to_owned()),
        ..Default::default()
    }
}

/// The registry as Docker would ask it: in plain text where Docker is told that it may.
async fn upstream(docker: &Docker, image: &ImageRef, login: Option<&Login>) -> Result<Upstream, EngineError> {
    let host = image.repository.split('/').next().unwrap_or_default();
    let info = docker.client().await?.info().await;
    let info = info.map_err(|error| docker.refusal(Request { verb: "ask", object: "info" }, &error))?;
    let registries = info.registry_config.and_then(|config| config.index_configs).unwrap_or_default();
    let told = registries.get(host).and_then(|one| one.secure).map(|secure| !secure);
    let plain = told.unwrap_or_else(|| is_loopback(host));
    let none =
        || EngineError::Pull { image: image.name.clone(), reason: "its name has no registry".to_owned() };
    Upstream::of(&image.repository, plain, tls(plain), login.cloned()).ok_or_else(none)
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

#[cfg(test)]
mod tests;
