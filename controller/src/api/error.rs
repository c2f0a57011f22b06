//! Every refusal of the API as a problem document (RFC 9457): the one place with status codes.

use crate::logs::LogsError;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use edgeloom_cluster::{StopError, SubmitError};
use edgeloom_common::job::line_of;
use edgeloom_common::view::{Problem, ProblemItem};
use std::any::Any;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("nothing is served at {path}; the API begins at /v1/jobs, /v1/nodes and /v1/events")]
    NoSuchPath { path: String },
    #[error("{path} has no method {method}; the Allow header names those it has")]
    NoSuchMethod { method: String, path: String },
    #[error("the path does not read: {reason}")]
    Path { reason: String },
    #[error("the query does not read: {reason}")]
    Query { reason: String },
    #[error("a document may have at most {limit} bytes")]
    BodyTooLarge { limit: usize },
    #[error("the document did not arrive within {seconds} s")]
    BodyTimeout { seconds: u64 },
    #[error("the document does not arrive: {reason}")]
    BodyUnreadable { reason: String },
    #[error("the document is not UTF-8 from byte {position} on")]
    BodyNotText { position: usize },
    #[error("the request has no document; post a job in YAML or JSON")]
    BodyEmpty,
    #[error("the document is no job")]
    JobInvalid(Vec<ProblemItem>),
    #[error("there is no job {name:?}")]
    UnknownJob { name: String },
    #[error("job {job} has no task {task:?}")]
    UnknownTask { job: String, task: String },
    #[error("node {node} is offline")]
    NodeOffline { node: String },
    /// Refused by the cluster; the document tells the lines of the fields.
    #[error("{error}")]
    Submit { error: SubmitError, document: Vec<u8> },
    #[error(transparent)]
    Logs(#[from] LogsError),
    #[error("the cluster's state is not available yet")]
    NotReady,
    #[error("the controller failed at this request; its log says more")]
    Internal,
}

impl From<StopError> for ApiError {
    fn from(error: StopError) -> Self {
        match error {
            StopError::Unknown(name) => Self::UnknownJob { name: name.to_string() },
            StopError::Unavailable(_) => Self::NotReady,
        }
    }
}

impl ApiError {
    /// Status, stable code and title.
    fn class(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::NoSuchPath { .. } => (StatusCode::NOT_FOUND, "path.unknown", "No such path"),
            Self::NoSuchMethod { .. } => {
                (StatusCode::METHOD_NOT_ALLOWED, "method.unknown", "No such method here")
            }
            Self::Path { .. } => (StatusCode::BAD_REQUEST, "path.unreadable", "Path not readable"),
            Self::Query { .. } => (StatusCode::BAD_REQUEST, "query.invalid", "Query not readable"),
            Self::BodyTooLarge { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body.too-large", "Document too large")
            }
            Self::BodyTimeout { .. } => (StatusCode::REQUEST_TIMEOUT, "body.slow", "Document too slow"),
            Self::BodyUnreadable { .. } | Self::BodyNotText { .. } | Self::BodyEmpty => {
                (StatusCode::BAD_REQUEST, "body.unreadable", "Document not readable")
            }
            Self::JobInvalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "job.invalid", "Job refused"),
            Self::UnknownJob { .. } => (StatusCode::NOT_FOUND, "job.unknown", "No such job"),
            Self::UnknownTask { .. } => (StatusCode::NOT_FOUND, "task.unknown", "No such task"),
            Self::NodeOffline { .. } => (StatusCode::SERVICE_UNAVAILABLE, "node.offline", "Node offline"),
            Self::Submit { error, .. } => submit_class(error),
            Self::Logs(_) => (StatusCode::SERVICE_UNAVAILABLE, "logs.unavailable", "Logs not available"),
            Self::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "controller.not-ready", "Not ready"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "controller.failed", "Controller failed"),
        }
    }

    fn problem(self) -> Problem {
        let (status, code, title) = self.class();
        let detail = self.to_string();
        let problems = match self {
            Self::JobInvalid(problems) => problems,
            Self::Submit { error, document } => {
                // What a placement lacks is told by node, and a node has no line.
                let by_field = !matches!(error, SubmitError::Unplaceable(_));
                let mut problems = submit_problems(error);
                problems
                    .iter_mut()
                    .filter(|_| by_field)
                    .for_each(|it| it.line = line_of(&document, &it.field));
                problems
            }
            _ => Vec::new(),
        };
        let (code, title) = (code.to_owned(), title.to_owned());
        Problem { code, title, status: status.as_u16(), detail, problems }
    }
}

fn submit_class(error: &SubmitError) -> (StatusCode, &'static str, &'static str) {
    match error {
        SubmitError::Exists(_) => (StatusCode::CONFLICT, "job.exists", "Job exists"),
        SubmitError::ProfileUnknown { .. } | SubmitError::SourceUnknown(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "job.invalid", "Job refused")
        }
        SubmitError::ImageUnknown(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "image.unknown", "Image not found")
        }
        SubmitError::Unplaceable(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "job.unplaceable", "Job fits nowhere")
        }
        SubmitError::RegistryUnreachable(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "registry.unreachable", "Registry not reachable")
        }
        SubmitError::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "controller.not-ready", "Not ready"),
    }
}

fn submit_problems(error: SubmitError) -> Vec<ProblemItem> {
    match error {
        SubmitError::Unplaceable(problems) | SubmitError::ImageUnknown(problems) => problems,
        SubmitError::ProfileUnknown { profile, known } => vec![ProblemItem {
            line: 0,
            field: "profile".to_owned(),
            problem: format!("there is no profile {profile:?}"),
            remedy: format!("use one of: {known}"),
        }],
        SubmitError::SourceUnknown(node) => vec![ProblemItem {
            line: 0,
            field: "source.node".to_owned(),
            problem: format!("there is no node {node}"),
            remedy: "name one that `edgeloom nodes` lists".to_owned(),
        }],
        _ => Vec::new(),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let problem = self.problem();
        let status = StatusCode::from_u16(problem.status).expect("it was made from a status");
        let body = serde_json::to_vec(&problem).expect("a problem of texts and numbers is JSON");
        (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}

/// The answer when a handler panicked; the cause is for the log, not for the client.
#[expect(clippy::needless_pass_by_value, reason = "the signature that the panic layer calls")]
pub(super) fn after_panic(cause: Box<dyn Any + Send>) -> Response<Body> {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("of no text");
    tracing::error!(panic = text, "request failed");
    ApiError::Internal.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_cluster_have_their_codes() {
        let reason = ProblemItem {
            line: 0,
            field: "n1".to_owned(),
            problem: "has 400m CPU left, 500m are needed".to_owned(),
            remedy: String::new(),
        };
        let cases = [
            (SubmitError::Exists("j".parse().unwrap()), 409, "job.exists", 0),
            (SubmitError::SourceUnknown("n9".parse().unwrap()), 422, "job.invalid", 1),
            (SubmitError::ImageUnknown(vec![reason.clone()]), 422, "image.unknown", 1),
            (SubmitError::Unplaceable(vec![reason]), 422, "job.unplaceable", 1),
            (SubmitError::Unavailable, 503, "controller.not-ready", 0),
        ];
        for (error, status, code, reasons) in cases {
            let problem = ApiError::Submit { error, document: Vec::new() }.problem();
            assert_eq!(
                (problem.status, problem.code.as_str(), problem.problems.len()),
                (status, code, reasons)
            );
        }
    }
}
