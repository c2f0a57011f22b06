//! Membership: how this node became one of a cluster, and how it stays one.
//!
//! In: a token and the controller's address, once. Out: a private file with our key, our certificate and
//! the authorities to trust, from which the session speaks; renewed by itself while the agent runs.
//! Invariants: our key is made here and never leaves; nobody is trusted for being seen first; a refusal or
//! a power cut at any moment leaves the file as it was.

mod clock;
mod command;
mod file;
mod https;
mod live;
mod renew;
mod server;
mod unit;

pub use command::{JoinError, JoinOptions, Joined, join};
pub use file::{Membership, MembershipError};
pub use https::AskError;
pub use live::Live;
pub(crate) use renew::run as renew;
pub use renew::{Renewal, RenewalError, renew_now};
pub use unit::{Unit, UnitError, start_unit};
