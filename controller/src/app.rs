//! The daemon's wiring: bus, cluster, logs and API, each in tasks of its own, joined by channels.
//!
//! Messages of agents go to the cluster, replies to the log streams; what cluster and logs publish goes
//! to the bus. The first of these that ends takes the daemon down with it, so that the service manager
//! sees it: a controller that serves half of its work looks healthy and is not.

use crate::api::serve::Tls;
use crate::api::{self, Api, Guard, Joining};
use crate::config::{Config, Security};
use crate::logs::Logs;
use crate::notify;
use edgeloom_bus::{Bus, Incoming, Outgoing};
use edgeloom_cluster::{Cluster, CopyKeys, NodeMessage, Publish};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::Status;
use edgeloom_common::topics;
use edgeloom_identity::Identity;
use edgeloom_notify::Service;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Publications of cluster and logs that wait for the bus.
const PUBLISH_QUEUE: usize = 256;

/// Between looks at what becomes due with time.
const TICK: Duration = Duration::from_secs(60);

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
    /// Authority and tokens do not open.
    #[error(transparent)]
    Identity(#[from] edgeloom_identity::OpenError),
    /// Certificates from outside do not load.
    #[error(transparent)]
    Tls(#[from] edgeloom_identity::TlsError),
    /// The administrator's context.
    #[error(transparent)]
    Context(#[from] edgeloom_identity::DiskError),
    /// A part of the daemon is gone.
    #[error("{part} ended unexpectedly")]
    Ended { part: &'static str },
}

/// Runs until `stop`; the service manager is told once everything listens.
pub async fn run(config: Config, stop: CancellationToken, service: Service) -> Result<(), AppError> {
    let identity = Identity::open(identity_settings(&config))?;
    let address = config.http.listen;
    let listen_error = |source| AppError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    // A channel each: the cluster's closes when its owner task is gone.
    let (cluster_publish, cluster_published) = mpsc::channel(PUBLISH_QUEUE);
    let (logs_publish, logs_published) = mpsc::channel(PUBLISH_QUEUE);
    let cluster = Cluster::start(settings(&config, &identity), cluster_publish)?;
    let Bus { incoming, outgoing, address: mqtt } = edgeloom_bus::start(bus_config(&config, &identity)?)?;
    let logs = Logs::new(logs_publish);
    outgoing.send(presence(true)).await.map_err(|_| AppError::Ended { part: "the broker" })?;

    let inward = tokio::spawn(inward(incoming, cluster.clone(), logs.clone()));
    let beats = cluster.beats();
    let plans = tokio::spawn(outward(cluster_published, outgoing.clone()));
    let commands = tokio::spawn(outward(logs_published, outgoing.clone()));
    let server = server(&config, address);
    identity.refresh_context(server.clone())?;
    let clock = tokio::spawn(tick(identity.clone(), server));
    let (guard, tls) = guard(&config, &identity);
    let joining = match config.mqtt.files {
        None => Joining::Here { mqtt_port: mqtt.port() },
        Some(_) => Joining::Elsewhere,
    };
    let watched = cluster.clone();
    let registries = tokio::spawn(async move { watched.watch_registries().await });
    let router = api::router(Api { cluster, logs, identity, guard, joining });
    let mut http = tokio::spawn(api::serve::serve(listener, tls, router, stop.clone()));
    tracing::info!(http = %address, mqtt = %mqtt, cluster = %config.cluster, "controller is up");
    service.ready("up");
    // Not before, or "up" could replace what the first beat told. Ends with the cluster, which is waited for below.
    tokio::spawn(notify::follow(service.clone(), beats));
    tokio::select! {
        // First, since the HTTP server ends on the same signal and may be quicker.
        biased;
        () = stop.cancelled() => {}
        _ = inward => return Err(AppError::Ended { part: "the way from the broker to the cluster" }),
        _ = plans => return Err(AppError::Ended { part: "the cluster" }),
        _ = commands => return Err(AppError::Ended { part: "the way of log requests to the broker" }),
        _ = registries => return Err(AppError::Ended { part: "the watch over the registries" }),
        _ = clock => return Err(AppError::Ended { part: "the renewal of certificates" }),
        _ = &mut http => return Err(AppError::Ended { part: "the HTTP server" }),
    }
    service.stopping();
    tracing::info!("controller stops");
    // Agents learn it now, rather than by a time-out; they go on alone either way.
    let _ = outgoing.send(presence(false)).await;
    http.await.map_err(|_| AppError::Ended { part: "the HTTP server" })
}

/// The controller's presence, which agents see retained.
fn presence(online: bool) -> Outgoing {
    // There is one controller: no later session of it has to be told from an earlier one.
    let payload = serde_json::to_vec(&Status::new(online, 0)).expect("it is plain data");
    Outgoing { topic: topics::controller_status(), payload, retain: true }
}

fn settings(config: &Config, identity: &Identity) -> edgeloom_cluster::Settings {
    edgeloom_cluster::Settings {
        cluster: config.cluster.clone(),
        state_dir: config.state_dir.clone(),
        profile: config.profile.clone(),
        scoring: config.scoring.clone(),
        batching: config.batching,
        pool: config.pool.clone(),
        registries: config.registries.clone(),
        follow: config.follow,
        copy_keys: CopyKeys::new(&identity.derived_keys(b"copies of jobs")),
        secrets_key: config.secrets_key.clone(),
        prices: config.prices.clone(),
    }
}

fn bus_config(config: &Config, identity: &Identity) -> Result<edgeloom_bus::Config, AppError> {
    let tls = match &config.mqtt.files {
        // Read once: whoever changes them restarts the controller.
        Some(files) => watch::Sender::new(edgeloom_identity::server_config(files)?).subscribe(),
        None => identity.mqtt(),
    };
    let (listen, cluster) = (config.mqtt.listen, config.cluster.clone());
    Ok(edgeloom_bus::Config { listen, cluster, tls, revoked: identity.revoked() })
}

/// Authority, tokens and revocations, below the state of the cluster.
pub fn identity_settings(config: &Config) -> edgeloom_identity::Settings {
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut names: Vec<String> = config.http.names.iter().cloned().chain(local).collect();
    names.extend(std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()));
    let listened = [config.http.listen, config.mqtt.listen].map(|address| address.ip());
    let addresses = listened.into_iter().filter(|address| !address.is_unspecified()).chain(outward_address());
    names.extend(addresses.map(|address| address.to_string()));
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    let directory = config.state_dir.join("identity");
    edgeloom_identity::Settings { cluster: config.cluster.clone(), directory, names }
}

/// The address that this machine has towards others. Connecting a datagram socket sends nothing; the
/// destination is one of documentation (RFC 5737).
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_unspecified())
}

