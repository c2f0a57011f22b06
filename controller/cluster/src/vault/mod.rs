//! Secrets and logins at registries as the state keeps them: sealed. Pure; the key is brought by the caller.
//!
//! In: values, once. Out: sealed entries for the journal, and for each node the values of what its document
//! names. Invariant: what is kept, exported or copied holds names, user names and sizes in the clear, and no value.

mod check;
#[cfg(test)]
mod tests;

pub use check::Unusable;

use crate::model::Model;
use edgeloom_common::confidential::{
    COUNT_MAX, Confidential, Login, RegistryView, SecretView, TOTAL_MAX, Value,
};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::{JobName, SecretName};
use edgeloom_common::registry::RegistryHost;
use edgeloom_sealing::{Key, Sealed, UnsealError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Vault {
    /// The last revision given; it rises with every change, so that a value is known by it.
    revision: u64,
    secrets: BTreeMap<SecretName, Kept>,
    logins: BTreeMap<RegistryHost, KeptLogin>,
}

/// A sealed value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) revision: u64,
    pub(crate) since_s: u64,
    /// Of the value.
    pub(crate) bytes: usize,
    pub(crate) sealed: Sealed,
}

/// A login whose password is sealed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptLogin {
    pub(crate) username: String,
    pub(crate) password: Kept,
}

/// Why there is no room for another value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    #[error("there are {COUNT_MAX} secrets and logins, no more are kept; remove one that is not used")]
    Count,
    #[error(
        "all secrets and logins together would have {bytes} bytes, at most {TOTAL_MAX} are kept; remove one that is not used"
    )]
    Bytes { bytes: usize },
}

/// What a sealed value is bound to: one that is put in another's place does not open.
fn of_secret(name: &SecretName) -> String {
    format!("secret {name}")
}

fn of_login(registry: &RegistryHost) -> String {
    format!("login {registry}")
}

impl Vault {
    /// Nothing was ever kept.
    pub(crate) fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// Secrets and logins.
    pub(crate) fn count(&self) -> usize {
        self.secrets.len() + self.logins.len()
    }

    pub(crate) fn has_secret(&self, name: &SecretName) -> bool {
        self.secrets.contains_key(name)
    }

    /// The revision of a secret's value; zero if it is lost.
    pub(crate) fn revision_of(&self, name: &SecretName) -> u64 {
        self.secrets.get(name).map_or(0, |kept| kept.revision)
    }

    /// The revision of the login at a registry, if there is one.
    pub(crate) fn login_revision(&self, registry: &RegistryHost) -> Option<u64> {
        self.logins.get(registry).map(|login| login.password.revision)
    }

    /// A value ready to be kept.
    pub(crate) fn seal_secret(
        &self,
        key: &Key,
        (name, value): (&SecretName, &Value),
        now_s: u64,
    ) -> Result<Kept, NoRoom> {
        let bytes = value.expose();
        self.check_room(self.secrets.get(name).map(|kept| kept.bytes), bytes.len())?;
        Ok(self.seal(key, (&of_secret(name), &bytes), now_s))
    }

    /// A login ready to be kept.
    pub(crate) fn seal_login(
        &self,
        key: &Key,
        (registry, login): (&RegistryHost, &Login),
        now_s: u64,
    ) -> Result<KeptLogin, NoRoom> {
        let before = self.logins.get(registry).map(KeptLogin::bytes);
        self.check_room(before, login.username.len() + login.password.expose().len())?;
        let password = self.seal(key, (&of_login(registry), login.password.expose().as_bytes()), now_s);
        Ok(KeptLogin { username: login.username.clone(), password })
    }

    fn seal(&self, key: &Key, (purpose, bytes): (&str, &[u8]), now_s: u64) -> Kept {
        let sealed = key.seal(purpose, bytes);
        Kept { revision: self.revision + 1, since_s: now_s, bytes: bytes.len(), sealed }
    }

    fn check_room(&self, before: Option<usize>, bytes: usize) -> Result<(), NoRoom> {
        if before.is_none() && COUNT_MAX <= self.count() {
            return Err(NoRoom::Count);
        }
        let secrets = self.secrets.values().map(|kept| kept.bytes);
        let all: usize = secrets.chain(self.logins.values().map(KeptLogin::bytes)).sum();
        let bytes = all - before.unwrap_or(0) + bytes;
        if TOTAL_MAX < bytes { Err(NoRoom::Bytes { bytes }) } else { Ok(()) }
    }

