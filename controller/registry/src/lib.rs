//! Registries of images: what a name stands for, which images there are, and what they are made of.
//!
//! In: names of images, addresses of registries, logins. Out: manifest digests with the layers of each platform,
//! now ([`Registry::resolve`]) and all the time ([`watch`](fn@watch)); the catalogue of both, which a file carries
//! over a restart. Invariant: every byte of a registry is bounded and held against its digest before it counts,
//! and what one registry does wrong costs no other image anything.
//!
//! Pure: `digest reference manifest table rota catalogue notified views`. Acting: `client cache registry watch`.

mod cache;
mod catalogue;
mod client;
mod error;
#[cfg(any(test, feature = "fakes"))]
pub mod fake;
mod manifest;
mod notified;
mod reference;
mod registry;
mod rota;
mod table;
#[cfg(test)]
mod tests;
mod views;
mod watch;

pub use client::Count;
pub use edgeloom_common::digest::Digest;
pub use error::{ClientError, RegistryError};
pub use manifest::{Blob, Layer, Platform};
pub use notified::Envelope;
pub use registry::{Image, Registry, Settings};
pub use views::Tally;
pub use watch::{Interest, Interests, PERIOD_DEFAULT, watch};
