//! What was given to whom: tokens, certificates, revocations. Pure: the clock comes as a number, and a
//! change that is refused leaves everything as it was.

mod refusal;
#[cfg(test)]
mod tests;

pub use refusal::{IssueError, JoinError, NoSuchNode, NoSuchToken, RenewError, RotateError};

use edgeloom_common::digest::hex;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::{Scope, TokenPurpose, TokenRequest, TokenView};
use edgeloom_common::secret::Secret;
use edgeloom_common::token::{ApiToken, JoinToken, TokenId};
use refusal::{LIFETIME_MAX_S, NODES_MAX, NOTE_MAX, TOKENS_MAX, USES_MAX};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use subtle::ConstantTimeEq;

const DAY_S: u64 = 24 * 3600;
/// What a token for joining gets unless another lifetime is asked for.
const JOIN_LIFETIME_S: u64 = 3600;
/// How long an expired token is still known, so that it is refused as expired and not as unknown.
const REMEMBERED_S: u64 = 30 * DAY_S;

/// Who joined with a token, with which key, and what it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Use {
    pub(crate) node: NodeId,
    pub(crate) key: String,
    /// PEM, to be told again if the answer was lost.
    pub(crate) certificate: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Token {
    /// SHA-256 of the secret, hexadecimal.
    hash: String,
    purpose: TokenPurpose,
    note: String,
    created_s: u64,
    expires_s: Option<u64>,
    used: Vec<Use>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Standing {
    Live,
    /// The node shows a newer one; this one ends by itself.
    Superseded,
    Revoked,
}

/// A certificate of a node, as long as it would be valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) node: NodeId,
    pub(crate) serial: String,
    /// SHA-256 of its public key.
    pub(crate) key: String,
    /// SHA-256 of the authority that signed it.
    pub(crate) authority: String,
    pub(crate) issued_s: u64,
    pub(crate) expires_s: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    certificate: Certificate,
    standing: Standing,
}

/// The whole of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Registry {
    tokens: BTreeMap<TokenId, Token>,
    certificates: Vec<Entry>,
}

fn hash(secret: &Secret) -> String {
    hex(digest(&SHA256, secret.expose().as_bytes()).as_ref())
}

impl Token {
    /// In constant time: how long it takes must not tell how much of a guess was right.
    fn is(&self, secret: &Secret) -> bool {
        self.hash.as_bytes().ct_eq(hash(secret).as_bytes()).into()
    }

    fn expired_for_s(&self, now_s: u64) -> Option<u64> {
        self.expires_s.and_then(|end| now_s.checked_sub(end))
    }
}

