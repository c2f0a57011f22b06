//! Why a registry does not answer what is wanted.

use std::time::Duration;

/// Why an image cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The text is no image name.
    #[error("{image:?} is no image name; write registry:port/repository:tag")]
    Name { image: String },
    /// The registry answers that it has no such image.
    #[error("the registry {registry} has no image {image}; push it or correct the name")]
    Unknown { image: String, registry: String },
    /// The registry wants a login that there is not, or gives its user less.
    #[error("the registry {registry} denies {who} access to {image}")]
    Denied { image: String, registry: String, who: String },
    /// User name and password do not go together.
    #[error("the registry {registry} refuses the login of user {username:?}")]
    LoginRefused { registry: String, username: String },
    /// No answer, or none in time.
    #[error("the registry {registry} cannot be reached: {reason}")]
    Unreachable {
        registry: String,
        reason: String,
        /// It is there and wants to be left alone for so long.
        again: Option<Duration>,
    },
    /// An answer that makes no sense.
    #[error("the registry {registry} answers for {image} what does not read: {reason}")]
    Unreadable { image: String, registry: String, reason: String },
}

impl RegistryError {
    /// What a user does about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Denied { registry, .. } => {
                format!(
                    "log in as somebody who may: `edgeloom registry login {registry}`, or make the repository public"
                )
            }
            Self::LoginRefused { registry, .. } => {
                format!("log in again: `edgeloom registry login {registry}`")
            }
            Self::Unreadable { .. } => "push the image again, or name another".to_owned(),
            Self::Unreachable { again: Some(_), .. } => "try again later".to_owned(),
            Self::Unreachable { registry, .. } => {
                format!("see that {registry} is up and that the controller reaches it")
            }
            _ => "name an image that its registry has".to_owned(),
        }
    }
}

/// The TLS set-up of the client failed.
#[derive(Debug, thiserror::Error)]
#[error("the registry client does not start: {0}")]
pub struct ClientError(#[from] reqwest::Error);
