//! The registry that an image comes from: blobs and manifests by digest, with whatever login it asks for.

use crate::http::{Fields, HttpError, Way, ask, whole};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use edgeloom_common::confidential::Login;
use edgeloom_common::digest::Digest;
use edgeloom_common::registry::locate;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, RANGE, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use rustls::ClientConfig;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

/// A manifest or index; the specification has registries take 4 MiB at least, and nobody needs more.
const MANIFEST_MAX: usize = 4 << 20;
const TOKEN_MAX: usize = 64 << 10;
/// What engines of the last years understand.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
/// One repository of a registry.
#[derive(Debug)]
pub struct Upstream {
    way: Way,
    /// `https://host:port`, or `http://…`.
    base: String,
    repository: String,
    credentials: Option<Login>,
    /// The `Authorization` that the registry took last.
    login: Mutex<Option<String>>,
}

impl Upstream {
    /// The repository of a name as Docker reads it, for instance `registry.lan:5000/vision/detect`; `plain`
    /// for a registry without TLS. None if it names no registry.
    #[must_use]
    pub fn of(name: &str, plain: bool, tls: Arc<ClientConfig>, credentials: Option<Login>) -> Option<Self> {
        let (host, repository) = locate(name)?;
        let scheme = if plain { "http" } else { "https" };
        let base = format!("{scheme}://{}", host.api());
        let way = Way { tls, address: None };
        Some(Self { way, base, repository, credentials, login: Mutex::default() })
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        self.base.rsplit('/').next().unwrap_or_default()
    }

    /// The blob from this byte on; the status is 206, or 200 where the registry begins at its first.
    pub(crate) async fn blob(&self, digest: &Digest, from: u64) -> Result<Response<Incoming>, HttpError> {
        let path = format!("/v2/{}/blobs/{digest}", self.repository);
        let range = (from > 0).then(|| (RANGE, format!("bytes={from}-")));
        self.get(&path, &range.into_iter().collect()).await
    }

    /// The manifest or index, verified.
    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, HttpError> {
        let path = format!("/v2/{}/manifests/{digest}", self.repository);
        let answer = self.get(&path, &vec![(ACCEPT, MANIFEST_TYPES.to_owned())]).await?;
        let wanted = || format!("manifest {digest}");
        let bytes = whole(answer, MANIFEST_MAX, (&self.base, wanted())).await?;
        match Digest::of(&bytes) == *digest {
            true => Ok(bytes),
            false => Err(HttpError::Content { host: self.base.clone(), wanted: wanted() }),
        }
    }

    /// Asks, and once more with a login if the registry wants one.
    async fn get(&self, path: &str, fields: &Fields) -> Result<Response<Incoming>, HttpError> {
        let url = format!("{}{path}", self.base);
        let login = self.login.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut answer = ask(&self.way, &url, fields, &authorization(login)).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            let login = self.log_in(&answer).await?;
            answer = ask(&self.way, &url, fields, &authorization(Some(login.clone()))).await?;
            *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Some(login);
        }
        match answer.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(answer),
            status => Err(HttpError::Status {
                host: self.base.clone(),
                path: path.to_owned(),
                status: status.as_u16(),
            }),
        }
    }

    /// What the registry's challenge asks for: the login itself, or a token that another service gives for it.
    async fn log_in(&self, refusal: &Response<Incoming>) -> Result<String, HttpError> {
        let header = refusal.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = header.unwrap_or_default();
        let unknown = || HttpError::Challenge {
            host: self.base.clone(),
            challenge: challenge.chars().take(200).collect(),
        };
        let (scheme, parameters) = challenge.split_once(' ').ok_or_else(unknown)?;
        let basic = self.credentials.as_ref().map(basic);
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => basic.ok_or(HttpError::Status {
                host: self.base.clone(),
                path: String::from("a request without login"),
                status: StatusCode::UNAUTHORIZED.as_u16(),
            }),
            "bearer" => {
                let url = token_url(parameters).ok_or_else(unknown)?;
                if basic.is_some() && !is_as_private(&url, &self.base) {
                    return Err(HttpError::InTheClear { host: self.base.clone() });
                }
                self.token(&url, authorization(basic)).await
            }
            _ => Err(unknown()),
        }
    }

    async fn token(&self, url: &str, login: Fields) -> Result<String, HttpError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(alias = "access_token")]
            token: String,
        }
        let answer = ask(&self.way, url, &Fields::new(), &login).await?;
        if answer.status() != StatusCode::OK {
            let (host, status) = (self.base.clone(), answer.status().as_u16());
            return Err(HttpError::Status { host, path: String::from("the request for a token"), status });
        }
        let wanted = || "a token".to_owned();
        let body = whole(answer, TOKEN_MAX, (url, wanted())).await?;
        let other = |_| HttpError::Content { host: url.to_owned(), wanted: wanted() };
        let answer: Answer = serde_json::from_slice(&body).map_err(other)?;
        Ok(format!("Bearer {}", answer.token))
    }
}

fn basic(credentials: &Login) -> String {
    let pair = format!("{}:{}", credentials.username, credentials.password.expose());
    format!("Basic {}", STANDARD.encode(pair))
}

fn authorization(login: Option<String>) -> Fields {
    login.into_iter().map(|login| (AUTHORIZATION, login)).collect()
}

/// A login that was given for a registry with TLS goes nowhere without.
fn is_as_private(url: &str, base: &str) -> bool {
    let private = |url: &str| url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
    private(url) || !private(base)
}

/// `realm="https://auth…",service="…",scope="…"` as the address to ask.
fn token_url(parameters: &str) -> Option<String> {
    let mut realm = None;
    let mut query = Vec::new();
    let mut rest = parameters;
    while let Some((key, tail)) = rest.split_once("=\"") {
        let (value, tail) = tail.split_once('"')?;
        match key.trim_matches([',', ' ']) {
            "realm" => realm = Some(value),
            key @ ("service" | "scope") => query.push(format!("{key}={}", escaped(value))),
            _ => {}
        }
        rest = tail;
    }
    let realm = realm?;
    let joint = if realm.contains('?') { '&' } else { '?' };
    Some(if query.is_empty() { realm.to_owned() } else { format!("{realm}{joint}{}", query.join("&")) })
}

/// Percent-encoded but for what RFC 3986 leaves alone.
fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_never_leaves_tls() {
        let (private, open) = ("https://auth.lan/token", "http://auth.lan/token");
        assert!(is_as_private(private, "https://reg.lan") && is_as_private(open, "http://reg.lan:5000"));
        assert!(is_as_private("HTTPS://auth.lan/", "https://reg.lan"));
        for url in [open, "ftp://auth.lan/x", "", "https:/auth"] {
            assert!(!is_as_private(url, "https://reg.lan"), "{url}");
        }
    }

    #[test]
    fn a_challenge_becomes_the_address_of_a_token() {
        let said = r#"realm="https://auth.lan/token",service="registry.lan",scope="repository:a/b:pull""#;
        let url = "https://auth.lan/token?service=registry.lan&scope=repository%3Aa%2Fb%3Apull";
        assert_eq!(token_url(said).as_deref(), Some(url));
        assert_eq!(token_url(r#"realm="http://a/t?x=1", service="s""#).unwrap(), "http://a/t?x=1&service=s");
        for hopeless in ["", "service=\"s\"", "realm=\"open"] {
            assert_eq!(token_url(hopeless), None, "{hopeless}");
        }
    }
}
