//! Who is who in a cluster: its own authority, the certificates of nodes, tokens, and what was revoked.
//!
//! In: tokens asked for, signing requests of nodes, revocations. Out: certificates, TLS configurations for
//! broker and API that follow every change, and the list of revoked serial numbers. All state is in one
//! directory, two files, each replaced as a whole and synced before anything is acknowledged.
//! Invariants: a private key of a node is never here; a secret of a token is kept as its SHA-256 alone
//! and told once; a refusal changes nothing.

mod authority;
mod certificate;
mod disk;
mod external;
mod identity;
mod peer;
mod registry;
mod tls;
mod transfer;

pub use authority::{AuthorityError, REQUEST_MAX};
pub use disk::DiskError;
pub use external::{Files, TlsError, server_config};
pub use identity::{Identity, OpenError, Settings};
pub use peer::{Peer, PeerError};
pub use registry::{IssueError, JoinError, NoSuchNode, NoSuchToken, RenewError, RotateError};
pub use transfer::{Arrival, Carried, CarryError, Existing, export, import};

use std::collections::BTreeSet;
use std::sync::Arc;

/// Serial numbers, hexadecimal, of certificates that are refused though they are valid.
pub type Revoked = Arc<BTreeSet<String>>;