/// Where the command line on this machine finds the API.
pub fn server(config: &Config, listening: SocketAddr) -> String {
    let scheme = match config.http.security {
        Security::Tls => "https",
        Security::Insecure => "http",
    };
    let host = match listening.ip() {
        IpAddr::V4(address) if address.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(address) if address.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V6(address) => format!("[{address}]"),
        IpAddr::V4(address) => address.to_string(),
    };
    format!("{scheme}://{host}:{}", listening.port())
}

fn guard(config: &Config, identity: &Identity) -> (Guard, Option<Tls>) {
    match config.http.security {
        Security::Tls => {
            let (config, cluster) = (identity.https(), identity.cluster().clone());
            (Guard::Tokens, Some(Tls { config, cluster }))
        }
        Security::Insecure => {
            let address = config.http.listen;
            tracing::warn!(
                %address,
                "THE API IS INSECURE: plain HTTP, and whoever reaches it may do everything; remove `insecure` from [http]"
            );
            (Guard::Open, None)
        }
    }
}

/// Certificates and authorities that become due.
async fn tick(identity: Identity, server: String) {
    let mut every = tokio::time::interval(TICK);
    loop {
        every.tick().await;
        let (identity, server) = (identity.clone(), server.clone());
        let looked = tokio::task::spawn_blocking(move || {
            if let Err(error) = identity.tick() {
                tracing::error!(%error, "cannot renew what is due");
            }
            if let Err(error) = identity.refresh_context(server) {
                tracing::error!(%error, "the administrator's context is out of date");
            }
        });
        if looked.await.is_err() {
            return;
        }
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
            Incoming::Refused(reason) => {
                cluster.refused(reason).await;
                continue;
            }
            Incoming::Status(status) => NodeMessage::Status(status),
            Incoming::Report(report) => NodeMessage::Report(report),
            Incoming::Inventory(inventory) => NodeMessage::Inventory(inventory),
            Incoming::Links(links) => NodeMessage::Links(links),
            Incoming::Observed(observed) => NodeMessage::Observed(observed),
            Incoming::Held(document) => NodeMessage::Held(document),
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
