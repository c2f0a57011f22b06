//! The verbs, as Docker answers them.

use super::{FakeEngine, end, now_ms, refused};
use crate::engine::{
    Changes, ContainerEngine, EngineError, EngineVersion, FoundContainer, FoundState, Hold, Limits,
    LogSelection, NetworkFlaw, NetworkSpec, PullProgress, TaskKey, Times,
};
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::{ContainerSpec, ImageRef};
use tokio::sync::{mpsc, watch};

impl ContainerEngine for FakeEngine {
    async fn ensure_network(&self, network: &NetworkSpec) -> Result<Option<NetworkFlaw>, EngineError> {
        let mut state = self.state();
        state.check_up()?;
        let running = |container: &&FoundContainer| container.state == FoundState::Running;
        let containers = state.containers.values().filter(running).count();
        match &state.network {
            Some(found) if found == network => Ok(None),
            Some(found) if containers > 0 => Err(EngineError::NetworkInUse {
                name: network.bridge.clone(),
                found: found.pool.network.to_string(),
                wanted: network.pool.network.to_string(),
                containers,
            }),
            _ => {
                state.network = Some(network.clone());
                state.networks_made += 1;
                Ok(None)
            }
        }
    }

    async fn remove_network(&self, _name: &str) -> Result<(), EngineError> {
        let mut state = self.state();
        state.check_up()?;
        state.network = None;
        Ok(())
    }

    async fn list(&self) -> Result<Vec<FoundContainer>, EngineError> {
        let state = self.state();
        state.check_up()?;
        Ok(state.containers.values().cloned().collect())
    }

    async fn image_present(&self, image: &ImageRef) -> Result<bool, EngineError> {
        let state = self.state();
        state.check_up()?;
        Ok(state.images.contains(&image.digest))
    }

