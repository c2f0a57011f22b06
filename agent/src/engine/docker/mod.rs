//! Docker, over its unix socket: the only folder that names the client library.
//!
//! A client is made when it is needed and given up when the daemon stops answering, so that a daemon
//! that comes back upgraded is asked for its API version anew: Docker 29 refuses clients below 1.44,
//! Docker 20.10 those above 1.41.

mod containers;
mod events;
mod forgotten;
mod held;
mod hosting;
mod images;
mod inspect;
mod limits;
mod network;
mod ports;
#[cfg(test)]
pub(crate) mod private;
mod process;
#[cfg(test)]
#[path = "../../../blobs/tests/pulls/registry.rs"]
pub(crate) mod registry;
mod removal;
#[cfg(test)]
pub(crate) mod samples;
mod streams;
mod through;
mod times;
mod trial;

pub use hosting::Hosting;
pub(super) use through::tagged as own_name;

use super::{
    Changes, ContainerEngine, EngineError, EngineVersion, FoundContainer, Limits, LogSelection, NetworkFlaw,
    NetworkSpec, Owner, PullProgress,
};
use crate::secrets::{RUNTIME_DIR, SecretFiles};
use bollard::errors::Error;
use bollard::models::SystemInfo;
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use edgeloom_blobs::Proxy;
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::{ContainerSpec, ImageRef};
use edgeloom_common::report::ImageStore;
use edgeloom_common::volume::HeldVolume;
use held::Patience;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::sync::{mpsc, watch};

/// Longest wait for the head of an answer: creating a container on a slow flash card takes seconds.
const ANSWER_TIMEOUT_S: u64 = 120;

/// The engine behind a unix socket.
#[derive(Debug)]
pub struct Docker {
    socket: PathBuf,
    owner: Owner,
    /// A client that has settled on an API version.
    client: Mutex<Option<Client>>,
    limits: limits::Known,
    /// What pulls go through.
    proxy: OnceLock<Proxy>,
    secrets: SecretFiles,
    hosting: Hosting,
    patience: Patience,
}

/// What a request was about, for its error.
#[derive(Clone, Copy)]
struct Request<'a> {
    verb: &'static str,
    object: &'a str,
}

impl Docker {
    /// The engine at `socket`; nothing is connected yet.
    #[must_use]
    pub fn new(socket: PathBuf, owner: Owner) -> Self {
        let (client, limits, proxy) = (Mutex::new(None), limits::Known::default(), OnceLock::new());
        let secrets = SecretFiles::new(RUNTIME_DIR.as_ref(), &owner.node);
        let (hosting, patience) = (Hosting::default(), Patience::default());
        Self { socket, owner, client, limits, proxy, secrets, hosting, patience }
    }

    /// The same, which waits so long.
    #[cfg(test)]
    pub(crate) fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// The same, whose containers may have this of the node.
    pub(crate) fn with_hosting(self, hosting: Hosting) -> Self {
        Self { hosting, ..self }
    }

    /// The same, whose containers find their secrets here.
    pub(crate) fn with_secrets(self, secrets: SecretFiles) -> Self {
        Self { secrets, ..self }
    }

    /// Pulls go through this from now on.
    pub(crate) fn pull_through(&self, proxy: Proxy) {
        // A second one would be of a second daemon.
        let _ = self.proxy.set(proxy);
    }

    /// Under which name the image is here: as pulled from its registry, or through the layer store.
    async fn local_name(&self, image: &ImageRef) -> Result<Option<String>, EngineError> {
        let client = self.client().await?;
        let names = [Some(pull_reference(image)), through::tagged(image)];
        for name in names.into_iter().flatten() {
            match client.inspect_image(&name).await {
                Ok(_) => return Ok(Some(name)),
                Err(error) if has_status(&error, 404) => {}
                Err(error) => {
                    return Err(self.refusal(Request { verb: "inspect image", object: &name }, &error));
                }
            }
        }
        Ok(None)
    }

    /// The same for a container that is made from it; what is not here is refused by Docker with its reason.
    async fn name_to_run(&self, image: &ImageRef) -> Result<String, EngineError> {
        Ok(self.local_name(image).await?.unwrap_or_else(|| pull_reference(image)))
    }

    /// The settled client, or a new one.
    async fn client(&self) -> Result<Client, EngineError> {
        let settled = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match settled {
            Some(client) => Ok(client),
            None => self.connect().await,
        }
    }

