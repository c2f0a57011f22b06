//! The cluster's authority: a key that signs certificates of nodes and of the controller.
//!
//! Two of them overlap during a rotation. The older one vouches for the controller, whom every node knows
//! by it; the newer one signs what nodes get. When no live certificate of the older is left, it goes.

use crate::certificate;
use edgeloom_common::digest::hex;
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::secret::Secret;
use edgeloom_common::token::Fingerprint;
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use ring::digest::{SHA256, digest};
use ring::hmac;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

/// Bytes of a signing request: one with a P-256 key has a few hundred.
pub const REQUEST_MAX: usize = 8 * 1024;

/// Why a certificate was not made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// Authority or key on disk.
    #[error("the authority on disk does not read")]
    Unreadable,
    /// Not PKCS #10, or not signed by the key it carries.
    #[error("the signing request is refused: {0}")]
    Request(rcgen::Error),
    /// Larger than any of ours.
    #[error("the signing request has {bytes} bytes, at most {REQUEST_MAX} are read")]
    RequestTooLarge { bytes: usize },
    /// Another kind of key.
    #[error("the signing request's key is none of ECDSA P-256")]
    Key,
    /// Signing itself.
    #[error("cannot sign: {0}")]
    Sign(rcgen::Error),
    /// No name for a certificate.
    #[error("{name:?} is no DNS name or address; correct `names` in the configuration")]
    ServerName { name: String },
    /// Beyond what a certificate can say.
    #[error("the controller's clock shows {now_s} s since 1970; set it")]
    Clock { now_s: u64 },
}

/// An authority as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// PEM.
    certificate: String,
    /// PEM, PKCS #8.
    key: Secret,
    created_s: u64,
}

/// An authority that can sign.
pub(crate) struct Authority {
    stored: Stored,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    pub(crate) fingerprint: Fingerprint,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// The public half of a node's key, with the proof that the node has the other one.
#[derive(Debug)]
pub(crate) struct Applicant {
    request: CertificateSigningRequestParams,
    /// SHA-256 of the key, hexadecimal.
    pub(crate) key: String,
}

impl Applicant {
    /// Reads and verifies a signing request. All that it asks for besides its key is ignored.
    pub(crate) fn parse(pem: &str) -> Result<Self, AuthorityError> {
        if pem.len() > REQUEST_MAX {
            return Err(AuthorityError::RequestTooLarge { bytes: pem.len() });
        }
        let request = CertificateSigningRequestParams::from_pem(pem).map_err(AuthorityError::Request)?;
        if PublicKeyData::algorithm(&request.public_key) != &PKCS_ECDSA_P256_SHA256 {
            return Err(AuthorityError::Key);
        }
        let key = hex(digest(&SHA256, request.public_key.der_bytes()).as_ref());
        Ok(Self { request, key })
    }
}

/// A certificate that was signed.
#[derive(Debug)]
pub(crate) struct Issued {
    /// PEM.
    pub(crate) certificate: String,
    pub(crate) serial: String,
}

/// The controller's own certificate chain and key.
#[derive(Debug)]
pub(crate) struct ServerIdentity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Authority {
    pub(crate) fn create(cluster: &ClusterId, now_s: u64) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Sign)?;
        let certificate = certificate::authority(cluster, now_s)?.self_signed(&key);
        let certificate = certificate.map_err(AuthorityError::Sign)?.pem();
        Self::open(Stored { certificate, key: key.serialize_pem().into(), created_s: now_s })
    }

    pub(crate) fn open(stored: Stored) -> Result<Self, AuthorityError> {
        let der = CertificateDer::from_pem_slice(stored.certificate.as_bytes())
            .map_err(|_| AuthorityError::Unreadable)?;
        let key = KeyPair::from_pem(stored.key.expose()).map_err(|_| AuthorityError::Unreadable)?;
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|_| AuthorityError::Unreadable)?;
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, &der).as_ref());
        Ok(Self { stored, der, issuer, fingerprint: Fingerprint(fingerprint) })
    }

    pub(crate) fn stored(&self) -> &Stored {
        &self.stored
    }

    /// A key that only the holder of the authority's key can make.
    pub(crate) fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.stored.key.expose().as_bytes());
        let mut derived = [0; 32];
        derived.copy_from_slice(hmac::sign(&key, purpose).as_ref());
        derived
    }

    /// Past half of its life.
    pub(crate) fn is_old(&self, now_s: u64) -> bool {
        now_s > self.stored.created_s + certificate::AUTHORITY_LIFETIME_S / 2
    }

    pub(crate) fn pem(&self) -> &str {
        &self.stored.certificate
    }

    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Signs for a node whose right to the name is checked.
    pub(crate) fn sign_node(
        &self,
        name: (&ClusterId, &NodeId),
        applicant: &Applicant,
        now_s: u64,
    ) -> Result<Issued, AuthorityError> {
        let (params, serial) = certificate::node(name.0, name.1, now_s)?;
        let signed = params.signed_by(&applicant.request.public_key, &self.issuer);
        Ok(Issued { certificate: signed.map_err(AuthorityError::Sign)?.pem(), serial })
    }

    /// A fresh key and certificate for the controller, kept in memory alone.
    pub(crate) fn sign_server(&self, names: &[String], now_s: u64) -> Result<ServerIdentity, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Sign)?;
        let signed = certificate::server(names, now_s)?.signed_by(&key, &self.issuer);
        let leaf = signed.map_err(AuthorityError::Sign)?.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        // With the authority itself: a node that joins knows only its hash.
        Ok(ServerIdentity { chain: vec![leaf, self.der.clone()], key })
    }
}
