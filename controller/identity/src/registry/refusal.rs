//! What is refused, and the bounds.

use crate::authority::AuthorityError;
use crate::disk::DiskError;
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::token::{TokenError, TokenId};

pub(super) const LIFETIME_MAX_S: u64 = 3650 * 24 * 3600;
pub(super) const USES_MAX: u32 = 1_000;
pub(super) const TOKENS_MAX: usize = 1_000;
pub(super) const NODES_MAX: usize = 1_000;
pub(super) const NOTE_MAX: usize = 200;

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Out of bounds.
    #[error("a lifetime is 1 s to {LIFETIME_MAX_S} s (ten years), not {seconds}")]
    Lifetime { seconds: u64 },
    /// Out of bounds.
    #[error("a token has 1 to {USES_MAX} uses, not {uses}")]
    Uses { uses: u32 },
    /// It would take over any node.
    #[error("a token that replaces certificates has to name its nodes; add --node NAME")]
    ReplaceAny,
    /// Too many names.
    #[error("a token names at most {NODES_MAX} nodes, not {count}")]
    Nodes { count: usize },
    /// Too long.
    #[error("a note has at most {NOTE_MAX} bytes and no control characters")]
    Note,
    /// The list is full.
    #[error("there are {TOKENS_MAX} tokens already; revoke some with `edgeloom token revoke`")]
    Full,
    /// Not on disk, so not made.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Why a node may not join; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The text is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Made by the authority of another cluster.
    #[error("the token is for cluster {token}; this controller's is {here}, or its authority is another now")]
    Foreign { token: ClusterId, here: ClusterId },
    /// No such id, or another secret: which one is not told.
    #[error("the token is not known here, or was revoked")]
    Unknown,
    /// Its time is over.
    #[error("token {id} expired {ago_s} s ago")]
    Expired { id: TokenId, ago_s: u64 },
    /// Others have joined with it.
    #[error("token {id} has been used up: it was for {uses} node(s)")]
    Used { id: TokenId, uses: u32 },
    /// It names other nodes.
    #[error("token {id} is not for node {node}")]
    NotForNode { id: TokenId, node: NodeId },
    /// Somebody has this name.
    #[error("node {node} has a valid certificate already")]
    NameTaken { node: NodeId },
    /// The signing request.
    #[error(transparent)]
    Request(#[from] AuthorityError),
    /// Not on disk, so not done.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Why a certificate is not renewed; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The certificate it would follow is of no use any more.
    #[error("the certificate {serial} of node {node} was revoked")]
    Revoked { node: NodeId, serial: String },
    /// Nothing wrong with the present one.
    #[error("the certificate of node {node} is not due for renewal")]
    NotDue { node: NodeId },
    /// The signing request.
    #[error(transparent)]
    Request(#[from] AuthorityError),
    /// Not on disk, so not done.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Why no second authority was made.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// One at a time.
    #[error("a rotation is under way: {waiting} node(s) still have to renew")]
    UnderWay { waiting: usize },
    /// Making it.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// Not on disk, so not done.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A token that is not there.
#[derive(Debug, thiserror::Error)]
pub enum NoSuchToken {
    #[error("there is no token {id}")]
    Unknown { id: TokenId },
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A node without a certificate.
#[derive(Debug, thiserror::Error)]
pub enum NoSuchNode {
    #[error("node {node} has no valid certificate of this cluster's authority")]
    Unknown { node: NodeId },
    #[error(transparent)]
    Disk(#[from] DiskError),
}
