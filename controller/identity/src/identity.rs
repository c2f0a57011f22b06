//! [`Identity`]: the handle through which API, broker and daemon ask and change who is who.

mod authorities;
mod nodes;

use crate::Revoked;
use crate::authority::{Authority, AuthorityError, Stored};
use crate::certificate::random;
use crate::disk::{self, DiskError};
use crate::registry::{IssueError, NoSuchToken, Registry};
use crate::tls;
use edgeloom_common::ids::ClusterId;
use edgeloom_common::join::{Context, Scope, TokenCreated, TokenPurpose, TokenRequest, TokenView};
use edgeloom_common::secret::Secret;
use edgeloom_common::token::{ApiToken, JoinToken, TokenId, secret_text};
use edgeloom_disk::{Lock, LockError};
use rustls::ServerConfig;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Who holds the directory.
pub(crate) const DAEMON: &str = "edgeloom-controller";
/// Files below the directory.
pub(crate) const AUTHORITY: &str = "authority";
pub(crate) const REGISTRY: &str = "registry";
pub(crate) const CONTEXT: &str = "admin.json";

/// What it is opened with.
#[derive(Debug, Clone)]
pub struct Settings {
    pub cluster: ClusterId,
    /// A directory for this alone.
    pub directory: PathBuf,
    /// Names and addresses that clients reach the controller under.
    pub names: Vec<String>,
}

/// Why the identity does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// State on disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Making or reading an authority.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// Kept for another name.
    #[error(
        "{} belongs to cluster {found}, the configuration says {wanted}; correct `cluster` or use another `state_dir`", directory.display()
    )]
    Cluster { directory: PathBuf, found: ClusterId, wanted: ClusterId },
    /// Two would undo one another's changes.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The first token.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

/// What is kept of the authorities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) cluster: ClusterId,
    authorities: Vec<Stored>,
}

#[derive(Debug)]
struct State {
    /// Oldest first; two during a rotation.
    authorities: Vec<Authority>,
    registry: Registry,
    /// When the server certificate in force was made.
    served_s: u64,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    state: Mutex<State>,
    /// What is in force, for requests that must not wait while somebody writes.
    registry: RwLock<Arc<Registry>>,
    mqtt: watch::Sender<Arc<ServerConfig>>,
    https: watch::Sender<Arc<ServerConfig>>,
    revoked: watch::Sender<Revoked>,
    /// Held for as long as the handle lives.
    _lock: Lock,
}

/// A handle; clones share the state.
#[derive(Debug, Clone)]
pub struct Identity(Arc<Shared>);

/// The controller's clock.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn newest(authorities: &[Authority]) -> &Authority {
    authorities.last().expect("there is always an authority")
}

