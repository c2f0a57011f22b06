//! The thread that owns the node's network: netlink is synchronous, and a network namespace belongs to
//! a thread.
//!
//! Commands go in by a bounded channel, each answered once. The thread ends when the last handle is
//! gone; what it put into the kernel stays.

use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::NodeId;
use edgeloom_net::{FlowCounter, NetCapabilities, NetError, Network, Problem};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Commands waiting: the worker has one apply on its way at a time, reports one count, links a few.
const COMMANDS: usize = 16;
/// Netlink buffers are on the heap; the thread itself needs little.
const STACK_BYTES: usize = 256 * 1024;

/// Why a command brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("cannot start the network thread: {0}")]
    Thread(std::io::Error),
    #[error("the network thread has ended")]
    Ended,
}

enum Command {
    Apply(Arc<DesiredState>, oneshot::Sender<Result<Vec<Problem>, NetError>>),
    Counters(oneshot::Sender<Result<Vec<FlowCounter>, NetError>>),
    Neighbour { node: NodeId, up: bool },
    Probe(oneshot::Sender<NetCapabilities>),
    Purge(oneshot::Sender<Result<(), Vec<NetError>>>),
}

/// A handle to the thread.
#[derive(Debug, Clone)]
pub(crate) struct NetworkThread {
    commands: mpsc::Sender<Command>,
    neighbours: watch::Receiver<Neighbours>,
}

/// The neighbours' addresses by the last document applied.
pub(crate) type Neighbours = BTreeMap<NodeId, Ipv4Addr>;

impl NetworkThread {
    /// Starts the thread and opens the network in it.
    pub(crate) fn start<F, K>(open: F) -> Result<Self, NetworkError>
    where
        F: FnOnce() -> Result<Network<K>, NetError> + Send + 'static,
        K: edgeloom_net::Kernel,
    {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (told, neighbours) = watch::channel(Neighbours::new());
        let (opened, outcome) = std::sync::mpsc::sync_channel(1);
        let body = move || match open() {
            Ok(network) => {
                let _ = opened.send(Ok(()));
                serve(network, inbox, &told);
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        };
        let builder = std::thread::Builder::new().name("network".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(body).map_err(NetworkError::Thread)?;
        outcome.recv().map_err(|_| NetworkError::Ended)??;
        Ok(Self { commands, neighbours })
    }

    /// Where the neighbours are, and whenever that changes.
    pub(crate) fn neighbours(&self) -> watch::Receiver<Neighbours> {
        self.neighbours.clone()
    }

    /// Makes the kernel carry the document; the answer is what stood in the way of single objects.
    pub(crate) async fn apply(&self, document: Arc<DesiredState>) -> Result<Vec<Problem>, NetworkError> {
        Ok(self.ask(|reply| Command::Apply(document, reply)).await??)
    }

    /// What the flows' classes counted so far.
    pub(crate) async fn flow_counters(&self) -> Result<Vec<FlowCounter>, NetworkError> {
        Ok(self.ask(Command::Counters).await??)
    }

    /// What the kernel can do.
    pub(crate) async fn probe(&self) -> Result<NetCapabilities, NetworkError> {
        self.ask(Command::Probe).await
    }

    /// Removes everything of ours from the kernel; the answer is what could not be removed.
    pub(crate) async fn purge(&self) -> Result<Vec<NetError>, NetworkError> {
        Ok(self.ask(Command::Purge).await?.err().unwrap_or_default())
    }

    /// Tells that a neighbour stopped answering, or answers again.
    pub(crate) async fn neighbour(&self, node: NodeId, up: bool) -> Result<(), NetworkError> {
        self.commands.send(Command::Neighbour { node, up }).await.map_err(|_| NetworkError::Ended)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, NetworkError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| NetworkError::Ended)?;
        answer.await.map_err(|_| NetworkError::Ended)
    }
}

/// Answers commands until the last handle is gone. An asker that went away is no concern.
fn serve<K: edgeloom_net::Kernel>(
    mut network: Network<K>,
    mut inbox: mpsc::Receiver<Command>,
    neighbours: &watch::Sender<Neighbours>,
) {
    let mut held: Option<Arc<DesiredState>> = None;
    while let Some(command) = inbox.blocking_recv() {
        match command {
            Command::Apply(document, reply) => {
                let applied = network.apply(&document);
                let _ = reply.send(applied.map(|applied| applied.problems));
                neighbours.send_if_modified(|told| {
                    let differs = *told != document.neighbours;
                    told.clone_from(&document.neighbours);
                    differs
                });
                held = Some(document);
            }
            Command::Counters(reply) => {
                let _ = reply.send(network.flow_counters());
            }
            Command::Neighbour { node, up } => {
                turn(&mut network, &node, up);
                lead_around(&mut network, held.as_deref());
            }
            Command::Probe(reply) => {
                let _ = reply.send(network.probe());
            }
            Command::Purge(reply) => {
                let _ = reply.send(network.purge());
            }
        }
    }
}

/// Tasks behind a neighbour that died are reached over their alternates, and over it again when it is back.
fn lead_around<K: edgeloom_net::Kernel>(network: &mut Network<K>, held: Option<&DesiredState>) {
    if let Some(held) = held.filter(|held| !held.alternates.is_empty())
        && let Err(error) = network.apply(held)
    {
        tracing::warn!(%error, "tasks are not led around a neighbour's change");
    }
}

fn turn<K: edgeloom_net::Kernel>(network: &mut Network<K>, node: &NodeId, up: bool) {
    let turned = if up { network.neighbour_up(node) } else { network.neighbour_down(node) };
    match turned {
        Ok(_) => tracing::info!(neighbour = %node, up, "neighbour changed"),
        Err(error) => {
            tracing::warn!(neighbour = %node, up, %error, "the kernel did not follow the neighbour's change");
        }
    }
}
