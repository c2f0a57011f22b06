//! `edgeloom-agent join`: from a token to a membership.

use super::clock::{Known, RELEASED_S};
use super::file::{self, Membership, MembershipError};
use super::https::{Api, AskError};
use super::live::Live;
use super::server::{Server, Shown, Trust, provider, roots, verifier};
use crate::config::{ConfigError, Place};
use crate::store::{self, LockError};
use edgeloom_common::ids::{ClusterId, NameError, NodeId};
use edgeloom_common::join::{API_PORT, IdentityAnswer, JoinRequest, RenewalView};
use edgeloom_common::secret::Secret;
use edgeloom_common::token::{Fingerprint, JoinToken, TokenError};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use ring::digest::{SHA256, digest};
use rustls::client::danger::ServerCertVerified;
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, ClientConfig, Error};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What [`Pinned`] says when the authority of the token is not in the chain.
const UNKNOWN_ISSUER: Error = Error::InvalidCertificate(CertificateError::UnknownIssuer);

/// What the command line says.
#[derive(Debug)]
pub struct JoinOptions {
    /// `host` or `host:port` of the API.
    pub controller: String,
    pub token: Secret,
    /// None: what agent.toml says, or the machine's own name.
    pub node: Option<NodeId>,
    /// agent.toml, written if there is none.
    pub config: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub enum Joined {
    /// A new membership.
    Now { cluster: ClusterId, node: NodeId },
    /// It was there, and the controller knows it.
    Before { cluster: ClusterId, node: NodeId },
}

/// Why the node did not join; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(
        "{text:?} is no address of a controller; write a name or address, with :port unless it is {API_PORT}"
    )]
    Controller { text: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot write {}: {source}", path.display())]
    WriteConfig { path: PathBuf, source: io::Error },
    #[error("{} says cluster {config}, the token is for {token}; correct one of them", path.display())]
    OtherCluster { path: PathBuf, config: ClusterId, token: ClusterId },
    #[error("{} says node {config}, the command line {asked}; correct one of them", path.display())]
    OtherNode { path: PathBuf, config: NodeId, asked: NodeId },
    #[error("{} names certificate files, so they are managed from outside; remove ca, certificate and key from [controller] to join", path.display())]
    FilesConfigured { path: PathBuf },
    #[error("this machine's name is none for a node ({0}); give one with --node")]
    Hostname(NameError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Membership(#[from] MembershipError),
    #[error("cannot make a key: {0}")]
    Key(#[from] rcgen::Error),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(
        "the controller at {host}:{port} does not have the authority that the token is for: it is another cluster's, or somebody stands between; nothing was sent to it. Is the address the one that the token was made at?"
    )]
    Foreign { host: String, port: u16 },
    #[error("the controller's answer is for node {node} of cluster {cluster}, which was not asked for")]
    Another { node: NodeId, cluster: ClusterId },
}

/// Joins the cluster of the token. Asked again after it worked, it says so; asked again after the answer
/// was lost, it gets the answer again, since the key is the same.
///
/// # Errors
/// When anything is refused; each with its remedy.
pub async fn join(options: JoinOptions) -> Result<Joined, JoinError> {
    let token: JoinToken = options.token.expose().parse()?;
    let (host, port) = controller(&options.controller)?;
    let place = Place::read(&options.config)?;
    let node = node(&options, &place, &token)?;
    let state_dir = place.as_ref().map_or_else(Place::default_state_dir, |place| place.state_dir.clone());
    let lock = store::lock(&state_dir)?;
    if let Some(before) = is_member(&state_dir, (&token.cluster, &node), (&host, port)).await? {
        return Ok(before);
    }
    let pending = state_dir.join("join.key");
    let key = pending_key(&pending)?;
    let request = request(&key)?;
    let api = Api { host: host.clone(), port, tls: pinned(token.authority) };
    let asked = JoinRequest { token: options.token.clone(), node: node.clone(), request };
    let answer: IdentityAnswer = api.post("/v1/join", &asked).await.map_err(|error| match error {
        AskError::Untrusted { host, port, source } if source == UNKNOWN_ISSUER => {
            JoinError::Foreign { host, port }
        }
        other => other.into(),
    })?;
    if answer.node != node || answer.cluster != token.cluster {
        return Err(JoinError::Another { node: answer.node, cluster: answer.cluster });
    }
    if place.is_none() {
        Place::write_first(&options.config, (&answer.cluster, &node))
            .map_err(|source| JoinError::WriteConfig { path: options.config.clone(), source })?;
    }
    let membership = Membership {
        cluster: answer.cluster.clone(),
        node: answer.node,
        host,
        api_port: port,
        mqtt_port: answer.mqtt_port,
        certificate: answer.certificate,
        key: key.serialize_pem().into(),
        authorities: answer.authorities,
        good_s: answer.now_s,
    };
    membership.save(&state_dir)?;
    // A key that is left would only be used again.
    let _ = std::fs::remove_file(&pending);
    drop(lock);
    Ok(Joined::Now { cluster: answer.cluster, node })
}

/// `host`, `host:port` or `[v6]:port`.
fn controller(text: &str) -> Result<(String, u16), JoinError> {
    let refused = || JoinError::Controller { text: text.to_owned() };
    let bare = text.strip_prefix("https://").unwrap_or(text).trim_end_matches('/');
    let (host, port) = match bare.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(refused)?;
            (host, port.strip_prefix(':'))
        }
        None if bare.matches(':').count() > 1 => (bare, None),
        None => bare.split_once(':').map_or((bare, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(API_PORT), |port| port.parse().map_err(|_| refused()))?;
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    if host.is_empty() || port == 0 || !host.chars().all(sound) {
        return Err(refused());
    }
    Ok((host.to_owned(), port))
}

/// The name that is asked for, where command line, file and token agree.
fn node(options: &JoinOptions, place: &Option<Place>, token: &JoinToken) -> Result<NodeId, JoinError> {
    let path = || options.config.clone();
    if let Some(place) = place {
        if place.has_files {
            return Err(JoinError::FilesConfigured { path: path() });
        }
        if let Some(config) = place.cluster.clone().filter(|cluster| *cluster != token.cluster) {
            return Err(JoinError::OtherCluster { path: path(), config, token: token.cluster.clone() });
        }
        match (place.node.clone(), options.node.clone()) {
            (Some(config), Some(asked)) if config != asked => {
                return Err(JoinError::OtherNode { path: path(), config, asked });
            }
            (Some(config), _) => return Ok(config),
            (None, _) => {}
        }
    }
    options.node.clone().map_or_else(
        || {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            // A machine's full name has its domain after the first dot.
            let first = name.trim().split('.').next().unwrap_or_default().to_ascii_lowercase();
            first.parse().map_err(JoinError::Hostname)
        },
        Ok,
    )
}

/// Whether this node has a membership that its controller still honours.
async fn is_member(
    state_dir: &Path,
    (cluster, node): (&ClusterId, &NodeId),
    (host, port): (&str, u16),
) -> Result<Option<Joined>, JoinError> {
    // One that does not read is replaced.
    let Ok(Some(live)) = Live::open(state_dir) else { return Ok(None) };
    let present = live.membership();
    if present.cluster != *cluster || present.node != *node {
        return Ok(None);
    }
    let api = Api { host: host.to_owned(), port, tls: live.client_config() };
    match api.fetch::<RenewalView>("/v1/identity").await {
        Ok(_) => Ok(Some(Joined::Before { cluster: present.cluster, node: present.node })),
        Err(error @ (AskError::Unreachable { .. } | AskError::Slow { .. })) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// The key of an attempt whose answer may have been lost, or a new one, on disk before it is used.
fn pending_key(path: &Path) -> Result<KeyPair, JoinError> {
    let kept = file::read(path)?.and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(key) = kept.and_then(|text| KeyPair::from_pem(&text).ok()) {
        return Ok(key);
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    file::replace(path, Secret::from(key.serialize_pem()).expose().as_bytes())?;
    Ok(key)
}

/// A signing request, PEM: only its key counts, so it asks for nothing else.
fn request(key: &KeyPair) -> Result<String, rcgen::Error> {
    CertificateParams::default().serialize_request(key)?.pem()
}

/// A fresh key, PEM, and its signing request.
pub(super) fn key_and_request() -> Result<(Secret, String), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    Ok((key.serialize_pem().into(), request(&key)?))
}

/// TLS that trusts the authority of a token, before its certificate was ever seen.
fn pinned(authority: Fingerprint) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring speaks TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Server::controller(Pinned { authority })))
        .with_no_client_auth();
    Arc::new(config)
}

