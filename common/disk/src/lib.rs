//! What daemons keep on disk, so that it survives a power cut at any moment and a flipped bit anywhere.
//!
//! In: names and bytes. Out: the same bytes, or the word that they are not what was written. [`Disk`] is one
//! folder with exactly the operations that decide what a power cut leaves; [`Folder`] is a real one, and
//! [`replace`] and its kin serve who has one file.
//! [`seal`] and [`unseal`] put a checksum around a text that people can still read. [`Lock`] keeps a second
//! daemon out of a state directory.
//!
//! Invariant: [`Disk::replace`] leaves the old content or the new one, whole, whatever happens.

mod disk;
#[cfg(any(test, feature = "fakes"))]
pub mod fakes;
mod file;
mod folder;
mod lock;
mod seal;

pub use disk::Disk;
pub use file::{hand_over, read, remove, replace};
pub use folder::Folder;
pub use lock::{Lock, LockError};
pub use seal::{Unsealed, seal, unseal};
