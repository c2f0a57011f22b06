//! What is said over HTTPS about identity: joining, renewal, tokens, revocation.
//!
//! A node makes its key itself and sends a signing request alone; no message here carries a private key.

use crate::ids::{ClusterId, NodeId};
use crate::secret::Secret;
use crate::token::TokenId;
use serde::{Deserialize, Serialize};

/// The name that every server certificate of an authority carries, so that a node knows its controller
/// under whatever address it is reached.
pub const CONTROLLER_NAME: &str = "controller.edgeloom.internal";

/// Below it every node has a name, `<node>.node.edgeloom.internal`, which its certificate carries so that
/// neighbours know it under whatever address it is reached.
const NODE_DOMAIN: &str = "node.edgeloom.internal";

/// The name that a node's certificate is valid for.
#[must_use]
pub fn node_name(node: &NodeId) -> String {
    format!("{node}.{NODE_DOMAIN}")
}

/// The API's port unless another is configured.
pub const API_PORT: u16 = 7070;

/// `POST /v1/join`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JoinRequest {
    pub token: Secret,
    pub node: NodeId,
    /// PKCS #10, PEM; only its public key counts.
    pub request: String,
}

/// `POST /v1/identity`, with the node's present certificate in the TLS handshake.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RenewRequest {
    /// PKCS #10, PEM; only its public key counts.
    pub request: String,
}

/// What a node gets for joining or renewing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityAnswer {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// PEM.
    pub certificate: String,
    /// PEM of every authority to trust; two while one takes over from the other.
    pub authorities: String,
    /// Where the broker listens, on the host that was asked.
    pub mqtt_port: u16,
    /// The controller's clock, in seconds since 1970.
    pub now_s: u64,
}

/// `GET /v1/identity`, with the node's present certificate: whether it is time to renew. The controller
/// judges, since a node's clock may be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewalView {
    pub due: bool,
    pub now_s: u64,
}

/// What a token of the API may do; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// See jobs, nodes, logs and events.
    Read,
    /// Run, stop and measure jobs.
    Deploy,
    /// Tokens, nodes and the authority.
    Admin,
}

impl Scope {
    /// As written on command lines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Deploy => "deploy",
            Self::Admin => "admin",
        }
    }
}

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenPurpose {
    /// Nodes join with it.
    Join {
        /// Empty: any name.
        #[serde(default)]
        nodes: Vec<NodeId>,
        uses: u32,
        /// A name that has a live certificate is given anew, and that certificate revoked. Whoever makes the
        /// token decides it, not whoever holds it; so it needs names.
        #[serde(default)]
        replace: bool,
    },
    /// A client of the API shows it.
    Api { scope: Scope },
}

/// `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    pub purpose: TokenPurpose,
    /// For people, in lists.
    #[serde(default)]
    pub note: String,
    /// None: an hour for joining, without end for the API.
    #[serde(default)]
    pub lifetime_s: Option<u64>,
}

/// A token in lists; never its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenView {
    pub id: TokenId,
    pub purpose: TokenPurpose,
    #[serde(default)]
    pub note: String,
    pub created_s: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<u64>,
    /// Nodes that joined with it.
    #[serde(default)]
    pub used_by: Vec<NodeId>,
}

/// The one answer with a token's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreated {
    pub token: TokenView,
    pub text: Secret,
}

/// `GET /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenList {
    pub tokens: Vec<TokenView>,
}

/// `DELETE /v1/nodes/{name}/certificate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedView {
    pub node: NodeId,
    /// Serial numbers, hexadecimal.
    pub serials: Vec<String>,
}

/// `POST /v1/authority`: a new authority beside the present one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityView {
    /// Authorities that are trusted now.
    pub authorities: usize,
    /// Nodes whose certificate the newest one has not signed yet.
    pub nodes_waiting: Vec<NodeId>,
}

/// Where the command line finds its controller: server, token and authorities in one file of mode 0600.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// `https://host:port`.
    pub server: String,
    pub token: Secret,
    /// PEM.
    pub authorities: String,
}