/// Accepts what the authority of this hash has signed for a controller.
#[derive(Debug)]
struct Pinned {
    authority: Fingerprint,
}

impl Trust for Pinned {
    fn judge(&self, shown: &Shown<'_>) -> Result<ServerCertVerified, Error> {
        let is_ours = |found: &&CertificateDer<'_>| digest(&SHA256, found).as_ref() == self.authority.0;
        let authority = shown.intermediates.iter().find(is_ours);
        let authority = authority.ok_or(UNKNOWN_ISSUER)?.clone().into_owned();
        let verifier = roots([authority]).and_then(verifier).ok_or(UNKNOWN_ISSUER)?;
        // Without a time that was ever told, a clock that is ahead cannot be known to be.
        shown.judge(&verifier, &Known { good_s: RELEASED_S, ahead_max_s: u64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_controllers_read_with_and_without_a_port() {
        let read = |text: &str| controller(text).map_err(|error| error.to_string());
        for (text, host, port) in [
            ("master", "master", 7070),
            ("master.lan:7443", "master.lan", 7443),
            ("https://10.0.0.1:7070/", "10.0.0.1", 7070),
            ("[2001:db8::1]:8000", "2001:db8::1", 8000),
            ("2001:db8::1", "2001:db8::1", 7070),
        ] {
            assert_eq!(read(text), Ok((host.to_owned(), port)), "{text}");
        }
        for bad in ["", ":7070", "a b", "master:0", "master:x", "[::1", "http://master", "a/b"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_attempt_that_is_repeated_has_the_same_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("join.key");
        let first = pending_key(&path).unwrap().serialize_pem();
        assert_eq!(pending_key(&path).unwrap().serialize_pem(), first);
        std::fs::write(&path, "cut off").unwrap();
        assert_ne!(pending_key(&path).unwrap().serialize_pem(), first);
    }
}
