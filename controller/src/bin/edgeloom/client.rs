//! The controller's HTTP API, as the command line uses it.

use crate::error::Error;
use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::view::Problem;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::time::Duration;
use ureq::Body;
use ureq::http::Response;

/// How long the controller may take to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may take to begin its answer: a plan of a large job computes for seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest answer that is read, in bytes.
const ANSWER_MAX: u64 = 64 * 1024 * 1024;

/// A controller by its address.
pub(crate) struct Client {
    server: String,
    agent: ureq::Agent,
}

/// What to read of a job's logs.
pub(crate) struct LogSelection<'a> {
    pub(crate) job: &'a JobName,
    pub(crate) task: Option<&'a TaskName>,
    pub(crate) follow: bool,
    pub(crate) tail: Option<u32>,
}

impl Client {
    pub(crate) fn new(server: &str) -> Result<Self, Error> {
        let server = server.trim_end_matches('/').to_owned();
        if !server.starts_with("http://") {
            return Err(Error::Server { server });
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            // The controller is on this machine or network; a proxy for the web does not know it.
            .proxy(None)
            .build();
        Ok(Self { server, agent: config.into() })
    }

    /// Fetches a document.
    pub(crate) fn fetch<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(self.agent.get(self.url(path)).call())
    }

    /// Posts a job document.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, document: &[u8]) -> Result<T, Error> {
        self.read(self.agent.post(self.url(path)).header("content-type", "application/yaml").send(document))
    }

    /// Deletes what is at a path.
    pub(crate) fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(self.agent.delete(self.url(path)).call())
    }

    /// Posts a job document and opens the stream of the answer.
    pub(crate) fn stream(&self, path: &str, document: &[u8]) -> Result<impl Read + use<>, Error> {
        let request = self.agent.post(self.url(path)).header("content-type", "application/yaml");
        let response = self.answer(request.send(document))?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// One line of a stream as a document.
    pub(crate) fn line<T: DeserializeOwned>(&self, line: &str) -> Result<T, Error> {
        serde_json::from_str(line).map_err(|error| self.cut(&error.to_string()))
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
        let response = self.answer(self.agent.get(self.url(&path)).call())?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server)
    }

    fn read<T: DeserializeOwned>(&self, result: Result<Response<Body>, ureq::Error>) -> Result<T, Error> {
        let mut response = self.answer(result)?;
        let status = response.status().as_u16();
        let unexpected = |reason: String| Error::Answer { server: self.server.clone(), status, reason };
        let bytes = response.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let bytes = bytes.map_err(|error| unexpected(error.to_string()))?;
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