impl Identity {
    /// Opens the directory; the first time, makes an authority and a token for its administrator, which
    /// [`context`](Self::context) tells.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        disk::private_directory(&settings.directory)?;
        let lock = Lock::take(&settings.directory, DAEMON)?;
        let (authorities, registry) = load(&settings)?;
        let served_s = now_s();
        let configs = tls::configs(&authorities, &settings.names, served_s)?;
        let revoked: Revoked = Arc::new(registry.revoked());
        let in_force = RwLock::new(Arc::new(registry.clone()));
        let identity = Self(Arc::new(Shared {
            settings,
            state: Mutex::new(State { authorities, registry, served_s }),
            registry: in_force,
            mqtt: watch::Sender::new(configs.mqtt),
            https: watch::Sender::new(configs.https),
            revoked: watch::Sender::new(revoked),
            _lock: lock,
        }));
        identity.ensure_admin()?;
        Ok(identity)
    }

    /// The broker's side of TLS, now and whenever it changes.
    #[must_use]
    pub fn mqtt(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.0.mqtt.subscribe()
    }

    /// The API's side of TLS, now and whenever it changes.
    #[must_use]
    pub fn https(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.0.https.subscribe()
    }

    /// What was revoked, now and whenever it changes.
    #[must_use]
    pub fn revoked(&self) -> watch::Receiver<Revoked> {
        self.0.revoked.subscribe()
    }

    /// The cluster that certificates are for.
    #[must_use]
    pub fn cluster(&self) -> &ClusterId {
        &self.0.settings.cluster
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder of this lock panics: it only moves values and files")
    }

    fn in_force(&self) -> Arc<Registry> {
        Arc::clone(&self.0.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.settings.directory.join(name)
    }

    /// Makes a changed registry the one in force: on disk first, then for everybody.
    fn commit(&self, state: &mut State, registry: Registry) -> Result<(), DiskError> {
        disk::save(&self.path(REGISTRY), &registry)?;
        *self.0.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry.clone());
        state.registry = registry;
        let revoked = state.registry.revoked();
        self.0.revoked.send_if_modified(|present| {
            let news = **present != revoked;
            if news {
                *present = Arc::new(revoked);
            }
            news
        });
        Ok(())
    }

    /// Makes a token; its text is told this once.
    pub fn create_token(&self, request: TokenRequest) -> Result<TokenCreated, IssueError> {
        let mut state = self.state();
        let (registry, created) = self.draft_token(&state, request)?;
        self.commit(&mut state, registry)?;
        tracing::info!(token = %created.token.id, "token made");
        Ok(created)
    }

    /// A token that exists once the registry is committed.
    fn draft_token(
        &self,
        state: &State,
        request: TokenRequest,
    ) -> Result<(Registry, TokenCreated), IssueError> {
        let (id, secret) = (TokenId::new(random()), secret_text(random()));
        let mut registry = state.registry.clone();
        let token = registry.add_token((id.clone(), &secret), request, now_s())?;
        let text = match token.purpose {
            TokenPurpose::Api { .. } => ApiToken { id, secret }.text(),
            TokenPurpose::Join { .. } => {
                let (cluster, authority) = (self.cluster().clone(), state.authorities[0].fingerprint);
                JoinToken { cluster, authority, id, secret }.text()
            }
        };
        Ok((registry, TokenCreated { token, text }))
    }

    /// Every token that is known, without its secret.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenView> {
        self.in_force().tokens()
    }

    /// Forgets a token: nobody joins or speaks with it any more.
    pub fn revoke_token(&self, id: &TokenId) -> Result<(), NoSuchToken> {
        let mut state = self.state();
        let mut registry = state.registry.clone();
        registry.remove_token(id)?;
        self.commit(&mut state, registry)?;
        tracing::info!(token = %id, "token revoked");
        Ok(())
    }

    /// What the bearer of this text may do; none if it is no token of ours, expired or revoked.
    #[must_use]
    pub fn scope(&self, bearer: &str) -> Option<Scope> {
        let token: ApiToken = bearer.parse().ok()?;
        self.in_force().scope(&token, now_s())
    }

    /// Where the administrator's own context is, readable by the daemon's user and root.
    #[must_use]
    pub fn context_path(&self) -> PathBuf {
        self.path(CONTEXT)
    }

    /// The administrator's token is made once, with the authority; who removed its file has taken it elsewhere.
    fn ensure_admin(&self) -> Result<(), IssueError> {
        let is_admin = |token: &TokenView| token.purpose == TokenPurpose::Api { scope: Scope::Admin };
        if self.tokens().iter().any(is_admin) {
            return Ok(());
        }
        let purpose = TokenPurpose::Api { scope: Scope::Admin };
        let note = "made with the authority".to_owned();
        let mut state = self.state();
        let (registry, created) =
            self.draft_token(&state, TokenRequest { purpose, note, lifetime_s: None })?;
        // First told, then valid: a token that is valid and told to nobody could not be had again.
        self.write_context(&state, String::new(), created.text)?;
        Ok(self.commit(&mut state, registry)?)
    }

    /// Brings the administrator's context up to date with the API's address and the authorities.
    pub fn refresh_context(&self, server: String) -> Result<(), DiskError> {
        let path = self.context_path();
        let kept = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Context>(&bytes).ok());
        kept.map_or(Ok(()), |context| self.write_context(&self.state(), server, context.token))
    }

    fn write_context(&self, state: &State, server: String, token: Secret) -> Result<(), DiskError> {
        let context = Context { server, token, authorities: bundle(&state.authorities) };
        let text = serde_json::to_vec_pretty(&context).expect("a context is texts");
        let path = self.context_path();
        if std::fs::read(&path).is_ok_and(|present| present == text) {
            return Ok(());
        }
        disk::replace(&path, &text)
    }
}

fn bundle(authorities: &[Authority]) -> String {
    authorities.iter().map(Authority::pem).collect()
}

/// Both files, or the first ones. The registry is written first, so neither is ever without the other but
/// for a registry in which nothing is.
fn load(settings: &Settings) -> Result<(Vec<Authority>, Registry), OpenError> {
    let (authority, path) = (settings.directory.join(AUTHORITY), settings.directory.join(REGISTRY));
    let registry: Option<Registry> = disk::load(&path)?;
    match (disk::load::<Kept>(&authority)?, registry) {
        (Some(kept), Some(registry)) => Ok((authorities(settings, kept)?, registry)),
        (Some(_), None) => Err(DiskError::Missing { path }.into()),
        (None, Some(registry)) if !registry.is_empty() => Err(DiskError::Missing { path: authority }.into()),
        (None, _) => {
            let registry = Registry::default();
            disk::save(&path, &registry)?;
            let authority = Authority::create(&settings.cluster, now_s())?;
            save_authorities(settings, &[&authority])?;
            tracing::info!(cluster = %settings.cluster, "authority made");
            Ok((vec![authority], registry))
        }
    }
}

pub(crate) fn authorities(settings: &Settings, kept: Kept) -> Result<Vec<Authority>, OpenError> {
    if kept.cluster != settings.cluster {
        let (directory, wanted) = (settings.directory.clone(), settings.cluster.clone());
        return Err(OpenError::Cluster { directory, found: kept.cluster, wanted });
    }
    let opened: Vec<_> = kept.authorities.into_iter().map(Authority::open).collect::<Result<_, _>>()?;
    if opened.is_empty() { Err(AuthorityError::Unreadable.into()) } else { Ok(opened) }
}

fn save_authorities(settings: &Settings, authorities: &[&Authority]) -> Result<(), DiskError> {
    let authorities = authorities.iter().map(|authority| authority.stored().clone()).collect();
    let kept = Kept { cluster: settings.cluster.clone(), authorities };
    disk::save(&settings.directory.join(AUTHORITY), &kept)
}
