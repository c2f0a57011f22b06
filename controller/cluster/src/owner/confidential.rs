//! Secrets and logins: kept, shown without their values, removed.

use super::Owner;
use crate::error::SecretError;
use crate::model::Event;
use crate::transfer::Existing;
use edgeloom_common::confidential::{Login, RegistryView, SecretView, Value};
use edgeloom_common::ids::SecretName;
use edgeloom_common::job::Job;
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::view::ProblemItem;

impl Owner {
    pub(crate) fn keep_secret(
        &mut self,
        name: SecretName,
        value: &Value,
        existing: Existing,
    ) -> Result<SecretView, SecretError> {
        let vault = &self.model().vault;
        if existing == Existing::Refuse && vault.has_secret(&name) {
            return Err(SecretError::Exists(name));
        }
        let kept = vault.seal_secret(&self.settings.key, (&name, value), self.now_ms / 1000)?;
        self.keep_sealed(Event::SecretKept { name: name.clone(), kept })?;
        let mut views = self.secrets().into_iter();
        views.find(|view| view.name == name).ok_or(SecretError::Unavailable)
    }

    pub(crate) fn secrets(&self) -> Vec<SecretView> {
        self.model().vault.secret_views(self.model())
    }

    pub(crate) fn remove_secret(&mut self, name: SecretName) -> Result<(), SecretError> {
        if !self.model().vault.has_secret(&name) {
            return Err(SecretError::Unknown(name));
        }
        let jobs = self.model().users_of(&name);
        if !jobs.is_empty() {
            return Err(SecretError::Used { name, jobs });
        }
        self.keep_sealed(Event::SecretRemoved { name })
    }

    pub(crate) fn keep_login(
        &mut self,
        registry: RegistryHost,
        login: &Login,
    ) -> Result<RegistryView, SecretError> {
        let vault = &self.model().vault;
        let kept = vault.seal_login(&self.settings.key, (&registry, login), self.now_ms / 1000)?;
        self.keep_sealed(Event::LoginKept { registry: registry.clone(), login: kept })?;
        let mut views = self.logins().into_iter();
        views.find(|view| view.registry == registry).ok_or(SecretError::Unavailable)
    }

    pub(crate) fn logins(&self) -> Vec<RegistryView> {
        self.model().vault.registry_views()
    }

    /// Who we are at a registry.
    pub(crate) fn login(&self, registry: &RegistryHost) -> Option<Login> {
        self.model().vault.login(&self.settings.key, registry)
    }

    pub(crate) fn remove_login(&mut self, registry: RegistryHost) -> Result<(), SecretError> {
        if self.model().vault.login_revision(&registry).is_none() {
            return Err(SecretError::NoLogin(registry));
        }
        self.keep_sealed(Event::LoginRemoved { registry })
    }

    /// Nodes get what is new with their next documents.
    fn keep_sealed(&mut self, event: Event) -> Result<(), SecretError> {
        self.state.commit(event).map_err(|error| {
            tracing::error!(%error, "a change of secrets is refused");
            SecretError::Unavailable
        })?;
        self.advance();
        Ok(())
    }

    /// Names in the job of secrets that are not there.
    pub(super) fn unknown_secrets(&self, job: &Job) -> Vec<ProblemItem> {
        let mut problems = Vec::new();
        for (task, program) in crate::documents::programs(job) {
            for name in program.secrets.iter().filter(|name| !self.model().vault.has_secret(name)) {
                let parent = if task.is_source() { "source".to_owned() } else { format!("tasks.{task}") };
                problems.push(ProblemItem {
                    line: 0,
                    field: format!("{parent}.secrets"),
                    problem: format!("there is no secret {name}"),
                    remedy: format!("make it: `edgeloom secret create {name} --file FILE`"),
                });
            }
        }
        problems
    }
}
