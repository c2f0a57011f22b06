//! The registry that Docker pulls from: HTTP/1 on a loopback address, which Docker trusts without TLS.

use crate::answer::{self, Body, empty, plain, put, refusal};
use crate::failure::Failure;
use crate::flight::Flights;
use crate::server::{Answering, accept, converse};
use crate::sources::Sources;
use crate::store::Store;
use crate::ticket::{Admitted, SPACE, Ticket, Tickets};
use crate::upstream::Upstream;
use edgeloom_common::digest::Digest;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A handle; clones share everything.
#[derive(Debug, Clone)]
pub struct Proxy {
    store: Store,
    flights: Flights,
    tickets: Tickets,
    address: SocketAddr,
}

impl Proxy {
    /// A proxy that will listen on this address.
    #[must_use]
    pub fn new(store: Store, sources: Sources, address: SocketAddr) -> Self {
        Self { flights: Flights::new(store.clone(), sources), store, tickets: Tickets::default(), address }
    }

    /// Lets one pull in, from this registry.
    #[must_use]
    pub fn admit(&self, upstream: Upstream) -> Ticket {
        self.tickets.admit(upstream, self.address)
    }

    /// Serves until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        accept(listener, |stream| {
            let proxy = self.clone();
            let answer = move |request| -> Answering {
                let proxy = proxy.clone();
                Box::pin(async move { proxy.answer(request).await })
            };
            converse(Box::new(stream), Box::new(answer))
        })
        .await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, _) = request.into_parts();
        let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(authorization) = authorization.filter(|text| self.tickets.knows(text)) else {
            return challenge();
        };
        if head.method != Method::GET && head.method != Method::HEAD {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "pulls alone are served here");
        }
        let path = head.uri.path();
        if path == "/v2" || path == "/v2/" {
            return plain(StatusCode::OK, "{}");
        }
        let Some((pull, wanted)) = self.wanted(path, authorization) else {
            return refusal(StatusCode::NOT_FOUND, "NAME_UNKNOWN", "no pull of this name is admitted");
        };
        let mut answer = match wanted {
            Wanted::Manifest(digest) => self.manifest(&pull, digest).await,
            Wanted::Blob(digest) => self.blob(&pull, digest, &head.headers).await,
        };
        if head.method == Method::HEAD {
            *answer.body_mut() = empty();
        }
        answer
    }

    /// `/v2/pull/<id>/manifests/<digest>` or `…/blobs/<digest>`, of a pull that this token is for.
    fn wanted(&self, path: &str, authorization: &str) -> Option<(Arc<Admitted>, Wanted)> {
        let rest = path.strip_prefix("/v2/")?.strip_prefix(SPACE)?.strip_prefix('/')?;
        let (id, rest) = rest.split_once('/')?;
        let (kind, digest) = rest.split_once('/')?;
        let digest = digest.parse().ok()?;
        let wanted = match kind {
            "manifests" => Wanted::Manifest(digest),
            "blobs" => Wanted::Blob(digest),
            _ => return None,
        };
        Some((self.tickets.of(id, authorization)?, wanted))
    }

    async fn manifest(&self, pull: &Arc<Admitted>, digest: Digest) -> Response<Body> {
        pull.asks_for(digest);
        let bytes = match self.kept(&digest).await {
            Some(bytes) => bytes,
            None => match pull.upstream.manifest(&digest).await {
                Ok(bytes) => {
                    self.keep(digest, bytes.clone()).await;
                    bytes
                }
                Err(error) => {
                    let failure = Failure::of(&error.into());
                    pull.failed(digest, &failure);
                    return refusal(StatusCode::BAD_GATEWAY, "MANIFEST_UNKNOWN", &failure.text);
                }
            },
        };
        pull.learn(&bytes);
        answer::manifest(&digest, bytes)
    }

    async fn kept(&self, digest: &Digest) -> Option<Bytes> {
        let (store, digest) = (self.store.clone(), *digest);
        let read = tokio::task::spawn_blocking(move || store.read(&digest)).await;
        read.ok().flatten().map(Bytes::from)
    }

    /// A pull that goes on while the registry is away needs the manifest too.
    async fn keep(&self, digest: Digest, bytes: Bytes) {
        let store = self.store.clone();
        let put = tokio::task::spawn_blocking(move || store.put(&digest, &bytes)).await;
        if let Err(error) = put.map_err(io::Error::other).flatten() {
            tracing::debug!(%digest, %error, "a manifest is not kept");
        }
    }

    async fn blob(&self, pull: &Arc<Admitted>, digest: Digest, headers: &HeaderMap) -> Response<Body> {
        let found = match pull.failure(&digest) {
            Some(failure) => Err(failure),
            None => self.flights.reader(digest, pull).await,
        };
        match found {
            Ok(reader) => answer::blob(&digest, reader, headers),
            // Docker asks again and again unless the answer is one of its few last words.
            Err(failure) if failure.lasting => refusal(StatusCode::FORBIDDEN, "DENIED", &failure.text),
            Err(failure) => refusal(StatusCode::BAD_GATEWAY, "BLOB_UNKNOWN", &failure.text),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    Manifest(Digest),
    Blob(Digest),
}

fn challenge() -> Response<Body> {
    let mut answer = refusal(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "the token of a pull is needed");
    put(&mut answer, WWW_AUTHENTICATE, "Basic realm=\"edgeloom\"");
    answer
}
