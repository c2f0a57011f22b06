//! Why blobs do not come, and what that means for the pull.

use crate::http::HttpError;
use edgeloom_common::digest::Digest;
use std::io;
use std::time::Duration;

/// A registry that sends nothing for so long is asked again.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Too many requests (RFC 6585): a matter of time.
const TOO_MANY: u16 = 429;

/// Why a blob does not come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("blob {digest}: {source}")]
    Disk { digest: Digest, source: io::Error },
    #[error("blob {digest} has {bytes} bytes, more than all blobs may have here")]
    TooLarge { digest: Digest, bytes: u64 },
    /// `alone`: so says the registry.
    #[error("blob {digest} has {bytes} bytes or more, its manifest says {told}")]
    Longer { digest: Digest, bytes: u64, told: u64, alone: bool },
    #[error("blob {digest} broke off after {bytes} bytes: {source}")]
    Broken { digest: Digest, bytes: u64, source: hyper::Error },
    #[error("blob {digest}: nothing came for {} s", SILENCE_MAX.as_secs())]
    Silent { digest: Digest },
    /// `alone`: all bytes are of the registry.
    #[error("blob {digest} has another digest: {found}")]
    Mismatch { digest: Digest, found: Digest, alone: bool },
}

impl FetchError {
    /// Asking again would not help.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::TooLarge { .. } | Self::Disk { .. } => true,
            Self::Mismatch { alone, .. } | Self::Longer { alone, .. } => *alone,
            Self::Http(error) => is_answer(error),
            _ => false,
        }
    }
}

/// The registry has understood, and has no better answer.
fn is_answer(error: &HttpError) -> bool {
    match error {
        HttpError::Status { status, .. } => (400..500).contains(status) && *status != TOO_MANY,
        HttpError::Content { .. } => true,
        _ => false,
    }
}

/// Where the fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The image as its registry has it: whoever else pulls it fails too.
    Image,
    /// The layer store: without it the pull may do.
    Store,
    /// The way to the registry, which may be another one for Docker.
    Way,
}

/// Why a blob does not come, for all who wait for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    pub text: String,
    pub blame: Blame,
    /// Asking again would not help.
    pub(crate) lasting: bool,
}

impl Failure {
    pub(crate) fn of(error: &FetchError) -> Self {
        let blame = match error {
            FetchError::TooLarge { .. } | FetchError::Disk { .. } => Blame::Store,
            FetchError::Mismatch { alone: true, .. } | FetchError::Longer { alone: true, .. } => Blame::Image,
            FetchError::Http(error) if is_answer(error) => Blame::Image,
            _ => Blame::Way,
        };
        Self { text: error.to_string(), blame, lasting: error.is_lasting() }
    }
}
