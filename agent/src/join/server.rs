//! Who is taken for the controller, in a form that TLS asks: 1.3 alone, under the one name that every
//! controller's certificate has.

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
    end_entity: &'a CertificateDer<'a>,
    pub(super) intermediates: &'a [CertificateDer<'a>],
    ocsp: &'a [u8],
    now: UnixTime,
}

impl Shown<'_> {
    /// Whether the verifier takes it for the controller's, at a time that this clock may be wrong by.
    pub(super) fn judge(
        &self,
        verifier: &WebPkiServerVerifier,
        known: &Known,
    ) -> Result<ServerCertVerified, Error> {
        let name = controller_name();
        known.verify(self.now, |at| {
            verifier.verify_server_cert(self.end_entity, self.intermediates, &name, self.ocsp, at)
        })
    }
}

/// Whom to trust.
pub(super) trait Trust: Debug + Send + Sync {
    fn judge(&self, shown: &Shown<'_>) -> Result<ServerCertVerified, Error>;
}

/// The verifier that [`Trust`] makes.
#[derive(Debug)]
pub(super) struct Controller<T>(pub(super) T);

impl<T: Trust> ServerCertVerifier for Controller<T> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.judge(&Shown { end_entity, intermediates, ocsp, now })
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The name that every controller's certificate has: its address may change, and names nothing.
pub(super) fn controller_name() -> ServerName<'static> {
    ServerName::try_from(CONTROLLER_NAME).expect("it is a DNS name")
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A verifier that trusts these authorities alone.
pub(super) fn verifier(
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Option<Arc<WebPkiServerVerifier>> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).ok()?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().ok()
}
