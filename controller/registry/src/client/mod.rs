//! The client: one registry is asked for one thing at a time.
//!
//! In: a registry, what is wanted of it, the login to show. Out: the answer, checked, or why there is none. Every
//! answer is bounded in time and bytes, bodies are held against their digest, and nothing is sent in the clear or
//! to another host that should not be.

mod answer;
mod asked;
mod counts;
mod image;
mod lists;
mod proof;

use crate::error::{ClientError, RegistryError};
use counts::Counts;
use edgeloom_common::confidential::Login;
use edgeloom_common::registry::RegistryHost;
use proof::Proofs;
use std::time::Duration;

pub(crate) use asked::Asked;
#[cfg(test)]
pub(crate) use asked::BODY_MAX;
pub use counts::Count;
pub(crate) use image::{Found, Head};
pub(crate) use lists::Page;

const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections to a registry that are kept for the next question.
const IDLE_CONNECTIONS: usize = 4;

/// Asks registries.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    insecure: Vec<String>,
    proofs: Proofs,
    pub(crate) counts: Counts,
}

impl Client {
    /// A client; `insecure` names the registries (host:port) spoken to in plain HTTP.
    pub(crate) fn new(insecure: Vec<String>) -> Result<Self, ClientError> {
        // A second call finds the provider installed, which is all that is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            // Where one may lead depends on what is asked for.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { http, insecure, proofs: Proofs::default(), counts: Counts::default() })
    }

    /// A plain client, for tests that push.
    #[cfg(test)]
    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Whether a registry honours a login (distribution specification, API version check).
    pub(crate) async fn check(&self, host: &RegistryHost, login: &Login) -> Result<(), RegistryError> {
        self.proofs.forget(host.api());
        let asked = Asked { client: self, subject: "a login", host, login: Some(login), part: "" };
        asked.version_check().await
    }
}
