//! The parts that every command works with, opened from the configuration.

use crate::config::{Config, Link};
use crate::contact::ContactFile;
use crate::counts::Counts;
use crate::engine::{Docker, EngineVersion, Hosting, Owner};
use crate::network::{NetworkError, NetworkThread};
use crate::secrets::SecretFiles;
use crate::store::{DesiredFile, History, Lock, LockError, StateError};
use crate::worker::Settings;
use edgeloom_net::{LinkSettings, Network};
use std::path::Path;
use std::sync::Arc;

/// Why a part could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Engine and network of this node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) config: Arc<Config>,
    pub(crate) engine: Arc<Docker>,
    pub(crate) network: NetworkThread,
}

impl Node {
    /// Opens the network in the calling thread's namespace; Docker is asked when it is needed.
    pub(crate) fn open(config: Config) -> Result<Self, OpenError> {
        let settings = edgeloom_net::Settings {
            bridge: config.bridge.clone(),
            links: config.links.iter().map(link_settings).collect(),
            state_dir: config.state_dir.clone(),
        };
        let network = NetworkThread::start(move || Network::open(settings))?;
        let engine = Docker::new(config.docker_socket.clone(), owner(&config));
        let hosting = Hosting { folders: config.volumes.clone(), own_ports: vec![config.layers.port] };
        let engine = engine.with_secrets(secret_files(&config)).with_hosting(hosting);
        Ok(Self { config: Arc::new(config), engine: Arc::new(engine), network })
    }

    /// The file system whose space containers use: Docker's, while it can be seen.
    pub(crate) fn disk<'a>(&'a self, engine: &'a EngineVersion) -> &'a Path {
        if engine.root_dir.exists() { &engine.root_dir } else { &self.config.state_dir }
    }

    /// Where containers find their secrets.
    pub(crate) fn secret_files(&self) -> SecretFiles {
        secret_files(&self.config)
    }

    /// What the worker works with. The lock has to be held.
    pub(crate) fn worker_settings(&self, _lock: &Lock) -> Result<Settings<Docker>, StateError> {
        let file = DesiredFile::open(&self.config.state_dir, self.config.secrets_key.clone())?;
        let (history, lost) = History::open(&self.config.state_dir);
        if let Some(lost) = lost {
            tracing::warn!(lost, "history");
        }
        Ok(Settings {
            owner: owner(&self.config),
            bridge: self.config.bridge.clone(),
            engine: Arc::clone(&self.engine),
            network: self.network.clone(),
            file,
            contact: ContactFile::in_directory(&self.config.state_dir),
            history,
            exchange: None,
            counts: Counts::default(),
            secrets: self.secret_files(),
        })
    }
}

fn secret_files(config: &Config) -> SecretFiles {
    SecretFiles::new(&config.runtime_dir, &config.node)
}

fn owner(config: &Config) -> Owner {
    Owner { cluster: config.cluster.clone(), node: config.node.clone() }
}

fn link_settings(link: &Link) -> LinkSettings {
    let Link { neighbour, interface, neighbour_address, capacity, .. } = link.clone();
    LinkSettings { neighbour, interface, neighbour_address, capacity }
}
