//! What the node is and holds: gathered from the meter, the disk, the kernel, Docker and its layer store.

use crate::engine::{ContainerEngine, EngineVersion};
use crate::network::NetworkError;
use crate::node::Node;
use edgeloom_common::desired::SCHEMA;
use edgeloom_common::report::{Capabilities, Inventory, LayerInventory};
use edgeloom_common::units::MilliCores;
use edgeloom_common::volume::HeldVolume;
use edgeloom_observe::disk::DiskError;
use edgeloom_observe::layers::Stored;
use edgeloom_observe::machine::MachineError;
use edgeloom_observe::meter::{Meter, MeterError};
use edgeloom_observe::speed::{SpeedError, Tracker};
use edgeloom_observe::{class, disk, speed};

/// Why there is no inventory.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    #[error(transparent)]
    Meter(#[from] MeterError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Speed(#[from] SpeedError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("the reference run ended unexpectedly")]
    RunEnded,
}

/// Gathers inventories; what changes seldom is kept between them.
#[derive(Debug)]
pub(crate) struct Gatherer {
    node: Node,
    meter: Meter,
    speed: Tracker,
    /// What the kernel can do, and Docker as it answered last.
    capabilities: Capabilities,
    engine: EngineVersion,
    /// As they were when something of them changed last, and what is not known of them.
    layers: LayerInventory,
    unknown: Option<String>,
    /// As they were when Docker told them last.
    volumes: Vec<HeldVolume>,
}

impl Gatherer {
    /// Makes the reference run (a second, the first time) and tries what the kernel can do.
    pub(crate) async fn open(node: Node) -> Result<Self, InventoryError> {
        let state_dir = node.config.state_dir.clone();
        let run = tokio::task::spawn_blocking(move || speed::core_speed(&state_dir));
        let speed = Tracker::new(run.await.map_err(|_| InventoryError::RunEnded)??);
        let kernel = node.network.probe().await?;
        let capabilities = Capabilities {
            htb: kernel.htb,
            fq_codel: kernel.fq_codel,
            nft_maps: kernel.nft_maps,
            ip_forward: kernel.ip_forward,
            host_folders: node.config.volumes.iter().map(|folder| folder.display().to_string()).collect(),
            problems: kernel.problems,
            ..Capabilities::default()
        };
        let meter = Meter::open(node.config.cgroup.as_deref())?;
        let (engine, layers) = (EngineVersion::default(), LayerInventory::default());
        let (unknown, volumes) = (None, Vec::new());
        let mut gatherer = Self { node, meter, speed, capabilities, engine, layers, unknown, volumes };
        gatherer.ask_engine().await;
        gatherer.look_at_store().await;
        Ok(gatherer)
    }

    /// Asks Docker for its version anew: it may have been upgraded, or be gone.
    pub(crate) async fn ask_engine(&mut self) {
        let before = self.engine.clone();
        self.engine = match self.node.engine.version().await {
            Ok(engine) => engine,
            Err(error) => {
                tracing::debug!(%error, "no version of the engine");
                EngineVersion::default()
            }
        };
        if self.engine != before {
            self.look_at_store().await;
        }
    }

    /// Looks how fast a core is now: a millisecond of it.
    pub(crate) fn sample_speed(&mut self) {
        match speed::sample() {
            Ok(sample) => sample.into_iter().for_each(|sample| self.speed.add(sample)),
            Err(error) => tracing::debug!(%error, "no sample of the core speed"),
        }
    }

    /// The inventory now.
    pub(crate) async fn gather(&mut self) -> Result<Inventory, InventoryError> {
        let capacity = self.meter.capacity()?;
        let engine = &self.engine;
        let mut capabilities = Capabilities {
            memory_limit: engine.memory_limit,
            docker_version: engine.version.clone(),
            docker_api: engine.api.clone(),
            ..self.capabilities.clone()
        };
        if engine.version.is_empty() {
            let socket = self.node.config.docker_socket.display();
            capabilities
                .problems
                .push(format!("docker does not answer at {socket}; is the docker service running?"));
        }
        capabilities.problems.extend(self.unknown.clone());
        Ok(Inventory {
            schema: SCHEMA,
            cluster: self.node.config.cluster.clone(),
            architecture: std::env::consts::ARCH.to_owned(),
            cpu: capacity.cpu,
            core_speed: self.speed.core_speed(),
            memory: capacity.memory,
            disk: disk::read(self.node.disk(engine))?.capacity,
            class: self.class(capacity.cpu)?,
            labels: self.node.config.labels.clone(),
            taints: self.node.config.taints.clone(),
            capabilities,
            store: engine.store,
            layers: self.layers.clone(),
            volumes: self.volumes.clone(),
        })
    }

    /// The configured class, or the machine's own: it changes with the CPU that containers may use.
    fn class(&self, cpu: MilliCores) -> Result<String, InventoryError> {
        match &self.node.config.class {
            Some(class) => Ok(class.clone()),
            None => Ok(class::class(cpu)?),
        }
    }

    /// Reads what is held anew.
    pub(crate) async fn look_at_store(&mut self) {
        if self.engine.driver.is_empty() {
            return;
        }
        self.look_at_layers().await;
        match self.node.engine.volumes().await {
            Ok(volumes) => self.volumes = volumes,
            Err(error) => tracing::debug!(%error, "volumes are as they were"),
        }
    }

    /// Exactly where the store can be read, else as far as Docker tells. An empty list predicts a full pull.
    async fn look_at_layers(&mut self) {
        (self.layers, self.unknown) = match read_store(self.engine.clone()).await {
            Ok(stored) => (stored.layers, None),
            Err(why) => match self.node.engine.layers(self.engine.store).await {
                Ok(stored) => {
                    (stored.layers, Some(format!("layers are known from Docker's API alone: {why}")))
                }
                Err(error) => (LayerInventory::default(), Some(format!("layers are not known: {error}"))),
            },
        };
    }
}

/// Beside the loop, in which the neighbours' probes have to be answered.
async fn read_store(engine: EngineVersion) -> Result<Stored, String> {
    let read = tokio::task::spawn_blocking(move || engine.read_layers()).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
