//! Authorities: one takes over from the other, and the server certificate that they vouch for.

use super::{Identity, State, newest, now_s, save_authorities};
use crate::authority::{Authority, AuthorityError};
use crate::certificate::SERVER_LIFETIME_S;
use crate::registry::RotateError;
use crate::tls;
use edgeloom_common::digest::hex;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::AuthorityView;

impl Identity {
    /// Makes a second authority, which signs from now on. Nodes renew when they ask next; the first one goes
    /// when no live certificate of it is left.
    pub fn rotate(&self) -> Result<AuthorityView, RotateError> {
        self.add_authority(&mut self.state())
    }

    fn add_authority(&self, state: &mut State) -> Result<AuthorityView, RotateError> {
        if state.authorities.len() > 1 {
            return Err(RotateError::UnderWay { waiting: waiting(state).len() });
        }
        let authority = Authority::create(self.cluster(), now_s())?;
        let stored: Vec<_> = state.authorities.iter().chain([&authority]).collect();
        save_authorities(&self.0.settings, &stored)?;
        state.authorities.push(authority);
        self.serve(state)?;
        tracing::warn!("a second authority signs from now on");
        let nodes_waiting = waiting(state);
        Ok(AuthorityView { authorities: state.authorities.len(), nodes_waiting })
    }

    /// What becomes due with time: a server certificate past half its life, or made under another clock; an
    /// authority that nobody needs any more, or that is half its life old. To be called every minute or so.
    pub fn tick(&self) -> Result<(), RotateError> {
        let mut state = self.state();
        if state.authorities.len() > 1 && waiting(&state).is_empty() {
            save_authorities(&self.0.settings, &[newest(&state.authorities)])?;
            state.authorities.remove(0);
            tracing::warn!("the first authority has gone: every live certificate is the second one's");
            return Ok(self.serve(&mut state)?);
        }
        if state.served_s.abs_diff(now_s()) > SERVER_LIFETIME_S / 2 {
            self.serve(&mut state)?;
        }
        if state.authorities.len() == 1 && newest(&state.authorities).is_old(now_s()) {
            self.add_authority(&mut state)?;
        }
        Ok(())
    }

    /// A key for this purpose from each authority's own key, the newest first: whoever has the authorities has
    /// these, and nothing else has to be kept.
    #[must_use]
    pub fn derived_keys(&self, purpose: &[u8]) -> Vec<[u8; 32]> {
        self.state().authorities.iter().rev().map(|authority| authority.derive(purpose)).collect()
    }

    /// A fresh server certificate, for connections from now on.
    fn serve(&self, state: &mut State) -> Result<(), AuthorityError> {
        let now_s = now_s();
        let configs = tls::configs(&state.authorities, &self.0.settings.names, now_s)?;
        state.served_s = now_s;
        self.0.mqtt.send_replace(configs.mqtt);
        self.0.https.send_replace(configs.https);
        Ok(())
    }
}

/// Nodes that the newest authority has not signed for yet.
fn waiting(state: &State) -> Vec<NodeId> {
    let newest = hex(&newest(&state.authorities).fingerprint.0);
    state.registry.waiting(&newest, now_s()).into_iter().collect()
}