    async fn pull(
        &self,
        image: &ImageRef,
        login: Option<&Login>,
        progress: &watch::Sender<PullProgress>,
    ) -> Result<(), EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        if state.login.is_some() && state.login.as_ref() != login {
            let reason = "unauthorized: authentication required".to_owned();
            return Err(EngineError::Pull { image: image.name.clone(), reason });
        }
        if !state.registry.contains(&image.digest) {
            return Err(EngineError::Pull {
                image: image.name.clone(),
                reason: "manifest unknown".to_owned(),
            });
        }
        progress.send_modify(|progress| progress.observe("layer", "Downloading", Some(100), Some(100)));
        match state.vain_pulls.checked_sub(1) {
            Some(left) => state.vain_pulls = left,
            None => drop(state.images.insert(image.digest.clone())),
        }
        Ok(())
    }

    async fn create(&self, spec: &ContainerSpec, bridge: &str) -> Result<String, EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        state.hosting.check(spec)?;
        let key = TaskKey::of(spec);
        if !state.images.contains(&spec.image.digest) {
            return Err(refused("create container", &key.container_name(), 404, "no such image"));
        }
        if state.network.as_ref().is_none_or(|network| network.bridge != bridge) {
            return Err(refused("create container", &key.container_name(), 404, "no such network"));
        }
        if state.containers.values().any(|container| container.key == key) {
            return Err(refused("create container", &key.container_name(), 409, "the name is in use"));
        }
        state.next_id += 1;
        let id = format!("fake{:012}", state.next_id);
        let container = FoundContainer {
            id: id.clone(),
            key,
            spec_hash: spec.spec_hash.clone(),
            address: Some(spec.address),
            limits: Limits::of(spec).into(),
            state: FoundState::Created,
            times: Times::default(),
            hold: Hold::Free,
        };
        state.containers.insert(id.clone(), container);
        let made = state.networks_made;
        state.made_for.insert(id.clone(), made);
        state.ports.insert(id.clone(), spec.ports.clone());
        Ok(id)
    }

    async fn process(&self, _id: &str) -> Result<Option<u32>, EngineError> {
        Ok(None)
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        self.until_free(id).await;
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        if state.failing_starts > 0 {
            state.failing_starts -= 1;
            return Err(refused("start container", id, 500, "told to fail"));
        }
        let Some(container) = state.containers.get(id).cloned() else {
            return Err(refused("start container", id, 404, "no such container"));
        };
        if state.network.is_none() || state.made_for.get(id) != Some(&state.networks_made) {
            return Err(EngineError::NetworkGone { id: id.to_owned() });
        }
        let holds =
            |other: &FoundContainer| other.state == FoundState::Running && other.address == container.address;
        if state.containers.values().any(|other| other.id != id && holds(other)) {
            return Err(refused("start container", id, 403, "address already in use"));
        }
        if state.has_taken_ports(id) {
            return Err(refused("start container", id, 500, "port is already allocated"));
        }
        if container.state != FoundState::Running {
            *state.starts.entry(container.key.clone()).or_default() += 1;
            let times = Times { started_ms: Some(now_ms()), finished_ms: None };
            let running = FoundContainer { state: FoundState::Running, times, ..container };
            state.containers.insert(id.to_owned(), running);
            state.changed();
        }
        Ok(())
    }

    async fn resume(&self, found: &FoundContainer) -> Result<(), EngineError> {
        self.until_free(&found.id).await;
        let now = self.state().containers.get(&found.id).map(|container| container.times.started_ms);
        match now {
            Some(started_ms) if started_ms != found.times.started_ms => self.state().check_up(),
            _ => self.start(&found.id).await,
        }
    }

    async fn stop(&self, id: &str) -> Result<(), EngineError> {
        self.until_free(id).await;
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        if let Some(container) = state.containers.get_mut(id)
            && container.state == FoundState::Running
        {
            end(container, 0);
            state.changed();
        }
        Ok(())
    }

    async fn limit(&self, id: &str, limits: Limits) -> Result<(), EngineError> {
        self.until_free(id).await;
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        state.changes_of_limits += 1;
        let used = state.memory_used;
        let Some(container) = state.containers.get_mut(id) else { return Ok(()) };
        container.limits.cpu = Some(limits.cpu);
        if container.state == FoundState::Running && limits.memory < used {
            return Err(EngineError::MemoryInUse { id: id.to_owned(), used, wanted: limits.memory });
        }
        container.limits.memory = Some(limits.memory);
        state.changed();
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        self.until_free(id).await;
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        state.removals += 1;
        if state.failing_removals > 0 {
            state.failing_removals -= 1;
            return Err(refused("remove container", id, 500, "told to fail"));
        }
        state.containers.remove(id);
        state.changed();
        Ok(())
    }

    async fn remove_volumes(&self) -> Result<(), EngineError> {
        self.state().check_up()
    }

    async fn logs(
        &self,
        id: &str,
        selection: LogSelection,
        text: mpsc::Sender<Vec<u8>>,
    ) -> Result<(), EngineError> {
        self.state().check_up()?;
        if !self.state().containers.contains_key(id) {
            return Err(refused("read logs of", id, 404, "no such container"));
        }
        let lines = selection.tail.unwrap_or(3);
        for line in 0..lines {
            if text.send(format!("line {line}\n").into_bytes()).await.is_err() {
                return Ok(());
            }
        }
        if selection.follow {
            text.closed().await;
        }
        Ok(())
    }

    async fn events(&self, changes: Changes) -> Result<(), EngineError> {
        let (sender, mut receiver) = mpsc::channel(1);
        {
            let mut state = self.state();
            state.check_up()?;
            state.watchers.push(sender);
        }
        changes.all();
        while receiver.recv().await.is_some() {
            changes.all();
        }
        Ok(())
    }

    async fn version(&self) -> Result<EngineVersion, EngineError> {
        self.state().check_up()?;
        Ok(EngineVersion { version: "fake".to_owned(), api: "1.41".to_owned(), ..EngineVersion::default() })
    }
}
