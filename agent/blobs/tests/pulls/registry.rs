//! A registry of the test's own: counts what it sends, breaks off when told to, asks for a login if it has one.

use edgeloom_blobs::Digest;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Default)]
pub(crate) struct State {
    pub(crate) blobs: HashMap<String, Bytes>,
    /// `Authorization` that is asked for, and the challenge that says so.
    pub(crate) login: Option<(String, String)>,
    /// Bytes that the next answers send before they break off.
    pub(crate) cuts: Vec<usize>,
    /// What the next answers refuse with.
    pub(crate) refusals: Vec<u16>,
    /// Blobs, by digest, that are sent over and over in one answer.
    pub(crate) endless: HashSet<String>,
    /// Bytes sent, by path.
    pub(crate) sent: HashMap<String, usize>,
    pub(crate) knows_ranges: bool,
    /// Between two pieces of 1 KiB.
    pub(crate) pause: Duration,
}

#[derive(Clone)]
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<Mutex<State>>,
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

impl Registry {
    pub(crate) async fn start() -> Self {
        Self::start_at([127, 0, 0, 1].into()).await
    }

    pub(crate) async fn start_at(address: IpAddr) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let state = State { knows_ranges: true, ..State::default() };
        let registry = Self { address: listener.local_addr().unwrap(), state: Arc::new(Mutex::new(state)) };
        let served = registry.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let registry = served.clone();
                let answer = service_fn(move |request| {
                    let registry = registry.clone();
                    async move { Ok::<_, Infallible>(registry.answer(&request)) }
                });
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                });
            }
        });
        registry
    }

    pub(crate) fn hold(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        let mut state = self.state.lock().unwrap();
        state.blobs.insert(digest.to_string(), Bytes::copy_from_slice(bytes));
        digest
    }

    /// Bytes of this blob that were sent so far.
    pub(crate) fn sent(&self, digest: &Digest) -> usize {
        let state = self.state.lock().unwrap();
        let of = |(path, sent): (&String, &usize)| path.ends_with(&digest.to_string()).then_some(*sent);
        state.sent.iter().filter_map(of).sum()
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let mut state = self.state.lock().unwrap();
        let path = request.uri().path().to_owned();
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        if path == "/token" {
            assert_eq!(header("authorization").as_deref(), Some("Basic YW5uOnNlY3JldA=="));
            assert_eq!(request.uri().query(), Some("service=test&scope=repository%3Ar%2Fi%3Apull"));
            return status(StatusCode::OK, r#"{"token":"t0ken"}"#);
        }
        if let Some((wanted, challenge)) = &state.login
            && header("authorization").as_ref() != Some(wanted)
        {
            let mut answer = status(StatusCode::UNAUTHORIZED, "");
            answer.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
            return answer;
        }
        if !state.refusals.is_empty() {
            return status(StatusCode::from_u16(state.refusals.remove(0)).unwrap(), "");
        }
        let digest = path.rsplit('/').next().unwrap();
        let Some(blob) = state.blobs.get(digest).cloned() else {
            return status(StatusCode::NOT_FOUND, "");
        };
        if state.endless.contains(digest) {
            let pieces = std::iter::repeat_with(move || Ok(Frame::data(blob.clone())));
            let body = StreamBody::new(futures_util::stream::iter(pieces)).boxed_unsync();
            return Response::new(body);
        }
        let range = header("range").filter(|_| state.knows_ranges);
        let from: usize = range.as_ref().map_or(0, |range| range[6..range.len() - 1].parse().unwrap());
        let rest = blob.slice(from..);
        let cut = if state.cuts.is_empty() { rest.len() } else { state.cuts.remove(0).min(rest.len()) };
        *state.sent.entry(path.clone()).or_default() += cut;
        let kind = if path.contains("/manifests/") { MANIFEST } else { "application/octet-stream" };
        let builder = Response::builder().header("content-length", rest.len()).header("content-type", kind);
        let builder = match from {
            0 => builder.status(StatusCode::OK),
            _ => builder
                .status(StatusCode::PARTIAL_CONTENT)
                .header("content-range", format!("bytes {from}-{}/{}", blob.len() - 1, blob.len())),
        };
        let whole = cut == rest.len();
        let mut pieces: Vec<io::Result<Frame<Bytes>>> =
            rest[..cut].chunks(1024).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
        if !whole {
            pieces.push(Err(io::Error::other("cut")));
        }
        let pause = state.pause;
        let stream =
            futures_util::StreamExt::then(futures_util::stream::iter(pieces), move |piece| async move {
                tokio::time::sleep(pause).await;
                piece
            });
        builder.body(StreamBody::new(stream).boxed_unsync()).unwrap()
    }
}

fn status(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {});
    Response::builder().status(status).body(body.boxed_unsync()).unwrap()
}
