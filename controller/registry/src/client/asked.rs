//! One request to a registry: with the proof that it asks for, bounded in bytes, its refusals told apart.

use super::Client;
use super::answer::{Answer, Question, Redirects};
use super::proof::Proof;
use crate::error::RegistryError;
use crate::manifest::ACCEPT;
use edgeloom_common::confidential::Login;
use edgeloom_common::registry::RegistryHost;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode, Url, header};
use std::time::Duration;

/// The distribution specification asks registries to take manifests up to 4 MiB.
pub(crate) const BODY_MAX: usize = 4 * 1024 * 1024;
/// Redirects of one question.
const HOPS_MAX: usize = 3;

/// Pauses that a registry may ask for, and the one where it does not say how long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(3600);
const PAUSE_UNTOLD: Duration = Duration::from_secs(30);

/// Who is asked, about what and by whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) client: &'a Client,
    /// What it is about, for messages: the image as it was written, for instance.
    pub(crate) subject: &'a str,
    pub(crate) host: &'a RegistryHost,
    pub(crate) login: Option<&'a Login>,
    /// The repository, or nothing for the registry as a whole: what a token is for.
    pub(crate) part: &'a str,
}

impl Asked<'_> {
    /// The address of a path of the registry's API.
    pub(super) fn url(&self, path: &str) -> Result<Url, RegistryError> {
        let scheme = if self.is_insecure() { "http" } else { "https" };
        let url = Url::parse(&format!("{scheme}://{}/v2/{path}", self.host.api()));
        url.map_err(|error| self.unreadable(&format!("its address does not read: {error}")))
    }

    pub(super) fn is_insecure(&self) -> bool {
        self.client.insecure.iter().any(|host| host == self.host.api())
    }

    /// Asks for the version of the API, which takes what any question takes.
    pub(crate) async fn version_check(&self) -> Result<(), RegistryError> {
        let (url, redirects) = (self.url("")?, Redirects::Within);
        self.ask(Question { method: Method::GET, url, unless: None, redirects }).await.map(drop)
    }

    /// The answer; a refusal is an error.
    pub(super) async fn ask(&self, question: Question<'_>) -> Result<Answer, RegistryError> {
        let answer = self.answer(question).await;
        if answer.is_err() {
            self.client.counts.failed(self.host.api());
        }
        answer
    }

    async fn answer(&self, question: Question<'_>) -> Result<Answer, RegistryError> {
        let known = self.client.proofs.of(self);
        let mut answer = self.follow(&question, known.as_ref()).await?;
        // What a place asks for that a redirect led to, it does not get.
        let own = answer.url().origin() == question.url.origin();
        if answer.status() == StatusCode::UNAUTHORIZED
            && own
            && let Some(proof) = self.proof(answer.headers()).await?
        {
            answer = self.follow(&question, Some(&proof)).await?;
            if matches!(proof, Proof::Basic) && answer.status() == StatusCode::UNAUTHORIZED {
                self.client.proofs.forget(self.host.api());
                return Err(self.refused());
            }
        }
        self.judged(&question, answer).await
    }

    /// Sends the question where redirects lead; the proof stays with the host that asked for it.
    async fn follow(
        &self,
        question: &Question<'_>,
        proof: Option<&Proof>,
    ) -> Result<Response, RegistryError> {
        let (mut url, mut hops) = (question.url.clone(), 0);
        loop {
            let own = url.origin() == question.url.origin();
            let answer = self.send(question, &url, proof.filter(|_| own)).await?;
            let redirected = answer.status().is_redirection() && answer.status() != StatusCode::NOT_MODIFIED;
            if !redirected || question.redirects == Redirects::Answer {
                return Ok(answer);
            }
            let place = answer.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
            let next = place.and_then(|place| url.join(place).ok());
            let next = next.ok_or_else(|| self.unreadable("it redirects to no address"))?;
            hops += 1;
            if hops > HOPS_MAX {
                return Err(self.unreadable(&format!("it redirects more than {HOPS_MAX} times")));
            }
            if !question.redirects.allow(&url, &next) {
                let place = next.origin().ascii_serialization();
                return Err(self.unreadable(&format!("it redirects to {place}, which is not followed")));
            }
            url = next;
        }
    }

    async fn send(
        &self,
        question: &Question<'_>,
        url: &Url,
        proof: Option<&Proof>,
    ) -> Result<Response, RegistryError> {
        let http = &self.client.http;
        let mut request = http.request(question.method.clone(), url.clone()).header(header::ACCEPT, ACCEPT);
        if let Some(known) = question.unless {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let request = match (proof, self.login) {
            (Some(Proof::Bearer(token)), _) => request.bearer_auth(token.expose()),
            (Some(Proof::Basic), Some(login)) => {
                request.basic_auth(&login.username, Some(login.password.expose()))
            }
            _ => request,
        };
        self.client.counts.sent(self.host.api(), &question.method);
        request.send().await.map_err(|error| self.unreachable(&error))
    }

    async fn judged(&self, question: &Question<'_>, answer: Response) -> Result<Answer, RegistryError> {
        let (subject, registry) = (self.subject.to_owned(), self.host.api().to_owned());
        let (status, headers) = (answer.status(), answer.headers().clone());
        let elsewhere = status.is_redirection() && question.redirects == Redirects::Answer;
        // Some registries do not answer without a body; whoever asks then asks for the body.
        let bodiless = status == StatusCode::METHOD_NOT_ALLOWED && question.method == Method::HEAD;
        match status {
            _ if status.is_success() || status == StatusCode::NOT_MODIFIED || elsewhere || bodiless => {
                Ok(Answer::new(status, headers, self.body(answer).await?))
            }
            StatusCode::NOT_FOUND => Err(RegistryError::Unknown { image: subject, registry }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let who = self.login.map(|login| format!("user {:?}", login.username));
                let who = who.unwrap_or_else(|| "whoever shows no login".to_owned());
                Err(RegistryError::Denied { image: subject, registry, who })
            }
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                let (again, reason) = (pause(status, &headers), format!("it answers {status}"));
                Err(RegistryError::Unreachable { registry, reason, again })
            }
            _ => Err(self.unreadable(&format!("it answers {status}"))),
        }
    }

    pub(super) async fn body(&self, mut answer: Response) -> Result<Vec<u8>, RegistryError> {
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

    pub(super) fn refused(&self) -> RegistryError {
        let username = self.login.map(|login| login.username.clone()).unwrap_or_default();
        RegistryError::LoginRefused { registry: self.host.api().to_owned(), username }
    }

    pub(super) fn unreadable(&self, reason: &str) -> RegistryError {
        let (image, registry) = (self.subject.to_owned(), self.host.api().to_owned());
        RegistryError::Unreadable { image, registry, reason: reason.to_owned() }
    }

    pub(super) fn unreachable(&self, error: &reqwest::Error) -> RegistryError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        self.silent(cause.to_string())
    }

    /// No answer.
    pub(super) fn silent(&self, reason: String) -> RegistryError {
        RegistryError::Unreachable { registry: self.host.api().to_owned(), reason, again: None }
    }
}

/// For how long a registry that is there wants to be left alone (RFC 9110, 10.2.3; RFC 6585, 4). Dates count as
/// untold: clocks differ.
fn pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let told = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let told = told.map(|seconds: u64| Duration::from_secs(seconds).clamp(PAUSE_MIN, PAUSE_MAX));
    told.or_else(|| (status == StatusCode::TOO_MANY_REQUESTS).then_some(PAUSE_UNTOLD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_registry_is_left_alone_as_long_as_it_wants_within_bounds() {
        let told = |status: u16, after: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, after.parse().unwrap());
            pause(StatusCode::from_u16(status).unwrap(), &headers).map(|pause| pause.as_secs())
        };
        assert_eq!((told(429, "7"), told(503, " 90 ")), (Some(7), Some(90)));
        assert_eq!((told(429, "0"), told(429, "99999999999")), (Some(1), Some(PAUSE_MAX.as_secs())));
        let date = "Fri, 31 Dec 1999 23:59:59 GMT";
        assert_eq!((told(429, date), told(503, date)), (Some(PAUSE_UNTOLD.as_secs()), None));
    }
}
