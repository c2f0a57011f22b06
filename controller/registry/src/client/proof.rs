//! What a registry wants to see before it answers: tokens of its token service, kept while they last, or the login.

use super::asked::Asked;
use crate::error::RegistryError;
use edgeloom_common::confidential::Login;
use edgeloom_common::secret::Secret;
use reqwest::{StatusCode, Url, header};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tokens that are kept; one is asked for again where it is missing.
const TOKENS_MAX: usize = 1024;
/// What a token lasts where nothing is said (distribution specification, token authentication).
const LIFETIME_DEFAULT_S: u64 = 60;
const LIFETIME_MAX_S: u64 = 3600;
/// A token is not used in its last moments: it has to last until the registry has read it.
const LIFETIME_SPARE_S: u64 = 10;

/// What is shown.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// From the registry's token service.
    Bearer(Secret),
    /// The login itself (RFC 7617).
    Basic,
}

/// What each part of each registry was content with.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    kept: Mutex<BTreeMap<Key, (Proof, Instant)>>,
}

/// Registry, part of it, user.
type Key = (String, String, String);

impl Proofs {
    fn key(asked: &Asked<'_>) -> Key {
        let user = asked.login.map(|login| login.username.clone());
        (asked.host.api().to_owned(), asked.part.to_owned(), user.unwrap_or_default())
    }

    /// What will do without being asked for.
    pub(super) fn of(&self, asked: &Asked<'_>) -> Option<Proof> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (proof, until) = kept.get(&Self::key(asked))?;
        (Instant::now() < *until).then(|| proof.clone())
    }

    pub(super) fn keep(&self, asked: &Asked<'_>, proof: Proof, lasts: Duration) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= TOKENS_MAX {
            kept.clear();
        }
        kept.insert(Self::key(asked), (proof, Instant::now() + lasts));
    }

    /// Nothing is known of a registry's wishes any more.
    pub(super) fn forget(&self, api: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(host, ..), _| host != api);
    }
}

impl Asked<'_> {
    /// What a refusal asks for, as far as there is one; a token is also given to those who show no login.
    pub(super) async fn proof(&self, challenges: &header::HeaderMap) -> Result<Option<Proof>, RegistryError> {
        let challenges = challenges.get_all(header::WWW_AUTHENTICATE).iter();
        for challenge in challenges.filter_map(|value| value.to_str().ok()) {
            let (scheme, fields) = challenge.split_once(' ').unwrap_or((challenge, ""));
            let (proof, lasts) = if scheme.eq_ignore_ascii_case("bearer") {
                let Some((token, lasts)) = self.token(fields).await? else { return Ok(None) };
                (Proof::Bearer(token), lasts)
            } else if scheme.eq_ignore_ascii_case("basic") && self.login.is_some() {
                (Proof::Basic, Duration::from_secs(LIFETIME_MAX_S))
            } else {
                continue;
            };
            self.client.proofs.keep(self, proof.clone(), lasts);
            return Ok(Some(proof));
        }
        Ok(None)
    }

    /// A token from the service that the registry names, for the user of the login or for everyone; and how long it
    /// may be used.
    pub(crate) async fn token(&self, fields: &str) -> Result<Option<(Secret, Duration)>, RegistryError> {
        let field = |name: &str| {
            let rest = fields.split_once(&format!("{name}=\""))?.1;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let Some(realm) = field("realm").and_then(|realm| Url::parse(&realm).ok()) else { return Ok(None) };
        let query: Vec<(&str, String)> =
            ["service", "scope"].into_iter().filter_map(|name| Some((name, field(name)?))).collect();
        let in_the_clear = realm.scheme() != "https" && !self.is_insecure();
        let mut request = self.client.http.get(realm).query(&query);
        if let Some(Login { username, password }) = self.login {
            if in_the_clear {
                return Err(self.unreadable("it wants the login sent in the clear"));
            }
            request = request.basic_auth(username, Some(password.expose()));
        }
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        if matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return if self.login.is_some() { Err(self.refused()) } else { Ok(None) };
        }
        let body: serde_json::Value = self.read(&self.body(answer).await?)?;
        let token = body.get("token").or_else(|| body.get("access_token"));
        let lasts = body.get("expires_in").and_then(serde_json::Value::as_u64).unwrap_or(LIFETIME_DEFAULT_S);
        let lasts = Duration::from_secs(lasts.min(LIFETIME_MAX_S).saturating_sub(LIFETIME_SPARE_S));
        Ok(token.and_then(|token| token.as_str()).map(|token| (token.to_owned().into(), lasts)))
    }
}
