//! What Docker does, and what it does it with.

use super::registry::Registry;
use base64::Engine as _;
use edgeloom_blobs::{Digest, Ticket, Upstream};
use edgeloom_common::confidential::Login;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::net::TcpStream;

pub(crate) fn tls() -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

pub(crate) fn upstream(registry: &Registry, credentials: Option<Login>) -> Upstream {
    Upstream::of(&format!("{}/r/i", registry.address), true, tls(), credentials).unwrap()
}

pub(crate) fn login(ticket: &Ticket) -> String {
    let (user, token) = ticket.login();
    let pair = format!("{user}:{}", token.expose());
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

/// What the proxy answers to a request with these header fields.
pub(crate) async fn ask(address: &str, path: &str, fields: &[(&str, &str)]) -> Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::get(path).header("host", address);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap()
}

/// As Docker asks for a blob of an admitted pull.
pub(crate) async fn blob(ticket: &Ticket, digest: &Digest, range: Option<&str>) -> Response<Incoming> {
    of(ticket, &format!("blobs/{digest}"), range.map(|range| ("range", range))).await
}

/// As Docker asks for its manifest.
pub(crate) async fn manifest(ticket: &Ticket, digest: &Digest) -> Response<Incoming> {
    of(ticket, &format!("manifests/{digest}"), None).await
}

async fn of(ticket: &Ticket, path: &str, field: Option<(&str, &str)>) -> Response<Incoming> {
    let repository = ticket.repository();
    let (address, name) = repository.split_once('/').unwrap();
    let login = login(ticket);
    let fields: Vec<_> = [("authorization", login.as_str())].into_iter().chain(field).collect();
    ask(address, &format!("/v2/{name}/{path}"), &fields).await
}

pub(crate) async fn bytes(answer: Response<Incoming>) -> Result<Bytes, hyper::Error> {
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// Bytes that no two places share.
pub(crate) fn layer(length: u32) -> Vec<u8> {
    (0..length).flat_map(|at| (at ^ 0x5eed).to_le_bytes()).take(length as usize).collect()
}