    pub(crate) fn keep_secret(&mut self, name: SecretName, kept: Kept) {
        self.revision = self.revision.max(kept.revision);
        self.secrets.insert(name, kept);
    }

    pub(crate) fn remove_secret(&mut self, name: &SecretName) {
        self.secrets.remove(name);
    }

    pub(crate) fn keep_login(&mut self, registry: RegistryHost, login: KeptLogin) {
        self.revision = self.revision.max(login.password.revision);
        self.logins.insert(registry, login);
    }

    pub(crate) fn remove_login(&mut self, registry: &RegistryHost) {
        self.logins.remove(registry);
    }

    /// Forgets every value; revisions go on, since nodes have seen them.
    pub(crate) fn clear(&mut self) {
        self.secrets.clear();
        self.logins.clear();
    }

    fn open_secret(&self, key: &Key, name: &SecretName) -> Option<Result<Value, UnsealError>> {
        let opened = key.unseal(&of_secret(name), &self.secrets.get(name)?.sealed);
        Some(opened.and_then(|bytes| Value::new(&bytes).map_err(|_| UnsealError::Damaged)))
    }

    fn open_login(&self, key: &Key, registry: &RegistryHost) -> Option<Result<Login, UnsealError>> {
        let KeptLogin { username, password } = self.logins.get(registry)?;
        let opened = key.unseal(&of_login(registry), &password.sealed);
        let opened = opened.and_then(|bytes| {
            let text = std::str::from_utf8(&bytes).map_err(|_| UnsealError::Damaged)?;
            Ok(Login { username: username.clone(), password: text.to_owned().into() })
        });
        Some(opened)
    }

    /// The login at a registry.
    pub(crate) fn login(&self, key: &Key, registry: &RegistryHost) -> Option<Login> {
        self.open_login(key, registry)?.map_err(|error| told(&of_login(registry), error)).ok()
    }

    /// The values of everything that a document names.
    pub(crate) fn confidential(&self, key: &Key, document: &DesiredState) -> Confidential {
        let names = document.containers.iter().flat_map(|container| container.secrets.keys());
        let open = |name: &SecretName| {
            let value = self.open_secret(key, name)?.map_err(|error| told(&of_secret(name), error)).ok()?;
            Some((name.clone(), value))
        };
        let logins = document.logins.keys();
        Confidential {
            secrets: names.filter_map(open).collect(),
            logins: logins.filter_map(|host| Some((host.clone(), self.login(key, host)?))).collect(),
        }
    }

    pub(crate) fn secret_views(&self, model: &Model) -> Vec<SecretView> {
        let view = |(name, kept): (&SecretName, &Kept)| SecretView {
            name: name.clone(),
            bytes: kept.bytes,
            since_s: kept.since_s,
            used_by: model.users_of(name),
        };
        self.secrets.iter().map(view).collect()
    }

    pub(crate) fn registry_views(&self) -> Vec<RegistryView> {
        let view = |(registry, login): (&RegistryHost, &KeptLogin)| RegistryView {
            registry: registry.clone(),
            username: login.username.clone(),
            since_s: login.password.since_s,
        };
        self.logins.iter().map(view).collect()
    }
}

impl KeptLogin {
    fn bytes(&self) -> usize {
        self.username.len() + self.password.bytes
    }
}

impl Model {
    /// Jobs with a task that is given the secret.
    pub(crate) fn users_of(&self, name: &SecretName) -> Vec<JobName> {
        let uses = |(_, record): &(&JobName, &crate::model::JobRecord)| {
            crate::documents::programs(&record.job).iter().any(|(_, program)| program.secrets.contains(name))
        };
        self.jobs.iter().filter(uses).map(|(job, _)| job.clone()).collect()
    }
}

/// All were opened at the start, so this is a file that was changed since.
fn told(what: &str, error: UnsealError) {
    tracing::error!(what, %error, "a value is withheld from the nodes");
}
