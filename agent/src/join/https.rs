//! One question to the controller's API over TLS.

use super::server::controller_name;
use edgeloom_common::view::Problem;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// From connecting to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// A certificate and two authorities are a few kilobytes.
const ANSWER_MAX: usize = 256 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("cannot reach the controller at {host}:{port}: {source}")]
    Unreachable { host: String, port: u16, source: io::Error },
    #[error("what answers at {host}:{port} is not the controller that is trusted here: {source}")]
    Untrusted { host: String, port: u16, source: rustls::Error },
    #[error(
        "what answers at {host}:{port} speaks no TLS with us: {source}; is its API insecure, or another program's port?"
    )]
    NoTls { host: String, port: u16, source: io::Error },
    #[error("the controller at {host}:{port} did not answer within {} s", PATIENCE.as_secs())]
    Slow { host: String, port: u16 },
    #[error("what answers at {host}:{port} is no Edgeloom controller: {reason}")]
    Answer { host: String, port: u16, reason: String },
    #[error("the controller refused: {said}", said = refusal(.0))]
    Refused(Problem),
}

fn refusal(problem: &Problem) -> String {
    format!("{}: {}", problem.title, problem.detail)
}

/// Where to ask, and how to know who answers.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: Arc<ClientConfig>,
}

impl Api {
    pub(super) async fn fetch<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        self.ask(Method::GET, path, Bytes::new()).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, AskError> {
        let body = serde_json::to_vec(body).expect("requests are texts");
        self.ask(Method::POST, path, body.into()).await
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Result<T, AskError> {
        let slow = |_| AskError::Slow { host: self.host.clone(), port: self.port };
        let (status, bytes) = timeout(PATIENCE, self.exchange(method, path, body)).await.map_err(slow)??;
        if !status.is_success() {
            let problem = serde_json::from_slice(&bytes).map(AskError::Refused);
            return Err(problem.unwrap_or_else(|_| self.unexpected(format!("status {status}"))));
        }
        serde_json::from_slice(&bytes).map_err(|error| self.unexpected(error.to_string()))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(hyper::StatusCode, Bytes), AskError> {
        let (host, port) = (&self.host, self.port);
        let unreachable = |source| AskError::Unreachable { host: host.clone(), port, source };
        let untrusted = |source: io::Error| {
            let cause = source.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
            match cause {
                Some(cause @ rustls::Error::InvalidCertificate(_)) => {
                    AskError::Untrusted { host: host.clone(), port, source: cause.clone() }
                }
                _ => AskError::NoTls { host: host.clone(), port, source },
            }
        };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(controller_name(), stream).await.map_err(untrusted)?;
        let unexpected = |error: hyper::Error| self.unexpected(error.to_string());
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(unexpected)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", host)
            .header("content-type", "application/json")
            .body(Full::new(body))
            .expect("method, path and host are sound");
        let answer = async {
            let response = sender.send_request(request).await.map_err(unexpected)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let body = body.map_err(|error| self.unexpected(error.to_string()))?;
            Ok::<_, AskError>((status, body.to_bytes()))
        };
        tokio::pin!(connection);
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            ended = &mut connection => match ended {
                // Closed after its last byte, which the answer has still to take in.
                Ok(()) => answer.await,
                Err(error) => Err(unexpected(error)),
            },
        }
    }

    fn unexpected(&self, reason: String) -> AskError {
        AskError::Answer { host: self.host.clone(), port: self.port, reason }
    }
}
