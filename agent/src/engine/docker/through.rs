//! Pulls through the layer store. Docker knows such an image by the store's address, which the next start of the
//! agent changes; so it is given a name in its own repository: the tag `edgeloom-<first digits of the digest>`.

use super::{Docker, EngineError, Request, has_status, streams};
use crate::engine::PullProgress;
use crate::engine::image::OWN_TAG;
use bollard::auth::DockerCredentials;
use bollard::query_parameters::{RemoveImageOptions, TagImageOptionsBuilder};
use edgeloom_blobs::{Blame, Digest, Proxy, Ticket, Upstream};
use edgeloom_common::desired::ImageRef;
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

/// Why a pull through the store failed.
pub(super) enum Failure {
    /// It may do without.
    Store(EngineError),
    Pull(EngineError),
}

pub(super) async fn pull(
    docker: &Docker,
    (proxy, upstream): (&Proxy, Upstream),
    (image, digest): (&ImageRef, &Digest),
    progress: &watch::Sender<PullProgress>,
) -> Result<(), Failure> {
    let ticket = proxy.admit(upstream);
    let reference = ticket.reference(digest);
    if let Err(error) = streams::fetch(docker, (&reference, Some(credentials(&ticket))), progress).await {
        return Err(judge(&ticket, image, error));
    }
    let counts = ticket.counts();
    progress.send_modify(|progress| progress.elsewhere = counts.neighbours.0 + counts.kept.0);
    tracing::info!(
        image = %image.name,
        registry_bytes = counts.registry.0,
        neighbour_bytes = counts.neighbours.0,
        kept_bytes = counts.kept.0,
        "image pulled"
    );
    name(docker, image, &reference).await.map_err(Failure::Store)
}

/// Docker's own disk, or the image, fails it again without the store; the store itself, or its way to the registry,
/// does not.
fn judge(ticket: &Ticket, image: &ImageRef, error: EngineError) -> Failure {
    let pull = |reason| EngineError::Pull { image: image.name.clone(), reason };
    match ticket.failure() {
        None => Failure::Pull(error),
        Some(edgeloom_blobs::Failure { text, blame: Blame::Image, .. }) => Failure::Pull(pull(text)),
        Some(edgeloom_blobs::Failure { text, .. }) => Failure::Store(pull(text)),
    }
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

#[cfg(test)]
mod tests;
