//! TLS by files that are managed from outside: one authority to trust, one certificate to show.

use crate::config::IdentityFiles;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A reconnecting client needs one ticket; the default keeps 256 servers.
const SESSIONS_KEPT: usize = 2;

/// Why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    #[error("cannot read {} as PEM: {cause}", path.display())]
    Pem { path: PathBuf, cause: pem::Error },
    #[error("{} holds no certificate", path.display())]
    Empty { path: PathBuf },
    #[error("{} holds no certificate of an authority: {cause}", path.display())]
    Authority { path: PathBuf, cause: rustls::Error },
    #[error("certificate {} and key {} do not make an identity: {cause}", certificate.display(), key.display())]
    Identity { certificate: PathBuf, key: PathBuf, cause: rustls::Error },
    #[error("the tls provider has none of the tls versions that are needed: {0}")]
    Versions(rustls::Error),
}

/// Reads the files. The provider is named here, so the session works whatever else is linked in.
pub(super) fn client_config(settings: &IdentityFiles) -> Result<Arc<ClientConfig>, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(&settings.ca)? {
        roots.add(authority).map_err(|cause| TlsFileError::Authority { path: settings.ca.clone(), cause })?;
    }
    let chain = certificates(&settings.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&settings.key)
        .map_err(|cause| TlsFileError::Pem { path: settings.key.clone(), cause })?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsFileError::Versions)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|cause| TlsFileError::Identity {
            certificate: settings.certificate.clone(),
            key: settings.key.clone(),
            cause,
        })?;
    config.resumption = Resumption::in_memory_sessions(SESSIONS_KEPT);
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let failed = |cause| TlsFileError::Pem { path: path.to_owned(), cause };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(failed)?.collect();
    let found = found.map_err(failed)?;
    if found.is_empty() {
        return Err(TlsFileError::Empty { path: path.to_owned() });
    }
    Ok(found)
}
