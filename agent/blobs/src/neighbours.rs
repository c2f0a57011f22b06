//! Serves neighbours: whole blobs of images that were granted to them, over mutual TLS. Nothing is fetched on
//! their behalf, so no question goes in a circle.

use crate::answer::{Body, blob, refusal};
use crate::digest::Digest;
use crate::reader::{Check, Reader};
use crate::server::{Answering, accept, converse};
use crate::sources::NODE;
use crate::store::Store;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::node_name;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use serde::Deserialize;
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
    grants: Arc<RwLock<Grants>>,
}

impl Neighbours {
    /// Serves nobody until [`grant`](Self::grant) says whom; `tls` has to ask for certificates of the cluster.
    #[must_use]
    pub fn new(store: Store, tls: Arc<ServerConfig>) -> Self {
        Self { store, tls, grants: Arc::default() }
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
            Box::pin(async move { neighbours.answer(&request, &certificate).await })
        };
        converse(Box::new(stream), Box::new(answer)).await;
    }

    /// `GET /blobs/<digest>`, from the node that the header names and the certificate shows.
    async fn answer(&self, request: &Request<Incoming>, certificate: &CertificateDer<'_>) -> Response<Body> {
        let told = request.headers().get(NODE).and_then(|value| value.to_str().ok()?.parse::<NodeId>().ok());
        let Some(node) = told.filter(|node| is_of(certificate, node)) else {
            tracing::warn!("a certificate of another node asks for layers");
            return refusal(StatusCode::FORBIDDEN, "DENIED", "the certificate is of another node");
        };
        let digest = request.uri().path().strip_prefix("/blobs/").and_then(|text| text.parse().ok());
        let Some(digest) = digest.filter(|_| request.method() == Method::GET) else {
            return refusal(StatusCode::NOT_FOUND, "UNSUPPORTED", "blobs alone are served here");
        };
        let store = self.clone();
        let found = tokio::task::spawn_blocking(move || store.granted(&node, &digest)).await;
        match found.ok().flatten() {
            Some(reader) => blob(&digest, reader, request.headers()),
            // Whether it is here is no business of those who may not have it.
            None => {
                refusal(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", "no blob of an image that is granted to you")
            }
        }
    }

    fn granted(&self, node: &NodeId, digest: &Digest) -> Option<Reader> {
        let images = self.grants.read().unwrap_or_else(PoisonError::into_inner).get(node).cloned()?;
        let names = images.iter().any(|image| image == digest || self.names(image, digest, DEPTH_MAX));
        let (file, bytes) = names.then(|| self.store.whole(digest)).flatten()?;
        Some(Reader::of_whole(file, bytes, Check::new(*digest, &self.store)))
    }

    /// Whether the manifest or index that is kept here names the blob, itself or by those it points to.
    fn names(&self, manifest: &Digest, wanted: &Digest, depth: usize) -> bool {
        let Some(bytes) = self.store.read(manifest).filter(|_| depth > 0) else { return false };
        let Ok(Manifest { config, layers, manifests }) = serde_json::from_slice(&bytes) else { return false };
        let is = |named: &Named| named.digest.parse().is_ok_and(|digest: Digest| digest == *wanted);
        let below = |named: &Named| named.digest.parse().is_ok_and(|one| self.names(&one, wanted, depth - 1));
        config.iter().chain(&layers).chain(&manifests).any(is) || manifests.iter().any(below)
    }
}

#[derive(Deserialize)]
struct Manifest {
    config: Option<Named>,
    #[serde(default)]
    layers: Vec<Named>,
    #[serde(default)]
    manifests: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    digest: String,
}

/// The certificate is valid for the node's name; that it is of this cluster was asked in the handshake.
fn is_of(certificate: &CertificateDer<'_>, node: &NodeId) -> bool {
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    ServerName::try_from(node_name(node)).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
}
