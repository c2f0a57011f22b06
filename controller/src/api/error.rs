//! Every refusal of the API as a problem document (RFC 9457): the one place with status codes.

use super::{prefetch, volumes};
use crate::logs::LogsError;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use edgeloom_cluster::{
    DrainError, ForgetError, PrefetchError, RegistryError, SecretError, StopError, SubmitError,
};
use edgeloom_common::confidential::{LOGIN_TEXT_MAX, ValueError};
use edgeloom_common::job::line_of;
use edgeloom_common::join::Scope;
use edgeloom_common::view::{Problem, ProblemItem};
use edgeloom_identity::{IssueError, JoinError, NoSuchNode, NoSuchToken, RenewError, RotateError};
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
    #[error("the document does not read: {reason}")]
    BodyNotDocument { reason: String },
    #[error(
        "the request shows no token; set EDGELOOM_TOKEN, or use `edgeloom login`; `edgeloom token create --api SCOPE` makes tokens"
    )]
    NoToken,
    #[error("the token is not known here, has expired or was revoked; ask an administrator for another")]
    BadToken,
    #[error("this takes a token of scope {}, the one shown has {}", needed.word(), has.word())]
    Scope { needed: Scope, has: Scope },
    #[error("the connection shows no certificate of a node")]
    NoCertificate,
    #[error(
        "certificates are managed from outside here: [mqtt] of the controller's configuration names files; remove them to let nodes join"
    )]
    JoiningElsewhere,
    #[error("there is no token {id:?}")]
    UnknownToken { id: String },
    #[error("there is no node {name:?}")]
    UnknownNode { name: String },
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Which of them is not said.
    #[error(
        "user name and password have 1 to {LOGIN_TEXT_MAX} bytes without control characters, the name no colon either"
    )]
    LoginText,
    /// Not `Unavailable`, which is [`NotReady`](Self::NotReady).
    #[error("{0}")]
    Secret(SecretError),
    #[error(transparent)]
    Prefetch(#[from] PrefetchError),
    #[error(transparent)]
    Volume(#[from] volumes::RemoveError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error("{0}; {remedy}", remedy = join_remedy(.0))]
    Join(#[from] JoinError),
    #[error(transparent)]
    Renew(#[from] RenewError),
    #[error(transparent)]
    NoSuchToken(#[from] NoSuchToken),
    #[error(transparent)]
    NoSuchNode(#[from] NoSuchNode),
    #[error(transparent)]
    Rotate(#[from] RotateError),
    #[error(transparent)]
    Forget(ForgetError),
    /// Only [`DrainError::Last`].
    #[error("{0}")]
    Drain(DrainError),
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

impl From<ForgetError> for ApiError {
    fn from(error: ForgetError) -> Self {
        match error {
            ForgetError::Unknown(name) => Self::UnknownNode { name: name.to_string() },
            ForgetError::Unavailable(_) => Self::NotReady,
            refused => Self::Forget(refused),
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
            Self::BodyNotDocument { .. } => {
                (StatusCode::BAD_REQUEST, "body.unreadable", "Document not readable")
            }
            Self::NoToken => (StatusCode::UNAUTHORIZED, "token.missing", "No token"),
            Self::BadToken => (StatusCode::UNAUTHORIZED, "token.refused", "Token refused"),
            Self::Scope { .. } => (StatusCode::FORBIDDEN, "token.scope", "Not allowed"),
            Self::NoCertificate => (StatusCode::UNAUTHORIZED, "certificate.missing", "No certificate"),
            Self::JoiningElsewhere => (StatusCode::CONFLICT, "join.elsewhere", "Joining is off"),
            Self::UnknownToken { .. } | Self::NoSuchToken(NoSuchToken::Unknown { .. }) => {
                (StatusCode::NOT_FOUND, "token.unknown", "No such token")
            }
            Self::UnknownNode { .. } | Self::NoSuchNode(NoSuchNode::Unknown { .. }) => {
                (StatusCode::NOT_FOUND, "node.unknown", "No such node")
            }
            Self::Value(ValueError::TooLong) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body.too-large", "Document too large")
            }
            Self::Value(_) => (StatusCode::UNPROCESSABLE_ENTITY, "secret.invalid", "Secret refused"),
            Self::LoginText => (StatusCode::UNPROCESSABLE_ENTITY, "login.invalid", "Login refused"),
            Self::Secret(error) => secret_class(error),
            Self::Prefetch(error) => prefetch::class(error),
            Self::Volume(error) => volumes::class(error),
            Self::Issue(IssueError::Disk(_))
            | Self::NoSuchToken(NoSuchToken::Disk(_))
            | Self::NoSuchNode(NoSuchNode::Disk(_)) => NOT_SAVED,
            Self::Issue(_) => (StatusCode::UNPROCESSABLE_ENTITY, "token.invalid", "Token refused"),
            Self::Join(error) => join_class(error),
            Self::Renew(error) => renew_class(error),
            Self::Rotate(RotateError::UnderWay { .. }) => {
                (StatusCode::CONFLICT, "authority.rotating", "Rotation under way")
            }
            Self::Rotate(_) => NOT_SAVED,
            Self::Forget(ForgetError::Online(_)) => {
                (StatusCode::CONFLICT, "node.online", "Node not forgotten")
            }
            Self::Forget(_) => (StatusCode::CONFLICT, "node.used", "Node not forgotten"),
            Self::Drain(_) => (StatusCode::CONFLICT, "node.last", "Node not drained"),
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

/// Nothing was changed; the detail says which file could not be written.
const NOT_SAVED: (StatusCode, &str, &str) =
    (StatusCode::INTERNAL_SERVER_ERROR, "state.unwritable", "State not written");

fn join_class(error: &JoinError) -> (StatusCode, &'static str, &'static str) {
    let (status, code) = match error {
        JoinError::Token(_) => (StatusCode::BAD_REQUEST, "join.unreadable"),
        JoinError::Foreign { .. } => (StatusCode::FORBIDDEN, "join.foreign"),
        JoinError::Unknown => (StatusCode::FORBIDDEN, "join.unknown"),
        JoinError::Expired { .. } => (StatusCode::FORBIDDEN, "join.expired"),
        JoinError::Used { .. } => (StatusCode::FORBIDDEN, "join.used"),
        JoinError::NotForNode { .. } => (StatusCode::FORBIDDEN, "join.other-node"),
        JoinError::NameTaken { .. } => (StatusCode::CONFLICT, "join.name-taken"),
        JoinError::Request(_) => (StatusCode::UNPROCESSABLE_ENTITY, "join.request"),
        JoinError::Disk(_) => return NOT_SAVED,
    };
    (status, code, "Not joined")
}

fn join_remedy(error: &JoinError) -> &'static str {
    match error {
        JoinError::Token(_) => "copy the whole line that `edgeloom token create` printed",
        JoinError::Foreign { .. } => "make a token on this cluster, or join at the token's own controller",
        JoinError::Unknown | JoinError::Expired { .. } => "make another with `edgeloom token create`",
        JoinError::Used { .. } => "make another with `edgeloom token create`, with --uses for several nodes",
        JoinError::NotForNode { .. } => "join under a name of the token's, or make another token",
        JoinError::NameTaken { .. } => {
            "choose another name, or make a token that takes its place: `edgeloom token create --node NAME --replace`"
        }
        JoinError::Request(_) => "join with the edgeloom-agent of this version",
        JoinError::Disk(_) => "nothing was changed; see the controller's disk",
    }
}

fn renew_class(error: &RenewError) -> (StatusCode, &'static str, &'static str) {
    let (status, code) = match error {
        RenewError::Revoked { .. } => (StatusCode::FORBIDDEN, "certificate.revoked"),
        RenewError::NotDue { .. } => (StatusCode::CONFLICT, "certificate.not-due"),
        RenewError::Request(_) => (StatusCode::UNPROCESSABLE_ENTITY, "certificate.request"),
        RenewError::Disk(_) => return NOT_SAVED,
    };
    (status, code, "Not renewed")
}

fn secret_class(error: &SecretError) -> (StatusCode, &'static str, &'static str) {
    match error {
        SecretError::Exists(_) => (StatusCode::CONFLICT, "secret.exists", "Secret exists"),
        SecretError::Unknown(_) => (StatusCode::NOT_FOUND, "secret.unknown", "No such secret"),
        SecretError::Used { .. } => (StatusCode::CONFLICT, "secret.used", "Secret is used"),
        SecretError::NoLogin(_) => (StatusCode::NOT_FOUND, "login.unknown", "No such login"),
        SecretError::NoRoom(_) => (StatusCode::INSUFFICIENT_STORAGE, "secret.no-room", "No room"),
        SecretError::Registry(RegistryError::Unreachable { .. }) => {
            (StatusCode::SERVICE_UNAVAILABLE, "registry.unreachable", "Registry not reachable")
        }
        SecretError::Registry(_) => (StatusCode::UNPROCESSABLE_ENTITY, "login.refused", "Login refused"),
        SecretError::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "controller.not-ready", "Not ready"),
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
        SubmitError::SecretUnknown(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "secret.unknown", "Secret not found")
        }
        SubmitError::Unplaceable(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "job.unplaceable", "Job fits nowhere")
        }
        SubmitError::RegistryUnreachable(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "registry.unreachable", "Registry not reachable")
        }
        SubmitError::Gathering => (StatusCode::SERVICE_UNAVAILABLE, "controller.gathering", "Not ready"),
        SubmitError::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "controller.not-ready", "Not ready"),
    }
}

fn submit_problems(error: SubmitError) -> Vec<ProblemItem> {
    match error {
        SubmitError::Unplaceable(problems)
        | SubmitError::ImageUnknown(problems)
        | SubmitError::SecretUnknown(problems) => problems,
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
        let mut response = (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            // RFC 6750, 3: which kind of proof is wanted.
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
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
