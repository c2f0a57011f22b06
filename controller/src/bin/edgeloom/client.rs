//! The controller's HTTP API, as the command line uses it.

use crate::context::Target;
use crate::error::Error;
use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::secret::Secret;
use edgeloom_common::view::Problem;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Body, RequestBuilder};

/// How long the controller may take to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may take to begin its answer: a plan of a large job computes for seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest answer that is read, in bytes.
const ANSWER_MAX: u64 = 64 * 1024 * 1024;

/// A controller by its address.
pub(crate) struct Client {
    server: String,
    token: Option<Secret>,
    agent: ureq::Agent,
}

/// Trusts the authorities of the context and no other.
fn tls(authorities: Option<&str>) -> Result<TlsConfig, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities.unwrap_or_default().as_bytes())
        .map(|found| found.map(|found| Certificate::from_der(&found).to_owned()))
        .collect();
    let found = found.ok().filter(|found| !found.is_empty()).ok_or(Error::NoAuthority)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(found)))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

/// Whether a plain connection stays on this machine.
fn is_local(server: &str) -> bool {
    let rest = server.strip_prefix("http://").unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.strip_prefix('[').and_then(|rest| Some(rest.split_once(']')?.0));
    let host = host.unwrap_or_else(|| authority.split(':').next().unwrap_or_default());
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What to read of a job's logs.
#[derive(Clone, Copy)]
pub(crate) struct LogSelection<'a> {
    pub(crate) job: &'a JobName,
    pub(crate) task: Option<&'a TaskName>,
    pub(crate) follow: bool,
    pub(crate) tail: Option<u32>,
    /// Without what was logged before, in seconds since 1970.
    pub(crate) since_s: Option<u64>,
    /// Each line of a task begins with its time.
    pub(crate) timestamps: bool,
}

impl Client {
    pub(crate) fn new(target: &Target) -> Result<Self, Error> {
        let server = target.server.clone();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            // A redirect would take the token elsewhere.
            .max_redirects(0)
            // The controller is on this machine or network; a proxy for the web does not know it.
            .proxy(None);
        let config = if server.starts_with("https://") {
            config.tls_config(tls(target.authorities.as_deref())?)
        } else if !server.starts_with("http://") {
            return Err(Error::Server { server });
        } else if target.token.is_some() && !is_local(&server) {
            return Err(Error::PlainToken { server });
        } else {
            config
        };
        Ok(Self { server, token: target.token.clone(), agent: config.build().into() })
    }

    /// Fetches a document.
    pub(crate) fn fetch<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(self.signed(self.agent.get(self.url(path))).call())
    }

    /// Posts a job document.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, document: &[u8]) -> Result<T, Error> {
        let request = self.signed(self.agent.post(self.url(path)));
        self.read(request.header("content-type", "application/yaml").send(document))
    }

    /// Posts a document of the API's own.
    pub(crate) fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(self.signed(self.agent.post(self.url(path))).send_json(body))
    }

    /// Puts bytes in a place.
    pub(crate) fn put<T: DeserializeOwned>(&self, path: &str, bytes: &[u8]) -> Result<T, Error> {
        let request = self.signed(self.agent.put(self.url(path)));
        self.read(request.header("content-type", "application/octet-stream").send(bytes))
    }

    /// Puts a document of the API's own in a place.
    pub(crate) fn put_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(self.signed(self.agent.put(self.url(path))).send_json(body))
    }

    /// Deletes what is at a path.
    pub(crate) fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(self.signed(self.agent.delete(self.url(path))).call())
    }

    /// Deletes what is at a path and leaves nothing to tell.
    pub(crate) fn remove(&self, path: &str) -> Result<(), Error> {
        self.answer(self.signed(self.agent.delete(self.url(path))).call()).map(|_| ())
    }

    /// Posts a job document and opens the stream of the answer.
    pub(crate) fn stream(&self, path: &str, document: &[u8]) -> Result<impl Read + use<>, Error> {
        let request = self.signed(self.agent.post(self.url(path))).header("content-type", "application/yaml");
        let response = self.answer(request.send(document))?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// One line of a stream as a document.
    pub(crate) fn line<T: DeserializeOwned>(&self, line: &str) -> Result<T, Error> {
        serde_json::from_str(line).map_err(|error| self.cut(&error.to_string()))
    }

    /// A stream that did not come to its end.
    pub(crate) fn cut_off(&self, reason: &str) -> Error {
        Error::Cut { server: self.server.clone(), reason: reason.to_owned() }
    }

    /// A stream that began well and did not go on so.
    pub(crate) fn cut(&self, reason: &str) -> Error {
        Error::Answer { server: self.server.clone(), status: 200, reason: reason.to_owned() }
    }

    /// Opens a stream of logs.
    pub(crate) fn logs(&self, selection: &LogSelection<'_>) -> Result<impl Read + use<>, Error> {
        let mut path = format!("/v1/jobs/{}/logs?follow={}", selection.job, selection.follow);
        if let Some(task) = selection.task {
            path.push_str(&format!("&task={task}"));
        }
        if let Some(tail) = selection.tail {
            path.push_str(&format!("&tail={tail}"));
        }
        if let Some(since_s) = selection.since_s {
            path.push_str(&format!("&since={since_s}"));
        }
        if selection.timestamps {
            path.push_str("&timestamps=true");
        }
        let response = self.answer(self.signed(self.agent.get(self.url(&path))).call())?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// With the token, if there is one.
    fn signed<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.expose())),
            None => request,
        }
    }

    /// The controller that is asked.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server)
    }

    fn read<T: DeserializeOwned>(&self, result: Result<Response<Body>, ureq::Error>) -> Result<T, Error> {
        let mut response = self.answer(result)?;
        let status = response.status().as_u16();
        let unexpected = |reason: String| Error::Answer { server: self.server.clone(), status, reason };
        let bytes = response.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let cut = |error: ureq::Error| Error::Cut { server: self.server.clone(), reason: error.to_string() };
        let bytes = bytes.map_err(cut)?;
        serde_json::from_slice(&bytes).map_err(|error| unexpected(error.to_string()))
    }

    /// An answer of success, or the refusal as an error.
    fn answer(&self, result: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, Error> {
        let mut response = result
            .map_err(|error| Error::Unreachable { server: self.server.clone(), reason: error.to_string() })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let problem: Option<Problem> = response.body_mut().read_json().ok();
        Err(problem.map_or_else(
            || {
                let reason = "it holds no problem document".to_owned();
                Error::Answer { server: self.server.clone(), status, reason }
            },
            Error::Problem,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_in_the_clear_to_this_machine_alone() {
        for local in
            ["http://127.0.0.1:7070", "http://localhost", "http://[::1]:7070", "http://127.0.0.1:1/x"]
        {
            assert!(is_local(local), "{local}");
        }
        for away in [
            "http://10.0.0.1:7070",
            "http://127.0.0.1.example.org",
            "http://localhost.example.org:1",
            "http://[2001:db8::1]",
        ] {
            assert!(!is_local(away), "{away}");
            let token = Some("x".to_owned().into());
            let target = Target { server: away.to_owned(), token, authorities: None };
            assert!(matches!(Client::new(&target), Err(Error::PlainToken { .. })), "{away}");
        }
    }
}
