//! Bytes that lie on a disk encrypted, and the key file that opens them.
//!
//! In: bytes and what they are for. Out: a [`Sealed`] text, which says by which key it was made, and the bytes
//! again. A key is a file of its own, so that whoever has a copy of the state alone (an export, a backup,
//! a journal in a report) has nothing. Whoever reads key and state together reads everything: a key that
//! lies beside the state protects what leaves the machine, not the machine's disk. It can lie elsewhere, as
//! a credential of systemd that a TPM opens, for instance.
//!
//! Invariants: no error carries bytes that were sealed; a sealed text opens only for what it was made for.

mod key;
mod sealed;

pub use key::{Key, KeyError, KeyId};
pub use sealed::{Sealed, UnsealError};
