//! The handle's part for secrets and logins.

use super::Cluster;
use crate::error::SecretError;
use crate::transfer::Existing;
use edgeloom_common::confidential::{Login, RegistryView, SecretView, Value};
use edgeloom_common::ids::SecretName;
use edgeloom_common::registry::RegistryHost;

impl Cluster {
    /// Keeps a secret; jobs are given it as a file.
    pub async fn keep_secret(
        &self,
        name: SecretName,
        value: Value,
        existing: Existing,
    ) -> Result<SecretView, SecretError> {
        let kept = self.ask(move |owner| owner.keep_secret(name, &value, existing)).await;
        kept.unwrap_or(Err(SecretError::Unavailable))
    }

    /// Every secret, without its value.
    pub async fn secrets(&self) -> Vec<SecretView> {
        self.ask(|owner| owner.secrets()).await.unwrap_or_default()
    }

    /// Forgets a secret that no job uses.
    pub async fn remove_secret(&self, name: SecretName) -> Result<(), SecretError> {
        let removed = self.ask(move |owner| owner.remove_secret(name)).await;
        removed.unwrap_or(Err(SecretError::Unavailable))
    }

    /// Keeps a login that its registry honours, in place of the one before.
    pub async fn keep_login(
        &self,
        registry: RegistryHost,
        login: Login,
    ) -> Result<RegistryView, SecretError> {
        self.registry.check(&registry, &login).await?;
        let kept = self.ask(move |owner| owner.keep_login(registry, &login)).await;
        kept.unwrap_or(Err(SecretError::Unavailable))
    }

    /// Every login, without its password.
    pub async fn logins(&self) -> Vec<RegistryView> {
        self.ask(|owner| owner.logins()).await.unwrap_or_default()
    }

    /// Forgets a login.
    pub async fn remove_login(&self, registry: RegistryHost) -> Result<(), SecretError> {
        let removed = self.ask(move |owner| owner.remove_login(registry)).await;
        removed.unwrap_or(Err(SecretError::Unavailable))
    }

    pub(crate) async fn login_for(&self, image: &str) -> Option<Login> {
        let registry = RegistryHost::of_image(image)?;
        self.ask(move |owner| owner.login(&registry)).await?
    }
}