impl Registry {
    /// Nothing was ever given to anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.certificates.is_empty()
    }

    /// Adds a token whose secret was drawn by the caller.
    pub(crate) fn add_token(
        &mut self,
        (id, secret): (TokenId, &Secret),
        request: TokenRequest,
        now_s: u64,
    ) -> Result<TokenView, IssueError> {
        self.forget(now_s);
        let TokenRequest { purpose, note, lifetime_s } = request;
        if let TokenPurpose::Join { nodes, uses, replace } = &purpose {
            if !(1..=USES_MAX).contains(uses) {
                return Err(IssueError::Uses { uses: *uses });
            }
            if *replace && nodes.is_empty() {
                return Err(IssueError::ReplaceAny);
            }
            if nodes.len() > NODES_MAX {
                return Err(IssueError::Nodes { count: nodes.len() });
            }
        }
        if note.len() > NOTE_MAX || note.contains(char::is_control) {
            return Err(IssueError::Note);
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(IssueError::Full);
        }
        let default_s = matches!(purpose, TokenPurpose::Join { .. }).then_some(JOIN_LIFETIME_S);
        let lifetime_s = lifetime_s.or(default_s);
        if let Some(seconds) = lifetime_s.filter(|seconds| !(1..=LIFETIME_MAX_S).contains(seconds)) {
            return Err(IssueError::Lifetime { seconds });
        }
        let expires_s = lifetime_s.map(|seconds| now_s + seconds);
        let hash = hash(secret);
        let token = Token { hash, purpose, note, created_s: now_s, expires_s, used: Vec::new() };
        let view = view(&id, &token);
        self.tokens.insert(id, token);
        Ok(view)
    }

    pub(crate) fn tokens(&self) -> Vec<TokenView> {
        self.tokens.iter().map(|(id, token)| view(id, token)).collect()
    }

    pub(crate) fn remove_token(&mut self, id: &TokenId) -> Result<(), NoSuchToken> {
        self.tokens.remove(id).map(|_| ()).ok_or_else(|| NoSuchToken::Unknown { id: id.clone() })
    }

    /// What the bearer of a token may do.
    pub(crate) fn scope(&self, token: &ApiToken, now_s: u64) -> Option<Scope> {
        let known = self.tokens.get(&token.id)?;
        match known.purpose {
            TokenPurpose::Api { scope }
                if known.is(&token.secret) && known.expired_for_s(now_s).is_none() =>
            {
                Some(scope)
            }
            _ => None,
        }
    }

    /// Whether `node` may join with a token of this cluster and the key whose hash is given; revokes what the
    /// node had if the token says so. The same node with the same key asks again only when the answer was
    /// lost: it gets the certificate that it got, and that is no second use.
    pub(crate) fn admit(
        &mut self,
        token: &JoinToken,
        (node, key): (&NodeId, &str),
        now_s: u64,
    ) -> Result<Option<String>, JoinError> {
        let known = self.tokens.get(&token.id).filter(|known| known.is(&token.secret));
        let known = known.ok_or(JoinError::Unknown)?;
        let TokenPurpose::Join { nodes, uses, replace } = &known.purpose else {
            return Err(JoinError::Unknown);
        };
        let (uses, id) = (*uses, token.id.clone());
        if let Some(ago_s) = known.expired_for_s(now_s) {
            return Err(JoinError::Expired { id, ago_s });
        }
        if !nodes.is_empty() && !nodes.contains(node) {
            return Err(JoinError::NotForNode { id, node: node.clone() });
        }
        let revoked = |entry: &Entry| entry.standing == Standing::Revoked && entry.certificate.key == key;
        let before = known.used.iter().find(|it| it.node == *node && it.key == key);
        if let Some(before) = before.filter(|_| !self.certificates.iter().any(revoked)) {
            return Ok(Some(before.certificate.clone()));
        }
        if known.used.len() >= uses as usize {
            return Err(JoinError::Used { id, uses });
        }
        let others = |entry: &Entry| {
            entry.certificate.node == *node
                // Who proves to have the same key is the same machine.
                && entry.certificate.key != key
                && entry.standing != Standing::Revoked
                && entry.certificate.expires_s > now_s
        };
        if !replace && self.certificates.iter().any(others) {
            return Err(JoinError::NameTaken { node: node.clone() });
        }
        for entry in self.certificates.iter_mut().filter(|entry| others(entry)) {
            entry.standing = Standing::Revoked;
        }
        Ok(None)
    }

    /// Notes that a token was used.
    pub(crate) fn add_use(&mut self, id: &TokenId, this: Use) {
        if let Some(token) = self.tokens.get_mut(id) {
            token.used.push(this);
        }
    }

    pub(crate) fn add_certificate(&mut self, certificate: Certificate) {
        self.forget(certificate.issued_s);
        self.certificates.push(Entry { certificate, standing: Standing::Live });
    }

    /// The node has shown this certificate: those before it are not needed any more. True if that is news.
    pub(crate) fn confirm(&mut self, serial: &str) -> bool {
        let Some(shown) = self.certificates.iter().find(|entry| entry.certificate.serial == serial) else {
            return false;
        };
        let Certificate { node, issued_s, .. } = shown.certificate.clone();
        let mut news = false;
        for entry in &mut self.certificates {
            let older = entry.certificate.node == node && entry.certificate.serial != serial;
            if older && entry.certificate.issued_s <= issued_s && entry.standing == Standing::Live {
                entry.standing = Standing::Superseded;
                news = true;
            }
        }
        news
    }

    /// Whether a certificate is past half of its life, or signed by an authority that goes. One that is not
    /// known, as after a restore of an older state, is due.
    pub(crate) fn is_due(&self, serial: &str, newest_authority: &str, now_s: u64) -> bool {
        let known = self.certificates.iter().find(|entry| entry.certificate.serial == serial);
        known.is_none_or(|Entry { certificate, .. }| {
            let half_s = certificate.issued_s.midpoint(certificate.expires_s);
            now_s >= half_s || certificate.authority != newest_authority
        })
    }

    pub(crate) fn is_revoked(&self, serial: &str) -> bool {
        let revoked =
            |entry: &Entry| entry.standing == Standing::Revoked && entry.certificate.serial == serial;
        self.certificates.iter().any(revoked)
    }

    /// Revokes everything that a node has; the serial numbers.
    pub(crate) fn revoke(&mut self, node: &NodeId, now_s: u64) -> Result<Vec<String>, NoSuchNode> {
        let mut serials = Vec::new();
        for Entry { certificate, standing } in &mut self.certificates {
            if certificate.node == *node && certificate.expires_s > now_s && *standing != Standing::Revoked {
                *standing = Standing::Revoked;
                serials.push(certificate.serial.clone());
            }
        }
        if serials.is_empty() { Err(NoSuchNode::Unknown { node: node.clone() }) } else { Ok(serials) }
    }

    pub(crate) fn revoked(&self) -> BTreeSet<String> {
        let revoked = self.certificates.iter().filter(|entry| entry.standing == Standing::Revoked);
        revoked.map(|entry| entry.certificate.serial.clone()).collect()
    }

    /// Nodes whose live certificate another authority than `newest` has signed.
    pub(crate) fn waiting(&self, newest: &str, now_s: u64) -> BTreeSet<NodeId> {
        let waits = |entry: &&Entry| {
            entry.standing == Standing::Live
                && entry.certificate.expires_s > now_s
                && entry.certificate.authority != newest
        };
        self.certificates.iter().filter(waits).map(|entry| entry.certificate.node.clone()).collect()
    }

    /// Drops what is past any use; a day is kept for clocks that differ.
    fn forget(&mut self, now_s: u64) {
        self.certificates.retain(|entry| entry.certificate.expires_s + DAY_S > now_s);
        self.tokens.retain(|_, token| token.expired_for_s(now_s).is_none_or(|ago_s| ago_s < REMEMBERED_S));
    }
}

fn view(id: &TokenId, token: &Token) -> TokenView {
    let Token { purpose, note, created_s, expires_s, used, .. } = token.clone();
    let used_by = used.into_iter().map(|it| it.node).collect();
    TokenView { id: id.clone(), purpose, note, created_s, expires_s, used_by }
}
