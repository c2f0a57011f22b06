//! Certificates that somebody else manages: three PEM files instead of our own authority.

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

/// Where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// PEM file of the authorities that clients' certificates are verified against.
    pub ca: PathBuf,
    /// PEM file of the server's own certificate chain.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
}

/// The server's side of mutual TLS 1.3: clients without a certificate of these authorities are refused.
pub fn server_config(files: &Files) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let authorities = |source| TlsError::Authorities { path: files.ca.clone(), source };
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(&files.ca)?), provider.clone())
        .build()
        .map_err(authorities)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|source| TlsError::File { path: files.key.clone(), source })?;
    let refused = |source| TlsError::Refused { path: files.certificate.clone(), source };
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&files.certificate)?, key)
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
