//! Nodes: joining, renewal, revocation.

use super::{Identity, State, bundle, newest, now_s};
use crate::authority::{Applicant, AuthorityError};
use crate::certificate::NODE_LIFETIME_S;
use crate::peer::Peer;
use crate::registry::{Certificate, JoinError, NoSuchNode, Registry, RenewError, Use};
use edgeloom_common::digest::hex;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::{IdentityAnswer, JoinRequest, RenewRequest, RenewalView};
use edgeloom_common::token::JoinToken;

impl Identity {
    /// Gives a node its certificate. `mqtt_port` is told with it.
    pub fn join(&self, request: &JoinRequest, mqtt_port: u16) -> Result<IdentityAnswer, JoinError> {
        let token: JoinToken = request.token.expose().parse()?;
        let mut state = self.state();
        let ours = state.authorities.iter().any(|authority| authority.fingerprint == token.authority);
        if token.cluster != *self.cluster() || !ours {
            return Err(JoinError::Foreign { token: token.cluster, here: self.cluster().clone() });
        }
        let (node, applicant) = (&request.node, Applicant::parse(&request.request)?);
        let mut registry = state.registry.clone();
        if let Some(before) = registry.admit(&token, (node, &applicant.key), now_s())? {
            return Ok(self.answer(&state, node, before, mqtt_port));
        }
        let certificate = self.sign(&state, &mut registry, (node, &applicant))?;
        let this = Use { node: node.clone(), key: applicant.key, certificate: certificate.clone() };
        registry.add_use(&token.id, this);
        self.commit(&mut state, registry)?;
        tracing::info!(%node, token = %token.id, "node joined");
        Ok(self.answer(&state, node, certificate, mqtt_port))
    }

    /// Whether a node's certificate is due for renewal; that it shows this one ends those before it.
    pub fn renewal(&self, peer: &Peer) -> Result<RenewalView, RenewError> {
        let mut state = self.state();
        refuse_revoked(&state.registry, peer)?;
        let mut registry = state.registry.clone();
        if registry.confirm(&peer.serial) {
            self.commit(&mut state, registry)?;
        }
        let now_s = now_s();
        let authority = hex(&newest(&state.authorities).fingerprint.0);
        Ok(RenewalView { due: state.registry.is_due(&peer.serial, &authority, now_s), now_s })
    }

    /// Gives a node its next certificate, for the key of a new request.
    pub fn renew(
        &self,
        peer: &Peer,
        request: &RenewRequest,
        mqtt_port: u16,
    ) -> Result<IdentityAnswer, RenewError> {
        let mut state = self.state();
        refuse_revoked(&state.registry, peer)?;
        let authority = hex(&newest(&state.authorities).fingerprint.0);
        if !state.registry.is_due(&peer.serial, &authority, now_s()) {
            return Err(RenewError::NotDue { node: peer.node.clone() });
        }
        let applicant = Applicant::parse(&request.request)?;
        let mut registry = state.registry.clone();
        let certificate = self.sign(&state, &mut registry, (&peer.node, &applicant))?;
        self.commit(&mut state, registry)?;
        tracing::info!(node = %peer.node, "certificate renewed");
        Ok(self.answer(&state, &peer.node, certificate, mqtt_port))
    }

    /// A certificate, PEM, by the newest authority; known once the registry is committed.
    fn sign(
        &self,
        state: &State,
        registry: &mut Registry,
        (node, applicant): (&NodeId, &Applicant),
    ) -> Result<String, AuthorityError> {
        let now_s = now_s();
        let authority = newest(&state.authorities);
        let issued = authority.sign_node((self.cluster(), node), applicant, now_s)?;
        registry.add_certificate(Certificate {
            node: node.clone(),
            serial: issued.serial,
            key: applicant.key.clone(),
            authority: hex(&authority.fingerprint.0),
            issued_s: now_s,
            expires_s: now_s + NODE_LIFETIME_S,
        });
        Ok(issued.certificate)
    }

    fn answer(&self, state: &State, node: &NodeId, certificate: String, mqtt_port: u16) -> IdentityAnswer {
        IdentityAnswer {
            cluster: self.cluster().clone(),
            node: node.clone(),
            certificate,
            authorities: bundle(&state.authorities),
            mqtt_port,
            now_s: now_s(),
        }
    }

    /// Revokes every certificate of a node: its session ends now, and it cannot come back with them.
    pub fn revoke_node(&self, node: &NodeId) -> Result<Vec<String>, NoSuchNode> {
        let mut state = self.state();
        let mut registry = state.registry.clone();
        let serials = registry.revoke(node, now_s())?;
        self.commit(&mut state, registry)?;
        tracing::warn!(%node, certificates = serials.len(), "certificates of a node revoked");
        Ok(serials)
    }
}

fn refuse_revoked(registry: &Registry, peer: &Peer) -> Result<(), RenewError> {
    if registry.is_revoked(&peer.serial) {
        return Err(RenewError::Revoked { node: peer.node.clone(), serial: peer.serial.clone() });
    }
    Ok(())
}
