//! The TLS configurations of broker and API, made of the authorities and a fresh server certificate.

use crate::authority::{Authority, AuthorityError};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, crypto};
use std::sync::Arc;

/// Both, made of one server certificate.
#[derive(Debug)]
pub(crate) struct Configs {
    /// Clients show a certificate of ours.
    pub(crate) mqtt: Arc<ServerConfig>,
    /// Clients may: nodes do when they renew, people show a token.
    pub(crate) https: Arc<ServerConfig>,
}

/// The first authority vouches for the server, all of them for nodes.
pub(crate) fn configs(
    authorities: &[Authority],
    names: &[String],
    now_s: u64,
) -> Result<Configs, AuthorityError> {
    let first = authorities.first().expect("there is always an authority");
    let server = first.sign_server(names, now_s)?;
    let provider = Arc::new(crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.der().clone()).map_err(|_| AuthorityError::Unreadable)?;
    }
    let roots = Arc::new(roots);
    let verifier = || WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider.clone());
    let config = |verifier: Arc<dyn ClientCertVerifier>| {
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring speaks TLS 1.3")
            .with_client_cert_verifier(verifier);
        let config = builder.with_single_cert(server.chain.clone(), server.key.clone_key());
        let mut config = config.map_err(|_| AuthorityError::Unreadable)?;
        // A resumed session would skip the verification of a certificate that has expired meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok::<_, AuthorityError>(Arc::new(config))
    };
    let required = verifier().build().map_err(|_| AuthorityError::Unreadable)?;
    let optional = verifier().allow_unauthenticated().build().map_err(|_| AuthorityError::Unreadable)?;
    Ok(Configs { mqtt: config(required)?, https: config(optional)? })
}
