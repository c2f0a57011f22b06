//! One request to a registry: with the proof that it asks for, bounded in bytes, its refusals told apart.

use super::manifest::ACCEPT;
use super::{Registry, RegistryError};
use edgeloom_common::confidential::Login;
use edgeloom_common::secret::Secret;
use reqwest::{Response, StatusCode, Url, header};

/// The distribution specification asks registries to take manifests up to 4 MiB.
pub(super) const BODY_MAX: usize = 4 * 1024 * 1024;

/// Who is asked, for what and by whom.
pub(super) struct Asked<'a> {
    pub(super) registry: &'a Registry,
    /// The image as it was written, for messages.
    pub(super) image: &'a str,
    /// Host and port.
    pub(super) host: &'a str,
    pub(super) login: Option<&'a Login>,
}

/// What a registry wants to see before it answers.
enum Proof<'a> {
    /// From its token service (distribution specification, token authentication).
    Bearer(Secret),
    /// RFC 7617.
    Basic(&'a Login),
}

impl<'a> Asked<'a> {
    /// The address of a path of the registry's API.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if self.is_insecure() { "http" } else { "https" };
        format!("{scheme}://{}/v2/{path}", self.host)
    }

    fn is_insecure(&self) -> bool {
        self.registry.insecure.iter().any(|host| host == self.host)
    }

    /// The body of the answer.
    pub(super) async fn fetch(&self, url: &str) -> Result<Vec<u8>, RegistryError> {
        let mut answer = self.send(url, None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let Some(proof) = self.proof(&answer).await?
        {
            answer = self.send(url, Some(&proof)).await?;
            if matches!(proof, Proof::Basic(_)) && answer.status() == StatusCode::UNAUTHORIZED {
                return Err(self.refused());
            }
        }
        let (image, registry) = (self.image.to_owned(), self.host.to_owned());
        match answer.status() {
            status if status.is_success() => self.body(answer).await,
            StatusCode::NOT_FOUND => Err(RegistryError::Unknown { image, registry }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let who = self.login.map(|login| format!("user {:?}", login.username));
                let who = who.unwrap_or_else(|| "whoever shows no login".to_owned());
                Err(RegistryError::Denied { image, registry, who })
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(RegistryError::Unreachable { registry, reason: format!("it answers {status}") })
            }
            status => Err(self.unreadable(&format!("it answers {status}"))),
        }
    }

    async fn send(&self, url: &str, proof: Option<&Proof<'_>>) -> Result<Response, RegistryError> {
        let request = self.registry.http.get(url).header(header::ACCEPT, ACCEPT);
        let request = match proof {
            None => request,
            Some(Proof::Bearer(token)) => request.bearer_auth(token.expose()),
            Some(Proof::Basic(login)) => request.basic_auth(&login.username, Some(login.password.expose())),
        };
        request.send().await.map_err(|error| self.unreachable(&error))
    }

    /// What the refusal asks for, as far as there is one; a token is also given to those who show no login.
    async fn proof(&self, answer: &Response) -> Result<Option<Proof<'a>>, RegistryError> {
        let challenges = answer.headers().get_all(header::WWW_AUTHENTICATE).iter();
        for challenge in challenges.filter_map(|value| value.to_str().ok()) {
            let (scheme, fields) = challenge.split_once(' ').unwrap_or((challenge, ""));
            if scheme.eq_ignore_ascii_case("bearer") {
                return Ok(self.token(fields).await?.map(Proof::Bearer));
            }
            if scheme.eq_ignore_ascii_case("basic") {
                return Ok(self.login.map(Proof::Basic));
            }
        }
        Ok(None)
    }

    /// A token from the service that the registry names, for the user of the login or for everyone.
    pub(super) async fn token(&self, fields: &str) -> Result<Option<Secret>, RegistryError> {
        let field = |name: &str| {
            let rest = fields.split_once(&format!("{name}=\""))?.1;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let Some(realm) = field("realm").and_then(|realm| Url::parse(&realm).ok()) else { return Ok(None) };
        let query: Vec<(&str, String)> =
            ["service", "scope"].into_iter().filter_map(|name| Some((name, field(name)?))).collect();
        let in_the_clear = realm.scheme() != "https" && !self.is_insecure();
        let mut request = self.registry.http.get(realm).query(&query);
        if let Some(login) = self.login {
            if in_the_clear {
                return Err(self.unreadable("it wants the login sent in the clear"));
            }
            request = request.basic_auth(&login.username, Some(login.password.expose()));
        }
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        if matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return if self.login.is_some() { Err(self.refused()) } else { Ok(None) };
        }
        let body: serde_json::Value = self.read(&self.body(answer).await?)?;
        let token = body.get("token").or_else(|| body.get("access_token"));
        Ok(token.and_then(|token| token.as_str()).map(|token| token.to_owned().into()))
    }

    async fn body(&self, mut answer: Response) -> Result<Vec<u8>, RegistryError> {
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            if body.len() + piece.len() > BODY_MAX {
                return Err(self.unreadable(&format!("an answer is over {BODY_MAX} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    pub(super) fn read<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, RegistryError> {
        serde_json::from_slice(body).map_err(|error| self.unreadable(&error.to_string()))
    }

    fn refused(&self) -> RegistryError {
        let username = self.login.map(|login| login.username.clone()).unwrap_or_default();
        RegistryError::LoginRefused { registry: self.host.to_owned(), username }
    }

    pub(super) fn unreadable(&self, reason: &str) -> RegistryError {
        let (image, registry) = (self.image.to_owned(), self.host.to_owned());
        RegistryError::Unreadable { image, registry, reason: reason.to_owned() }
    }

    fn unreachable(&self, error: &reqwest::Error) -> RegistryError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        RegistryError::Unreachable { registry: self.host.to_owned(), reason: cause.to_string() }
    }
}
