//! Who may ask what: one table from path and method to what it takes.

use super::error::ApiError;
use super::{Api, Guard};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use edgeloom_common::join::Scope;

/// What a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing: it tells nothing, or the request carries its own proof.
    Nothing,
    Token(Scope),
}

const READ: Need = Need::Token(Scope::Read);
const DEPLOY: Need = Need::Token(Scope::Deploy);
const ADMIN: Need = Need::Token(Scope::Admin);

/// A path that is not here takes an administrator.
const ACCESS: [(&str, &str, Need); 41] = [
    ("GET", "/v1/jobs", READ),
    ("POST", "/v1/jobs", DEPLOY),
    ("GET", "/v1/jobs/{name}", READ),
    ("DELETE", "/v1/jobs/{name}", DEPLOY),
    ("GET", "/v1/jobs/{name}/explain", READ),
    ("GET", "/v1/jobs/{name}/logs", READ),
    ("POST", "/v1/measure", DEPLOY),
    ("GET", "/v1/profiles", READ),
    ("GET", "/v1/nodes", READ),
    ("GET", "/v1/events", READ),
    ("GET", "/v1/usage", READ),
    ("GET", "/v1/images/prefetch", READ),
    ("POST", "/v1/images/prefetch", DEPLOY),
    ("GET", "/v1/doctor", READ),
    ("DELETE", "/v1/nodes/{name}", ADMIN),
    ("POST", "/v1/nodes/{name}/cordon", ADMIN),
    ("POST", "/v1/nodes/{name}/drain", ADMIN),
    ("POST", "/v1/nodes/{name}/uncordon", ADMIN),
    ("GET", "/v1/consolidation", READ),
    ("POST", "/v1/consolidation", ADMIN),
    ("DELETE", "/v1/nodes/{name}/certificate", ADMIN),
    ("GET", "/v1/secrets", READ),
    // Whoever may run a job reads every secret in it.
    ("PUT", "/v1/secrets/{name}", DEPLOY),
    ("DELETE", "/v1/secrets/{name}", DEPLOY),
    ("GET", "/v1/registries", READ),
    // A login decides what all jobs of that registry run.
    ("PUT", "/v1/registries/{host}", ADMIN),
    ("DELETE", "/v1/registries/{host}", ADMIN),
    // It changes nothing but when a registry is asked.
    ("POST", "/v1/registry/events", READ),
    ("GET", "/v1/images", READ),
    ("GET", "/v1/volumes", READ),
    // Whoever may run a job can empty any volume from within.
    ("DELETE", "/v1/volumes/{node}/{job}/{task}/{volume}", DEPLOY),
    ("GET", "/v1/tokens", ADMIN),
    ("POST", "/v1/tokens", ADMIN),
    ("DELETE", "/v1/tokens/{id}", ADMIN),
    ("POST", "/v1/authority", ADMIN),
    // The body carries a token for joining.
    ("POST", "/v1/join", Need::Nothing),
    // The handshake carries the node's certificate.
    ("GET", "/v1/identity", Need::Nothing),
    ("POST", "/v1/identity", Need::Nothing),
    ("GET", "/metrics", READ),
    ("GET", "/livez", Need::Nothing),
    ("GET", "/readyz", Need::Nothing),
];

fn need(method: &str, path: Option<&str>) -> Need {
    let method = if method == "HEAD" { "GET" } else { method };
    let row = ACCESS.iter().find(|(its, pattern, _)| *its == method && Some(*pattern) == path);
    match (row, path) {
        (Some((_, _, need)), _) => *need,
        // A path that does not exist tells nothing, but not to strangers.
        (None, None) => READ,
        (None, Some(_)) => ADMIN,
    }
}

/// Lets a request through, or answers why not.
pub(super) async fn check(State(api): State<Api>, request: Request, next: Next) -> Response {
    if api.guard == Guard::Open {
        return next.run(request).await;
    }
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    match permit(&api, need(request.method().as_str(), path), &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn permit(api: &Api, need: Need, request: &Request) -> Result<(), ApiError> {
    let Need::Token(needed) = need else { return Ok(()) };
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, bearer) = header.and_then(|text| text.split_once(' ')).ok_or(ApiError::NoToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ApiError::NoToken);
    }
    let has = api.identity.scope(bearer.trim()).ok_or(ApiError::BadToken)?;
    if has < needed { Err(ApiError::Scope { needed, has }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_table_is_for_administrators() {
        assert_eq!(need("GET", Some("/v1/jobs")), READ);
        assert_eq!(need("HEAD", Some("/v1/jobs")), READ);
        assert_eq!(need("PUT", Some("/v1/jobs")), ADMIN);
        assert_eq!(need("GET", Some("/v1/secrets/{name}")), ADMIN);
        assert_eq!(need("GET", None), READ);
        assert!(Scope::Read < Scope::Deploy && Scope::Deploy < Scope::Admin);
    }

    #[test]
    fn the_readme_has_every_request_with_its_scope() {
        let readme = include_str!("../../README.md");
        for (method, path, need) in ACCESS {
            let scope = match need {
                Need::Nothing => "none",
                Need::Token(scope) => scope.word(),
            };
            let row = format!("| `{method} {path}` | {scope} |");
            assert!(readme.contains(&row), "README.md lacks {row}");
        }
        assert_eq!(readme.lines().filter(|line| line.starts_with("| `")).count(), ACCESS.len());
    }
}
