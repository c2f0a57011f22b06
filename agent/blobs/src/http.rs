//! One request to a registry, and its answer's beginning.

use crate::CHUNK_BYTES;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderName, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// From connecting to the head of the answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Registries send readers of blobs on to their storage, once as a rule.
const REDIRECTS_MAX: usize = 5;
const AGENT: &str = concat!("edgeloom-agent/", env!("CARGO_PKG_VERSION"));

/// Why a registry gave no answer, or none of use.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{url:?} is no address of a registry")]
    Address { url: String },
    #[error("cannot reach {host}: {source}")]
    Unreachable { host: String, source: io::Error },
    #[error("{host} did not answer within {} s", PATIENCE.as_secs())]
    Slow { host: String },
    #[error("{host} broke off: {source}")]
    Broken { host: String, source: hyper::Error },
    #[error("{host} sends readers on more than {REDIRECTS_MAX} times")]
    Redirects { host: String },
    #[error("{host} answers {path} with status {status}")]
    Status { host: String, path: String, status: u16 },
    #[error("{host} wants another kind of login than it says: {challenge:?}")]
    Challenge { host: String, challenge: String },
    #[error("{host} wants the login sent in the clear")]
    InTheClear { host: String },
    #[error("{host} sent something else than {wanted}")]
    Content { host: String, wanted: String },
}

/// Our end of the connection that an answer comes over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local(pub(crate) IpAddr);

/// Header fields of a request.
pub(crate) type Fields = Vec<(HeaderName, String)>;

/// How to get to a server.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) tls: Arc<ClientConfig>,
    /// Instead of asking what the name in the URL stands for.
    pub(crate) address: Option<SocketAddr>,
}

/// Asks, follows where it is sent on, and gives any answer that is no redirect. What is `private` goes to the
/// first host alone.
pub(crate) async fn ask(
    way: &Way,
    url: &str,
    fields: &Fields,
    private: &Fields,
) -> Result<Response<Incoming>, HttpError> {
    let mut url: Uri = url.parse().map_err(|_| HttpError::Address { url: url.to_owned() })?;
    let first = host(&url)?;
    for _ in 0..=REDIRECTS_MAX {
        let own = host(&url)? == first;
        let all: Vec<_> = fields.iter().chain(private.iter().filter(|_| own)).collect();
        let slow = |_| HttpError::Slow { host: first.clone() };
        let question = Question { method: Method::GET, fields: &all, body: Bytes::new() };
        let answer = timeout(PATIENCE, exchange(way, &url, question)).await.map_err(slow)??;
        let onward = |status: StatusCode| status.is_redirection() && status != StatusCode::NOT_MODIFIED;
        if !onward(answer.status()) {
            return Ok(answer);
        }
        url = next(&url, &answer)?;
    }
    Err(HttpError::Redirects { host: first })
}

/// All of a small answer, which is `wanted`.
pub(crate) async fn whole(
    answer: Response<Incoming>,
    max: usize,
    (host, wanted): (&str, String),
) -> Result<Bytes, HttpError> {
    let host = host.to_owned();
    let collected = timeout(PATIENCE, Limited::new(answer.into_body(), max).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        // What breaks off may come whole the next time; what is too long never will.
        Ok(Err(error)) => Err(match error.downcast() {
            Ok(source) => HttpError::Broken { host, source: *source },
            Err(_) => HttpError::Content { host, wanted },
        }),
        Err(_) => Err(HttpError::Slow { host }),
    }
}

/// Hands something small over. Nobody is sent on with it.
pub(crate) async fn put(
    way: &Way,
    url: &str,
    fields: &Fields,
    body: Bytes,
) -> Result<Response<Incoming>, HttpError> {
    let url: Uri = url.parse().map_err(|_| HttpError::Address { url: url.to_owned() })?;
    let question = Question { method: Method::PUT, fields: &fields.iter().collect::<Vec<_>>(), body };
    exchange(way, &url, question).await
}

/// Host and port.
pub(crate) fn host(url: &Uri) -> Result<String, HttpError> {
    let authority = url.authority().map(ToString::to_string);
    authority.ok_or_else(|| HttpError::Address { url: url.to_string() })
}

fn next(url: &Uri, answer: &Response<Incoming>) -> Result<Uri, HttpError> {
    let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let address = || HttpError::Address { url: location.to_owned() };
    let found: Uri = location.parse().map_err(|_| address())?;
    if found.authority().is_some() {
        // Nobody is led from TLS to plain text.
        let fallen = url.scheme_str() == Some("https") && found.scheme_str() != Some("https");
        return if fallen { Err(address()) } else { Ok(found) };
    }
    let mut parts = url.clone().into_parts();
    parts.path_and_query = found.into_parts().path_and_query;
    Uri::from_parts(parts).map_err(|_| address())
}

struct Question<'a> {
    method: Method,
    fields: &'a [&'a (HeaderName, String)],
    body: Bytes,
}

async fn exchange(way: &Way, url: &Uri, question: Question<'_>) -> Result<Response<Incoming>, HttpError> {
    let address = || HttpError::Address { url: url.to_string() };
    let name = url.host().ok_or_else(address)?;
    let https = match url.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(address()),
    };
    let host = host(url)?;
    let unreachable = |source| HttpError::Unreachable { host: host.clone(), source };
    let port = url.port_u16().unwrap_or(if https { 443 } else { 80 });
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let stream = match way.address {
        Some(address) => TcpStream::connect(address).await,
        None => TcpStream::connect((bare, port)).await,
    };
    let stream = stream.map_err(unreachable)?;
    let local = stream.local_addr().map(|address| Local(address.ip().to_canonical()));
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let Question { method, fields, body } = question;
    let mut request =
        Request::builder().method(method).uri(path).header(HOST, &host).header(USER_AGENT, AGENT);
    for (field, value) in fields {
        request = request.header(field, value);
    }
    let request = request.body(Full::new(body)).map_err(|_| address())?;
    let broken = |source| HttpError::Broken { host: host.clone(), source };
    let stream: Box<dyn Stream> = if https {
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| address())?;
        let shaken = TlsConnector::from(Arc::clone(&way.tls)).connect(name, stream).await;
        Box::new(shaken.map_err(unreachable)?)
    } else {
        Box::new(stream)
    };
    let mut answer = send(stream, request).await.map_err(broken)?;
    if let Ok(local) = local {
        answer.extensions_mut().insert(local);
    }
    Ok(answer)
}

/// A connection, in plain text or not: as one type it needs the code of HTTP once.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

async fn send(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, hyper::Error> {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(CHUNK_BYTES);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // Ends with the answer's body, whether that is read to its end or dropped.
    tokio::spawn(connection);
    sender.send_request(request).await
}