    async fn connect(&self) -> Result<Client, EngineError> {
        let path = self.socket.to_string_lossy();
        let client = Client::connect_with_unix(&path, ANSWER_TIMEOUT_S, API_DEFAULT_VERSION)
            .map_err(|error| self.unreachable(&error))?;
        let client = client.negotiate_version().await.map_err(|error| self.unreachable(&error))?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    /// Volumes of the owner's tasks.
    pub(crate) async fn volumes(&self) -> Result<Vec<HeldVolume>, EngineError> {
        hosting::volumes(self).await
    }

    /// Removes one with all that is in it; gone already is well, one that a container has is refused.
    pub(crate) async fn remove_volume(&self, volume: &HeldVolume) -> Result<(), EngineError> {
        hosting::remove_volume(self, volume).await
    }

    fn unreachable(&self, error: &Error) -> EngineError {
        EngineError::Unreachable { socket: self.socket.display().to_string(), reason: error.to_string() }
    }

    /// Sorts an error; a daemon that did not answer, or speaks another API version, loses its client.
    fn refusal(&self, request: Request<'_>, error: &Error) -> EngineError {
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                if message.contains("client version") {
                    self.forget_client();
                }
                EngineError::Refused {
                    verb: request.verb,
                    object: request.object.to_owned(),
                    status: *status_code,
                    reason: message.clone(),
                }
            }
            other => {
                self.forget_client();
                self.unreachable(other)
            }
        }
    }

    fn forget_client(&self) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// True of the answers that mean "it is so already" or "it is gone already".
fn has_status(error: &Error, status: u16) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code, .. } if *status_code == status)
}

impl ContainerEngine for Docker {
    async fn ensure_network(&self, network: &NetworkSpec) -> Result<Option<NetworkFlaw>, EngineError> {
        network::ensure(self, network).await
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        network::remove(self, name).await
    }

    async fn list(&self) -> Result<Vec<FoundContainer>, EngineError> {
        containers::list(self).await
    }

    async fn image_present(&self, image: &ImageRef) -> Result<bool, EngineError> {
        Ok(self.local_name(image).await?.is_some())
    }

    async fn pull(
        &self,
        image: &ImageRef,
        login: Option<&Login>,
        progress: &watch::Sender<PullProgress>,
    ) -> Result<(), EngineError> {
        streams::pull(self, (image, login), progress).await
    }

    async fn create(&self, spec: &ContainerSpec, bridge: &str) -> Result<String, EngineError> {
        containers::create(self, spec, bridge).await
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        containers::start(self, id).await
    }

    async fn resume(&self, found: &FoundContainer) -> Result<(), EngineError> {
        containers::resume(self, found).await
    }

    async fn process(&self, id: &str) -> Result<Option<u32>, EngineError> {
        process::first(self, id).await
    }

    async fn stop(&self, id: &str) -> Result<(), EngineError> {
        containers::stop(self, id).await
    }

    async fn limit(&self, id: &str, limits: Limits) -> Result<(), EngineError> {
        limits::change(self, id, limits).await
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        containers::remove(self, id).await
    }

    async fn remove_volumes(&self) -> Result<(), EngineError> {
        hosting::remove_volumes(self).await
    }

    async fn logs(
        &self,
        id: &str,
        selection: LogSelection,
        text: mpsc::Sender<Vec<u8>>,
    ) -> Result<(), EngineError> {
        streams::logs(self, id, selection, text).await
    }

    async fn events(&self, changes: Changes) -> Result<(), EngineError> {
        events::follow(self, changes).await
    }

    async fn version(&self) -> Result<EngineVersion, EngineError> {
        let client = self.connect().await?;
        let info = client
            .info()
            .await
            .map_err(|error| self.refusal(Request { verb: "ask", object: "info" }, &error))?;
        let store = store_of(&info);
        let containerd = store == ImageStore::Containerd;
        let root_dir: PathBuf = info.docker_root_dir.unwrap_or_default().into();
        let address = info.containerd.and_then(|containerd| containerd.address);
        Ok(EngineVersion {
            content_dir: containerd.then(|| images::content_dir(&root_dir, address.as_deref())),
            version: info.server_version.unwrap_or_default(),
            api: client.client_version().to_string(),
            store,
            driver: info.driver.unwrap_or_default(),
            root_dir,
            memory_limit: info.memory_limit.unwrap_or(false),
        })
    }
}

/// How the daemon keeps images.
fn store_of(info: &SystemInfo) -> ImageStore {
    let snapshotter =
        |pair: &Vec<String>| pair.iter().any(|text| text.starts_with("io.containerd.snapshotter"));
    match info.driver_status.iter().flatten().any(snapshotter) {
        true => ImageStore::Containerd,
        false => ImageStore::Graphdriver,
    }
}

/// `repository@sha256:...`; without a repository the digest is an image id.
fn pull_reference(image: &ImageRef) -> String {
    match image.repository.is_empty() {
        true => image.digest.clone(),
        false => format!("{}@{}", image.repository, image.digest),
    }
}
