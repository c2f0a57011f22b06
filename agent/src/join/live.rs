//! The membership at work: what TLS asks at every handshake, so that a renewal counts from the next one on
//! without anybody starting again.

#[cfg(test)]
mod tests;

use super::clock::{AHEAD_MAX_S, Known, RELEASED_S};
use super::file::{Membership, MembershipError};
use super::server::{
    Server, Shown, Trust, old_signature, present_signature, provider, roots, schemes, verifier,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Debug, Clone)]
struct Present {
    membership: Membership,
    key: Arc<CertifiedKey>,
    verifier: Arc<WebPkiServerVerifier>,
    /// Of neighbours that ask us.
    askers: Arc<dyn ClientCertVerifier>,
}

/// The membership in force.
#[derive(Debug)]
pub struct Live {
    state_dir: PathBuf,
    present: RwLock<Present>,
}

fn pem(text: &str) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|it| !it.is_empty())
}

impl Present {
    fn new(membership: Membership) -> Option<Self> {
        let chain = pem(&membership.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(membership.key.expose().as_bytes()).ok()?;
        let key = Arc::new(CertifiedKey::from_der(chain, key, &provider()).ok()?);
        let roots = roots(pem(&membership.authorities)?)?;
        let verifier = verifier(Arc::clone(&roots))?;
        let askers = WebPkiClientVerifier::builder_with_provider(roots, provider()).build().ok()?;
        Some(Self { membership, key, verifier, askers })
    }
}

impl Live {
    /// Opens the membership of a state directory; none if the machine has not joined.
    ///
    /// # Errors
    /// When there is one that is of no use.
    pub fn open(state_dir: &Path) -> Result<Option<Arc<Self>>, MembershipError> {
        let Some(membership) = Membership::load(state_dir)? else { return Ok(None) };
        let unfit = || MembershipError::Unfit { path: Membership::path(state_dir) };
        let present = RwLock::new(Present::new(membership).ok_or_else(unfit)?);
        Ok(Some(Arc::new(Self { state_dir: state_dir.to_owned(), present })))
    }

    fn present(&self) -> Present {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it is now.
    pub fn membership(&self) -> Membership {
        self.present().membership
    }

    /// Puts another one in force: on disk first.
    pub(super) fn replace(&self, membership: Membership) -> Result<(), MembershipError> {
        let unfit = || MembershipError::Unfit { path: Membership::path(&self.state_dir) };
        let present = Present::new(membership).ok_or_else(unfit)?;
        present.membership.save(&self.state_dir)?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = present;
        Ok(())
    }

    /// The client's side of mutual TLS 1.3 with the controller, which follows every renewal.
    pub(crate) fn client_config(self: &Arc<Self>) -> Arc<ClientConfig> {
        self.client(Server::controller(Arc::clone(self)))
    }

    /// The same with a neighbour that is asked for something.
    pub(crate) fn asking_config(self: &Arc<Self>) -> Arc<ClientConfig> {
        self.client(Server::neighbour(Arc::clone(self)))
    }

    /// The server's side with neighbours that ask.
    pub(crate) fn asked_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring speaks TLS 1.3")
            .with_client_cert_verifier(Arc::new(Askers(Arc::clone(self))))
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        // Nobody whose certificate has run out meanwhile goes on with an old session.
        config.send_tls13_tickets = 0;
        Arc::new(config)
    }

    fn known(membership: &Membership) -> Known {
        Known { good_s: membership.good_s.max(RELEASED_S), ahead_max_s: AHEAD_MAX_S }
    }

    fn client(self: &Arc<Self>, server: Server<Arc<Self>>) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring speaks TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(server))
            .with_client_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesClientCert>);
        // A resumed session would show the certificate it began with.
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}

impl Trust for Arc<Live> {
    fn judge(&self, shown: &Shown<'_>) -> Result<ServerCertVerified, Error> {
        let Present { membership, verifier, .. } = self.present();
        shown.judge(&verifier, &Live::known(&membership))
    }
}

impl ResolvesClientCert for Live {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.present().key)
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Live {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.present().key)
    }
}

/// Neighbours that ask: members of this cluster.
#[derive(Debug)]
struct Askers(Arc<Live>);

impl ClientCertVerifier for Askers {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // They have one certificate, and need no hint which to show.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let Present { membership, askers, .. } = self.0.present();
        Live::known(&membership).verify(now, |at| askers.verify_client_cert(end_entity, intermediates, at))
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
