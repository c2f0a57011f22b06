//! Serves neighbours: whole blobs of images that were granted to them, over mutual TLS. Which blobs those are is
//! in the manifests; a neighbour hands over what is missing of those, so a base layer that came with one image
//! is given for any other. Nothing is fetched on their behalf, so no question goes in a circle.

use crate::CHUNK_BYTES;
use crate::answer::{Body, blob, plain, refusal};
use crate::manifest::{Manifest, Named};
use crate::reader::{Check, Reader};
use crate::server::{Answering, accept, converse};
use crate::sources::NODE;
use crate::store::Store;
use edgeloom_common::digest::Digest;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::node_name;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response, StatusCode};
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Priority;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How deep an index may point to indexes.
const DEPTH_MAX: usize = 3;
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Which images each neighbour may have, by the digests of their manifests.
pub type Grants = BTreeMap<NodeId, BTreeSet<Digest>>;

/// A handle; clones share the grants.
#[derive(Debug, Clone)]
pub struct Neighbours {
    store: Store,
    tls: Arc<ServerConfig>,
    /// What sends tell the kernel of themselves.
    priority: Option<u32>,
    grants: Arc<RwLock<Grants>>,
}

impl Neighbours {
    /// Serves nobody until [`grant`](Self::grant) says whom; `tls` has to ask for certificates of the cluster.
    #[must_use]
    pub fn new(store: Store, tls: Arc<ServerConfig>) -> Self {
        Self { store, tls, priority: None, grants: Arc::default() }
    }

    /// The same; connections have this `SO_PRIORITY` (socket(7)), by which the kernel tells them from others'.
    #[must_use]
    pub fn with_priority(self, priority: u32) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// These images, and no others from now on.
    pub fn grant(&self, grants: Grants) {
        *self.grants.write().unwrap_or_else(PoisonError::into_inner) = grants;
    }

    /// Serves until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        accept(listener, |stream| self.clone().converse(stream)).await;
    }

    async fn converse(self, stream: TcpStream) {
        if let Some(priority) = self.priority {
            set_priority(&stream, priority);
        }
        let shaken = timeout(HANDSHAKE_TIME, TlsAcceptor::from(Arc::clone(&self.tls)).accept(stream)).await;
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::warn!(%error, "somebody without a certificate of this cluster asks for layers");
                return;
            }
            Err(_) => return,
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let Some(certificate) = certificates.first().map(|one| one.clone().into_owned()) else { return };
        let answer = move |request| -> Answering {
            let (neighbours, certificate) = (self.clone(), certificate.clone());
            Box::pin(async move { neighbours.answer(request, &certificate).await })
        };
        converse(Box::new(stream), Box::new(answer)).await;
    }

    /// `GET /blobs/<digest>` or `PUT /manifests/<digest>`, from the node that the header names and the certificate
    /// shows.
    async fn answer(&self, request: Request<Incoming>, certificate: &CertificateDer<'_>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let told = head.headers.get(NODE).and_then(|value| value.to_str().ok()?.parse::<NodeId>().ok());
        let Some(node) = told.filter(|node| is_of(certificate, node)) else {
            tracing::warn!("a certificate of another node asks for layers");
            return refusal(StatusCode::FORBIDDEN, "DENIED", "the certificate is of another node");
        };
        let named = |space: &str| head.uri.path().strip_prefix(space)?.parse::<Digest>().ok();
        match (&head.method, named("/blobs/"), named("/manifests/")) {
            (&Method::GET, Some(blob), _) => self.give(node, blob, &head.headers).await,
            (&Method::PUT, _, Some(manifest)) => self.learn(node, manifest, body).await,
            _ => refusal(StatusCode::NOT_FOUND, "UNSUPPORTED", "blobs alone are served here"),
        }
    }

    async fn give(&self, node: NodeId, digest: Digest, headers: &HeaderMap) -> Response<Body> {
        let store = self.clone();
        let found = tokio::task::spawn_blocking(move || store.granted(&node, &digest)).await;
        match found.ok().flatten() {
            Some(reader) => blob(&digest, reader, headers),
            // Whether it is here is no business of those who may not have it.
            None => {
                refusal(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", "no blob of an image that is granted to you")
            }
        }
    }

    /// Takes in the manifest of an image that this neighbour may have: from now on it is known which blobs that
    /// means, whether or not the image is here. The digest vouches for it; it is kept like any other blob, within
    /// the budget.
    async fn learn(&self, node: NodeId, digest: Digest, body: Incoming) -> Response<Body> {
        let denied = |why| refusal(StatusCode::FORBIDDEN, "DENIED", why);
        let Ok(body) = Limited::new(body, CHUNK_BYTES).collect().await else {
            return denied("a manifest is smaller");
        };
        let (store, bytes) = (self.clone(), body.to_bytes());
        let kept = tokio::task::spawn_blocking(move || {
            (Digest::of(&bytes) == digest && store.may_have(&node, &digest))
                .then(|| store.store.put(&digest, &bytes))
        });
        match kept.await.ok().flatten() {
            Some(Ok(())) => plain(StatusCode::CREATED, "{}"),
            Some(Err(error)) => {
                tracing::debug!(%digest, %error, "a neighbour's manifest is not kept");
                refusal(StatusCode::INSUFFICIENT_STORAGE, "UNKNOWN", "it cannot be kept here")
            }
            None => denied("not the manifest of an image that is granted to you"),
        }
    }

    fn granted(&self, node: &NodeId, digest: &Digest) -> Option<Reader> {
        let (file, bytes) = self.may_have(node, digest).then(|| self.store.whole(digest)).flatten()?;
        Some(Reader::of_whole(file, bytes, Check::new(*digest, &self.store)))
    }

    fn may_have(&self, node: &NodeId, digest: &Digest) -> bool {
        let images = self.grants.read().unwrap_or_else(PoisonError::into_inner).get(node).cloned();
        let mut images = images.iter().flatten();
        images.any(|image| image == digest || self.names(image, digest, DEPTH_MAX))
    }

    /// Whether the manifest or index that is kept here names the blob, itself or by those it points to.
    fn names(&self, manifest: &Digest, wanted: &Digest, depth: usize) -> bool {
        let Some(bytes) = self.store.read(manifest).filter(|_| depth > 0) else { return false };
        let Ok(Manifest { config, layers, manifests }) = Manifest::read(&bytes) else { return false };
        let is = |named: &Named| named.digest().is_some_and(|digest| digest == *wanted);
        let below = |named: &Named| named.digest().is_some_and(|one| self.names(&one, wanted, depth - 1));
        config.iter().chain(&layers).chain(&manifests).any(is) || manifests.iter().any(below)
    }
}

/// Without it layers are served all the same, among whatever else the node sends.
fn set_priority(stream: &TcpStream, priority: u32) {
    let priority = i32::try_from(priority).map_err(|_| Errno::EINVAL);
    if let Err(error) = priority.and_then(|priority| setsockopt(stream, Priority, &priority)) {
        tracing::debug!(%error, "layers for a neighbour have no class of their own");
    }
}

/// The certificate is valid for the node's name; that it is of this cluster was asked in the handshake.
fn is_of(certificate: &CertificateDer<'_>, node: &NodeId) -> bool {
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    ServerName::try_from(node_name(node)).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
}
