//! The daemon's wiring: bus, cluster, logs and API, each in tasks of its own, joined by channels.
//!
//! Messages of agents go to the cluster, replies to the log streams; what cluster and logs publish goes
//! to the bus. The first of these that ends takes the daemon down with it, so that the service manager
//! sees it: a controller that serves half of its work looks healthy and is not.

use crate::api::{self, Api};
use crate::config::Config;
use crate::logs::Logs;
use edgeloom_bus::{Bus, Incoming, Outgoing};
use edgeloom_cluster::{Cluster, NodeMessage, Publish};
use edgeloom_common::desired::SCHEMA;
use edgeloom_common::ids::NodeId;
use edgeloom_common::topics;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Publications of cluster and logs that wait for the bus.
const PUBLISH_QUEUE: usize = 256;

/// Why the daemon ends before it is asked to.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The API's address cannot be had.
    #[error("cannot listen for HTTP on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    /// The broker does not start.
    #[error(transparent)]
    Bus(#[from] edgeloom_bus::BusError),
    /// The state does not open.
    #[error(transparent)]
    Cluster(#[from] edgeloom_cluster::StartError),
    /// A part of the daemon is gone.
    #[error("{part} ended unexpectedly")]
    Ended { part: &'static str },
}

/// Runs until `stop`; calls `ready` with the API's address once everything listens.
pub async fn run(
    config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), AppError> {
    let address = config.http_listen;
    let listen_error = |source| AppError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    // A channel each: the cluster's closes when its owner task is gone.
    let (cluster_publish, cluster_published) = mpsc::channel(PUBLISH_QUEUE);
    let (logs_publish, logs_published) = mpsc::channel(PUBLISH_QUEUE);
    let cluster = Cluster::start(settings(&config), cluster_publish)?;
    let Bus { incoming, outgoing, address: mqtt } = edgeloom_bus::start(bus_config(&config))?;
    let logs = Logs::new(logs_publish);
    outgoing.send(presence(true)).await.map_err(|_| AppError::Ended { part: "the broker" })?;

    let inward = tokio::spawn(inward(incoming, cluster.clone(), logs.clone()));
    let plans = tokio::spawn(outward(cluster_published, outgoing.clone()));
    let commands = tokio::spawn(outward(logs_published, outgoing.clone()));
    let router = api::router(Api { cluster, logs });
    let mut http = tokio::spawn(api::serve::serve(listener, router, stop.clone()));
    tracing::info!(http = %address, mqtt = %mqtt, cluster = %config.cluster, "controller is up");
    ready(address);
    tokio::select! {
        // First, since the HTTP server ends on the same signal and may be quicker.
        biased;
        () = stop.cancelled() => {}
        _ = inward => return Err(AppError::Ended { part: "the way from the broker to the cluster" }),
        _ = plans => return Err(AppError::Ended { part: "the cluster" }),
        _ = commands => return Err(AppError::Ended { part: "the way of log requests to the broker" }),
        _ = &mut http => return Err(AppError::Ended { part: "the HTTP server" }),
    }
    tracing::info!("controller stops");
    // Agents learn it now, rather than by a time-out; they go on alone either way.
    let _ = outgoing.send(presence(false)).await;
    http.await.map_err(|_| AppError::Ended { part: "the HTTP server" })
}

/// The controller's presence, which agents see retained.
fn presence(online: bool) -> Outgoing {
    let payload = serde_json::json!({ "schema": SCHEMA, "online": online }).to_string().into_bytes();
    Outgoing { topic: topics::controller_status(), payload, retain: true }
}

fn settings(config: &Config) -> edgeloom_cluster::Settings {
    edgeloom_cluster::Settings {
        cluster: config.cluster.clone(),
        state_dir: config.state_dir.clone(),
        profile: config.profile.clone(),
        pool: config.pool.clone(),
        insecure_registries: config.insecure_registries.clone(),
    }
}

fn bus_config(config: &Config) -> edgeloom_bus::Config {
    edgeloom_bus::Config {
        listen: config.mqtt.listen,
        ca: config.mqtt.ca.clone(),
        certificate: config.mqtt.certificate.clone(),
        key: config.mqtt.key.clone(),
    }
}

/// What agents say, to who has to know it.
async fn inward(mut incoming: mpsc::Receiver<(NodeId, Incoming)>, cluster: Cluster, logs: Logs) {
    while let Some((node, message)) = incoming.recv().await {
        let message = match message {
            Incoming::Reply(reply) => {
                logs.reply(&node, reply);
                continue;
            }
            Incoming::Status(status) => NodeMessage::Status(status),
            Incoming::Report(report) => NodeMessage::Report(report),
            Incoming::Inventory(inventory) => NodeMessage::Inventory(inventory),
            Incoming::Links(links) => NodeMessage::Links(links),
            Incoming::Observed(observed) => NodeMessage::Observed(observed),
        };
        cluster.observe(node, message).await;
    }
}

/// What cluster and logs publish, to the bus.
async fn outward(mut published: mpsc::Receiver<Publish>, outgoing: mpsc::Sender<Outgoing>) {
    while let Some(Publish { topic, payload, retain }) = published.recv().await {
        if outgoing.send(Outgoing { topic, payload, retain }).await.is_err() {
            return;
        }
    }
}
