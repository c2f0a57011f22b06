//! Whether the key file opens everything that the state keeps sealed: found out at the start, before a
//! node misses a value.

use super::{Vault, of_login, of_secret};
use edgeloom_sealing::{Key, KeyError, UnsealError};
use std::path::{Path, PathBuf};

/// How an operator goes on whose key is gone for good.
const GIVE_UP: &str = "if it is lost, `edgeloom-controller repair --forget-secrets` goes on without their values, \
                       and `edgeloom secret create` and `edgeloom registry login` give them anew";

/// Why the key file does not serve.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(
        "{} is missing, and {count} secret(s) and login(s) are sealed with it; put it back (no export holds it); {GIVE_UP}",
        path.display()
    )]
    Missing { path: PathBuf, count: usize },
    #[error("{} is not the key of this state: {what}: {source}; put the right one there; {GIVE_UP}", path.display())]
    Wrong { path: PathBuf, what: String, source: UnsealError },
    #[error(
        "{what} does not open: {source}; give it again after `edgeloom-controller repair --forget-secrets`"
    )]
    Damaged { what: String, source: UnsealError },
}

impl Vault {
    /// The key of the file, which is made where nothing is sealed yet.
    pub(crate) fn key(&self, path: &Path) -> Result<Key, Unusable> {
        let key = match Key::open(path)? {
            Some(key) => key,
            None if self.count() == 0 => return Ok(Key::create(path)?),
            None => return Err(Unusable::Missing { path: path.to_owned(), count: self.count() }),
        };
        let flaw = |(what, source)| match source {
            UnsealError::OtherKey { .. } => Unusable::Wrong { path: path.to_owned(), what, source },
            source => Unusable::Damaged { what, source },
        };
        self.first_closed(&key).map_or(Ok(key), |found| Err(flaw(found)))
    }

    /// The first thing that the key does not open.
    fn first_closed(&self, key: &Key) -> Option<(String, UnsealError)> {
        let secrets = self
            .secrets
            .keys()
            .filter_map(|name| self.open_secret(key, name)?.err().map(|error| (of_secret(name), error)));
        let logins = self.logins.keys().filter_map(|registry| {
            self.open_login(key, registry)?.err().map(|error| (of_login(registry), error))
        });
        secrets.chain(logins).next()
    }
}
