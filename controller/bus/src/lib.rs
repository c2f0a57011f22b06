//! The embedded MQTT broker: the one way between controller and agents.
//!
//! In: agents' packets over mutual TLS, and what the controller wants published. Out: what the agents
//! say, as typed messages on a channel, and the controller's messages at the agents that subscribed.
//! The controller is in this process, so no packet of it crosses a socket.
//!
//! Invariants: the certificate's common name is the node, and its client id; a node publishes only
//! below its own name and reads only its own filters ([`topics`]); a certificate that was revoked has no
//! session; a node has one session, and while that one answers no other takes its place; no peer, silent,
//! slow or hostile, holds up another. The broker keeps nothing for absent clients but the latest retained value of each
//! topic: truth is in the stores, and this is a lossy pipe.

mod connection;
mod hub;
mod incoming;
mod listener;
mod outbox;
mod retained;

pub use incoming::Incoming;

use connection::Gate;
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::topics;
use edgeloom_identity::Revoked;
use hub::Hub;
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Messages that wait for the controller before nodes are slowed down; each has up to 1 MiB.
const INCOMING_QUEUE: usize = 256;

/// Messages of the controller that wait for the broker; it only sorts them into queues.
const OUTGOING_QUEUE: usize = 256;

/// Where the broker listens, who it is, and whom it refuses.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// Certificates that say another one are refused.
    pub cluster: ClusterId,
    /// For connections from now on; clients have to show a certificate.
    pub tls: watch::Receiver<Arc<ServerConfig>>,
    /// Ends the sessions of these certificates, too.
    pub revoked: watch::Receiver<Revoked>,
}

/// A message of the controller; sent with QoS 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub topic: String,
    pub payload: Vec<u8>,
    /// Kept, and delivered to who subscribes later; an empty payload removes what was kept.
    pub retain: bool,
}

/// A running broker. It runs until the runtime ends; `incoming` closes only if the broker failed.
#[derive(Debug)]
pub struct Bus {
    /// What nodes say, with the node that the certificate proves.
    pub incoming: mpsc::Receiver<(NodeId, Incoming)>,
    /// What the controller says.
    pub outgoing: mpsc::Sender<Outgoing>,
    /// Where the broker listens, with the port that a configured port 0 became.
    pub address: SocketAddr,
}

/// Why the broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The address cannot be had.
    #[error("cannot listen for MQTT on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
}

/// Starts the broker on the current tokio runtime.
pub fn start(config: Config) -> Result<Bus, BusError> {
    let listen_error = |source| BusError::Listen { address: config.listen, source };
    let socket = listener::bind(config.listen).map_err(listen_error)?;
    let address = socket.local_addr().map_err(listen_error)?;
    let (incoming_sender, incoming) = mpsc::channel(INCOMING_QUEUE);
    let (outgoing, outgoing_receiver) = mpsc::channel(OUTGOING_QUEUE);
    let Config { cluster, tls, revoked, .. } = config;
    let hub = Arc::new(Hub::new(incoming_sender, revoked.clone()));
    tokio::spawn(listener::accept_all(socket, tls, Gate { cluster, hub: Arc::clone(&hub) }));
    tokio::spawn(expel(revoked, Arc::clone(&hub)));
    tokio::spawn(pump(outgoing_receiver, hub));
    Ok(Bus { incoming, outgoing, address })
}

/// Ends sessions as their certificates are revoked.
async fn expel(mut revoked: watch::Receiver<Revoked>, hub: Arc<Hub>) {
    while revoked.changed().await.is_ok() {
        hub.end_revoked();
    }
}

/// Sorts the controller's messages into the clients' queues; never waits for a client.
async fn pump(mut outgoing: mpsc::Receiver<Outgoing>, hub: Arc<Hub>) {
    while let Some(message) = outgoing.recv().await {
        if message.payload.len() + message.topic.len() + PACKET_OVERHEAD > topics::PACKET_MAX {
            let (topic, bytes) = (&message.topic, message.payload.len());
            tracing::error!(topic, bytes, limit = topics::PACKET_MAX, "message too large, not published");
            continue;
        }
        hub.publish(message);
    }
}

/// Fixed header, topic length and packet id of a PUBLISH, in bytes (MQTT 3.1.1, 3.3).
const PACKET_OVERHEAD: usize = 5 + 2 + 2;
