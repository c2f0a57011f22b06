//! The registry that Docker pulls from: HTTP/1 on a loopback address, which Docker trusts without TLS.

use crate::CHUNK_BYTES;
use crate::digest::Digest;
use crate::flight::Flights;
use crate::store::Store;
use crate::ticket::{Admitted, SPACE, Ticket, Tickets};
use crate::upstream::Upstream;
use futures_util::TryStreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, RANGE,
    WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Docker uses a handful; more are somebody else's.
const CONNECTIONS_MAX: usize = 64;
/// For the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// After an accept that failed, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const OCTETS: &str = "application/octet-stream";

type Body = UnsyncBoxBody<Bytes, io::Error>;

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
    pub fn new(store: Store, address: SocketAddr) -> Self {
        Self { flights: Flights::new(store.clone()), store, tickets: Tickets::default(), address }
    }

    /// Lets one pull in, from this registry.
    #[must_use]
    pub fn admit(&self, upstream: Upstream) -> Ticket {
        self.tickets.admit(upstream, self.address)
    }

    /// Serves until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let slot = Arc::clone(&slots).acquire_owned().await.expect("nobody closes it");
            match listener.accept().await {
                Ok((stream, _)) => {
                    let proxy = self.clone();
                    tokio::spawn(async move {
                        proxy.converse(stream).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the layer proxy takes no connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn converse(self, stream: TcpStream) {
        let answer = service_fn(move |request| {
            let proxy = self.clone();
            async move { Ok::<_, Infallible>(proxy.answer(request).await) }
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(CHUNK_BYTES);
        if let Err(error) = server.serve_connection(TokioIo::new(stream), answer).await {
            // A pull that was given up looks like this.
            tracing::debug!(%error, "a connection to the layer proxy ended");
        }
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
        let bytes = match self.kept(&digest).await {
            Some(bytes) => bytes,
            None => match pull.upstream.manifest(&digest).await {
                Ok(bytes) => {
                    self.keep(digest, bytes.clone()).await;
                    bytes
                }
                Err(error) => {
                    return refusal(StatusCode::BAD_GATEWAY, "MANIFEST_UNKNOWN", &error.to_string());
                }
            },
        };
        let mut answer = plain(StatusCode::OK, "");
        put(&mut answer, CONTENT_TYPE, &media_type(&bytes));
        put(&mut answer, CONTENT_LENGTH, &bytes.len().to_string());
        put(&mut answer, DIGEST, &digest.to_string());
        *answer.body_mut() = full(bytes);
        answer
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
        let reader = match self.flights.reader(digest, pull).await {
            Ok(reader) => reader,
            Err(error) => return refusal(StatusCode::BAD_GATEWAY, "BLOB_UNKNOWN", &error),
        };
        let total = reader.total();
        let from = headers.get(RANGE).and_then(|value| first_byte(value.to_str().ok()?));
        let mut answer = plain(StatusCode::OK, "");
        put(&mut answer, CONTENT_TYPE, OCTETS);
        put(&mut answer, ACCEPT_RANGES, "bytes");
        put(&mut answer, DIGEST, &digest.to_string());
        let from = match (from, total) {
            (Some(from), Some(total)) if from < total => {
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                put(&mut answer, CONTENT_RANGE, &format!("bytes {from}-{}/{total}", total - 1));
                from
            }
            (Some(from), Some(total)) => {
                let why = format!("the blob has {total} bytes, byte {from} is none of them");
                return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "BLOB_UPLOAD_INVALID", &why);
            }
            // Whoever asks for a part may be given the whole (RFC 9110, section 14.2).
            _ => 0,
        };
        if let Some(total) = total {
            put(&mut answer, CONTENT_LENGTH, &(total - from).to_string());
        }
        let stream = reader.stream(from).map_ok(Frame::data);
        *answer.body_mut() = StreamBody::new(stream).boxed_unsync();
        answer
    }
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    Manifest(Digest),
    Blob(Digest),
}

/// `bytes=N-`: what Docker asks for. Other ranges count as none.
fn first_byte(range: &str) -> Option<u64> {
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

/// A manifest says what it is; those that need not are of the OCI.
fn media_type(manifest: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Manifest {
        media_type: Option<String>,
        manifests: Option<serde::de::IgnoredAny>,
    }
    const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
    match serde_json::from_slice::<Manifest>(manifest) {
        Ok(Manifest { media_type: Some(said), .. }) => said,
        Ok(Manifest { manifests: Some(_), .. }) => INDEX.to_owned(),
        _ => IMAGE.to_owned(),
    }
}

fn challenge() -> Response<Body> {
    let mut answer = refusal(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "the token of a pull is needed");
    put(&mut answer, WWW_AUTHENTICATE, "Basic realm=\"edgeloom\"");
    answer
}

/// An error in the specification's form.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let errors = serde_json::json!({ "errors": [{ "code": code, "message": message }] });
    plain(status, &errors.to_string())
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut answer = Response::new(full(Bytes::copy_from_slice(text.as_bytes())));
    *answer.status_mut() = status;
    put(&mut answer, CONTENT_TYPE, "application/json");
    put(&mut answer, HeaderName::from_static("docker-distribution-api-version"), "registry/2.0");
    answer
}

/// A value with characters that no header may have is left out.
fn put(answer: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = value.parse() {
        answer.headers_mut().insert(name, value);
    }
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}
