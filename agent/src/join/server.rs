//! Who is taken for the server that was meant, in a form that TLS asks, and in 1.3 alone: the controller under
//! the one name that each has, a neighbour under its own.

use super::clock::Known;
use edgeloom_common::join::CONTROLLER_NAME;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::fmt::Debug;
use std::sync::Arc;

/// What a handshake shows and asks.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    name: &'a ServerName<'a>,
    end_entity: &'a CertificateDer<'a>,
    pub(super) intermediates: &'a [CertificateDer<'a>],
    ocsp: &'a [u8],
    now: UnixTime,
}

impl Shown<'_> {
    /// Whether the verifier takes it for the server's, at a time that this clock may be wrong by.
    pub(super) fn judge(
        &self,
        verifier: &WebPkiServerVerifier,
        known: &Known,
    ) -> Result<ServerCertVerified, Error> {
        known.verify(self.now, |at| {
            verifier.verify_server_cert(self.end_entity, self.intermediates, self.name, self.ocsp, at)
        })
    }
}

/// Whom to trust.
pub(super) trait Trust: Debug + Send + Sync {
    fn judge(&self, shown: &Shown<'_>) -> Result<ServerCertVerified, Error>;
}

/// The verifier that [`Trust`] makes.
#[derive(Debug)]
pub(super) struct Server<T> {
    trust: T,
    /// None: under the name that was asked for.
    name: Option<ServerName<'static>>,
}

impl<T: Trust> Server<T> {
    pub(super) fn controller(trust: T) -> Self {
        Self { trust, name: Some(controller_name()) }
    }

    pub(super) fn neighbour(trust: T) -> Self {
        Self { trust, name: None }
    }
}

impl<T: Trust> ServerCertVerifier for Server<T> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let name = self.name.as_ref().unwrap_or(asked);
        self.trust.judge(&Shown { name, end_entity, intermediates, ocsp, now })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        old_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        present_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

/// A signature of TLS 1.2.
pub(super) fn old_signature(
    _message: &[u8],
    _certificate: &CertificateDer<'_>,
    _signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
}

/// A signature of TLS 1.3.
pub(super) fn present_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    verify_tls13_signature(message, certificate, signature, &provider().signature_verification_algorithms)
}

pub(super) fn schemes() -> Vec<SignatureScheme> {
    provider().signature_verification_algorithms.supported_schemes()
}

/// The name that every controller's certificate has: its address may change, and names nothing.
pub(super) fn controller_name() -> ServerName<'static> {
    ServerName::try_from(CONTROLLER_NAME).expect("it is a DNS name")
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// These authorities alone; none if one of them is no certificate.
pub(super) fn roots(
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Option<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).ok()?;
    }
    Some(Arc::new(roots))
}

/// A verifier of servers that trusts these authorities.
pub(super) fn verifier(roots: Arc<RootCertStore>) -> Option<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(roots, provider()).build().ok()
}
