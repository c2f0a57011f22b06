//! Mutual TLS 1.3: the broker's certificate, the authorities of its clients, and the node that a
//! client's certificate names.

use crate::Config;
use edgeloom_common::ids::{NameError, NodeId};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, crypto};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why certificates are of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or no PEM.
    #[error("cannot read {path}: {source}")]
    File { path: PathBuf, source: pem::Error },
    /// A PEM file without a certificate in it.
    #[error("{path} holds no certificate")]
    NoCertificate { path: PathBuf },
    /// A certificate or key that rustls refuses.
    #[error("{path} is refused: {source}")]
    Refused { path: PathBuf, source: rustls::Error },
    /// The authorities make no verifier.
    #[error("the authorities of {path} are refused: {source}")]
    Authorities { path: PathBuf, source: VerifierBuilderError },
}

/// Why a client's certificate names no node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("the client sent no certificate")]
    Missing,
    #[error("the client's certificate does not read")]
    Unreadable,
    #[error("the client's certificate has {count} common names, one is needed")]
    CommonNames { count: usize },
    #[error("the certificate's common name is no node id: {0}")]
    Name(#[from] NameError),
}

/// The broker's side of the handshake: clients without a certificate of our authorities are refused.
pub(crate) fn server(config: &Config) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let authorities = |source| TlsError::Authorities { path: config.ca.clone(), source };
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots(&config.ca)?), provider.clone())
            .build()
            .map_err(authorities)?;
    let key = PrivateKeyDer::from_pem_file(&config.key)
        .map_err(|source| TlsError::File { path: config.key.clone(), source })?;
    let refused = |source| TlsError::Refused { path: config.certificate.clone(), source };
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&config.certificate)?, key)
        .map_err(refused)?;
    Ok(Arc::new(server))
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|source| TlsError::Refused { path: path.to_owned(), source })?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = |source| TlsError::File { path: path.to_owned(), source };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

/// The node that a verified certificate chain names: the common name of its first certificate.
pub(crate) fn node(chain: Option<&[CertificateDer<'_>]>) -> Result<NodeId, IdentityError> {
    let leaf = chain.and_then(<[_]>::first).ok_or(IdentityError::Missing)?;
    let (_, certificate) =
        x509_parser::parse_x509_certificate(leaf).map_err(|_| IdentityError::Unreadable)?;
    let names: Vec<_> = certificate.subject().iter_common_name().collect();
    let [name] = names.as_slice() else {
        return Err(IdentityError::CommonNames { count: names.len() });
    };
    Ok(name.as_str().map_err(|_| IdentityError::Unreadable)?.parse()?)
}
